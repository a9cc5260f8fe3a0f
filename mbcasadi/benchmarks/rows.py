"""Rows of benchmarks with one peer in each, and their table."""

from typing import Any


def table(found: dict[str, Any]) -> str:
    """Return the times as Markdown, from the JSON of `mbcasadi bench mpc`."""
    lines = ["| problem | what | µs, median | miss of u |", "| --- | --- | ---: | ---: |"]
    for one in found["rows"]:
        own = one["peer"] == "-"
        seconds = one["ours"] if own else one["peer_time"]
        cells = [one["model"], f"ours, {one['quantity']}" if own else one["peer"]]
        cells.append("-" if seconds is None else f"{1e6 * seconds:.1f}")
        cells.append("-" if one.get("miss") is None else f"{one['miss']:.0e}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def row(model: str, quantity: str, ours: float, peer: str, other: float | None) -> dict[str, Any]:
    """Return one line of the table: our time, s, and that of a peer ("-" where there is none)."""
    return {
        "model": model,
        "quantity": quantity,
        "ours": ours,
        "peer": peer,
        "peer_time": other,
        "ratio": None if other is None else ours / other,
    }
