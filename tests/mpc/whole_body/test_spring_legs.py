"""A robot whose legs end in springs: the pose it rests in, and the state at which a plan acts."""

import numpy as np
import pytest
from support.small_walker import LEGS, small_walker, standing_pose

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask, RigidSprings
from mbcasadi.control.regulators.equilibrium import equilibrium
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.mpc.whole_body.defaults import default_law

N, H = 5, 0.02
STATIC = 1e-3  # m/s, rad/s, in a step: static forces leave a millionth of the load to inertia
CURVED = 3e-3  # m/s: a row brings its rate to zero by `A a + c`, at the pose before the step
STIFFNESS = 20.0  # N m/rad
SPRINGS = tuple(f"{name}_spring" for name in LEGS)


def springy():
    """Return the small walker with toes on springs, and the pose with these at rest."""
    text = small_walker()
    for name in LEGS:
        toe = f"""<body name="{name}_toe" pos="0 0 -0.1">
          <joint name="{name}_spring" axis="0 1 0" stiffness="{STIFFNESS}" armature="1e-5"/>
          <geom type="sphere" size="0.01" mass="0.05"/>
          <site name="{name}" pos="0 0 -0.05"/></body>"""
        text = text.replace(f'<site name="{name}" pos="0 0 -0.15"/>', toe)
    system = mb.read_mjcf(text)
    return system, standing_pose(system), [mb.Contact(n, friction=0.6, sides=4) for n in LEGS]


def flat(values):
    """Return numbers as an array (n,)."""
    return np.array(values).ravel()


@pytest.fixture(scope="module")
def held():
    """Return MPC above a law that holds the springs, and the pose it stands in."""
    system, q0, feet = springy()
    tasks = [PostureTask(), FrameTask("trunk", kind="body", weight=10.0)]
    law = InverseDynamicsQP(
        system,
        tasks,
        feet,
        force_weight=1e-4,
        force_reference=True,
        rigid_springs=RigidSprings(SPRINGS),
        period=H / 10,
    )
    return mpc.whole_body_mpc(system, N, H, feet, q0=q0, law=law), q0


@pytest.mark.long
def test_a_plan_begins_at_rest_with_springs_that_are_deflected(held):
    whole, q0 = held
    system, x = whole.law.system, whole.u0[: whole.plan.ocp.nx]
    places = [joint.qpos for joint in system.tree.joints if joint.name in SPRINGS]
    feet = [mb.Contact(n, friction=0.6, sides=4) for n in LEGS]
    rest = equilibrium(system, q0, contacts=feet)
    assert np.abs(rest.q[places]).min() > 5e-3
    np.testing.assert_allclose(x[: system.nq], rest.q, atol=1e-9)
    acting = (whole.u0, 0.0, 0.0, whole.z0)
    still = np.zeros(system.nv)
    _, v, ref, _ = whole.references(rest.q, still, [0, 0, 0], *acting)
    np.testing.assert_allclose(flat(v), 0.0, atol=1e-7)
    controls = np.array(ref).reshape(N + 1, -1)[0, slot_slices(whole.plan.ocp.slots)["setpoint.u"]]
    torques = np.array(mb.inverse_dynamics(system)(rest.q, still, still)).ravel()
    moved = whole.plan.ocp.dynamics(x, controls, np.array(ref).reshape(N + 1, -1)[0])
    assert np.abs(torques[6:]).max() > 0.1
    np.testing.assert_allclose(flat(moved), x, atol=STATIC)


def test_springs_that_the_law_holds_come_to_rest_before_a_plan_acts(held):
    whole, _ = held
    system, rng = whole.law.system, np.random.default_rng(1)
    rates = [joint.dof for joint in system.tree.joints if joint.name in SPRINGS]
    q, v = whole.u0[: system.nq], 0.1 * rng.standard_normal(system.nv)
    v[rates] = 1.0
    reached, after, *_ = whole.references(q, v, [0, 0, 0], whole.u0, 0.0, 0.0, whole.z0)
    places = [joint.qpos for joint in system.tree.joints if joint.name in SPRINGS]
    np.testing.assert_allclose(flat(reached)[places], q[places], atol=1e-6)
    after = flat(after)
    np.testing.assert_allclose(after[rates], 0.0, atol=1e-6)
    for name in LEGS:
        before, left = (flat(system.frame(name).velocity(q, rate))[:3] for rate in (v, after))
        assert np.abs(before).max() > 10 * CURVED
        np.testing.assert_allclose(left, 0.0, atol=CURVED)


def test_the_law_follows_a_plan_without_what_its_springs_do(held):
    whole, _ = held
    system, nx = whole.law.system, whole.plan.ocp.nx
    rates = [joint.dof for joint in system.tree.joints if joint.name in SPRINGS]
    posture = whole.law.reference_slices["posture.v"]
    plan = whole.u0.copy()
    still = flat(whole.follow(plan, 0.0, 0.0)[0])
    plan[system.nq + np.array(rates)] = 1.0  # legs that the springs turn about their feet
    moved = flat(whole.follow(plan, 0.0, 0.0)[0])
    of_springs = [k - 6 for k in rates]
    assert nx == system.nq + system.nv
    np.testing.assert_allclose(moved[posture][of_springs], 0.0, atol=1e-9)
    trunk = whole.law.reference_slices["trunk.velocity"]
    assert np.abs(moved[posture]).max() < 0.5
    assert np.abs(moved[trunk] - still[trunk]).max() < 0.05


def test_the_default_law_holds_springs_between_the_base_and_the_joints_in_front_of_them():
    """A posture has more damping than the springs in front of which it is, the base has less."""
    system, _, feet = springy()
    law = default_law(system, feet, H / 10, 0.2, None, (), springs=SPRINGS)
    posture, base = law.tasks
    assert set(law.rigid_springs.joints) == set(SPRINGS)
    assert not {*SPRINGS} & {*posture.joints}
    assert 2 * np.sqrt(base.kp) < law.rigid_springs.damping < 2 * np.sqrt(posture.kp)
