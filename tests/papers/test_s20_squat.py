"""Inverse dynamics of S20 with 24 contact rows of rank 12, against NumPy, a QP and Newton."""

import numpy as np
import pytest
import scipy.linalg
from support.examples import example, results

import mbcasadi as mb
from mbcasadi import models

SQUAT = example(9)
EXACT = 1e-9  # relative to the largest torque and load of the motion
GRAVITY = 9.81  # m/s²
DIFFERENCE = 5e-3  # rad/s, `q'''/6` times the square of the time step
RANK = 1e-9  # what NumPy takes for zero beside the largest singular value


@pytest.fixture(scope="module")
def system():
    return mb.read_mjcf(models.path("humanoid"))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return results(SQUAT, tmp_path_factory.mktemp("figure"))


def equations(system, found, k):
    """The rows A, the map B and the wanted force `M a + h` at sample k."""
    q, v, a = (found[key][:, k] for key in "qva")
    A = np.vstack([np.array(system.frame(n).jacobian(q))[:3] for n in SQUAT["CORNERS"]])
    h = np.array(system.bias_force(q, v) - system.passive_force(q, v)).ravel()
    return A, np.array(system.actuation(q)), np.array(system.mass_matrix(q)) @ a + h


def test_the_feet_have_twelve_rows_too_many_and_stand_still(found):
    assert (found["rank"] == 12).all()
    assert found["slip"].max() < 1e-12  # m/s²
    assert np.abs(found["a"]).max() > 1.0


def test_the_velocities_are_those_of_the_poses(system, found):
    step = found["t"][1]
    for k in range(5, 95, 30):
        before, after = found["q"][:, k - 1], found["q"][:, k + 1]
        v = np.array(system.difference(before, after)).ravel() / (2 * step)
        np.testing.assert_allclose(found["v"][:, k], v, atol=DIFFERENCE)


def test_torques_and_loads_are_the_printed_ones_for_independent_rows(system, found):
    """(17)-(21) as printed on twelve rows that a pivoted QR of A's own rows keeps."""
    for k in range(0, SQUAT["SAMPLES"], 10):
        A, B, wanted = equations(system, found, k)
        kept = scipy.linalg.qr(A.T, pivoting=True)[2][:12]
        Q, R = np.linalg.qr(A[kept].T, mode="complete")
        u = np.linalg.pinv(Q[:, 12:].T @ B) @ Q[:, 12:].T @ wanted  # (20)
        lam = np.linalg.solve(R[:12], Q[:, :12].T @ (wanted - B @ u))  # (21)
        np.testing.assert_allclose(found["u"][:, k], u, atol=EXACT * 164)
        np.testing.assert_allclose(A.T @ found["lam"][:, k], A[kept].T @ lam, atol=EXACT * 1210)


def test_torques_solve_the_quadratic_program_and_loads_are_the_smallest(system, found):
    """(22): least |u| with `B u + Aᵀ lam = M a + h`, by a null space of `[B Aᵀ]`."""
    for k in range(0, SQUAT["SAMPLES"], 10):
        A, B, wanted = equations(system, found, k)
        both = np.hstack([B, A.T])
        particular = np.linalg.lstsq(both, wanted)[0]
        free = scipy.linalg.null_space(both)
        u = (particular - free @ (np.linalg.pinv(free[: system.nu]) @ particular[: system.nu]))[
            : system.nu
        ]
        np.testing.assert_allclose(found["u"][:, k], u, atol=EXACT * 164)
        np.testing.assert_allclose(
            found["lam"][:, k], np.linalg.pinv(A.T) @ (wanted - B @ u), atol=EXACT * 1210
        )


def test_the_loads_carry_the_weight_and_accelerate_the_centre_of_mass(system, found):
    """Newton: the floor gives `m (g + z̈)` of the centre of mass; no torque enters."""
    mass = float(np.array(system.mass_matrix(found["q"][:, 0]))[0, 0])
    for k in range(0, SQUAT["SAMPLES"], 10):
        q, v, a = (found[key][:, k] for key in "qva")
        drift = np.array(system.bias_force(q, v) - system.bias_force(q, 0 * v)).ravel()
        inertial = np.array(system.mass_matrix(q)) @ a + drift
        np.testing.assert_allclose(found["load"][k], inertial[2] + mass * GRAVITY, rtol=EXACT)
    assert found["load"].min() < 0.6 * mass * GRAVITY < 1.6 * mass * GRAVITY < found["load"].max()


def test_the_consistency_test_tells_motors_that_can_from_motors_that_cannot(system, found):
    assert found["residual"].max() < 1e-9  # N m, with all motors
    alive = np.array(["knee" not in name for name in system.actuator_names], dtype=float)
    for k in range(0, SQUAT["SAMPLES"], 10):
        A, B, wanted = equations(system, found, k)
        Z = scipy.linalg.null_space(A)
        left, need = Z.T @ B * alive, Z.T @ wanted
        residual = np.linalg.norm(need - left @ np.linalg.pinv(left, RANK) @ need)  # (14)
        assert residual > 1.0
        assert found["dead"][k] == pytest.approx(residual, rel=EXACT)
