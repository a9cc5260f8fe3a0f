"""The manifest's bounds of a tick: its stack and its operations."""

import json

import pytest
from codegen_problems import least_distance_controller, saturated_controller

from mbcasadi import codegen
from mbcasadi.codegen.stack import BYTES, FACTOR, FRAME, LIBRARY, stack_bytes
from mbcasadi.codegen.timing import operations_at
from mbcasadi.errors import ExportError, ProblemError

LEAF = "static double leaf(double x) {\n  double kept[%d];\n  return kept[0];\n}\n"
CALLER = "double caller(double x) {\n  double own[10], more[5 + 3];\n  return leaf(x);\n}\n"


def test_the_stack_of_a_chain_of_calls_adds_up():
    size = stack_bytes(LEAF % 100 + CALLER)
    expected = 2 * FRAME + FACTOR * BYTES * (100 + 10 + 8) + LIBRARY
    assert expected <= size <= expected + BYTES
    grown = stack_bytes(LEAF % 200 + CALLER) - size
    assert grown == FACTOR * BYTES * 100


def test_values_count_while_they_are_alive():
    lines = [f"  const double x{k}=x{k - 1}+1;" for k in range(1, 200)]
    chain = "double f(double x0) {\n" + "\n".join(lines) + "\n  return x199;\n}\n"
    kept = chain.replace("x199;", "+".join(f"x{k}" for k in range(200)) + ";")
    assert stack_bytes(kept) - stack_bytes(chain) > FACTOR * BYTES * 190


def test_functions_that_call_each_other_in_a_circle_are_refused():
    circle = "int a(int x) {\n  return b(x);\n}\nint b(int x) {\n  return a(x);\n}\n"
    with pytest.raises(ExportError, match="calls itself"):
        stack_bytes(circle)


def test_operations_grow_with_the_iterations_of_the_solver(tmp_path):
    plain = codegen.export_c(saturated_controller(), tmp_path / "plain")
    staged = codegen.export_c(least_distance_controller(3, 5), tmp_path / "staged")
    cold, one = (operations_at(staged.manifest, k) for k in (0, 1))
    assert one - cold == staged.manifest["tick_operations"]["per_iteration"] > 0
    assert operations_at(plain.manifest, 7) == plain.operations
    worst = staged.worst_case({}, ticks=50)
    assert worst.ticks == 50
    assert worst.median <= worst.p9999 <= worst.longest
    assert worst.operations == operations_at(staged.manifest, worst.iteration_limit)
    with pytest.raises(ProblemError, match="expected 1 or more"):
        staged.worst_case({}, ticks=0)


def test_a_solver_without_a_bound_says_so(tmp_path):
    project = codegen.export_c(least_distance_controller(2, 3), tmp_path / "out", solver="daqp")
    assert project.worst_case({}, ticks=5).operations is None


def test_measurements_are_written_into_the_manifest_on_request(tmp_path):
    project = codegen.export_c(saturated_controller(), tmp_path / "out")
    assert project.manifest["measured"] == {}
    library = project.build().path
    worst = project.worst_case({}, ticks=50, record=True)
    footprint = project.footprint("gcc", record=True)
    found = codegen.open_project(tmp_path / "out")
    assert found.manifest == project.manifest
    (ticks,) = found.manifest["measured"]["ticks"].values()
    assert (ticks["ticks"], ticks["p9999"]) == (50, worst.p9999)
    assert "-O3" in ticks["command"]
    entry = found.manifest["measured"]["footprints"]["gcc"]
    assert entry["flash_bytes"] == footprint.flash_bytes > 100
    assert entry["ram_bytes"] == footprint.ram_bytes
    assert str(tmp_path) not in json.dumps(entry)
    assert found.build().path == library  # it is the same C
    again = found.footprint("gcc", ("-Os",), record=True)
    assert found.manifest["measured"]["footprints"]["gcc"]["flash_bytes"] == again.flash_bytes
    assert "ticks" in found.manifest["measured"]
    codegen.export_c(saturated_controller(), tmp_path / "out", overwrite=True, real="float")
    with pytest.raises(ExportError, match="holds another export by now"):
        found.footprint("gcc", record=True)
    assert not [path for path in tmp_path.glob("out/.*") if path.name.startswith(".manifest")]
