"""The same mechanism in other units: everything that has a meaning agrees.

Lengths, masses and times are converted, and with them state, reference, gains, weights and limits.
A slider-crank of 1 mm, 1 m and 1 km is such a conversion; so is one in grams and milliseconds.
"""

import casadi as ca
import numpy as np
import pytest
from support.unit_systems import OTHERS, Units

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.control.laws import (
    LawOptions,
    computed_torque,
    function_coordinates,
    passive_joint_control,
)

AGREE = 1e-8  # relative; factorisations of a condition up to 1e6 in other roundings


def pose_sizes(units):
    """Of two angles and a position."""
    return units.of(("rad", "rad", "m"))


def rate_sizes(units):
    """Of two angles and a position, per second."""
    return pose_sizes(units) / units.s


def slider_crank(units, limit=np.inf):
    """Return a slider-crank of two angles and a position, its rows redundant, in these units."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    a, b, x = ca.vertsplit(q)
    across = units.m * (0.3 * ca.sin(a) + 0.5 * ca.sin(b))
    phi = ca.vertcat(units.m * (0.3 * ca.cos(a) + 0.5 * ca.cos(b)) - x, across, 2 * across)
    inertia = units.kg * units.m**2
    kinetic = inertia * (0.02 * v[0] ** 2 + 0.01 * v[1] ** 2) + units.kg * 0.4 * v[2] ** 2
    potential = units.torque * (2.0 * ca.sin(a) + 0.7 * ca.sin(b))
    limit = limit * units.torque
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=potential, B=[[1], [0], [0]], phi=phi,
        ctrl_range=[[-limit, limit]],
    )  # fmt: skip


def state(units, a=0.7):
    """Return a closed pose and an admissible velocity."""
    b = -np.arcsin(0.6 * np.sin(a))
    rate = -0.6 * np.cos(a) / np.cos(b)
    x, speed = 0.3 * np.cos(a) + 0.5 * np.cos(b), -0.3 * np.sin(a) - 0.5 * np.sin(b) * rate
    return pose_sizes(units) * [a, b, x], rate_sizes(units) * [1.0, rate, speed]


def task(units):
    weights = np.array([1.0, 0.5, 3.0]) / (rate_sizes(units) / units.s) ** 2
    return PostureTask(kp=100.0 / units.s**2, weight=weights)


def solved(units, limit, a):
    controller = InverseDynamicsQP(
        slider_crank(units, limit), [task(units)], stabilisation=20.0 / units.s
    )
    q, v = state(units, a)
    ref = np.concatenate([q + pose_sizes(units) * [0.1, 0.0, 0.02], 0 * v, 0 * v])
    solution = controller.solve(q, v, ref)
    force = np.array(controller.system.constraint_jacobian(q)).T @ solution.lam
    return {
        "status": solution.status,
        "kept": solution.independent_rows,
        "a": solution.a / rate_sizes(units) * units.s,
        "force": force / units.torque * pose_sizes(units),
        "u": solution.u / units.torque,
    }


@pytest.mark.parametrize("units", OTHERS, ids=str)
@pytest.mark.parametrize("limit", [np.inf, 1.0])
@pytest.mark.parametrize("a", [0.7, 1.55, 3.0])
def test_inverse_dynamics_agrees_in_all_units(units, limit, a):
    expected, found = (solved(u, limit, a) for u in (Units(), units))
    assert expected["status"] == found["status"] == 0
    np.testing.assert_array_equal(expected["kept"], found["kept"])
    assert expected["kept"].sum() == 2
    for key in ("a", "force", "u"):
        size = np.abs(expected[key]).max()
        np.testing.assert_allclose(found[key], expected[key], atol=AGREE * size, err_msg=key)


@pytest.mark.parametrize("units", OTHERS, ids=str)
@pytest.mark.parametrize("rank_tol", [1e-6, 0.03])
def test_laws_agree_in_all_units(units, rank_tol):
    def outputs(u):
        system = slider_crank(u)
        q, v = state(u)
        pose = ca.SX.sym("q", 3)
        crank = ca.Function("crank", [pose], [pose[0]], ["q"], ["theta"])
        gains = {"kp": 100.0 / u.s**2, "options": LawOptions(rank_tol=rank_tol)}
        laws = {
            "passive": passive_joint_control(system, function_coordinates(system, crank), **gains),
            "computed": computed_torque(system, task(u), options=LawOptions(rank_tol=rank_tol)),
        }
        found = {}
        for name, law in laws.items():
            ref = np.zeros(law.function.numel_in("ref"))
            if name == "computed":
                ref[law.reference_slices["posture.q"]] = q + pose_sizes(u) * [0.1, 0.0, 0.02]
            else:
                ref[law.reference_slices["theta.q"]] = q[0] + 0.1
            out = law.function(q=q, v=v, ref=ref, z=np.zeros(0))
            found[name] = (float(out["u"]) / u.torque, int(out["status"]))
        return found

    expected, found = outputs(Units()), outputs(units)
    for name, (u, status) in expected.items():
        assert found[name][1] == status
        assert found[name][0] == pytest.approx(u, rel=AGREE), name
        assert abs(u) > 0.1
