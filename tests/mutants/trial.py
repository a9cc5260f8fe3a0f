"""A copy of the tree, in which one fault at a time is planted and tests are run."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import copy2

FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+\.py(?:::[^\n]*?)?)(?: - .*)?$", re.MULTILINE)
NO_TESTS, WRONG_USE = 5, 4  # exit statuses of pytest
TEST_LIMIT = 600.0
"""A test that takes longer, s, has found the fault: its loop does not end."""


@dataclass(frozen=True)
class Outcome:
    """Of one run of tests.

    Attributes:
        verdict: "passed", "failed" or "undecided": the time was over.
        witness: the test that failed, by its name for pytest; "" where the process ended.
        output: last lines.
    """

    verdict: str
    witness: str = ""
    output: str = ""


def copy_tree(root: Path, copy: Path) -> None:
    """Copy what git knows or does not ignore."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=root, capture_output=True, check=True).stdout.decode()
    for name in filter(None, names.split("\0")):
        if (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            copy2(root / name, copy / name)


@contextmanager
def planted(file: Path, text: str) -> Iterator[None]:
    """Give a file of the copy another text for a while.

    Its bytecode goes both times: Python compares times in seconds, and lengths.
    """
    before = file.read_text(encoding="utf-8")
    try:
        _write(file, text)
        yield
    finally:
        _write(file, before)


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    for stale in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        stale.unlink()


def run_tests(
    copy: Path,
    tests: Sequence[str],
    *,
    workers: int = 1,
    limit: float | None = None,
    deselected: Sequence[str] = (),
    first: bool = True,
) -> Outcome:
    """Run tests of all tiers in the copy, until the first failure unless `first` is False."""
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header"),
        *("-rfE", "--tb=line", "--ignore=tests/mutants"),
        *("-o", f"faulthandler_timeout={TEST_LIMIT}"),
        *("-o", "faulthandler_exit_on_timeout=true"),
        *(("-x",) if first else ()),
        *(("-n", str(workers)) if workers > 1 else ()),
        *(("--all",) if (copy / "tests/conftest.py").exists() else ()),
        *(f"--deselect={name}" for name in deselected),
        *tests,
    ]
    environment = {**os.environ, "PYTHONPATH": str(copy), "COLUMNS": "1000"}
    process = subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return Outcome("undecided", output=f"not done in {limit:g} s")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode in (0, NO_TESTS):
        return Outcome("passed")
    if process.returncode == WRONG_USE and "not found: " in output:
        raise FileNotFoundError(output)  # no fault was looked for
    found = FAILED.findall(output)
    return Outcome("failed", "\n".join(found if not first else found[:1]), output[-2000:])
