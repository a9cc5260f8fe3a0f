"""Rows of benchmarks with one peer in each, and their table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from bench.suites import BenchmarkRow
from mbcasadi.cli.console import Cell
from mbcasadi.cli.console import table as terminal_table


def table(results: dict[str, Any]) -> str:
    """Return the times as Markdown, from the JSON of `python -m bench mpc`."""
    head = ["problem", "what", "ours, µs", "peer", "its µs", "ratio", "miss"]
    lines = [f"| {' | '.join(head)} |", "| --- | --- | ---: | --- | ---: | ---: | ---: |"]
    for line in results["rows"]:
        cells = [line["model"], line["quantity"], f"{1e6 * line['ours']:.2f}", line["peer"]]
        cells += _cells(line)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cells(line: dict[str, Any]) -> list[str]:
    """Return the peer's time, the ratio and the miss as text."""
    time, ratio, miss = line["peer_time"], line["ratio"], line.get("miss")
    return [
        "-" if time is None else f"{1e6 * time:.2f}",
        "-" if ratio is None else f"{ratio:.2f}",
        "-" if miss is None else f"{miss:.0e}",
    ]


def row(
    model: str, quantity: str, ours: float, peer: str, peer_time: float | None
) -> dict[str, Any]:
    """Return one line of the table.

    Args:
        model: what is timed: mechanism and sizes.
        quantity: which time.
        ours: s.
        peer: its name, "-" where there is none.
        peer_time: s, or None.
    """
    return {
        "model": model,
        "quantity": quantity,
        "ours": ours,
        "peer": peer,
        "peer_time": peer_time,
        "ratio": None if peer_time is None else ours / peer_time,
    }


def benchmark_table(rows: Sequence[BenchmarkRow]) -> Table:
    """Return the rows of benchmarks, times in microseconds."""
    cells: list[tuple[Cell, ...]] = [
        (
            row["model"],
            row["quantity"],
            _microseconds(row["ours"]),
            row["peer"],
            _microseconds(row["peer_time"]),
            row["ratio"],
        )
        for row in rows
    ]
    columns = ("model", "quantity", "ours, us>", "peer", "peer, us>", "ratio>")
    return terminal_table("Benchmarks", columns, cells)


def setting_lines(settings: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    """Yield one line for each setting of each suite."""
    for name, setting in settings.items():
        for key, value in setting.items():
            yield f"{name}: {key}: {value}"


def _microseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1e6 * seconds
