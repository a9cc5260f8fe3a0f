"""Gains that change between ticks: one struct of numbers with defaults and bounds."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from test_c_program import run_program

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.control.laws import Command, LawInterface, make_law
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description.status import Status

GAINS = (
    mb.TuningParameter("kp", 20.0, unit="N/m"),
    mb.TuningParameter("kd", 4.0, upper=50.0, unit="N s/m"),
)
SLOTS = (Slot("place", ("x",), ("m",)),)
LIMIT = 30.0  # N
REF = [0.5]  # m
SAME = 1e-12  # the C does the same operations


def mass():
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    limits = [[-LIMIT, LIMIT]]
    return mb.from_lagrangian(q, v, kinetic=v**2, B=[[1]], ctrl_range=limits, name="mass")


def pd(tuning=GAINS):
    def equations(at):
        u = at.tuning["kp"] * (at.ref["place"] - at.q) - at.tuning["kd"] * at.v
        return Command(u=u, a=u / 2)

    return make_law(mass(), "pd", equations, LawInterface(SLOTS, tuning=tuning))


@pytest.fixture(scope="module")
def laws(tmp_path_factory):
    law = pd()
    project = mb.export_c(law, tmp_path_factory.mktemp("tuning") / "c")
    return law, project, project.load(flags=("-O0",))


def test_the_repr_of_an_export_is_one_line(laws):
    project = laws[1]
    expected = f"CProject('pd', {project.operations} operations, in '{project.folder}')"
    assert repr(project) == expected


def test_inputs_stand_in_the_order_of_the_contract(laws):
    law, project, _ = laws
    assert law.function.name_in() == ["q", "v", "ref", "tuning", "z"]
    assert law.function.name_out() == ["u", "z_next", "status", "flags", "residual"]
    assert law.controller.contract_violation() == ""
    bare = replace(law.controller, tuning=())
    assert "2 numbers and 0 tuning parameters" in bare.contract_violation()
    assert [entry["name"] for entry in project.manifest["tuning"]] == ["kp", "kd"]
    assert project.manifest["tuning"][0]["upper"] is None
    names = ("SATURATED", "RELAXED", "GATED", "CLIPPED")
    names += ("UNPREPARED", "INTERRUPTING", "UNINITIALISED", "UNVIABLE")
    names += ("OPEN_GAP", "UNCARRIED", "TASK_MISSED", "UNSURE", "OVERDUE")
    assert project.manifest["flag_bits"] == {name: 2**k for k, name in enumerate(names)}


def test_gains_act_on_the_next_tick_in_python_and_in_c(laws):
    law, _, program = laws
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, v = rng.standard_normal(2)
        kp, kd = rng.uniform(0, 50, 2)
        expected = np.clip(kp * (REF[0] - q) - kd * v, -LIMIT, LIMIT)
        for function in (law.function, program):
            u, _, status, flags, _ = function(q, v, REF, [kp, kd], [])
            assert abs(float(u) - expected) < SAME * LIMIT
            saturated = abs(expected) == LIMIT
            assert int(status) == (Status.SATURATED if saturated else Status.SOLVED)
            assert int(flags) == int(saturated)


@pytest.mark.parametrize("tuning", [[np.nan, 4.0], [-1.0, 4.0], [20.0, 51.0], [np.inf, 0.0]])
def test_tuning_that_makes_no_sense_is_bad_input(laws, tuning):
    for function in (laws[0].function, laws[2]):
        u, _, status, flags, _ = function(0.1, 0.2, REF, tuning, [])
        assert int(status) == Status.BAD_INPUT
        assert abs(float(u) + 20 * 2 * 0.2) < SAME * LIMIT  # the motor brakes 2 kg at 20 1/s
        assert int(flags) == 0


def test_tuning_that_is_left_out_is_never_taken_for_zero(laws):
    """CasADi knows one default for all entries of an input: NaN, which is bad input."""
    law, _, program = laws
    for function in (law.function, program):
        assert int(function(q=0.1, v=0.2, ref=REF)["status"]) == Status.BAD_INPUT
    assert law.controller.default_tuning.tolist() == [20.0, 4.0]


def test_a_null_pointer_means_the_defaults(laws, tmp_path):
    law, project, _ = laws
    text = """
#include "pd.h"
int main(void) {
  static double memory[PD_MEMORY_DOUBLES];
  const double q = 0.1, v = 0.2, ref = 0.5;
  double u, status, flags;
  if (pd_init(memory, sizeof memory)) return 1;
  pd_step(memory, &q, &v, &ref, NULL, NULL, &u, NULL, &status, &flags, NULL);
  printf("%.17g %g", u, status);
  return 0;
}
"""
    printed = run_program(tmp_path, text, project)
    u, status = (float(word) for word in printed.split())
    expected = law.function(0.1, 0.2, REF, law.controller.default_tuning, [])
    assert status == 0
    assert abs(u - float(expected[0])) < SAME


def test_ticks_are_timed_with_the_defaults(laws):
    state = {"q": 0.1, "v": 0.2, "ref": REF}
    assert laws[1].time(state, flags=("-O0",)).status[0] == Status.SOLVED
    assert laws[1].time(state | {"tuning": [-1.0, 4.0]}, flags=("-O0",)).status[0] == 3


@pytest.mark.parametrize(
    ("tuning", "words"),
    [
        ((GAINS[0], GAINS[0]), "different names"),
        ((mb.TuningParameter("kp", -1.0),), "lower <= default <= upper"),
        ((mb.TuningParameter("kp", np.nan),), "lower <= default <= upper"),
    ],
)
def test_contradictory_parameters_are_refused(tuning, words):
    with pytest.raises(err.ProblemError, match=words):
        pd(tuning)
