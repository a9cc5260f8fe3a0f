"""A tool as spring, damper and mass: how it yields to a push."""

import numpy as np
import pytest
from a10_motions import states, system_of
from tool_motions import PLANE, acceleration_of, motor_force, place_of, strong, tool

from mbcasadi import models
from mbcasadi.control.laws import impedance_control
from mbcasadi.validation import validate

ROUNDING = 1e-8


@pytest.mark.parametrize("name", PLANE)
def test_the_own_inertia_yields_to_a_push_that_the_law_does_not_know(name):
    """`J a + c = ẍ_d + J G Jᵀ (K e + D ė + F)`, J G Jᵀ from motions under unit forces."""
    system, rng = system_of(name), np.random.default_rng(4)
    law = impedance_control(system, tool(name), stiffness=30.0, damping=2.0, **strong(system))
    for q, v in zip(*states(system, 5, seed=4), strict=True):
        x, dx, ddx = place_of(name, q) + rng.standard_normal(2), *rng.standard_normal((2, 2))
        ref = law.reference(tool_position=x, tool_velocity=dx, tool_acceleration=ddx)
        f, status = motor_force(law, q, v, ref)
        push = 5 * rng.standard_normal(2)
        zero, _, J = acceleration_of(name, q, v, np.zeros(system.nv))
        mobility = np.array([J @ (acceleration_of(name, q, v, J[i])[0] - zero) for i in (0, 1)]).T
        _, actual, _ = acceleration_of(name, q, v, f + J.T @ push)
        pull = 30.0 * (x - place_of(name, q)) + 2.0 * (dx - J @ v) + push
        expected = ddx + mobility @ pull
        assert status == 0
        np.testing.assert_allclose(actual, expected, atol=ROUNDING * (1 + abs(expected).max()))


@pytest.mark.parametrize("name", PLANE)
def test_a_chosen_inertia_yields_to_a_push_that_is_measured(name):
    """`Λ (ẍ - ẍ_d) = K e + D ė + F`, rows with masses of their own."""
    system, rng = system_of(name), np.random.default_rng(5)
    mass = np.array([2.0, 7.0])
    law = impedance_control(
        system, tool(name), stiffness=30.0, damping=2.0, inertia=mass, **strong(system)
    )
    for q, v in zip(*states(system, 5, seed=5), strict=True):
        x, dx, ddx = place_of(name, q) + rng.standard_normal(2), *rng.standard_normal((2, 2))
        push = 5 * rng.standard_normal(2)
        reference = {"tool_position": x, "tool_velocity": dx, "tool_acceleration": ddx}
        f, status = motor_force(law, q, v, law.reference(**reference, tool_measured=push))
        _, actual, J = acceleration_of(name, q, v, f)
        _, pushed, _ = acceleration_of(name, q, v, f + J.T @ push)
        pull = 30.0 * (x - place_of(name, q)) + 2.0 * (dx - J @ v)
        expected = ddx + (pull + push) / mass
        assert status == 0
        assert abs(pushed - actual).max() > 1e-3
        np.testing.assert_allclose(pushed, expected, atol=ROUNDING * (1 + abs(expected).max()))


def test_what_the_tool_leaves_free_is_braked_without_moving_it():
    system = system_of("planar_3rrr")
    q, v = (each[0] for each in states(system, 1, seed=6))
    braked, plain = (
        impedance_control(
            system,
            tool("planar_3rrr"),
            stiffness=30.0,
            damping=2.0,
            joint_damping=rate,
            **strong(system),
        )
        for rate in (4.0, 0.0)
    )
    ref = plain.reference(tool_position=place_of("planar_3rrr", q))
    a, x, J = acceleration_of("planar_3rrr", q, v, motor_force(braked, q, v, ref)[0])
    other, y, _ = acceleration_of("planar_3rrr", q, v, motor_force(plain, q, v, ref)[0])
    M = system.mass_matrix(q).full()
    A = np.vstack([system.constraint_jacobian(q).full(), J])
    L = np.linalg.cholesky(M)
    rows = np.linalg.solve(L, A.T).T
    free = np.eye(system.nv) - np.linalg.pinv(rows, 1e-9) @ rows
    expected = -4.0 * np.linalg.solve(L.T, free @ (L.T @ v))  # least kinetic energy
    assert abs(a - other).max() > 1e-2
    np.testing.assert_allclose(x, y, atol=ROUNDING)
    np.testing.assert_allclose(a - other, expected, atol=1e-7)


def test_a_constant_push_shifts_the_tool_by_push_over_stiffness_in_mujoco_as_c():
    """f = Jᵀ F as MuJoCo's own force on the joints; 10 % more mass than the law knows of."""
    system, rows = system_of("planar_3rrr"), [0, 1]
    law = impedance_control(
        system, tool("planar_3rrr"), stiffness=400.0, damping=40.0, joint_damping=10.0
    )
    F = np.array([6.0, -3.0])
    platform = np.zeros(system.nv)
    platform[[6, 7]] = F  # the platform's x and y carry the tool
    report = validate(
        law,
        models.path("planar_3rrr"),
        2.0,
        reference=law.reference(tool_position=place_of("planar_3rrr", system.tree.q0)),
        disturbance=platform,
        perturb={"mass": 0.1},
        delay=1,
    )
    final = report.runs[0].recording.q[-1]
    shift = place_of("planar_3rrr", final) - place_of("planar_3rrr", system.tree.q0)
    assert rows == list(PLANE["planar_3rrr"])
    np.testing.assert_allclose(shift, F / 400.0, rtol=0.02)
