"""What all commands share: tables or JSON, one line for an error, progress on a terminal."""

import functools
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, ParamSpec, TypeAlias, TypeVar

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table

from mbcasadi.cli.interrupts import settle
from mbcasadi.errors import MbcasadiError

FAILED = 1  # a criterion is not fulfilled
BAD_INPUT = 2  # the command could not do its work
NOT_JUDGED = 3  # no criterion says anything of the run
INTERRUPTED = 130  # Ctrl-C ended the command: 128 + SIGINT

P = ParamSpec("P")
R = TypeVar("R")
Progress: TypeAlias = Callable[[str, float], None]
Cell: TypeAlias = "str | int | float | np.integer | None"


def handle_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn our own errors and those of the file system into one line and exit status 2.

    Ctrl-C ends a command with one line and status 130; exports and reports are written when they
    are complete, so nothing is left half-written.
    """

    @functools.wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (MbcasadiError, OSError) as error:
            fail(str(error))
        except KeyboardInterrupt:
            fail_interrupted()

    return wrapper


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


def print_lines(lines: Iterable[str], saved: Path | None = None) -> None:
    """Print lines as they are, and where a report was written."""
    found = [] if saved is None else [f"report: {saved.absolute()}"]
    for line in (*lines, *found):
        stdout().print(line, markup=False, soft_wrap=True)


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


@contextmanager
def progress(quiet: bool) -> Iterator[Progress]:
    """Show progress on a terminal, on stderr; plain lines elsewhere; nothing if `quiet`.

    Yields:
        A function of (what is being done, fraction done).
    """
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield lambda _text, _fraction: None
    elif console.is_terminal:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
        )
        with ProgressBar(*columns, console=console, transient=True) as bar:
            row = bar.add_task("", total=1.0)
            yield lambda text, fraction: bar.update(
                row, description=escape(text), completed=fraction
            )
    else:
        yield _progress_lines(console)


def _progress_lines(console: Console) -> Progress:
    """Return a progress function that writes one line whenever the text changes."""
    last = [""]

    def write(text: str, _fraction: float) -> None:
        if text != last[0]:
            last[0] = text
            console.print(text, markup=False, soft_wrap=True)

    return write
