"""Rays of pressed cones whose force or whose multiplier is too small to have a direction."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.control.inverse_dynamics.priorities.pressed_cones import along_rays

RAY = np.array([1.0, np.cos(0.7), np.sin(0.7)])
WRONG = np.array([1.0, np.cos(0.701), np.sin(0.701)])  # 1 mrad beside it
OPPOSITE = np.array([-1.0, 1.0, 1.0])  # a multiplier, from the force that it presses on


@pytest.mark.parametrize(
    ("force", "multiplier"), [(1e-6 * WRONG, 10 * RAY), (10 * RAY, 1e-9 * WRONG)]
)
@pytest.mark.parametrize("length", [1e-3, 1.0, 1e3])
def test_rays_are_those_of_multipliers_unless_these_are_rounding(force, multiplier, length):
    C = ca.SX(length * np.eye(3))
    found = {
        "active": ca.SX([1.0, *WRONG[1:]]),
        "lam_a": ca.SX(OPPOSITE * multiplier / length),
        "inside": ca.SX(length * force),
    }
    Z, across, onto = along_rays(ca.SX.eye(3), ca.SX.eye(3), C, found, ca.SX(1.0), 1)
    assert list(ca.evalf(across).full().ravel()) == [0, 1, 1]
    lengths, directions = np.linalg.svd(ca.evalf(Z).full().T)[1:]
    assert np.allclose(lengths, [1, 0, 0], atol=1e-12)
    assert np.abs(np.cross(directions[0], RAY)).max() <= 1e-6
    moved = force + ca.evalf(onto).full().ravel()
    assert np.abs(np.cross(moved, RAY)).max() <= 1e-6 * np.linalg.norm(moved), "beside the ray"


def test_forces_come_onto_their_rays_where_only_the_level_itself_moves_their_sum():
    beside = 1e-5 * np.array([0.0, -np.sin(0.7), np.cos(0.7)])
    forces = np.concatenate([10 * RAY + beside, 1e-4 * RAY + beside])
    found = {
        "active": ca.SX(np.tile([1.0, *RAY[1:]], 2)),
        "lam_a": ca.SX(np.tile(OPPOSITE * RAY, 2)),
        "inside": ca.SX(forces),
    }
    against = ca.SX(np.vstack([np.eye(3), -np.eye(3)]) / np.sqrt(2))  # the sum stays
    _, _, onto = along_rays(against, ca.SX.eye(6), ca.SX(np.eye(6)), found, ca.SX(1.0), 2)
    moved = (forces + ca.evalf(onto).full().ravel()).reshape(2, 3)
    assert np.abs(np.cross(moved, RAY)).max() <= 1e-9
    assert np.all(np.hypot(*moved[:, 1:].T) <= moved[:, 0] + 1e-9)
