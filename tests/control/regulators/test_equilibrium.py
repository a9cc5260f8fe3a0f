"""Static equilibria: balance, nearest pose, least control, limits, feet, free directions."""

from dataclasses import replace

import numpy as np
import pytest
from linear_mechanisms import FEET, GRAVITY, cart_pole, state_of, system_of
from numpy.testing import assert_allclose

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.dynamics import Treatment

REST = 1e-9  # m/s² or rad/s²


def acceleration(system, point):
    zero = np.zeros(system.nv)
    force = system.actuator_force(point.q, zero, point.u)
    a = mb.forward_dynamics(
        system, "lagrange", derivatives=False, treatment=Treatment(rank_tol=1e-7)
    )(q=point.q, v=zero, f=force)["a"]
    return np.array(a).ravel()


@pytest.mark.parametrize(
    "name",
    [
        "four_bar",
        "cart_pole",
        "planar_3rrr",
        "standing_quadruped",
        "disc",
        "bricard",
        "parallelogram",
        "spatial_loop",
    ],
)
@pytest.mark.every(3)
def test_the_mechanism_stays_where_it_is(name):
    system = system_of(name)
    q, *_ = state_of(name, moving=False)
    point = mb.equilibrium(system, q)
    assert np.abs(acceleration(system, point)).max() < REST * (1 + np.abs(point.u).max())
    assert np.abs(np.array(system.constraint(point.q))).max() < 1e-10
    assert np.abs(point.residual).max() < REST
    assert np.abs(point.lam).max() < 1e4  # rows that repeat share the load, and add none


def test_a_motor_holds_the_required_pose():
    system = system_of("four_bar")
    q = mb.assemble(system, system.tree.q0 + np.array([0.2, 0, 0]))
    point = mb.equilibrium(system, q)
    assert_allclose(point.q, q, atol=1e-12)
    # virtual work: the holding torque is the slope of the potential energy along the crank
    ends = [
        mb.equilibrium(system, q + np.array([s, 0, 0]), held=["crank"]).q for s in (1e-4, -1e-4)
    ]
    V = [float(system.potential_energy(end)) for end in ends]
    assert_allclose(point.u, [(V[0] - V[1]) / 2e-4], rtol=1e-6)
    assert point.unique_control
    assert point.free_directions.shape[1] == 1
    assert point.neutral_directions.shape[1] == 0


@pytest.mark.parametrize("torque", [0.0, 0.3])
def test_a_given_control_finds_its_pose(torque):
    system = system_of("four_bar")
    point = mb.equilibrium(system, u=[torque])
    assert np.abs(acceleration(system, point)).max() < REST
    assert np.abs(np.array(system.constraint(point.q))).max() < 1e-10


def test_a_passive_pole_is_led_upright_and_the_cart_is_free():
    point = mb.equilibrium(cart_pole(), [0.4, 0.25, 0.2])
    assert_allclose(point.q, [0.4, 0.2, 0.0], atol=1e-7)  # the search's last step
    assert_allclose(point.u, 0, atol=1e-9)
    assert_allclose(np.abs(point.neutral_directions), [[1], [0], [0]], atol=1e-9)
    assert "held by u0" in point.in_words
    hanging = mb.equilibrium(cart_pole(), [0.4, 0.2, 2.6])
    assert_allclose(hanging.q[2], np.pi, atol=1e-9)
    assert_allclose(np.array([1, -3, np.exp(0.4)]) @ hanging.lam, 1.5 * GRAVITY)


def test_what_cannot_be_balanced_is_named():
    with pytest.raises(err.ProblemError, match=r"balances q_2 -0.26"):
        mb.equilibrium(cart_pole(), [0.4, 0.2, 0.2], held=["q_2"])
    with pytest.raises(err.ProblemError, match=r"balances joint0.vz 17.7"):
        mb.equilibrium(system_of("spinning"))
    with pytest.raises(err.UnknownNameError, match=r"'knee'.*'crank'"):
        mb.equilibrium(system_of("four_bar"), held=["knee"])


def test_a_weak_motor_moves_the_pose_or_is_named():
    strong = system_of("four_bar")
    q = mb.equilibrium(strong).q
    needed = mb.equilibrium(strong).u
    weak = 0.8 * np.abs(needed)
    system = with_limits(strong, weak)
    point = mb.equilibrium(system)
    assert point.at_limit == ("crank",)
    assert_allclose(np.abs(point.u), weak, rtol=1e-6)
    assert 1e-3 < np.abs(point.q - q).max() < 1.0
    assert np.abs(point.residual).max() < REST
    with pytest.raises(err.ProblemError, match=r"within limits: beyond them crank; without"):
        mb.equilibrium(system, held=["crank"])
    assert_allclose(mb.equilibrium(system, within_limits=False).u, needed)


