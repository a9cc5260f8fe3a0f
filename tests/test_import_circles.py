"""No file of the package imports itself through others; typing and deferred imports count."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import mbcasadi

ROOT = Path(mbcasadi.__file__).parents[1]


def imported_files(root, package):
    """Return module → modules of the package that it imports anywhere; packages are left out."""
    files = [file for file in (root / package).rglob("*.py") if file.name != "__init__.py"]
    modules = {".".join(file.relative_to(root).with_suffix("").parts): file for file in files}
    graph = {}
    for module, file in modules.items():
        found = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
            elif isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
        graph[module] = found & modules.keys() - {module}
    return graph


def test_the_package_has_no_circle_of_imports():
    graph = imported_files(ROOT, "mbcasadi")
    assert len(graph) > 500
    TopologicalSorter(graph).prepare()


def test_a_circle_through_a_deferred_import_is_seen(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.py").write_text("from own.b import f\n")
    (tmp_path / "own" / "b.py").write_text("def f():\n    from own import a\n    return a\n")
    with pytest.raises(CycleError, match="own"):
        TopologicalSorter(imported_files(tmp_path, "own")).prepare()
