"""The C of a controller, generated and compiled by a process of its own while this one goes on.

The process is a copy of this one (`fork`), since CasADi cannot read again all Functions that it
writes. It uses the compiler's cache as any other does, and writes the message of an error, or what
else it says, into its folder.
"""

import logging
import signal
import sys
import warnings
from multiprocessing import get_context
from pathlib import Path
from typing import final

import casadi as ca

from mbcasadi.codegen.export import export_c
from mbcasadi.codegen.project import CProject
from mbcasadi.codegen.project_folder import open_project
from mbcasadi.description import Controller
from mbcasadi.errors import ExportError, MbcasadiError

EXPORT, ERROR, LOG = "c", "error.txt", "log.txt"

LOG_LINES = 5
"""Of a process that ended without a message of ours, in the error."""


def can_build_in_background() -> bool:
    """Whether processes can be copied here: on macOS and Windows they cannot, or not safely."""
    return sys.platform == "linux"


@final
class BackgroundBuild:
    """A process that exports a controller and compiles it.

    Args:
        controller: is exported as `export_c` does without options.
        folder: exists and is empty; it has to stay while the library is used.
    """

    def __init__(self, controller: Controller | ca.Function, folder: Path) -> None:
        self._folder = folder
        process = get_context("fork").Process(target=_build, args=(controller, folder), daemon=True)
        with warnings.catch_warnings():
            # of threads that hold locks: the copy uses nothing that this process's threads use
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        self._process = process

    @property
    def is_done(self) -> bool:
        """Whether the process has ended."""
        return not self._process.is_alive()

    def project(self) -> CProject:
        """Wait for the process, and return the export, which is built.

        Raises:
            ExportError: the C could not be generated or built.
        """
        self._process.join()
        error = self._folder / ERROR
        if error.exists():
            raise ExportError(error.read_text(encoding="utf-8"))
        if self._process.exitcode != 0:
            log = (self._folder / LOG).read_text(encoding="utf-8", errors="replace")
            last = "\n".join(log.splitlines()[-LOG_LINES:])
            raise ExportError(
                "the process that exports and compiles ended with status "
                f"{self._process.exitcode}:\n{last}"
            )
        return open_project(self._folder / EXPORT)

    def stop(self) -> None:
        """End the process and its compiler, if they still run."""
        self._process.terminate()
        self._process.join()


def _build(controller: Controller | ca.Function, folder: Path) -> None:
    """Export a controller and compile it, in the copy; nothing of it goes to the terminal."""
    logging.disable()
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    sys.stdout = sys.stderr = (folder / LOG).open("w", encoding="utf-8")
    try:
        export_c(controller, folder / EXPORT).build()
    except MbcasadiError as error:
        (folder / ERROR).write_text(str(error), encoding="utf-8")
