"""Forces at the end of a semi-implicit step: MuJoCo's own, closed forms, slopes, controllers."""

import mujoco
import numpy as np
import pytest
from support.step_slopes import assert_slopes

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.codegen import export_c
from mbcasadi.errors import ProblemError

T = 0.02
BRANCHES = """
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <body name="trunk"><joint name="lift" type="slide" axis="0 0 1" stiffness="4000"
      springref=".1"/>
      <geom type="box" size=".1 .1 .05" mass="2"/>
      <body name="left" pos="0 .2 0"><joint name="left" axis="0 1 0" damping="3"/>
        <geom type="capsule" fromto="0 0 0 .1 0 -.3" size=".02" mass=".4"/>
        <site name="tip" pos="0 0 -.3"/></body>
      <body name="right" pos="0 -.2 0"><joint name="right" axis="0 1 0" stiffness="50"/>
        <geom type="capsule" fromto="0 0 0 .1 0 -.3" size=".02" mass=".3"/>
        <body name="hand" pos="0 0 -.3"><joint name="wrist" axis="1 0 0"/>
          <geom type="sphere" size=".03" pos="0 .02 -.05" mass=".05"/>
          {site}</body></body>
    </body>{base}
  </worldbody>
  <tendon>
    <fixed name="pair" stiffness="300" damping="8">
      <joint joint="left" coef="1"/><joint joint="right" coef="-.7"/></fixed>{tendon}
  </tendon>
  <actuator>
    <position joint="left" kp="800" kv="5" forcerange="-30 30"/>
    <velocity joint="right" kv="20"/>
    <general joint="wrist" gear="3" gainprm="40" biastype="affine" biasprm="1 -40 -2"/>
    <position tendon="pair" kp="200"/>
    <motor joint="lift"/>{actuator}
  </actuator>
</mujoco>
"""
LINEAR = BRANCHES.format(site="", base="", tendon="", actuator="")
CURVED = BRANCHES.format(
    site='<site name="palm" pos="0 0 -.1"/>',
    base="""<body name="float" pos="1 0 0"><freejoint/>
      <geom type="box" size=".1 .05 .02" mass=".2"/>
      <body pos="0 0 .1"><joint name="ball" type="ball" stiffness="5" damping=".2"/>
        <geom type="capsule" fromto="0 0 0 .02 0 .1" size=".01" mass=".1"/></body></body>""",
    tendon="""<spatial name="cord" stiffness="400" damping="3" springlength="0 .1">
      <site site="tip"/><site site="palm"/></spatial>""",
    actuator="""<position tendon="cord" kp="100" kv="2"/>
    <position site="palm" refsite="tip" gear="0 0 1 0 0 0" kp="60" kv="1"/>
    <velocity joint="ball" gear="0 0 1 0 0 0" kv=".4"/>""",
)


def stepped(system, period=T, parts=(), **options):
    cost = mpc.Cost(Q=[1.0] * 2 * system.nv, R=[1.0] * system.nu)
    step = mpc.SemiImplicitStep(**options)
    return mpc.optimal_control_problem(system, 4, period, [cost, *parts], step=step)


def state(system, seed, size=0.3):
    rng = np.random.default_rng(seed)
    q = np.array(system.integrate(system.tree.q0, size * rng.standard_normal(system.nv))).ravel()
    return q, rng.standard_normal(system.nv), 0.2 * rng.standard_normal(system.nu)


@pytest.mark.parametrize("period", [1e-3, T, 1.0])
def test_forces_of_joints_tendons_and_servos_are_those_of_mujoco_at_the_end_of_the_step(period):
    """`M a + h = f(q⁺, v⁺, u)` with M, h of the start and forces of the end, all MuJoCo's."""
    system, m = mb.read_mjcf(LINEAR), mujoco.MjModel.from_xml_string(LINEAR)
    ocp, d = stepped(system, period), mujoco.MjData(m)
    for seed in range(3):
        q, v, u = state(system, seed, size=0.02)  # within the range of forces
        u *= 0.05
        x_next = np.array(ocp.dynamics(np.r_[q, v], u, ocp.parameters()[0])).ravel()
        a = (x_next[system.nq :] - v) / period
        d.qpos[:], d.qvel[:], d.ctrl[:] = q, v, u
        mujoco.mj_forward(m, d)
        M = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, M, d.qM) if hasattr(d, "qM") else mujoco.mj_fullM(m, d, M)
        left = M @ a + d.qfrc_bias
        d.qpos[:], d.qvel[:] = x_next[: system.nq], x_next[system.nq :]
        m.actuator_forcelimited[:] = 0  # bounds of a problem, not of its motion
        mujoco.mj_forward(m, d)
        right = d.qfrc_passive + d.qfrc_actuator
        np.testing.assert_allclose(left, right, atol=1e-9 * np.abs(right).max())


