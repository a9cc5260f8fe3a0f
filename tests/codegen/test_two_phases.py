"""A tick in two phases: preparation and feedback are the whole tick, or report what is missing."""

import dataclasses

import casadi as ca
import numpy as np
import pytest
from codegen_problems import saturated_controller
from two_phase_problems import BAD_INPUT, LIMIT, SOLVED, M, N, two_phase_controller

import mbcasadi.codegen as codegen
from mbcasadi.errors import ExportError, ShapeError, UnknownNameError

STATES = 1000
SOLVER_TOL = 1e-9  # DAQP in Python has a tolerance of 1e-10


@pytest.fixture(scope="module", params=[True, False], ids=["rows prepared", "rows built"])
def controller(request):
    return two_phase_controller(rows_prepared=request.param)


@pytest.fixture(scope="module")
def project(controller, tmp_path_factory):
    return codegen.export_c(controller, tmp_path_factory.mktemp("phases") / "c")


def states(rng, count):
    """Return inputs (count, size); every tenth has a number that is none."""
    sets = {"q": rng.normal(size=(count, 2)), "ref": 1.5 * rng.normal(size=(count, N))}
    sets["z"] = rng.choice([-1.0, 0.0, 1.0], size=(count, M))
    for k in range(0, count, 10):
        name = ("q", "ref", "z")[k // 10 % 3]
        sets[name][k, 0] = (np.nan, np.inf, 1e200)[k // 30 % 3]
    return sets


def ticks(sets):
    return [{name: values[k] for name, values in sets.items()} for k in range(len(sets["q"]))]


def prepare_inputs(tick):
    return {name: tick[name] for name in ("ref", "z")}


def equal(first, second):
    return all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_both_phases_are_the_whole_tick_bit_for_bit_and_the_law_in_python(controller, project):
    sets = states(np.random.default_rng(0), STATES)
    law = controller.function.map(STATES)
    expected = [np.array(out).T for out in law(*(sets[name].T for name in law.name_in()))]
    whole, apart = project.memory(), project.memory()
    statuses = set()
    for k, tick in enumerate(ticks(sets)):
        project.prepare(apart, prepare_inputs(tick))
        outputs = project.feedback(apart, tick)
        assert equal(outputs, project.step(whole, tick))
        status = int(outputs["status"][0])
        statuses.add(status)
        assert status == expected[2][k]
        assert np.abs(outputs["u"] - expected[0][k]).max() < SOLVER_TOL
        assert np.all(np.abs(outputs["u"]) <= LIMIT)
    assert statuses == {0, 2, 3}


def test_the_library_that_casadi_loads_does_the_whole_tick(project):
    sets = states(np.random.default_rng(1), 50)
    law, memory = project.load(), project.memory()
    for tick in ticks(sets):
        u = np.array(law(*tick.values())[0]).ravel()
        assert u.tobytes() == project.step(memory, tick)["u"].tobytes()


def test_the_solution_depends_on_what_was_prepared_and_on_what_was_measured(project):
    memory, first = project.memory(), {"q": [0.1, 0.2], "ref": [0.3, 0.4, 0.5], "z": np.zeros(M)}
    outputs_first = project.step(memory, first)
    assert outputs_first["status"][0] == SOLVED
    for name in ("q", "ref"):
        changed = first | {name: np.array(first[name]) + 0.1}
        assert np.abs(project.step(memory, changed)["u"] - outputs_first["u"]).max() > 1e-3


def test_a_feedback_on_nothing_prepared_is_bad_input_with_the_laws_own_safe_output(project):
    tick = {"q": [0.1, 0.2], "ref": [0.3, 9.0, 0.5], "z": [1.0, 0, -1, 0]}
    for memory in (project.memory(), project.memory()):
        outputs = project.feedback(memory, tick)
        assert outputs["status"][0] == BAD_INPUT
        assert outputs["residual"][0] == np.inf
        assert outputs["u"].tolist() == [0.3, LIMIT, 0.5]
        assert outputs["z_next"].tolist() == tick["z"]
        project.prepare(memory, prepare_inputs(tick))
        assert equal(project.feedback(memory, tick), project.step(project.memory(), tick))


@pytest.mark.parametrize("name", ["ref", "z"])
def test_a_feedback_on_other_inputs_than_the_prepared_is_refused(name, project):
    tick = {"q": [0.1, 0.2], "ref": np.array([0.3, 0.4, 0.5]), "z": np.zeros(M)}
    other = tick | {name: tick[name].copy()}
    other[name][-1] = np.nextafter(other[name][-1], 1)
    memory = project.memory()
    project.prepare(memory, prepare_inputs(tick))
    assert project.feedback(memory, other)["status"][0] == BAD_INPUT
    assert project.feedback(memory, tick)["status"][0] == BAD_INPUT  # it is forgotten
    project.prepare(memory, prepare_inputs(other))
    assert project.feedback(memory, other)["status"][0] == SOLVED


def test_preparing_twice_keeps_the_second_and_feedback_may_come_twice(project):
    first = {"q": [0.1, 0.2], "ref": [0.3, 0.4, 0.5], "z": np.zeros(M)}
    second = first | {"ref": [-0.3, 0.1, 0.2]}
    memory = project.memory()
    project.prepare(memory, prepare_inputs(first))
    project.prepare(memory, prepare_inputs(second))
    for q in ([0.1, 0.2], [0.3, -0.2], [0.1, 0.2]):
        tick = second | {"q": q}
        outputs = project.feedback(memory, tick)
        assert outputs["status"][0] == SOLVED
        assert equal(outputs, project.step(project.memory(), tick))
    assert project.feedback(memory, first)["status"][0] == BAD_INPUT


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_bad_numbers_in_a_preparation_become_bad_input_in_its_feedback(bad, project):
    tick = {"q": [0.1, 0.2], "ref": [0.3, bad, 0.5], "z": np.zeros(M)}
    memory = project.memory()
    project.prepare(memory, prepare_inputs(tick))
    outputs = project.feedback(memory, tick)
    assert outputs["status"][0] == BAD_INPUT
    assert outputs["u"].tolist() == [0.3, 0.0, 0.5]
    good = tick | {"ref": [0.3, 0.4, 0.5]}
    project.prepare(memory, prepare_inputs(good))
    assert project.feedback(memory, good)["status"][0] == SOLVED


def test_inputs_that_are_left_out_count_as_zeros_in_both_phases(project):
    memory, zeros = project.memory(), {"q": [0.1, 0.2], "ref": np.zeros(N), "z": np.zeros(M)}
    project.prepare(memory, {})
    outputs = project.feedback(memory, {"q": [0.1, 0.2]})
    assert outputs["status"][0] == SOLVED
    assert equal(outputs, project.feedback(memory, zeros))
    project.prepare(memory, {"ref": [0.3, 0, 0]})
    assert project.feedback(memory, {"q": [0.1, 0.2]})["status"][0] == BAD_INPUT


def test_a_law_that_does_not_see_what_is_missing_is_overruled(tmp_path):
    law = codegen.export_c(two_phase_controller(deaf=True), tmp_path / "c")
    memory, tick = law.memory(), {"q": [9.0, 9.0], "ref": [0.3, 0.4, 0.5], "z": [1.0, 0, 0, -1]}
    outputs = law.feedback(memory, tick)
    assert outputs["status"][0] == BAD_INPUT
    assert outputs["u"].tolist() == [0, 0, 0]
    assert outputs["z_next"].tolist() == tick["z"]
    assert outputs["residual"][0] == np.inf


def test_the_example_program_calls_both_phases(project):
    assert "phased_prepare(memory, ref, z)" in (project.folder / "main.c").read_text()
    assert "returned 0" in project.run_example()


def test_header_manual_and_manifest_name_the_phases_and_units(project):
    header, manual = project.header.read_text(), (project.folder / "README.md").read_text()
    assert " *   in  q: 2 [m, rad]" in header
    assert " *   in  ref: 3 [N]" in header
    assert "int phased_prepare(void *memory, const double *ref, const double *z);" in header
    assert "phased_feedback(memory, q, ref, z, u, z_next, status, residual)" in manual
    assert project.manifest["prepared_from"] == ["ref", "z"]


def test_times_of_both_phases_are_taken_on_the_same_ticks(project):
    sets = states(np.random.default_rng(2), 30)
    del sets["z"]
    times = project.time(sets, repeats=2)
    assert times.preparation.seconds.shape == times.feedback.seconds.shape == (60,)
    assert np.all(times.preparation.seconds > 0)
    assert times.feedback.status.tolist() == times.status.tolist()
    assert set(times.preparation.status) == {0}
    assert times.feedback.median <= times.feedback.p99


# -- What is refused


def test_a_law_with_one_phase_has_no_phases(tmp_path):
    project = codegen.export_c(saturated_controller(), tmp_path / "c")
    memory, tick = project.memory(), {"q": [0.1, 0.2]}
    assert project.step(memory, tick)["u"].tolist() == [-2.0, -4.0]
    with pytest.raises(ExportError, match="pd prepares nothing: its ticks have one phase"):
        project.prepare(memory, {})
    with pytest.raises(ExportError, match="pd has no feedback phase: call its step"):
        project.feedback(memory, tick)
    assert project.time({"q": [0.1, 0.2]}).preparation is None
    assert "prepare" not in project.header.read_text()


def test_inputs_that_do_not_fit_are_refused(project):
    memory = project.memory()
    with pytest.raises(UnknownNameError, match="unknown input 'q'; valid: 'ref', 'z'"):
        project.prepare(memory, {"q": [1, 2]})
    with pytest.raises(ShapeError, match=r"ref has shape \(2,\), expected \(3,\)"):
        project.feedback(memory, {"ref": [1, 2]})
    memory.block[:] = 0
    with pytest.raises(ExportError, match="returned -1: -1 is memory"):
        project.prepare(memory, {})


def test_phases_that_do_not_fit_are_refused(tmp_path):
    good = two_phase_controller()
    stages, change = good.stages, dataclasses.replace
    other = two_phase_controller(rows_prepared=False).stages
    x, ref, z = ca.SX.sym("x", 2), ca.SX.sym("ref", N), ca.SX.sym("z", M)

    def prepare(names, inputs, output="prepared", size=N**2 + M + 1):
        return ca.Function("prepare", inputs, [ca.SX.zeros(size)], names, [output])

    cases = [
        (change(stages, prepare=None), "the inputs of build"),
        (change(stages, prepare=prepare(["q"], [x])), "what is measured is not known yet"),
        (change(stages, prepare=prepare(["z", "ref"], [z, ref])), "in this order"),
        (change(stages, prepare=prepare([], [])), "the inputs of prepare are"),
        (change(stages, prepare=prepare(["ref"], [ref], "made")), "the outputs of prepare"),
        (change(stages, prepare=prepare(["ref"], [ref])), "the outputs of build"),
        (change(other, prepare=prepare(["ref"], [ref])), "build prepared has 26 entries"),
        (change(other, prepare=prepare(["z"], [ref], size=26)), "'z' has another shape in prepare"),
    ]
    for case, message in cases:
        with pytest.raises(ExportError, match=message):
            codegen.export_c(change(good, stages=case), tmp_path / "out")
