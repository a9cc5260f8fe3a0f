"""The output `flags` says what was changed on the way to a valid control."""

import casadi as ca
import numpy as np
import pytest
from support.mpc_mechanisms import sliding_mass
from support.problems import problem

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control.laws import Command, make_law
from mbcasadi.description.status import OUTPUTS, Flag, Status

PERIOD, HORIZON = 0.1, 10
MODEL = mpc.LinearModel.of([[1.0, PERIOD], [0.0, 1.0]], [[PERIOD**2 / 2], [PERIOD]], PERIOD)
SPEED = 0.5  # m/s, the soft bound of |speed|
SLOW, FAST = np.array([0.2, 0.0]), np.array([0.2, 0.9])


def linear(form):
    row = mpc.Output("speed", np.array([[0.0, 1.0]]), np.zeros((1, 1)), -SPEED, SPEED, 5.0, 1.0)
    options = {"u_bounds": [[-1.0, 1.0]], "outputs": [row], "form": form}
    return mpc.lti_mpc(MODEL, mpc.LinearOptions(HORIZON, [1.0, 0.1], 0.1, **options))


def outputs(function, *inputs):
    return dict(zip(OUTPUTS, (np.array(x).ravel() for x in function(*inputs)), strict=True))


@pytest.mark.parametrize("form", ["condensed", "sparse"])
def test_linear_mpc_flags_a_soft_row_that_is_violated_and_no_other(form):
    predictive = linear(form)
    for x0, flag in ((SLOW, Flag(0)), (FAST, Flag.RELAXED)):
        out = outputs(predictive.function, x0, predictive.reference(), predictive.controller.z0)
        assert out["status"] == Status.SOLVED
        assert Flag(int(out["flags"][0])) == flag
        assert bool(
            predictive.violations(x0, predictive.reference(), predictive.controller.z0)
        ) == bool(flag)


def test_a_real_time_iteration_flags_a_soft_row_that_is_violated():
    system = sliding_mass()
    own = mpc.stage_symbols(system)
    path = [mpc.Bounded(own.v, -SPEED, SPEED, 5.0, 1.0, name="speed")]
    bounds = [[-1.0, 1.0]]  # N: too weak to brake within a sample
    given = {"Q": [1.0, 0.1], "R": 0.1, "path": path, "u_bounds": bounds, "symbols": own}
    ocp = problem(system, HORIZON, PERIOD, **given)
    rti = mpc.real_time_iteration(ocp)
    for (q, v), flag in ((SLOW, Flag(0)), (FAST, Flag.RELAXED)):
        z = rti.controller.z0
        for _ in range(3):  # the problem is a QP: one step solves it
            out = outputs(rti.function, q, v, ocp.parameters().ravel(), z)
        assert out["status"] == Status.SOLVED
        assert Flag(int(out["flags"][0])) == flag


def test_a_law_flags_a_control_at_its_limits_and_not_the_safe_output():
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    mass = mb.from_lagrangian(q, v, kinetic=v**2, B=[[1]], ctrl_range=[[-1.0, 1.0]], name="mass")
    law = make_law(mass, "spring", lambda at: Command(u=-at.q, a=-at.q / 2))
    for place, flag, status in (
        (0.5, Flag(0), Status.SOLVED),
        (2.0, Flag.SATURATED, Status.SATURATED),
        (np.nan, Flag(0), Status.BAD_INPUT),
    ):
        out = outputs(law.function, place, 0.0, [], [])
        assert (int(out["status"][0]), Flag(int(out["flags"][0]))) == (status, flag)