def test_an_oscillator_is_stable_in_any_step_and_follows_its_closed_form():
    spring = """<mujoco><option gravity="0 0 0"/><worldbody><body>
      <joint name="x" type="slide" axis="1 0 0" stiffness="5000" damping="0"/>
      <geom type="sphere" size=".1" mass="2"/></body></worldbody>
      <actuator><position joint="x" kp="1e6" kv="0"/></actuator></mujoco>"""
    system, m, k = mb.read_mjcf(spring), 2.0, 1.005e6
    for period in (1e-5, 1e-3, 0.1, 100.0):
        ocp, h = stepped(system, period), period
        A = np.array([[m, h * m], [-h * k, m]]) / (m + h * h * k)  # backward Euler
        for x in ([1.0, 0.0], [0.0, 1.0]):
            x_next = np.array(ocp.dynamics(x, [0.0], ocp.parameters()[0])).ravel()
            np.testing.assert_allclose(x_next, A @ x, rtol=1e-9, atol=1e-12)
        assert np.abs(np.linalg.eigvals(A)).max() < 1


def test_its_error_beside_mujoco_shrinks_as_the_step():
    """A fine integration of MuJoCo over 0.08 s; tendons that bend, rotations and sites included."""
    system, m = mb.read_mjcf(CURVED), mujoco.MjModel.from_xml_string(CURVED)
    m.opt.timestep, m.opt.integrator = 2e-5, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    m.actuator_forcelimited[:] = 0
    q, v, u = state(system, 5, size=0.1)
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:], d.ctrl[:] = q, v, u
    for _ in range(4000):
        mujoco.mj_step(m, d)
    errors = []
    for count in (16, 32, 64):
        ocp, x = stepped(system, 0.08 / count), np.r_[q, v]
        for _ in range(count):
            x = np.array(ocp.dynamics(x, u, ocp.parameters()[0])).ravel()
        errors.append(np.linalg.norm(np.array(system.difference(d.qpos, x[: system.nq]))))
    assert errors[0] > 1.6 * errors[1] > 1.6**2 * errors[2]


@pytest.mark.parametrize("text", [LINEAR, CURVED])
def test_its_derivatives_are_its_slopes(text):
    """By differences, of what couples branches, bends and turns too."""
    system = mb.read_mjcf(text)
    ocp = stepped(system)
    q, v, u = state(system, 1)
    assert_slopes(ocp, np.r_[q, v], u, ocp.parameters()[0])


def test_gains_that_are_parameters_count():
    system = mb.read_mjcf(LINEAR, parameters=["actuator:actuator0:bias", "joint:left:damping"])
    ocp, plain = stepped(system), stepped(mb.read_mjcf(LINEAR))
    q, v, u = state(plain.system, 2)
    x, p = np.r_[q, v], ocp.parameters()[0]
    same = [np.array(one.dynamics(x, u, one.parameters()[0])) for one in (ocp, plain)]
    np.testing.assert_allclose(*same, atol=1e-12)
    bias = [0.0, -300.0, -1.0]
    other = system.at({"actuator:actuator0:bias": bias, "joint:left:damping": 9.0})
    p = ocp.parameters(physical=[*bias, 9.0])[0]
    changed = np.array(stepped(other).dynamics(x, u, []))
    np.testing.assert_allclose(np.array(ocp.dynamics(x, u, p)), changed, atol=1e-12)
    assert_slopes(ocp, x, u, p)


