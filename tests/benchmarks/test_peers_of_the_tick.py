"""The benchmark of the tick goes on where a peer is wrong or fails, and its row says so."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mbcasadi.benchmarks import tick, tick_peers, tick_robots, tick_tsid
from mbcasadi.benchmarks.tick_cases import QUADRUPED
from mbcasadi.errors import SolverError


@pytest.fixture(scope="module")
def stance():
    """The controller, and three states of the record."""
    controller = QUADRUPED.controller()
    q = np.tile(controller.system.tree.keyframes["stand"], (3, 1))
    return controller, (q, np.zeros((3, controller.system.nv)))


def test_a_solver_with_other_torques_is_named_and_not_compared(monkeypatch, stance):
    controller, states = stance
    (right,) = tick_peers.solvers(
        tick.full_form(
            controller, QUADRUPED.sites, (tick.FRICTION, QUADRUPED.least_force), states,
            states[0][0],
        ),
        only=("quadprog",),
    )  # fmt: skip
    wrong = replace(right, name="other", solutions=tuple(1.1 * x for x in right.solutions))
    unsolved = replace(right, name="lost", solutions=tuple(np.nan * x for x in right.solutions))
    absent = tick_peers.SolverTimes("none (absent: install it)")
    monkeypatch.setattr(tick_peers, "solvers", lambda _: [right, wrong, unsolved, absent])
    rows = tick.usual_form_rows(QUADRUPED, controller, states, 1e-6)
    assert [row["peer_time"] is not None for row in rows] == [True, False, False, False]
    assert [row["peer"].split(" differ")[0] for row in rows] == [
        right.name,
        "other (not compared: its torques",
        "lost (not compared: its torques",
        absent.name,
    ]


@pytest.mark.parametrize(
    ("gaps", "words"),
    [
        ({"torque, N m": 1.0, "motion": 0.0, "unsolved": 0}, "not compared: torque, N m differs"),
        ({"torque, N m": np.nan, "motion": 0.0, "unsolved": 0}, "not compared: torque"),
        (SolverError("TSID ended with 1"), "TSID ended with 1"),
    ],
)
def test_a_program_that_differs_or_fails_is_a_row(monkeypatch, stance, tmp_path, gaps, words):
    def differences(*_):
        if isinstance(gaps, SolverError):
            raise gaps
        return gaps

    monkeypatch.setattr(tick_tsid, "differences", differences)
    timed = SimpleNamespace(case=QUADRUPED, states=stance[1])
    program = tick_tsid.Program("TSID", tmp_path)
    compared, _ = tick_robots.compared_program(timed, program)
    assert compared.path is None
    assert words in compared.label
    right = {"torque, N m": 0.0, "motion": 0.0, "unsolved": 0}
    monkeypatch.setattr(tick_tsid, "differences", lambda *_: right)
    assert tick_robots.compared_program(timed, program) == (program, right)


def test_a_program_that_is_absent_is_not_run(tmp_path, monkeypatch):
    monkeypatch.delenv(tick_tsid.PREFIX, raising=False)
    program = tick_tsid.build(tmp_path)
    assert "absent: install tsid" in program.label
    assert tick_robots.compared_program(None, program) == (program, {})
