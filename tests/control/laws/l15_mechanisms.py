"""The mechanisms of L15 with their servo rows, and the paper's path of the bar."""

import sys
from pathlib import Path

import casadi as ca
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))
from twins import cooperating_robots as robots
from twins import two_mass_spring as masses

from mbcasadi.control.laws import servo_rows

WIDE = 1e6  # N m: limits that nothing reaches


def bar_rows(arms):
    """Rows of the bar's pose, `(x3, y3, theta3) = y(t)`."""
    q, v, y = ca.SX.sym("q", 5), ca.SX.sym("v", 5), ca.SX.sym("y", 3)
    names, units = ("x3", "y3", "theta3"), ("m", "m", "rad")
    return servo_rows(arms, q, v, phi=robots.bar_pose(q) - y, y=y, names=names, units=units)


def gap_rows(springs):
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    return servo_rows(springs, q, v, phi=masses.gap(q), names=("gap",), units=("m",))


def bar_path(t):
    """y, ydot, yddot of (64, corrected), each (3, nt)."""
    still = 0 * t
    return (
        np.array([1.5 + still, (1 - np.cos(t)) / 2, still]),
        np.array([still, np.sin(t) / 2, still]),
        np.array([still, np.cos(t) / 2, still]),
    )


def wide(system):
    return np.tile([-WIDE, WIDE], (system.nu, 1))


def references(law, count, seed, size=1.0):
    """Random references (nref, count): signals and s, all rows on."""
    ref = size * np.random.default_rng(seed).normal(size=(law.function.size1_in("ref"), count))
    ref[law.reference["off"]] = 0
    return ref
