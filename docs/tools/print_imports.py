"""Print which package imports which: every mark stands below the diagonal, so imports run one way.

Run it from the project's folder: `make imports`. Rows import columns; packages stand in the order
of the contract in pyproject.toml, from the lowest up.
"""

import tomllib
from pathlib import Path

import grimp

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
CONTRACT = "Imports between packages run in one direction"


def packages() -> list[str]:
    """Return the packages of the contract, the lowest first."""
    contracts = tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["name"] == CONTRACT)
    names = [part.strip(" ()") for layer in reversed(layers) for part in layer.split("|")]
    return [name.removeprefix("mbcasadi.") for name in names]


def imports() -> dict[str, set[str]]:
    """Return the packages that each package imports."""
    graph = grimp.build_graph("mbcasadi", cache_dir=None)
    found: dict[str, set[str]] = {name: set() for name in packages()}
    for module in graph.modules:
        parts = module.split(".")
        for other in graph.find_modules_directly_imported_by(module):
            target = other.split(".")
            if min(len(parts), len(target)) > 1 and parts[1] != target[1]:
                found[parts[1]].add(target[1])
    return found


def picture() -> str:
    """Return the matrix as text: `#` where the row imports the column, `!` against the order."""
    names, found = packages(), imports()
    width = max(map(len, names))
    lines = []
    for i, row in enumerate(names):
        marks = [
            "\\" if i == k else "!" if other in found[row] and k > i
            else "#" if other in found[row] else "·" if k < i else " "
            for k, other in enumerate(names)
        ]  # fmt: skip
        lines.append(f"{row:>{width}} {' '.join(marks)}".rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    print(picture())
