"""Plans whose unknowns are forces: a robot on two feet pushes itself up, in MuJoCo's dynamics."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import control, mpc
from mbcasadi.errors import ProblemError

LEGS, JOINTS = ("left", "right"), ("hip", "knee")
N, T = 4, 0.04
LEG = """<body pos="{1} 0 0"><joint name="{0} hip"/>
  <geom fromto="0 0 0 0 0 -.2" size=".03" mass=".5"/>
  <body pos="0 0 -.2"><joint name="{0} knee" range="-2.4 -.2" limited="true"/>
    <geom fromto="0 0 0 0 0 -.2" size=".02" mass=".2"/>
    <site name="{0}" pos="0 0 -.2"/></body></body>"""
BOTH = LEG.format("left", -0.15) + LEG.format("right", 0.15)
MOTORS = "".join(f'<motor joint="{s} {j}" ctrlrange="-40 40"/>' for s in LEGS for j in JOINTS)
ROBOT = f"""<mujoco><compiler angle="radian"/><default><joint axis="0 1 0"/><geom type="capsule"/>
  </default><worldbody><body name="trunk"><joint name="x" type="slide" axis="1 0 0"/>
  <joint name="z" type="slide" axis="0 0 1"/><joint name="pitch"/>
  <geom type="box" size=".2 .1 .05" mass="6"/>{BOTH}</body></worldbody>
  <actuator>{MOTORS}</actuator></mujoco>"""
BENT = 0.6  # rad
STAND = np.array([0, 0.4 * np.cos(BENT), 0, BENT, -2 * BENT, BENT, -2 * BENT])


def law_of(cone="inner", friction=0.6, **options):
    """Return the law on its feet, and its reference with the trunk elsewhere."""
    tasks = [
        control.FrameTask("trunk", kind="body", kp=60.0, weight=10.0),
        control.PostureTask(weight=1e-3),
    ]
    feet = [mb.Contact(leg, friction=friction, sides=4, cone=cone) for leg in LEGS]
    return control.InverseDynamicsQP(mb.read_mjcf(ROBOT), tasks, feet, **options)


def plan(law, moved, *limits, horizon=N):
    """Return the solution whose trunk is to move from rest by so much."""
    ref = law.reference_at(STAND)
    ref[law.reference_slices["trunk.position"]] += moved
    slices = {name: ref[place] for name, place in law.reference_slices.items()}
    ocp = mpc.optimal_control_problem(law.system, horizon, T, [mpc.StageForces(law), *limits])
    found = mpc.solve_ocp(ocp, np.r_[STAND, np.zeros(7)], ocp.parameters(slices))
    assert found.solved, found.in_words
    return found


def test_a_plan_keeps_equations_cones_and_limits_and_its_accelerations_are_mujoco_s():
    roof = control.HalfSpace("trunk", -(STAND[1] + 0.02), 5.0, normal=(0, 0, -1), kind="body")
    law = law_of()
    found = plan(law, [0, 0, 0.04], roof, mpc.StageBounds(v=[[-1.5, 1.5]] * 7))
    height = found.x[:, 1] - STAND[1]
    assert 0.01 < height.max() < 0.02 + 1e-6
    model = mujoco.MjModel.from_xml_string(ROBOT)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data, J = mujoco.MjData(model), np.zeros((3, 7))
    for x, u in zip(found.x, found.u, strict=False):
        data.qpos[:], data.qvel[:] = np.split(x, 2)
        data.ctrl[:], accelerations, forces, _ = np.split(u, [4, 11, 17])
        mujoco.mj_forward(model, data)
        data.qfrc_applied[:] = 0
        for leg, f in zip(LEGS, forces.reshape(2, 3), strict=True):  # n, t1, t2 of a level ground
            assert np.hypot(f[1], f[2]) <= 0.6 * f[0] + 1e-6
            mujoco.mj_jacSite(model, data, J, None, data.site(leg).id)
            data.qfrc_applied += J.T @ f[[1, 2, 0]]
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(data.qacc, accelerations, atol=1e-5)


@pytest.mark.parametrize(
    ("cone", "friction", "horizon"), [("quadratic", 0.2, 2), ("inner", 0.6, 4)]
)
@pytest.mark.every(2)
def test_limits_of_the_law_bound_the_samples_and_round_cones_hold(cone, friction, horizon):
    """A knee that the rising trunk stretches stops at its margin; on ice feet reach their cones."""
    reach = control.JointLimits(("left knee",), margin=0.83, braking=50.0)
    law = law_of(cone, friction, joint_limits=reach, bound_errors=False)
    found = plan(law, [0.05, 0, 0.08], horizon=horizon)
    angle, stop = found.x[:, 4].max(), -0.2 - reach.margin
    forces = found.u[:, 11:17].reshape(horizon, 2, 3)
    left = friction * forces[..., 0] - np.hypot(forces[..., 1], forces[..., 2])
    if cone == "inner":
        assert angle == pytest.approx(stop, abs=1e-6)
        assert left.min() > -1e-6
    else:
        assert angle < stop
        assert -1e-6 < left.min() < 5e-3  # N: of a cone whose apex is rounded


def test_what_a_plan_does_not_have_is_refused_by_name():
    for options, named in (
        ({"observer": control.DisturbanceObserver(5.0)}, "'observer', which remembers or measures"),
        ({"levels": [["trunk"], ["posture"]]}, "levels"),
        ({"delay": 1}, "a delay"),
    ):
        law = law_of(**options)
        with pytest.raises(ProblemError, match=named):
            mpc.optimal_control_problem(law.system, N, T, [mpc.StageForces(law)])
    law = law_of()
    ocp = mpc.optimal_control_problem(law.system, 1, T, [mpc.StageForces(law)])
    with pytest.raises(ProblemError, match="expected a problem in the controls"):
        mpc.real_time_iteration(ocp)
    with pytest.raises(ProblemError, match="expected the controller's own system"):
        mpc.optimal_control_problem(mb.read_mjcf(ROBOT), N, T, [mpc.StageForces(law)])
