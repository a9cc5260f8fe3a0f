"""What all commands share: tables or JSON, one line for an error, progress on a terminal."""

import functools
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from mbcasadi.errors import MbcasadiError

FAILED = 1  # a criterion did not hold
BAD_INPUT = 2  # the command could not do its work

P = ParamSpec("P")
R = TypeVar("R")
Tick = Callable[[str, float], None]


def reported(command: Callable[P, R]) -> Callable[P, R]:
    """Turn our own errors and those of the file system into one line and exit status 2."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (MbcasadiError, OSError) as error:
            fail(str(error))

    return wrapped


def fail(message: str, status: int = BAD_INPUT) -> NoReturn:
    """Write `message` to stderr and leave with `status`."""
    typer.echo(f"mbcasadi: {message}", err=True)
    raise typer.Exit(status)


def leave(passed: bool) -> None:
    """Leave with status 1 unless the criteria held."""
    if not passed:
        raise typer.Exit(FAILED)


def screen() -> Console:
    """Return a console on stdout; wide where the output goes to a file."""
    return Console(width=None if sys.stdout.isatty() else 110, highlight=False)


def emit_json(data: Any) -> None:
    """Write `data` as JSON; NumPy arrays become lists, NaN and infinity become null."""
    from mbcasadi.validation.report.plain_data import plain

    typer.echo(json.dumps(plain(data), indent=2, allow_nan=False))


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Return a table; columns whose name ends with `>` are set to the right."""
    result = Table(title=title, title_justify="left", title_style="bold", show_edge=False)
    for name in columns:
        right = name.endswith(">")
        result.add_column(name.removesuffix(">"), justify="right" if right else "left")
    for row in rows:
        result.add_row(*(cell if isinstance(cell, str) else number(cell) for cell in row))
    return result


def number(value: Any) -> str:
    """Return a number as text: integers whole, others with four figures."""
    if value is None:
        return "-"
    if isinstance(value, (bool, int, np.integer)):
        return str(value)
    if math.isinf(value):
        return "none"
    return f"{value:.4g}"


@contextmanager
def progress(quiet: bool) -> Iterator[Tick]:
    """Show progress on a terminal, on stderr; plain lines elsewhere; nothing if `quiet`.

    Yields:
        A function of (what is being done, fraction done).
    """
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield lambda _what, _fraction: None
    elif console.is_terminal:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=console, transient=True) as bar:
            row = bar.add_task("", total=1.0)
            yield lambda what, fraction: bar.update(row, description=what, completed=fraction)
    else:
        yield _line_by_line(console)


def _line_by_line(console: Console) -> Tick:
    """Return a progress function that writes one line whenever the work changes its name."""
    last = [""]

    def tick(what: str, _fraction: float) -> None:
        if what != last[0]:
            last[0] = what
            console.print(what, markup=False, soft_wrap=True)

    return tick
