"""Markdown tables of the benchmark of the formulations.

python -m bench formulations --json > formulations.json
python -m bench.formulation_table formulations.json
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SUITE = "formulations"
MATRICES = "matrices, "


def tables(results: dict[str, Any]) -> str:
    """Return nanoseconds, operations and lines of C on mechanisms, then both on matrices."""
    rows, sizes = results["rows"], results["settings"][SUITE]
    models = list(dict.fromkeys(row["model"] for row in rows))
    time = {(row["model"], row["quantity"]): 1e9 * row["ours"] for row in rows}
    mechanisms = [name for name in models if not name.startswith(MATRICES)]
    matrices = [name for name in models if name.startswith(MATRICES)]
    quantities = list(dict.fromkeys(row["quantity"] for row in rows))
    peers = {row["model"]: row for row in rows}

    def nanoseconds(model: str, quantity: str) -> str:
        return _number(time.get((model, quantity)))

    def size(model: str, quantity: str) -> str:
        key = f"{model}: {quantity}"
        return f"{_number(sizes['operations'].get(key))} / {_number(sizes['lines'].get(key))}"

    peer = [_number(1e9 * peers[name]["peer_time"]) for name in mechanisms]
    solved = [name for name in quantities if any((model, name) in time for model in matrices)]
    parts = [
        ("Nanoseconds of a call.", _table(mechanisms, quantities, nanoseconds)),
        ("", _line([f"*{peers[mechanisms[0]]['peer']}*", *peer]) if mechanisms else ""),
        ("Operations written out / lines of C.", _table(mechanisms, quantities, size)),
        ("Nanoseconds on dense matrices.", _table(_short(matrices), solved, nanoseconds, matrices)),
        ("Operations / lines.", _table(_short(matrices), solved, size, matrices)),
    ]
    text = ""
    for title, table in parts:
        text += f"\n{title}\n\n{table}" if title else table
    return text.lstrip("\n")


def _short(models: Sequence[str]) -> list[str]:
    return [name.removeprefix(MATRICES) for name in models]


def _table(
    heads: Sequence[str],
    quantities: Sequence[str],
    cell: Callable[[str, str], str],
    models: Sequence[str] = (),
) -> str:
    lines = [_line(["", *heads]), _line(["---", *("---:" for _ in heads)])]
    for quantity in quantities:
        cells = [cell(model, quantity) for model in models or heads]
        lines.append(_line([f"`{quantity}`", *cells]))
    return "".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}"


if __name__ == "__main__":
    print(tables(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
