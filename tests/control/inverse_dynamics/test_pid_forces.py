"""PID servos in inverse dynamics: the control of a force, the motion it gives, the loop in C."""

from itertools import product

import casadi as ca
import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose
from servo_arms import INTEGRATORS

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.mjcf.compat import VERSION
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.ranges import require_ranges

ROUNDING = 1e-9
REGULARISED = 1e-4  # rad/s², of accelerations of 3 rad/s²: the weight of the forces in the QP
STEP = 0.002
ARM = """
<mujoco model="pid_arm"><option timestep="0.002" integrator="{integrator}"/>{plugins}
<worldbody><body><joint name="j" axis="0 1 0" armature=".05" damping=".1"/>
<geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="1"/><body pos=".4 0 0">
<joint name="k" axis="0 1 0" armature=".02"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".5"/></body></body></worldbody>
<actuator>{actuators}</actuator></mujoco>
"""
PIDS = """
<pid name="a" joint="j" kp="200" kv="8" ki="100" imax=".05" input="pos"/>
<pid name="b" joint="k" kp="60" kv="2" ki="30" slewmax="40" forcerange="-8 8" input="pos"/>
"""


def with_plugins(*servos: tuple[str, str], integrator: str = "implicitfast") -> str:
    """Return the arm with a plugin on each joint: gains as `kp=4 ki=2`, and attributes."""
    instances, actuators = "", ""
    for joint, (gains, attributes) in zip("jk", servos, strict=False):
        pairs = (pair.split("=") for pair in gains.split())
        config = "".join(f'<config key="{key}" value="{value}"/>' for key, value in pairs)
        instances += f'<instance name="{joint}">{config}</instance>'
        actuators += (
            f'<plugin plugin="mujoco.pid" instance="{joint}" joint="{joint}" {attributes}/>'
        )
    plugins = f'<extension><plugin plugin="mujoco.pid">{instances}</plugin></extension>'
    return ARM.format(integrator=integrator, plugins=plugins, actuators=actuators)


def plugin_arm(integrator: str = "implicitfast") -> str:
    """Return the arm with an integral up to a bound, and with a slew rate."""
    return with_plugins(
        ("kp=200 ki=100 kd=8 imax=3", 'actdim="1" ctrlrange="-2 2"'),
        ("kp=60 ki=30 kd=2 slewmax=40", 'actdim="2" forcerange="-8 8"'),
        integrator=integrator,
    )


def pid_arm(integrator: str = "implicitfast") -> str:
    return ARM.format(integrator=integrator, plugins="", actuators=PIDS)


ARMS = {
    plugin_arm: [0.01, 0.02, -0.13],
    **({pid_arm: [0.01, -0.13, 0.02]} if VERSION >= (4, 0) else {}),
}
"""Activations at which no bound is reached, by arm."""


def servos():
    """Yield gains and attributes of one plugin with each bound and dynamics."""
    choices = ("", " ki=3", " ki=3 imax=.05"), ("", " kd=.7"), ("", " slewmax=2")
    for parts, dynamics in product(
        product(*choices), ("none", "filter", "filterexact", "integrator")
    ):
        states = sum("ki" in part or "slew" in part for part in parts) + (dynamics != "none")
        text = f'actdim="{states}" dyntype="{dynamics}" dynprm=".1"' if states else ""
        if dynamics == "filterexact":
            text += ' ctrlrange="-.8 .9" actlimited="true" actrange="-.5 .6"'
        yield "kp=4" + "".join(parts), text