def test_a_force_range_that_clips_the_holding_force_is_refused():
    arm = """<mujoco><worldbody><body><joint name="arm" axis="0 1 0"/>
    <inertial pos="0.5 0 0" mass="1" diaginertia="0.1 0.1 0.1"/></body></worldbody>
    <actuator><position joint="arm" kp="50" forcerange="-{0} {0}"/></actuator></mujoco>"""
    point = mb.equilibrium(mb.read_mjcf(arm.format(5)), [0.0])
    assert_allclose(50 * np.abs(point.u), GRAVITY / 2)
    with pytest.raises(err.ProblemError, match=r"force ranges of the actuators clip .* arm 2\.9"):
        mb.equilibrium(mb.read_mjcf(arm.format(2)), [0.0])


def with_limits(system, most):
    ctrl = np.column_stack([-most, most])
    return replace(system, limits=replace(system.limits, ctrl=ctrl), _cache={})


def test_a_quadruped_stands_on_its_feet_within_friction():
    system = system_of("quadruped")
    stand = system.tree.keyframes["stand"]
    feet = [mb.Contact(foot, friction=0.6) for foot in FEET]
    point = mb.equilibrium(system, stand, contacts=feet)
    assert_allclose(point.q, stand, atol=1e-9)
    weight = float(np.array(system.gravity_force(stand))[2, 0])
    assert_allclose(point.contact_forces[:, 0].sum(), weight, rtol=1e-9)
    assert_allclose(point.contact_forces[:, 1:].sum(axis=0), 0, atol=1e-8)
    J = np.vstack([np.array(system.frame(foot).jacobian(stand))[:3] for foot in FEET])
    F = point.contact_forces[:, [1, 2, 0]].ravel()
    unbalanced = np.array(system.gravity_force(stand)).ravel() - J.T @ F
    unbalanced -= np.array(system.actuator_force(stand, np.zeros(18), point.u)).ravel()
    assert_allclose(unbalanced, 0, atol=1e-8)
    assert not point.unique_control
    assert point.control_directions.shape[1] == 6  # 12 motors, 6 motions of the trunk


def test_slippery_feet_cost_torque_and_ice_is_refused():
    system = system_of("quadruped")
    stand = system.tree.keyframes["stand"]
    grip, slip = (
        mb.equilibrium(system, stand, contacts=[mb.Contact(f, friction=mu, sides=8) for f in FEET])
        for mu in (0.6, 0.1)
    )
    share = [
        np.linalg.norm(e.contact_forces[:, 1:], axis=1) / e.contact_forces[:, 0]
        for e in (grip, slip)
    ]
    assert share[0].max() > 0.2
    assert share[1].max() <= 0.1 * (1 + 1e-8)
    assert np.linalg.norm(slip.u) > 1.0001 * np.linalg.norm(grip.u)
    assert np.abs(slip.residual).max() < REST
    pushed = [mb.Contact(f, max_force=30.0) for f in FEET]  # 120 N for a robot of 147 N
    with pytest.raises(err.ProblemError, match="within the limits of foot FL"):
        mb.equilibrium(system, stand, contacts=pushed)


def test_least_control_among_many():
    """Any other holding control of the standing quadruped is longer."""
    system = system_of("standing_quadruped")
    point = mb.equilibrium(system)
    assert_allclose(point.control_directions.T @ point.u, 0, atol=1e-8)


@pytest.mark.parametrize(("loss", "stays"), [(1.1, True), (0.9, False)])
def test_dry_friction_holds_a_pose_up_to_its_loss(loss, stays):
    angle, needed = 0.3, 2.0 * 9.81 * 0.5 * np.sin(0.3)  # m g l sin q
    system = mb.read_mjcf(f"""<mujoco><worldbody><body>
    <joint name="swing" axis="0 1 0" frictionloss="{loss * needed}"/>
    <geom type="sphere" size="0.1" pos="0 0 -0.5" mass="2"/></body></worldbody></mujoco>""")
    point = mb.equilibrium(system, [angle], friction=True)
    assert_allclose(point.q, [angle if stays else 0.0], atol=1e-9)
    assert_allclose(np.abs(point.residual), [needed if stays else 0.0], atol=1e-9)
    assert_allclose(mb.equilibrium(system, [angle]).q, [0.0], atol=1e-9)
