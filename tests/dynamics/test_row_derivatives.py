"""Derivatives of constraint rows and of inverse dynamics of systems, against differentiation."""

import casadi as ca
import numpy as np
import pytest
from dynamics_states import the_case
from support.corpora import ROBOT_NAMES, robot
from support.hard_cases import JOINTS
from support.lagrangian_mechanisms import double_pendulum

from mbcasadi import model
from mbcasadi.description import Baumgarte
from mbcasadi.dynamics import inverse_dynamics, inverse_dynamics_derivatives
from mbcasadi.dynamics.residual_jacobians import residual_jacobian_fun
from mbcasadi.dynamics.terms import State, state_symbols, terms
from mbcasadi.system import read_mjcf

ROUNDING = 1e-11  # relative to the largest entry of a block
STEP = 1e-3  # of differences of sixth order
DIFFERENCE_TOL = 1e-8

LOOPS_ON_A_FREE_BASE = """
<mujoco model="loops">
  <worldbody>
    <body name="base" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3" pos=".1 0 0"/>
      <body name="left" pos=".2 0 0"><joint axis="1 2 0"/><joint type="slide" axis="0 1 1"/>
        <geom type="box" size=".1 .1 .2" pos=".1 .1 0"/>
        <body name="tip" pos=".3 0 .1"><joint type="ball" pos=".1 .2 0"/>
          <geom type="box" size=".1 .05 .2" pos=".1 .1 0"/></body>
      </body>
      <body name="right" pos="-.2 0 0"><joint type="ball"/><geom size=".1" pos="0 .1 .1"/>
        <body name="hand" pos="0 .3 0"><joint axis="0 1 .5" pos="0 0 .1"/>
          <joint type="slide" axis="1 0 0"/><geom size=".1" pos="0 .1 .1"/></body>
      </body>
    </body>
    <body name="other" pos="1 0 0"><joint axis="0 0 1"/><geom size=".1" pos=".2 0 .1"/></body>
  </worldbody>
  <equality>
    <weld body1="tip" body2="hand" torquescale=".7"/>
    <connect body1="left" body2="hand" anchor=".1 .2 .3"/>
    <connect body1="hand" body2="world" anchor=".1 0 .3"/>
    <connect body1="other" body2="tip" anchor="0 .1 .2"/>
  </equality>
</mujoco>
"""
SOURCES = {"loops on a free base": LOOPS_ON_A_FREE_BASE}
FIXED = ("a", "lam", "e", "w")
OWN = ("arm_gripper", "bricard", "cooperating_arms", "five_bar", "planar_biped", "two_arm_carry")


def system_of(name, switchable=False):
    if name in SOURCES:
        return read_mjcf(SOURCES[name], switchable=switchable)
    if name in ROBOT_NAMES:
        return read_mjcf(robot(name), switchable=switchable)
    return the_case(name).system


def point(system):
    """Return a random state off the manifold, and random vectors that are held fixed."""
    rng = np.random.default_rng(9)
    q, v = model.random_state(system.tree, rng)
    values = {"q": q, "v": v, "a": rng.standard_normal(system.nv)}
    values |= {key: rng.standard_normal(system.nc) for key in ("lam", "e")}
    values["w"] = rng.standard_normal(system.nv)
    return values | ({} if system.mask is None else {"mask": rng.standard_normal(system.nc)})


def differentiated(system, baumgarte):
    """Return the same Jacobians by differentiation of the terms of the motion."""
    state: State[ca.SX] = state_symbols(system, ca.SX)
    M, h, A, c = terms(system, state, baumgarte)
    fixed = {key: ca.SX.sym(key, n) for key, n in zip(FIXED, sizes(system), strict=True)}
    a, lam, e, w = fixed.values()
    values = {"id": M @ a + h, "force": A.T @ lam, "row": A @ a + c, "gap": A.T @ e, "share": A @ w}
    values = dict(zip(values, ca.cse(list(values.values())), strict=True))
    outputs = {
        f"{key}_{x}": ca.jacobian(value, symbol)
        for x, symbol in state.of_qv.items()
        for key, value in values.items()
    }
    inputs = {"q": state.q, "v": state.v} | fixed | state.last
    names = (list(inputs), list(outputs))
    return ca.Function("differentiated", list(inputs.values()), list(outputs.values()), *names)


def sizes(system):
    return system.nv, system.nc, system.nc, system.nv


MECHANISMS = (*SOURCES, *OWN, "standing_quadruped")
CASES = [(name, "plain") for name in ("loops on a free base", "bricard")]
CASES += [(name, "switched and stabilised") for name in (*MECHANISMS, *ROBOT_NAMES)]


@pytest.mark.parametrize(("name", "treatment"), CASES)
@pytest.mark.every(3)
def test_residual_jacobians_equal_the_differentiated_terms(name, treatment):
    plain = treatment == "plain"
    system = system_of(name, switchable=not plain)
    baumgarte = None if plain else Baumgarte(2.0, 3.0)
    values = point(system)
    expected = differentiated(system, baumgarte)(**values)
    inertial = np.abs(system.mass_matrix(values["q"]).full() @ values["a"]).max()
    N = system.velocity_map(values["q"]).full()
    for tangent in (False, True):
        found = residual_jacobian_fun(system, baumgarte, tangent=tangent)(**values)
        for key, block in expected.items():
            two = block.full() @ N if tangent and key.endswith("_q") else block.full()
            size = max(np.abs(two).max(initial=0.0), 1e-3 * inertial)
            one = found[key].full()
            np.testing.assert_allclose(one, two, rtol=0, atol=ROUNDING * size, err_msg=key)


def test_rows_of_loops_that_a_base_carries_turn_with_it():
    system = system_of("loops on a free base")
    values = point(system)
    by_q = residual_jacobian_fun(system, tangent=True)(**values)["row_q"].full()
    assert np.abs(by_q[:3, 3:6]).max() > 1e-2  # the weld between two limbs of the base
    assert np.abs(by_q[:3, :3]).max() == 0.0


@pytest.mark.parametrize("name", ["loops on a free base", "springs"])
def test_derivatives_of_inverse_dynamics_are_those_of_differences(name):
    system = read_mjcf(JOINTS["ball and free springs"]) if name == "springs" else system_of(name)
    check_by_differences(system, {key: point(system)[key] for key in ("q", "v", "a")})


def test_systems_from_a_lagrangian_have_the_same_derivatives():
    system = double_pendulum()
    rng = np.random.default_rng(4)
    check_by_differences(system, {key: rng.standard_normal(system.nv) for key in ("q", "v", "a")})


def check_by_differences(system, at):
    force, derivatives = inverse_dynamics(system), inverse_dynamics_derivatives(system)(**at)
    moved = {
        "q": lambda step: {"q": system.integrate(at["q"], step)},
        "v": lambda step: {"v": at["v"] + step},
        "a": lambda step: {"a": at["a"] + step},
    }
    for x, move in moved.items():
        columns = []
        for unit in np.eye(system.nv):
            column = np.zeros(system.nv)
            for k, weight in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60)):
                ahead, behind = (force(**(at | move(s * k * STEP * unit))) for s in (1, -1))
                column += weight / STEP * (ahead["f"] - behind["f"]).full().ravel()
            columns.append(column)
        expected, found = np.column_stack(columns), derivatives[f"dfd{x}"].full()
        size = np.abs(expected).max()
        assert size > 1e-3
        np.testing.assert_allclose(found, expected, rtol=0, atol=DIFFERENCE_TOL * size, err_msg=x)
