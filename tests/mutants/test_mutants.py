"""The command that plants faults, on a package of one file: what is planted, and what is said."""

import subprocess
from pathlib import Path

import pytest

from mutants.draw import draw, package_of
from mutants.fault import changed_lines
from mutants.in_c import TEMPLATES, c_faults
from mutants.kept_list import KeptList, Record, is_enough, table
from mutants.plan import Plan, confirm, drawn, try_all
from mutants.relevance import by_relevance
from mutants.trial import copy_tree, planted, run_tests

C_TEXT = """/* a + b, 1e-9 */
#define LIMIT 1e-9
static double sum(const double *a, int n) {
  double s = 0;
  for (int i = 0; i < n && a[i] > 1e-12; ++i) s += a[i];
  return s;
}
"""
PYTHON = '''"""Text: 1 + 2, 1e-9."""

TOL = 1e-9
COLOR = 0.5


def norm(x: float, y: float) -> float:
    """Return 1 + 2."""
    if x < 0:
        raise ValueError(f"{x - 1}")
    return x + y[0]
'''
HALF = """def half(x):
    return x / 2 + 0


def unused(x):
    return x + 1
"""
TEST = """from mbcasadi.half import half


def test_half():
    assert half(4) == 2


def test_that_always_fails():
    assert False
"""


def test_faults_in_c_are_outside_comments_and_definitions():
    faults = list(c_faults(f"{TEMPLATES}sum.c.in", C_TEXT))
    lines = {(f.kind, *changed_lines(C_TEXT, f.plant(C_TEXT))) for f in faults}
    loop = "- for (int i = 0; i < n && a[i] > 1e-12; ++i) s += a[i];"
    assert ("tolerance", loop, loop.replace("1e-12", "1e-09").replace("- for", "+ for")) in lines
    assert ("sign", loop, loop.replace("+=", "-=").replace("- for", "+ for")) in lines
    assert min(fault.line for fault in faults) == 4
    assert len({fault.identity for fault in faults}) == len(faults)


def test_faults_in_python_are_not_in_text_and_compile():
    pytest.importorskip("cosmic_ray", reason="cosmic-ray is not installed (extra: mutants)")
    from mutants.in_python import python_faults

    faults = list(python_faults("mbcasadi/a.py", PYTHON))
    lines = {(f.kind, *changed_lines(PYTHON, f.plant(PYTHON))) for f in faults}
    assert ("tolerance", "- TOL = 1e-9", "+ TOL = 1.0000000000000002e-06") in lines
    assert ("term", "- return x + y[0]", "+ return x") in lines
    assert ("sign", "- return x + y[0]", "+ return x - y[0]") in lines
    assert ("index", "- return x + y[0]", "+ return x + y[ 1]") in lines
    assert ("comparison", "- if x < 0:", "+ if x >= 0:") in lines
    assert {fault.line for fault in faults} == {3, 9, 11}
    assert not list(python_faults("mbcasadi/plots.py", PYTHON))


def test_a_draw_takes_packages_in_turn_and_depends_on_the_seed_only():
    faults = [
        fault for folder in ("x", "y") for fault in c_faults(f"{TEMPLATES}{folder}.c.in", C_TEXT)
    ]
    order = [fault.identity for fault in draw(faults, 0)]
    assert order == [fault.identity for fault in draw(reversed(faults), 0)]
    assert order != [fault.identity for fault in draw(faults, 1)]
    kinds = [fault.kind for fault in draw(faults, 0)]
    assert len(set(kinds[: len(set(kinds))])) == len(set(kinds))
    assert package_of("mbcasadi/control/inverse_dynamics/a.py") == "control/inverse_dynamics"
    assert package_of("mbcasadi/control/laws/a.py") == "control"
    assert package_of("mbcasadi/shapes.py") == "top level"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of a repository with a package of one file."""
    root, copy = tmp_path / "root", tmp_path / "copy"
    for name, text in {
        "mbcasadi/__init__.py": "",
        "mbcasadi/half.py": HALF,
        "tests/test_half.py": TEST,
        ".gitignore": "*.log",
        "left.log": "",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    copy_tree(root, copy)
    return copy


def record_of(line: int, before: str, after: str, **changes) -> Record:
    named = f"half-{line}", "mbcasadi/half.py", line, "top level", "sign", "any"
    return Record(*named, (f"- {before}", f"+ {after}"), **changes)


def test_a_copy_holds_what_git_does_not_ignore(tree: Path):
    assert not (tree / "left.log").exists()
    assert (tree / "mbcasadi/half.py").read_text() == HALF


def test_tests_that_name_a_module_come_first(tree: Path):
    (tree / "tests/test_a.py").write_text("from mbcasadi import other\n")
    tests = ["tests/test_a.py", "tests/test_half.py"]
    assert by_relevance(tree, "mbcasadi/half.py", 1, tests) == tests[::-1]


@pytest.mark.long
def test_a_planted_fault_fails_its_test_and_leaves_no_trace(tree: Path):
    file, test = tree / "mbcasadi/half.py", ["tests/test_half.py::test_half"]
    assert run_tests(tree, test).verdict == "passed"
    with planted(file, HALF.replace("/ 2", "* 2")):
        failed = run_tests(tree, test)
        assert (failed.verdict, failed.witness) == ("failed", test[0])
    with planted(file, HALF.replace("x + 1", "x - 1")):
        assert run_tests(tree, test).verdict == "passed"
    assert run_tests(tree, test).verdict == "passed"
    assert run_tests(tree, test, limit=0.01).verdict == "undecided"
    with pytest.raises(FileNotFoundError, match="test_other"):
        run_tests(tree, ["tests/test_other.py"])


def test_all_faults_are_tried_once_and_a_test_that_always_fails_is_no_witness(tree: Path):
    pytest.importorskip("cosmic_ray", reason="cosmic-ray is not installed (extra: mutants)")
    kept, said = KeptList(tree / "list.jsonl"), []
    for record in drawn(tree, 0, 30):
        if record.edit in ("ReplaceBinaryOperator_Add_Sub", "ReplaceBinaryOperator_Div_Mul"):
            kept.write(record)
    try_all(kept, Plan(tree, then="nothing"), said.append)
    assert {r.kind: r.verdict for r in kept.records} == {"sign": "survived", "factor": "found"}
    assert (tree / "mbcasadi/half.py").read_text() == HALF
    kept.tidy()
    again = KeptList(tree / "list.jsonl")
    assert again.records == kept.records
    tried = len(said)
    try_all(again, Plan(tree, then="nothing"), said.append)
    assert len(said) == tried


def test_a_table_counts_reasons_apart_and_nine_tenths_are_enough(tmp_path: Path):
    kept = KeptList(tmp_path / "list.jsonl")
    for line in range(9):
        kept.write(record_of(line, "a", "b", verdict="found", confirmed=True))
    kept.write(record_of(9, "c", "d", verdict="survived"))
    why = {"half-9": "c is d"}
    assert is_enough(kept.records, why, 0.9)
    assert not is_enough(kept.records, {}, 0.9)
    assert not is_enough(kept.records, why, 0.91)
    text = table(kept.records, why)
    assert "all                          10      9        1         0          0     90%" in text
    assert "half-9 survived, mbcasadi/half.py:9: c is d\n    - c\n    + d" in text
    kept.write(kept.records[0], verdict="undecided")
    assert not is_enough(kept.records, why, 0.8)  # without a reason
    confirm(kept, Plan(tmp_path), print)  # nothing to do
