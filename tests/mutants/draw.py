"""Which faults are planted: evenly over packages, and over kinds within each.

The order depends on the seed and on the faults' identities only: a change of some lines draws few
other faults, and the first faults of a longer draw are those of a shorter one.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from mutants.fault import Fault
from mutants.in_c import TEMPLATES, c_faults

PACKAGE = "mbcasadi"
OF_THEIR_OWN = ("control/inverse_dynamics",)
"""Folders that count as packages."""

C_PACKAGE, TOP = "codegen, C templates", "top level"

TESTS = {
    TOP: ("tests/test_*.py",),
    C_PACKAGE: ("tests/codegen",),
    "description": ("tests/qp", "tests/mjcf", "tests/system"),
    "spatial": ("tests/spatial", "tests/model"),
    "cli": ("tests/cli",),
}
"""Tests of a package where these are not in the folder of its name."""


def package_of(path: str) -> str:
    """Return the package of a file, by its path from the root."""
    if path.startswith(TEMPLATES):
        return C_PACKAGE
    inside = path.removeprefix(f"{PACKAGE}/")
    for folder in OF_THEIR_OWN:
        if inside.startswith(f"{folder}/"):
            return folder
    return inside.split("/")[0] if "/" in inside else TOP


def matching_tests(package: str, tree: Path) -> list[str]:
    """Return the test files of a package, from the root of the tree."""
    files: set[Path] = set()
    for pattern in TESTS.get(package, (f"tests/{package}",)):
        for place in tree.glob(pattern):
            files |= set(place.rglob("test_*.py")) if place.is_dir() else {place}
    for folder in OF_THEIR_OWN:
        if package != folder:
            files -= set((tree / "tests" / folder).rglob("test_*.py"))
    return sorted(str(file.relative_to(tree)) for file in files)


def faults_of(path: str, text: str) -> Iterator[Fault]:
    """Yield the faults of a file."""
    if path.endswith(".py"):
        from mutants.in_python import python_faults  # needs cosmic-ray

        yield from python_faults(path, text)
    else:
        yield from c_faults(path, text)


def draw(faults: Iterable[Fault], seed: int) -> list[Fault]:
    """Return all faults: one of each package in turn, the kinds of each in turn."""
    groups: dict[str, dict[str, list[Fault]]] = defaultdict(lambda: defaultdict(list))
    for fault in faults:
        groups[package_of(fault.path)][fault.kind].append(fault)
    each = [
        _in_turn(
            [
                sorted(kinds[kind], key=lambda fault: _score(seed, fault.identity))
                for kind in sorted(kinds, key=lambda kind: _score(seed, f"{package} {kind}"))
            ]
        )
        for package, kinds in sorted(groups.items())
    ]
    return _in_turn(each)


def _in_turn(lists: Sequence[Sequence[Fault]]) -> list[Fault]:
    rounds = chain.from_iterable(zip_longest(*lists))
    return [fault for fault in rounds if fault is not None]


def _score(seed: int, words: str) -> str:
    return hashlib.sha256(f"{seed} {words}".encode()).hexdigest()
