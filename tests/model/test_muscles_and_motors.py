"""Muscles, DC motors and cranks: laws, slopes against differences, MuJoCo's next activations."""

import casadi as ca
import mujoco
import numpy as np
import pytest

from mbcasadi import mjcf, model
from mbcasadi.description.actuators import MuscleCurves
from mbcasadi.mjcf.compat import VERSION
from mbcasadi.model.muscle import muscle_bias, muscle_gain

ROUNDING = 1e-12
SLOPE_TOL = 1e-6
STEP = 1e-6
STATES = 12

CONTROLLERS = """
<dcmotor joint="k" resistance="2" motorconst=".1" thermal="2 3 0 .004 25 22"
  lugre="10 1 .1 .2 .05"/>
<dcmotor joint="j" resistance="2" motorconst=".1" input="pos vel ff voltage"
  controller="3 2 .1 0 .4 12"/>
<pid joint="j" kp="3" kv="1" forcerange="-1 1"/>
"""
POWERED = f"""
<mujoco><option timestep="0.003"/><worldbody>
<site name="rail" pos=".1 .2 .5" euler="20 -30 10"/>
<body><joint name="j" axis="0 1 0" range="-90 90"/><geom size=".1" pos="0 0 -.3"/>
<body pos="0 0 -.5"><joint name="k" axis=".3 1 0" range="-90 90"/><geom size=".1" pos="0 0 -.3"/>
<site name="pin" pos="0 .1 -.1" quat="1 .2 .3 -.1"/></body></body></worldbody><actuator>
<muscle joint="j" gear="-1"/>
<muscle joint="k" force="30" tausmooth=".2" range=".6 1.2"/>
<general joint="k" dyntype="muscle" dynprm=".01 .04 0" gainprm="3" actlimited="true"
  actrange=".1 .9"/>
<general joint="k" dyntype="filterexact" dynprm=".02" gainprm="3" actearly="true"/>
<general joint="j" dyntype="integrator" gainprm="3" actlimited="true" actrange="-.5 .5"/>
<dcmotor joint="j" resistance="2" motorconst=".1" inductance="0 .01" cogging=".1 6 .2"/>
<motor cranksite="pin" slidersite="rail" cranklength="2"/>
<position cranksite="rail" slidersite="pin" cranklength=".7" kp="3" kv=".2"/>
{CONTROLLERS if VERSION >= (4, 0) else ""}
</actuator></mujoco>
"""
CURVES = MuscleCurves((1.0, 3.0), (0.5, 1.5), 40.0, 0.5, 1.6, 1.5, 1.3, 1.2)


class Powered:
    """The mechanism, as MuJoCo's model and as Functions of (q, v, u, act)."""

    def __init__(self):
        self.compiled = mujoco.MjModel.from_xml_string(POWERED)
        self.data = mujoco.MjData(self.compiled)
        numbers, m = mjcf.read(self.compiled), self.compiled
        sizes = {"q": m.nq, "v": m.nv, "u": m.nu, "act": m.na}
        symbols = [ca.SX.sym(name, size) for name, size in sizes.items()]
        args = numbers.tree, numbers.actuators, *symbols
        outputs = {
            "force": model.actuator_force(*args),
            "rate": model.act_dot(*args),
            "next": model.next_act(*args, m.opt.timestep),
        }
        self.values = {k: ca.Function(k, symbols, [ca.densify(x)]) for k, x in outputs.items()}
        self.slopes = {
            key: ca.Function(
                key, symbols, [ca.densify(ca.jacobian(outputs[key], x)) for x in symbols]
            )
            for key in ("force", "rate")
        }

    def states(self):
        rng, m = np.random.default_rng(3), self.compiled
        for _ in range(STATES):
            u, act = rng.uniform(-1.5, 1.5, m.nu), rng.uniform(-0.2, 1.2, m.na)
            yield rng.uniform(-1.5, 1.5, m.nq), 3 * rng.normal(size=m.nv), u, act

    def mujoco_at(self, q, v, u, act):
        d = self.data
        d.qpos[:], d.qvel[:], d.ctrl[:], d.act[:] = q, v, u, act
        mujoco.mj_forward(self.compiled, d)
        return d


@pytest.fixture(scope="module")
def powered():
    return Powered()


def test_forces_and_rates_are_those_of_mujoco_in_and_out_of_all_ranges(powered):
    for state in powered.states():
        data = powered.mujoco_at(*state)
        for key, expected in (("force", data.qfrc_actuator), ("rate", data.act_dot)):
            found = powered.values[key](*state).full().ravel()
            np.testing.assert_allclose(found, expected, atol=ROUNDING * abs(expected).max())


def test_activations_a_step_later_are_those_of_mujoco(powered):
    for state in powered.states():
        powered.mujoco_at(*state)
        mujoco.mj_step(powered.compiled, powered.data)
        found = powered.values["next"](*state).full().ravel()
        assert abs(found - state[3]).max() > 1e-3
        np.testing.assert_allclose(found, powered.data.act, atol=ROUNDING)


@pytest.mark.parametrize("key", ["force", "rate"])
def test_slopes_are_those_of_differences(powered, key):
    for state in powered.states():
        scale = 1.0 + abs(powered.values[key](*state).full()).max()
        for k, slope in enumerate(powered.slopes[key](*state)):
            for i in range(state[k].size):
                ends = []
                for sign in (1, -1):
                    moved = [np.array(x) for x in state]
                    moved[k][i] += sign * STEP
                    ends.append(powered.values[key](*moved).full().ravel())
                expected = (ends[0] - ends[1]) / (2 * STEP)
                size = max(scale, abs(expected).max())
                np.testing.assert_allclose(slope.full()[:, i], expected, atol=SLOPE_TOL * size)


def muscle_at(length, rate):
    """Return gain and bias at lengths and rates."""
    x, dx = ca.SX.sym("x"), ca.SX.sym("dx")
    outputs = [muscle_gain(CURVES, x, dx), muscle_bias(CURVES, x)]
    muscle = ca.Function("muscle", [x, dx], outputs)
    out = [y.full().ravel() for y in muscle(np.atleast_2d(length), np.atleast_2d(rate))]
    return out if np.ndim(length) else [float(y[0]) for y in out]


def test_a_muscle_pulls_with_its_force_at_its_optimal_length_and_at_rest():
    """L0 = 2, and L = 1 at the length 2."""
    assert muscle_at(2.0, 0.0) == [-40.0, 0.0]
    fast, slow = muscle_at(2.0, 3.0)[0], muscle_at(2.0, -3.0)[0]  # V = 1 and V = -1
    assert (fast, slow) == (-40.0 * 1.2, 0.0)
    assert muscle_at(1.0 + 2 * (1.6 - 0.5), 0.0)[0] == pytest.approx(0.0, abs=1e-12)
    middle = 0.5 * (1 + 1.6)
    assert muscle_at(1.0 + 2 * (middle - 0.5), 0.0)[1] == pytest.approx(-40 * 1.3 / 2)


def test_a_muscle_never_pushes():
    lengths, rates = np.meshgrid(np.linspace(0.0, 5.0, 41), np.linspace(-8.0, 8.0, 41))
    forces = np.array(muscle_at(lengths.ravel(), rates.ravel()))
    assert forces.min() < -10.0
    assert forces.max() <= 0.0
