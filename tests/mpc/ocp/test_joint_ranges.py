"""Ranges of joints over a horizon: exact where they can be kept, a slack where not."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.errors import ProblemError

N, H, RANGE, MARGIN = 20, 0.05, 0.4, 0.05
SLIDER = f"""
<mujoco><worldbody><body>
  <joint name="slide" type="slide" axis="1 0 0" range="-{RANGE} {RANGE}"/>
  <geom type="sphere" size="0.1" mass="1"/>
</body></worldbody><actuator><motor joint="slide" ctrlrange="-4 4"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def ocp():
    """Return the problem of a slider that wants to be at 1 m."""
    system = mb.read_mjcf(SLIDER)
    parts = [mpc.Cost(Q=[50.0, 0.1], R=[1e-2], Q_end=[50.0, 1.0]), mpc.JointRanges(1e3, MARGIN)]
    return mpc.optimal_control_problem(system, N, H, parts, step=mpc.SemiImplicitStep())


@pytest.fixture(scope="module")
def plan(ocp):
    """Return (q, v) → positions and speeds of its plan."""
    law = mpc.real_time_iteration(ocp, solver="stagewise", shift=False)
    p, z0 = ocp.parameters(setpoint_q=[1.0]).ravel(), law.controller.z0

    def found(q, v):
        z, status = z0, 4
        for _ in range(3):
            _, z, status, *_ = (np.array(part).ravel() for part in law.function([q], [v], p, z))
        assert int(status[0]) == 0
        return np.array(law.memory.split(z)[0])

    return found


def test_a_range_that_can_be_kept_is_kept_exactly(plan):
    X = plan(0.0, 0.0)
    assert X[0].max() == pytest.approx(RANGE - MARGIN, abs=1e-6)
    assert X[0, -1] == pytest.approx(RANGE - MARGIN, abs=1e-6)


def test_a_joint_beyond_its_range_comes_back_as_fast_as_it_can(plan):
    far, fast = plan(RANGE + 0.5, 0.0), plan(RANGE - MARGIN - 0.01, 1.0)
    for X in (far, fast):
        beyond = X[0] > RANGE - MARGIN + 1e-6
        assert beyond[1]
        assert not beyond[-1]
    np.testing.assert_allclose(np.diff(fast[1])[:4] / H, -4.0, atol=1e-5)


def test_a_nonlinear_program_has_the_same_optimum(ocp, plan):
    p = ocp.parameters(setpoint_q=[1.0])
    for state in ([0.0, 0.0], [RANGE + 0.5, 0.0]):  # ranges do not bound the given state
        found = mpc.ocp_solver(ocp, "ipopt").solve(state, p)
        assert found.solved
        np.testing.assert_allclose(found.x.T, plan(*state), atol=1e-4)


def test_a_margin_wider_than_the_range_is_refused():
    system = mb.read_mjcf(SLIDER)
    with pytest.raises(ProblemError, match=r"joint 'slide': a margin of 0\.5 leaves"):
        mpc.optimal_control_problem(
            system, N, H, [mpc.Cost(R=[1.0]), mpc.JointRanges(1.0, margin=0.5)]
        )
