"""What the end of a plan costs by a regulator: of the gait, of the stance, or nothing."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from mpc.whole_body.test_horizon_references import DECAY, GAIT, STEPPING, H
from support.small_walker import LEGS, small_walker, standing_pose

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.whole_body.contact_mask import contacts_on
from mbcasadi.mpc.whole_body.end_cost import _about, _stride, with_regulator
from mbcasadi.mpc.whole_body.horizon_references import HorizonReferences

SAMPLES = 20  # of a stride
RIGHT = 1e-6  # of the largest entry, of a recursion that is repeated until it stays


@pytest.fixture(scope="module")
def walking():
    """Return costs, references of the small walker, and the controls that hold it."""
    system = mb.read_mjcf(small_walker())
    feet = [mb.Contact(name, friction=0.6, sides=4) for name in LEGS]
    rest = mb.equilibrium(system, standing_pose(system), contacts=feet)
    touching = mb.with_contacts(system, feet, rest.q).with_mask()
    parts = [*mpc.default_cost(system, feet, rest.q), mpc.Disturbance()]
    ocp = mpc.optimal_control_problem(touching, 1, H, parts, step=mpc.SemiImplicitStep())
    refs = HorizonReferences(ocp, touching, feet, GAIT, STEPPING, rest.q, 1, DECAY)
    return parts, refs, rest.u


def test_the_cost_of_a_gait_is_the_mean_over_its_stride(walking):
    parts, refs, u = walking
    samples = _stride(refs)
    assert len(samples) == SAMPLES
    rows = samples[:, slot_slices(refs.ocp.slots)["mask"]]
    masks = [contacts_on(refs.system, refs.contacts, ca.DM(each)).full().ravel() for each in rows]
    times = GAIT.start + H * (np.arange(SAMPLES) + 1.5)  # a plan begins one interval later
    np.testing.assert_array_equal(masks, [ca.DM(GAIT.on_ground(t)).full().ravel() for t in times])
    made, words = with_regulator(parts, refs, u, walks=True)
    assert words == "periodic Riccati equation of the gait"
    weights = mpc.periodic_weights(refs.ocp, *_about(refs, samples))
    later = mpc.periodic_weights(refs.ocp, *_about(refs, np.roll(samples, 7, axis=0)))
    np.testing.assert_allclose(later[7], weights[0], atol=RIGHT * weights.max())
    np.testing.assert_allclose(made[0].Q_end, weights.mean(axis=0), atol=RIGHT * weights.max())
    assert np.linalg.eigvalsh(made[0].Q_end).min() > 0
    assert made[1:] == parts[1:]


def test_a_stand_has_the_regulator_of_its_stance_or_none(walking):
    parts, refs, u = walking
    standing = replace(refs, gait=mpc.Gait(1.0, 1.0, (0.0,) * 4))
    made, words = with_regulator(parts, standing, u, walks=False)
    assert words == "regulator of the stance"
    free = 2 * (18 - 12)  # 12 rows hold the feet
    assert np.linalg.matrix_rank(made[0].Q_end, RIGHT * made[0].Q_end.max()) == free
    made, words = with_regulator(parts, standing, u + 1.0, walks=False)
    assert made[0].Q_end is None
    assert words.startswith("none, no regulator of the stance: 'ocp': x and u are no rest")


def test_a_cost_without_a_setpoint_is_refused(walking):
    parts, refs, u = walking
    with pytest.raises(ProblemError, match="0 costs of the setpoint; expected one Cost with Q"):
        with_regulator(parts[1:], refs, u, walks=True)
