"""Edges of the regulators: no freedom, no actuator on a mode, a limit that nothing can meet."""

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import linprog

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.control.laws import LawOptions
from mbcasadi.control.regulators import (
    encoders,
    finite_horizon_lqr,
    kalman,
    linearize,
    lqr,
    lqr_gain,
    pole_placement,
)
from mbcasadi.control.regulators.loads import LoadLimits, loads
from mbcasadi.mpc import LinearOptions, linear_mpc, offset_free_mpc


def welded():
    """Return the linear system of a mass that its row holds."""
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    system = mb.from_lagrangian(q, v, kinetic=v**2 / 2, B=[[1]], phi=q, name="welded")
    return linearize(system, [0.0], None, [0.0])


MAKERS = {
    "lqr": lambda linear: lqr(linear, np.ones(2), 1.0),
    "lqr_gain": lambda linear: lqr_gain(linear, np.ones(2), 1.0),
    "pole_placement": lambda linear: pole_placement(linear, []),
    "finite_horizon_lqr": lambda linear: finite_horizon_lqr(linear, np.ones(2), 1.0, 0.1),
    "kalman": lambda linear: kalman(linear, encoders(linear.system, ["q"]), np.ones(2), 1.0),
    "linear_mpc": lambda linear: linear_mpc(linear, LinearOptions(3, np.ones(2), 1.0)),
    "offset_free_mpc": lambda linear: offset_free_mpc(
        linear, LinearOptions(3, np.ones(2), 1.0), np.eye(2)[:1]
    ),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_a_mechanism_that_cannot_move_is_refused_in_words(maker):
    with pytest.raises(err.ProblemError, match=r"'welded' cannot move.*no freedom"):
        MAKERS[maker](welded())


def idle_mass():
    """Return two masses on springs that push them away, a motor on the first alone."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    system = mb.from_lagrangian(
        q, v, kinetic=ca.sumsqr(v) / 2, potential=-ca.sumsqr(q), B=[[1], [0]], name="idle"
    )
    return linearize(system, [0.0, 0.0], None, [0.0])


def test_a_finite_horizon_needs_no_stabilisable_mode_where_its_end_is_weighted():
    linear = idle_mass()
    with pytest.raises(err.ProblemError, match=r"not stabilisable.*with Q_end no mode needs"):
        finite_horizon_lqr(linear, np.ones(4), 1.0, 0.1, options=LawOptions(period=0.01))
    law = finite_horizon_lqr(
        linear, np.ones(4), 1.0, 0.1, Q_end=np.ones(4), options=LawOptions(period=0.01)
    )
    u = law.function([0.1, 0.0], [0.0, 0.0], [], law.controller.z0)[0]
    assert float(u) < -0.01


def random_loads(rng):
    """Return a problem with a control of its own, and two that push against each other."""
    E = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, -1.0]])
    g = rng.uniform(-2, 2, 2)
    bounds = rng.uniform(0.3, 2.0, 3)
    G = np.vstack([np.eye(3), -np.eye(3)])
    return E, g, LoadLimits(G, np.tile(bounds, 2)), bounds


def test_forces_within_limits_exist_exactly_where_linear_programming_finds_them():
    """The first control is determined: no internal force helps it."""
    rng, seen = np.random.default_rng(0), set()
    for _ in range(300):
        E, g, limits, bounds = random_loads(rng)
        found = loads(E, g, limits, 3)
        second = linprog(np.zeros(3), A_eq=E, b_eq=g, bounds=np.column_stack([-bounds, bounds]))
        assert found.feasible == (second.status == 0)
        if found.feasible:
            np.testing.assert_allclose(E @ found.y, g, atol=1e-9)
            assert np.all(np.abs(found.y) <= bounds * (1 + 1e-8))
        seen.add((found.feasible, bool(np.abs(g[0]) > bounds[0])))
    assert {(True, False), (False, True)} <= seen


def test_a_motor_that_is_too_weak_beside_a_redundant_pair_is_named():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    system = mb.from_lagrangian(
        q, v, kinetic=ca.sumsqr(v) / 2, potential=3 * q[0] + q[1], B=[[1, 0, 0], [0, 1, 1]],
        ctrl_range=[[-1, 1], [-0.2, 0.2], [-5, 5]], name="weak",
    )  # fmt: skip
    with pytest.raises(err.ProblemError, match=r"no equilibrium was found.*u0"):
        mb.equilibrium(system, [0.0, 0.0])
