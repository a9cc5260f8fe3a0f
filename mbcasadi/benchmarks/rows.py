"""Rows of benchmarks with one peer in each, and their table."""

from typing import Any


def table(results: dict[str, Any]) -> str:
    """Return the times as Markdown, from the JSON of `mbcasadi bench mpc`."""
    lines = ["| problem | what | µs, median | miss of u |", "| --- | --- | ---: | ---: |"]
    for line in results["rows"]:
        is_ours = line["peer"] == "-"
        seconds = line["ours"] if is_ours else line["peer_time"]
        cells = [line["model"], f"ours, {line['quantity']}" if is_ours else line["peer"]]
        cells.append("-" if seconds is None else f"{1e6 * seconds:.1f}")
        cells.append("-" if line.get("miss") is None else f"{line['miss']:.0e}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


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
