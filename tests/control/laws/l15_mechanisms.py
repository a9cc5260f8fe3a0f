"""The mechanisms of L15 with their servo rows, and the paper's path of the bar."""

import casadi as ca
import numpy as np
from manifold_states import manifold_states, outputs_of
from support.admissible_states import call
from twins import cooperating_robots as robots
from twins import two_mass_spring as masses

import mbcasadi as mb
from mbcasadi.control.laws import servo_rows

ROUNDING = 1e-8  # of accelerations of some 100 rad/s²
RATES = mb.Baumgarte(3.0, 4.0)
COUNT = 40
SIGNALS = ("y", "ydot", "yddot")
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
    way = [np.array([still, x, still]) for x in ((1 - np.cos(t)) / 2, np.sin(t) / 2, np.cos(t) / 2)]
    way[0][0] += 1.5
    return way


def wide_limits(system):
    return np.tile([-WIDE, WIDE], (system.nu, 1))


def references(law, count, seed, size=1.0):
    ref = size * np.random.default_rng(seed).normal(size=(law.function.size1_in("ref"), count))
    ref[law.reference_slices["off"]] = 0
    return ref


def robots_at(arms, law, seed=1):
    q, v = manifold_states(arms, COUNT, seed, centre=robots.START)
    return {"q": q, "v": v, "ref": references(law, COUNT, seed), "z": np.zeros((0, COUNT))}


def motion(system, at, u, extra=0.0):
    """Accelerations under u by Lagrange's equations, with a further force."""
    B = call(system.actuation, {"q": at["q"]})["B"]
    f = np.einsum("kij,jk->ik", B, u) + extra
    fd = mb.forward_dynamics(system, "lagrange", derivatives=False)
    inputs = {"q": at["q"], "v": at["v"], "f": f, "mask": at.get("rows")}
    return outputs_of(fd, {name: inputs[name] for name in fd.name_in()})["a"]


def departure(law, rows, at, a, baumgarte=RATES):
    """`A_s a + c_s + 2 α psi + β² phi`, (k, count)."""
    none, slices = np.zeros((0, a.shape[1])), law.reference_slices
    signals = {name: at["ref"][slices[name]] if name in slices else none for name in SIGNALS}
    form = call(rows.form, {"q": at["q"], "v": at["v"], **signals})
    c = (form["c"] + 2 * baumgarte.alpha * form["psi"] + baumgarte.beta**2 * form["phi"])[:, :, 0]
    return np.einsum("kij,jk->ik", form["A"], a) + c.T
