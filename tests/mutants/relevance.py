"""Which test files are likely to find a fault of a module: they run first."""

import re
from collections.abc import Sequence
from pathlib import Path

NAME = re.compile(r"^(?:def|class) (\w+)|^([A-Z][A-Z0-9_]{3,})\b", re.MULTILINE)
ENCLOSING, OWN_NAME, NAME_OF_IMPORTER, SAME_FOLDER, SAME_WORD = 12, 3, 1, 4, 8
"""Weights of a test file that speaks of a name, or is where one expects it."""

MOST_IMPORTERS = 10
"""What more files import says nothing of a test."""


def by_relevance(tree: Path, module: str, line: int, tests: Sequence[str]) -> list[str]:
    """Return the test files, first those that speak most of what a file defines around a line.

    Then count what the modules define that import it, and the place of the test file.

    Args:
        tree: root of the files.
        module: path of a file, from the root.
        line: its line with the fault, from 1.
        tests: paths of test files, from the root.
    """
    text = (tree / module).read_text(encoding="utf-8")
    weights = dict.fromkeys(
        (name for importer in _importers(tree, module) for name in _names(tree / importer)),
        NAME_OF_IMPORTER,
    ) | dict.fromkeys(_names(tree / module), OWN_NAME)
    above = NAME.findall("\n".join(text.splitlines()[:line]))
    weights |= {a or b: ENCLOSING for a, b in above[-1:]}
    folder = Path(module).parent.parts[1:]
    title = set(Path(module).name.split(".")[0].split("_"))

    def score(test: str) -> int:
        words = set(re.findall(r"\w+", (tree / test).read_text(encoding="utf-8")))
        place = Path(test).parent.parts[1:]
        shared = sum(a == b for a, b in zip(folder, place, strict=False))
        by_words = sum(weight for name, weight in weights.items() if name in words)
        in_title = len(title & set(Path(test).stem.split("_")))
        return by_words + SAME_FOLDER * shared + SAME_WORD * in_title

    return sorted(tests, key=lambda test: (-score(test), test))


def _names(file: Path) -> set[str]:
    text = file.read_text(encoding="utf-8")
    return {a or b for a, b in NAME.findall(text)} | {file.name.split(".")[0]}


def _importers(tree: Path, module: str) -> list[str]:
    """Return the files that import a module or name a template."""
    package = module.split("/")[0]
    spoken = module.removesuffix(".py").replace("/", ".") if module.endswith(".py") else ""
    wanted = f"{spoken} import" if spoken else Path(module).name.split(".")[0]
    importers = [
        str(file.relative_to(tree))
        for file in (tree / package).rglob("*.py")
        if file.name != "__init__.py" and wanted in file.read_text(encoding="utf-8")
    ]
    return importers if len(importers) <= MOST_IMPORTERS else []
