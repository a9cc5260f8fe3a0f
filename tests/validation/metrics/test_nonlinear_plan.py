"""A real-time iteration in the report: its plans, its rates, its setpoint."""

import casadi as ca
import numpy as np
import pytest
from support.validation_problems import SLIDER, SLIDER_MASS, SLIDER_STEP

from mbcasadi.mpc import initial_guess, optimal_control_problem, real_time_iteration
from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.mpc.ocp.stage_bounds import StageBounds
from mbcasadi.system import from_lagrangian
from mbcasadi.validation import Criteria, validate

HORIZON, RATE, GOAL = 20, 1.5, 0.2  # samples, N in a sample, m
DELAY = 1


@pytest.fixture(scope="module")
def run():
    """The slider, led to a goal with bounded changes of its force."""
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    slider = from_lagrangian(
        q, v, kinetic=SLIDER_MASS * v**2 / 2, potential=ca.SX(0), B=[[1]], ctrl_range=[[-10, 10]]
    )
    ocp = optimal_control_problem(
        slider,
        HORIZON,
        SLIDER_STEP,
        [
            Cost(Q=[30.0, 1.0], R=0.001, Q_end=[30.0, 1.0]),
            StageBounds(du=[[-RATE, RATE]], v=[[-0.25, 0.25]]),
        ],
    )
    still = initial_guess(ocp, np.zeros((HORIZON + 1, ocp.nx)), np.zeros((HORIZON, 1)))
    law = real_time_iteration(ocp, still, delay=DELAY)
    ref = ocp.parameters(setpoint_q=[GOAL]).ravel()
    return validate(law, SLIDER, 1.2, reference=ref, delay=DELAY, criteria=Criteria({})).runs[0]


def test_its_plan_starts_where_its_control_acts_and_its_model_is_the_plants(run):
    plans = run.predictions
    assert (plans.delay, plans.horizon) == (DELAY, HORIZON)
    assert {row.name.split(".")[0] for row in plans.states} == {"q", "v"}
    assert max(row.motion[-1] for row in plans.states) > 0.01
    # The model's step of Runge and Kutta and MuJoCo's of Euler differ by h² a / 2 in q.
    force = np.abs(run.recording.u).max()
    place, rate = plans.states
    assert rate.peak[1] < 1e-9
    assert place.peak[1] < 2 * SLIDER_STEP**2 * force / SLIDER_MASS / 2 * 1.001
    assert run.metric("prediction.next") < 0.1


def test_its_bounded_rates_and_speeds_are_margins(run):
    rows = {row.name.split(".")[0]: row for row in run.margins}
    changes = np.abs(np.diff(run.recording.u_applied[:, 0]))
    assert changes.max() == pytest.approx(RATE, rel=1e-6)  # the bound was active
    assert rows["du"].least == pytest.approx(RATE - changes.max(), abs=1e-9)
    assert rows["du"].near > 0
    assert rows["v"].least == pytest.approx(0.25 - np.abs(run.recording.v).max(), abs=1e-9)


def test_its_setpoint_is_tracked(run):
    (row,) = run.tracking
    error = GOAL - run.recording.q[:, 0]
    assert row.rms == pytest.approx(np.sqrt(np.mean(error**2)))
    assert abs(error[-1]) < 0.02
