"""The C of a controller, generated and compiled by a process of its own while this one goes on.

The process reads a pickle, exports and builds the controller, and ends. Its compiler uses the
cache as any other does. A message of an error is the file `ERROR` of the folder.
"""

import pickle
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import final

from mbcasadi.codegen.export import export_c
from mbcasadi.codegen.project import CProject
from mbcasadi.codegen.project_folder import open_project
from mbcasadi.description import Controller
from mbcasadi.description.loops import LOOPS, SIDE_BY_SIDE
from mbcasadi.errors import ExportError, MbcasadiError
from mbcasadi.pickles import pickle_of

CONTENT, EXPORT, ERROR, LOG = "content.pickle", "c", "error.txt", "log.txt"

LOG_LINES = 5
"""Of a process that ended without a message of ours, in the error."""


@final
class BackgroundBuild:
    """A process that exports a controller and compiles it.

    Args:
        controller: is exported as `export_c` does without options.
        folder: exists and is empty; it has to stay while the library is used.

    Raises:
        NotSendableError: the controller has no pickle.
    """

    def __init__(self, controller: Controller, folder: Path) -> None:
        self._folder = folder
        content = pickle_of((controller, LOOPS, SIDE_BY_SIDE))
        (folder / CONTENT).write_bytes(content)
        with (folder / LOG).open("wb") as log:
            words = [sys.executable, "-m", __name__, str(folder)]
            self._process = subprocess.Popen(words, stdout=log, stderr=log)

    @property
    def is_done(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def project(self) -> CProject:
        """Wait for the process, and return the export, which is built.

        Raises:
            ExportError: the C could not be generated or built.
        """
        code = self._process.wait()
        error = self._folder / ERROR
        if error.exists():
            raise ExportError(error.read_text(encoding="utf-8"))
        if code != 0:
            log = (self._folder / LOG).read_text(encoding="utf-8", errors="replace")
            last = "\n".join(log.splitlines()[-LOG_LINES:])
            raise ExportError(
                f"the process that exports and compiles ended with status {code}:\n{last}"
            )
        return open_project(self._folder / EXPORT)

    def stop(self) -> None:
        """End the process and its compiler, if they still run."""
        if not self.is_done:
            self._process.terminate()
        self._process.wait()


def build(folder: Path) -> int:
    """Export the controller of a folder and compile it; return the exit status."""
    controller, loops, side_by_side = pickle.loads((folder / CONTENT).read_bytes())
    LOOPS.update(loops)
    SIDE_BY_SIDE.update(side_by_side)
    try:
        export_c(controller, folder / EXPORT).build()
    except MbcasadiError as error:
        (folder / ERROR).write_text(str(error), encoding="utf-8")
        return 1
    return 0


def _end(_number: int, _frame: FrameType | None) -> None:
    """End as at Ctrl-C, so that the compiler is ended too."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    sys.exit(build(Path(sys.argv[1])))
