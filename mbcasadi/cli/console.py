"""What all commands share: tables or JSON, one line for an error, progress on a terminal."""

import functools
import json
import logging
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn, ParamSpec, TypeAlias, TypeVar

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table

from mbcasadi.cli.interrupts import settle
from mbcasadi.errors import MbcasadiError, ProblemError
from mbcasadi.progress import LoggedProgress, Progress

FAILED = 1  # a criterion is not fulfilled
BAD_INPUT = 2  # the command could not do its work
NOT_JUDGED = 3  # no criterion says anything of the run
INTERRUPTED = 130  # Ctrl-C ended the command: 128 + SIGINT

P = ParamSpec("P")
R = TypeVar("R")
Cell: TypeAlias = "str | int | float | np.integer | None"


def handle_errors(command: Callable[P, R], options: Collection[str] = ()) -> Callable[P, R]:
    """Turn our own errors and those of the file system into one line and exit status 2.

    A message that names an argument of Python, `overwrite=True`, names the option in its place
    where it is among `options`: `--overwrite`.

    Ctrl-C ends a command with one line and status 130; exports and reports are written when they
    are complete, so nothing is left half-written.
    """

    @functools.wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (MbcasadiError, OSError) as error:
            fail(_with_options(str(error), options))
        except KeyboardInterrupt:
            fail_interrupted()

    return wrapper


def _with_options(message: str, options: Collection[str]) -> str:
    """Return a message whose arguments are options: `--overwrite`, `--jobs 1`."""

    def option(match: re.Match[str]) -> str:
        name, value = match.groups()
        if name not in options:
            return match[0]
        flag = f"--{name.replace('_', '-')}"
        return flag if value == "True" else f"{flag} {value}"

    return re.sub(r"(?<![\w=(-])(\w+)=(True|\d[\d.]*\b)", option, message)


def fail(message: str, status: int = BAD_INPUT) -> NoReturn:
    """Write `message` to stderr and exit with `status`."""
    typer.echo(f"mbcasadi: {message}", err=True)
    raise typer.Exit(status)


def fail_interrupted(more: str = "") -> NoReturn:
    """Write that Ctrl-C ended the command, and exit with its status."""
    settle()
    fail(f"interrupted{more}", INTERRUPTED)


def exit_unless(passed: bool | None) -> None:
    """Exit with status 1 unless the criteria are fulfilled, with 3 where none judges the run."""
    if not passed:
        raise typer.Exit(NOT_JUDGED if passed is None else FAILED)


def stdout() -> Console:
    """Return a console on stdout; wide where the output is a file."""
    return Console(width=None if sys.stdout.isatty() else 110, highlight=False)


def show(items: Iterable[str | Table], saved: Path | None = None) -> None:
    """Print tables, lines as they are, and where a report was written."""
    screen = stdout()
    for item in items:
        if isinstance(item, str):
            screen.print(item, markup=False, soft_wrap=True)
        else:
            screen.print(item)
    if saved is not None:
        screen.print(f"report: {saved.absolute()}", markup=False, soft_wrap=True)


def emit_json(data: Mapping[str, object]) -> None:
    """Write `data` as JSON; NumPy arrays become lists, NaN and infinity become null."""
    from mbcasadi.validation.report import plain_data

    typer.echo(json.dumps(plain_data(data), indent=2, allow_nan=False))


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
    """Return a table; columns whose name ends with `>` are aligned to the right."""
    result = Table(title=title, title_justify="left", title_style="bold", show_edge=False)
    for name in columns:
        right = name.endswith(">")
        result.add_column(name.removesuffix(">"), justify="right" if right else "left")
    for row in rows:
        # names of a model are no markup: "[/bold]" is a name
        result.add_row(*(escape(c) if isinstance(c, str) else number_text(c) for c in row))
    return result


def number_text(value: float | np.integer | None) -> str:
    """Return a number as text: integers whole, others with four figures."""
    if value is None:
        return "-"
    if isinstance(value, (bool, int, np.integer)):
        return str(value)
    if math.isinf(value):
        return "none"
    return f"{value:.4g}"


class ShownProgress:
    """A function of (what is being done, fraction done), and a bar that shows it, or none."""

    def __init__(self, report: Progress, bar: ProgressBar | None = None) -> None:
        self._report, self._bar = report, bar

    def __call__(self, text: str, share: float) -> None:
        """Report what is being done, and which share is done."""
        self._report(text, share)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Take the bar away, so that something can be printed."""
        if self._bar is None:
            yield
            return
        self._bar.stop()
        yield
        self._bar.start()


@contextmanager
def progress(quiet: bool) -> Iterator[ShownProgress]:
    """Show progress on a terminal, on stderr; lines of the log elsewhere; nothing if `quiet`."""
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield ShownProgress(lambda _text, _fraction: None)
    elif console.is_terminal:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
        )
        with ProgressBar(*columns, console=console, transient=True) as bar:
            row = bar.add_task("", total=1.0)
            yield ShownProgress(
                lambda text, share: bar.update(row, description=escape(text), completed=share), bar
            )
    else:
        with log_lines(logging.INFO):
            yield ShownProgress(LoggedProgress())


class _Lines(logging.Handler):
    """Writes to what is stderr now: a bar of progress puts its own in the place."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        sys.stderr.write(f"{self.format(record)}\n")


@contextmanager
def log_lines(level: int) -> Iterator[None]:
    """Write the log from a level on to stderr; details with their time and their module."""
    log = logging.getLogger("mbcasadi")
    if any(isinstance(each, _Lines) for each in log.handlers):  # of --verbose
        yield
        return
    handler, before = _Lines(), log.level
    details = "{relativeCreated:7.0f} ms  {name}: {message}"
    shown = details if level == logging.DEBUG else "{message}"
    handler.setFormatter(logging.Formatter(shown, style="{"))
    log.addHandler(handler)
    log.setLevel(level)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def details(verbose: bool) -> AbstractContextManager[None]:
    """Return a context that writes all of the log, if `verbose`."""
    return log_lines(logging.DEBUG) if verbose else nullcontext()


@dataclass(frozen=True)
class JsonOnly:
    """How results and the log are shown."""

    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")
    ] = False
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Write the log on stderr, with all details.")
    ] = False


@dataclass(frozen=True)
class Output(JsonOnly):
    """How results and progress are shown."""

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False


@dataclass(frozen=True)
class Saved(Output):
    """Where results go, a file among them, which must be one that can be written."""

    report: Annotated[
        Path | None, typer.Option(help="Write the report to this .html or .json file.")
    ] = None

    def __post_init__(self) -> None:
        if self.report is not None:
            require_writable(self.report)


def finish(
    output: JsonOnly,
    data: Callable[[], Mapping[str, object]],
    items: Iterable[str | Table],
    passed: bool | None = True,
) -> None:
    """Show a result as JSON, or as tables and lines, and exit with the status of its verdict."""
    report = output.report if isinstance(output, Saved) else None
    if output.as_json:
        file = {"file": None if report is None else str(report)}
        emit_json({**data(), **(file if isinstance(output, Saved) else {})})
    else:
        show(items, report)
    exit_unless(passed)


def require_writable(path: Path, *suffixes: str) -> None:
    """Raise unless a report can be written to `path`, before a long run.

    Raises:
        ProblemError: another suffix, .html or .json by default, or a folder that is not writable.
    """
    expected = suffixes or (".html", ".json")
    if path.suffix not in expected:
        words = " or ".join(expected)
        raise ProblemError(f"{path}: expected a report file that ends with {words}")
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ProblemError(f"cannot write {path}: {folder} is no folder that can be written to")
