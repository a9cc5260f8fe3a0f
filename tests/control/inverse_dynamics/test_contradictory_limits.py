"""Limits of control and force without a common part are refused, or infeasible where they vary."""

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.description.status import OUTPUTS, Status
from mbcasadi.mpc import optimal_control_problem
from mbcasadi.mpc.ocp.cost import Cost

WORDS = r"actuator '\w+': its control commands forces from .* to .*limited to .*common part"


def mass():
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    return mb.from_lagrangian(q, v, kinetic=v**2 / 2, B=[[1]], ctrl_range=[[-1, 1]], name="mass")


def motor(gear=1.0, force="", kind="motor", ctrl="-1 1"):
    """Return a MuJoCo slider with one actuator."""
    given = f'forcelimited="true" forcerange="{force}"' if force else ""
    return f"""<mujoco model="slider"><option gravity="0 0 0"/><worldbody><body>
      <joint name="x" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body></worldbody>
      <actuator><{kind} name="push" joint="x" gear="{gear}" ctrllimited="true" ctrlrange="{ctrl}"
      {given}/></actuator></mujoco>"""


@pytest.mark.parametrize("limits", [[[2, 3]], [[-3, -1.01]]])
def test_a_force_that_no_control_commands_is_refused_when_built(limits):
    for system in (mass(), mb.read_mjcf(motor())):
        with pytest.raises(err.ProblemError, match=WORDS):
            InverseDynamicsQP(system, [PostureTask()], force_limits=limits)


def test_ranges_of_a_model_that_contradict_each_other_are_refused_by_control_and_mpc():
    system = mb.read_mjcf(motor(force="2 3"))
    with pytest.raises(err.ProblemError, match=WORDS):
        InverseDynamicsQP(system, [PostureTask()])
    with pytest.raises(err.ProblemError, match=WORDS):
        optimal_control_problem(system, 3, 0.1, [Cost(R=1.0)])


@pytest.mark.parametrize("limits", [[[1, 3]], [[-3, 0.5]], [[-np.inf, -1]]])
def test_limits_with_a_common_part_are_kept(limits):
    for system in (mass(), mb.read_mjcf(motor())):
        law = InverseDynamicsQP(system, [PostureTask()], force_limits=limits)
        assert np.all(law.controller.u_min <= law.controller.u_max)
        assert law.controller.u_min[0] == max(-1, limits[0][0])
        assert law.controller.u_max[0] == min(1, limits[0][1])


def servo_law(**options):
    system = mb.read_mjcf(motor(kind="position"))
    return system, InverseDynamicsQP(system, [PostureTask(kp=1.0, kd=1.0)], **options)


def solve_at(law, place):
    ref = law.reference_at(np.array([place]))
    values = law.function(place, 0.0, ref, [], law.z0)
    return dict(zip(OUTPUTS, (np.array(part).ravel() for part in values), strict=True))


def test_where_the_state_decides_a_given_limit_is_infeasible_and_the_own_one_clips():
    """A servo of kp = 1 N/m commands -3 N at least and -1 N at most, 2 m from its zero."""
    system, law = servo_law(force_limits=[[-0.5, 0.5]])
    near, far = solve_at(law, 0.0), solve_at(law, 2.0)
    assert near["status"] == Status.SOLVED
    assert far["status"] == Status.INFEASIBLE
    own = mb.read_mjcf(motor(kind="position", force="-0.5 0.5"))
    clipped = InverseDynamicsQP(own, [PostureTask(kp=1.0, kd=1.0)])
    out = solve_at(clipped, 2.0)
    assert out["status"] == Status.SOLVED
    model = mujoco.MjModel.from_xml_string(motor(kind="position", force="-0.5 0.5"))
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = 2.0, out["u"]
    mujoco.mj_forward(model, data)
    assert data.actuator_force[0] == -0.5  # which the actuator exerts, whatever the control
    assert abs(out["u"][0]) <= 1
    assert system.nu == 1
