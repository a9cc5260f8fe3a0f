"""Change of units: the weighted projector stays, the plain one does not."""

import functools

import casadi as ca
import numpy as np
import pytest
from formulation_problems import as_function, motion_shapes, numbers

import mbcasadi as mb
from mbcasadi.dynamics import FORMULATIONS
from mbcasadi.formulation import constraint_inertia
from mbcasadi.formulation.metric import in_metric, length_metric, metric_projector, metric_root
from mbcasadi.linalg import projector

MILLIMETRE, DEGREE = 1000.0, 180 / np.pi  # per metre, per radian
UNITS = np.diag([MILLIMETRE, DEGREE, MILLIMETRE])
LENGTH = 0.7  # m, characteristic
ROTATIONAL = (False, True, False)


def sliding_pendulum(metre, radian):
    """Return M, h, A, c of a cart with a telescopic pendulum whose tip stays level, row doubled.

    Coordinates: cart, angle, length, in `metre` units per metre and `radian` per radian;
    energies in J and rows in m whatever these are.
    """
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    in_si = ca.DM([metre, radian, metre])
    x, angle, r = ca.vertsplit(q / in_si)
    tip = ca.vertcat(x + r * ca.sin(angle), -r * ca.cos(angle))
    v_tip = ca.jacobian(tip, q) @ v
    level = tip[1] + 0.9
    system = mb.from_lagrangian(
        q,
        v,
        kinetic=(2.0 * (v[0] / metre) ** 2 + 1.3 * ca.sumsqr(v_tip)) / 2,
        potential=1.3 * 9.81 * tip[1],
        phi=ca.vertcat(level, 3.0 * level),
    )
    state = np.array([0.3, 0.5, 1.1]) * in_si.full().ravel()
    rate = np.array([0.2, -0.7, 0.4]) * in_si.full().ravel()
    return {
        "M": system.mass_matrix(state).full(),
        "h": system.bias_force(state, rate).full().ravel(),
        "A": system.constraint_jacobian(state).full(),
        "c": system.constraint_bias(state, rate).full().ravel(),
    }


def both_units():
    """Return the pendulum in m and rad, and in mm and degrees, with one applied force."""
    f = np.array([1.0, -2.0, 0.5])
    in_si = sliding_pendulum(1.0, 1.0) | {"f": f}
    in_mm = sliding_pendulum(MILLIMETRE, DEGREE) | {"f": np.linalg.solve(UNITS, f)}
    return in_si, in_mm


def length_metrics():
    here = length_metric(ROTATIONAL, LENGTH)
    return here, length_metric(ROTATIONAL, LENGTH * MILLIMETRE / DEGREE)


def test_weighted_projector_and_constraint_inertia_are_the_same_in_all_units():
    in_si, in_mm = both_units()
    found = []
    for p, W in zip((in_si, in_mm), length_metrics(), strict=True):
        root = metric_root(W)
        M_W = root.inverse @ ca.DM(p["M"]) @ root.inverse
        P_W = metric_projector(ca.DM(p["A"]), W)
        found.append((P_W.full(), constraint_inertia(M_W, P_W).full()))
    (P_si, M_c_si), (P_mm, M_c_mm) = found
    np.testing.assert_allclose(P_mm, P_si, atol=1e-14)
    np.testing.assert_allclose(M_c_mm * MILLIMETRE**2, M_c_si, rtol=1e-12)  # J / (mm/s)²


def test_without_a_metric_the_projector_depends_on_the_units():
    in_si, in_mm = both_units()
    P_si, P_mm = (projector(ca.DM(p["A"])).full() for p in (in_si, in_mm))
    as_in_mm = UNITS @ P_si @ np.linalg.inv(UNITS)
    assert np.abs(np.diag(P_mm) - np.diag(as_in_mm)).max() > 0.1
    W_si, W_mm = length_metrics()
    P_W_si = metric_projector(ca.DM(in_si["A"]), W_si).full()
    P_W_mm = metric_projector(ca.DM(in_mm["A"]), W_mm).full()
    np.testing.assert_allclose(np.diag(P_W_mm), np.diag(P_W_si), atol=1e-14)


@pytest.mark.parametrize("name", list(FORMULATIONS))
def test_with_a_metric_the_rows_that_repeat_are_the_same_in_all_units(name):
    """Two rows differ by 3e-9 along an angle: more than `rank_tol` in radians, less in degrees.

    `limbwise` measures lengths by the kinetic energy, which are the same in all units anyway.
    """
    rows = np.array([[1.0, 0.0, 0.0], [1.0, 3e-9, 0.0]])
    in_radians = {"M": np.eye(3), "h": np.zeros(3), "f": np.array([1.0, 2.0, 3.0]), "A": rows}
    in_radians["c"] = np.zeros(2)
    inv = np.diag([1.0, 1 / DEGREE, 1.0])
    in_degrees = {"M": inv @ inv, "f": inv @ in_radians["f"], "A": rows @ inv}
    in_degrees = in_radians | in_degrees
    rule = functools.partial(FORMULATIONS[name], rank_tol=1e-9)

    def angle(equations, values, per_radian):
        """Return the acceleration of the angle, rad/s²: 0 where its row is kept, else 2."""
        f = as_function(equations, ca.SX, motion_shapes(2, 3))
        return numbers(f, **values)["a"][1] / per_radian

    assert angle(rule, in_radians, 1.0) == pytest.approx(0, abs=1e-6)
    in_all_units = name == "limbwise"
    without = pytest.approx(0, abs=1e-6) if in_all_units else pytest.approx(2)
    assert angle(rule, in_degrees, DEGREE) == without
    radians, degrees = (length_metric(ROTATIONAL, LENGTH / per) for per in (1.0, DEGREE))
    assert angle(in_metric(rule, radians), in_radians, 1.0) == pytest.approx(0, abs=1e-6)
    assert angle(in_metric(rule, degrees), in_degrees, DEGREE) == pytest.approx(0, abs=1e-6)