@pytest.mark.parametrize("k", range(4))
@pytest.mark.every(3)
def test_the_control_of_a_force_gives_this_force_in_mujoco(k):
    reached = 0
    for servo in list(servos())[k::4]:
        compiled = mujoco.MjModel.from_xml_string(with_plugins(servo, ("kp=1", "")))
        system, data = mb.read_mjcf(compiled), mujoco.MjData(compiled)
        q, v, act, p = (ca.SX.sym("x", n) for n in (2, 2, system.na, 2))
        state = act if system.na else None
        at = actuator_model(system, require_ranges(system, None, None), STEP, q, v, state)
        find = ca.Function("find", [q, v, act, p], [at.controls(p), at.lower, at.upper])
        rng = np.random.default_rng(3)
        for size in (0.02, 0.3, 0.02, 0.3):
            state = 0.2 * rng.normal(size=2), rng.normal(size=2), size * rng.normal(size=system.na)
            lower, upper = (x.full()[0, 0] for x in find(*state, [0.0, 0.0])[1:])
            wanted = rng.uniform(max(lower, -3.0), max(min(upper, 3.0), lower + 1e-9))
            data.ctrl[:] = find(*state, [wanted, 0.0])[0].full().ravel()
            data.qpos[:], data.qvel[:], data.act[:], data.time = *state, 1.0
            if 'dyntype="none"' not in servo[1] and servo[1]:  # an activation acts a step later
                mujoco.mj_step(compiled, data)
                data.qpos[:], data.qvel[:] = state[:2]
            mujoco.mj_forward(compiled, data)
            if upper - lower > 1e-6:
                reached += 1
                assert data.actuator_force[0] == pytest.approx(wanted, abs=ROUNDING), servo
    assert reached > 10


@pytest.mark.parametrize("integrator", [name for name in INTEGRATORS if name != "RK4"])
@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.every(3)
def test_the_arm_has_the_acceleration_that_the_task_wants(arm, integrator):
    source = arm(integrator)
    system = mb.read_mjcf(source)
    law = InverseDynamicsQP(system, tasks=[PostureTask(kp=100, kd=20)], period=STEP)
    q, v, desired = np.array([0.3, -0.2]), np.array([0.5, 1.0]), np.array([0.5, -1.0])
    solution = law.solve(q, v, ref=np.concatenate([q, v, desired]), act=ARMS[arm])
    compiled = mujoco.MjModel.from_xml_string(source)
    data = mujoco.MjData(compiled)
    data.qpos[:], data.qvel[:], data.act[:], data.time = q, v, ARMS[arm], 1.0
    data.ctrl[:] = solution.u
    mujoco.mj_step(compiled, data)
    turning = 2e-3 if integrator == "implicit" else 0.0  # it takes Coriolis forces along
    assert_allclose((data.qvel - v) / STEP, desired, atol=REGULARISED + turning)


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.every(2)
def test_the_generated_law_follows_a_path_with_integrals_and_a_slew_rate(arm):
    system = mb.read_mjcf(arm())
    law = InverseDynamicsQP(system, tasks=[PostureTask(kp=100, kd=20)], period=STEP)

    def path(t):
        q, v = (
            [0.4 * np.sin(2 * t), 0.3 * np.sin(3 * t)],  # from the set-point of an activation, zero
            [0.8 * np.cos(2 * t), 0.9 * np.cos(3 * t)],
        )
        return [*q, *v, -1.6 * np.sin(2 * t), -2.7 * np.sin(3 * t)]

    report = mb.validate(law, arm(), 0.6, reference=path, q0=[0.0, 0.0], v0=[0.8, 0.9])
    assert report.passed
    run = report.runs[0].recording
    assert np.abs(run.act).max(axis=0).min() > 1e-3
    assert np.abs(run.q[-1] - np.array(path(run.t[-1])[:2])).max() < 2e-3


def test_a_force_that_turns_back_is_refused():
    source = with_plugins(("kp=-1 ki=800 imax=1", 'actdim="1"'), ("kp=1", ""))
    with pytest.raises(UnsupportedFeatureError, match="gains kp, ki, kd of one sign"):
        InverseDynamicsQP(mb.read_mjcf(source), tasks=[PostureTask(kp=1, kd=1)], period=STEP)
