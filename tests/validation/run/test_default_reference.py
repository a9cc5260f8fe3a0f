"""Without a reference a run has the setpoint of its controller, or holds its start."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.control.regulators import lqr
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.validation.run.preparation import reference_or_stay

MODEL = mb.models.path("pendulum_on_four_bar")


@pytest.fixture(scope="module")
def system():
    return mb.read_mjcf(MODEL)


@pytest.fixture(scope="module")
def linear(system):
    return mb.linearize(system, mb.equilibrium(system))


@pytest.fixture
def plant():
    return Plant(MODEL)


def start_beside(linear, plant):
    """Return a pose a little beside the equilibrium, on the loop."""
    plant.reset(linear.q + 0.05 * linear.Z_q[:, 0])
    return np.array(plant.q)


def test_a_regulator_and_an_mpc_return_to_their_setpoint(linear, plant):
    q0 = start_beside(linear, plant)
    tracking = lqr(linear, 1.0, 1.0, track_reference=True)
    mpc = mb.mpc.linear_mpc(linear, mb.mpc.LinearOptions(5, np.ones(2 * linear.system.nv), 1.0))
    for controller in (tracking, mpc):
        stay = reference_or_stay(controller, None, plant, q0, computed=False)
        assert np.array_equal(stay.reference, controller.reference_at(linear.q))
        with pytest.raises(ProblemError, match="no control holds"):
            controller.reference_at(q0)
        assert "setpoint" in stay.notes[0]


def test_a_regulator_without_reference_gets_none(linear, plant):
    q0 = start_beside(linear, plant)
    assert reference_or_stay(lqr(linear, 1.0, 1.0), None, plant, q0, computed=False) == (None, ())


def test_inverse_dynamics_holds_the_start(system, linear, plant):
    q0 = start_beside(linear, plant)
    law = InverseDynamicsQP(system, [PostureTask()])
    stay = reference_or_stay(law, None, plant, q0, computed=False)
    assert np.allclose(stay.reference, law.reference_at(q0))
    assert "holds the start" in stay.notes[0]


def test_what_the_user_or_a_law_computes_is_left_alone(system, plant):
    law = InverseDynamicsQP(system, [PostureTask()])
    given = law.reference_at(system.tree.q0)
    assert reference_or_stay(law, given, plant, None, computed=False).reference is given
    assert reference_or_stay(law, None, plant, None, computed=True).reference is None