LEG = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="trunk" pos="0 0 .55"><joint name="lift" type="slide" axis="0 0 1"/>
      <geom type="box" size=".15 .1 .05" mass="6"/>
      <body name="thigh" pos="0 .05 -.05">
        <joint name="hip" axis="0 1 0" damping="1" armature=".01"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".5"/>
        <body name="shank" pos="0 0 -.3">
          <joint name="knee" axis="0 1 0" damping="1" armature=".01"/>
          <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".1"/>
          <site name="foot" pos="0 0 -.3"/></body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position joint="hip" kp="{kp}" kv="2" ctrlrange="-2 2" forcerange="-40 40"/>
    <position joint="knee" kp="{kp}" kv="2" ctrlrange="-2 2" forcerange="-25 25"/>
  </actuator>
</mujoco>
"""


def on_its_foot(kp=2000.0, N=6):
    """Return the problem of a leg with stock servos that pushes up, near its largest force."""
    foot, bent = mb.Contact("foot", friction=0.7, sides=4), [0.0, 0.5, -1.0]
    system = mb.with_contacts(mb.read_mjcf(LEG.format(kp=kp)), [foot], bent)
    Q = [900.0, 1, 1, 1, 0.1, 0.1]
    parts = [mpc.Cost(Q=Q, R=[5.0] * 2, Q_end=Q), mpc.ContactCones([foot])]
    step = mpc.SemiImplicitStep()
    ocp = mpc.optimal_control_problem(system, N, T, parts, step=step)
    return ocp, np.array([*bent, 0.0, 0.0, 0.0])


@pytest.mark.long
def test_a_leg_with_position_servos_is_controlled_by_c_within_the_forces_of_its_servos(tmp_path):
    """At a step at which its servos, taken at the start, explode. The plan is that of IPOPT."""
    ocp, x0 = on_its_foot()
    guess = mpc.initial_guess(ocp, np.tile(x0, (7, 1)), np.tile(x0[1:3], (6, 1)))
    p = ocp.parameters(setpoint_q=[0.1, 0.2, -0.4], setpoint_u=[0.2, -0.4])
    best = mpc.solve_ocp(ocp, x0, p, guess)
    assert best.solved, best.in_words
    rti = mpc.real_time_iteration(ocp, guess, solver="stagewise", shift=False)
    in_c, z = export_c(rti, tmp_path / "leg").load(), rti.controller.z0
    for _ in range(15):
        u, z, status, *_ = in_c(x0[:3], x0[3:], p.ravel(), z)
    assert int(status) == 0
    np.testing.assert_allclose(np.array(u).ravel(), best.u[0], atol=1e-5)
    m = mujoco.MjModel.from_xml_string(LEG.format(kp=2000.0))
    m.actuator_forcelimited[:] = 0
    d, forces = mujoco.MjData(m), []
    for x, command in zip(best.x[1:], best.u, strict=True):
        d.qpos[:], d.qvel[:], d.ctrl[:] = x[:3], x[3:], command
        mujoco.mj_forward(m, d)
        forces.append(np.abs(d.actuator_force))
    assert np.all(np.max(forces, axis=0) <= np.array([40, 25]) + 1e-4)
    assert np.any(np.max(forces, axis=0) > np.array([40, 25]) - 1e-2)


def test_the_same_servos_at_the_start_of_a_step_are_refused():
    system = mb.read_mjcf(LEG.format(kp=1e5))
    ocp = stepped(system, forces="start")
    with pytest.raises(ProblemError, match="-fold in one"):
        mpc.real_time_iteration(ocp, solver="stagewise")
    mpc.real_time_iteration(stepped(system), solver="stagewise")


def test_activation_states_and_other_words_are_refused():
    with pytest.raises(ProblemError, match="1 activation states"):
        stepped(
            mb.read_mjcf(
                LEG.format(kp=9).replace(
                    '<position joint="hip" kp="9" kv="2"',
                    '<intvelocity joint="hip" kp="9" actrange="-1 1"',
                )
            )
        )
    with pytest.raises(ProblemError, match="forces"):
        mpc.SemiImplicitStep(forces="middle")
