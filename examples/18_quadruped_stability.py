"""A quadruped on pinned feet: holding torques, unstable modes, controllability.

`mb.equilibrium` finds the least torques within the friction of the feet. With these torques kept
constant the pose is unstable: `mb.linearize`, on the manifold of four feet that stay where they
are, gives the modes. `controllability` reports which modes a set of motors can control, before a
Riccati equation is solved: one knee controls all of them, but with a very small margin.

You will see a small push grow, in the motion and in the linear model, and the reports.
"""

import sys
from dataclasses import replace

import casadi as ca
import numpy as np
from scipy.linalg import expm

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.regulators import controllability
from mbcasadi.plots import save_figure

FEET = ("FL", "FR", "RL", "RR")
MOTORS = {"all motors": "", "front legs": "F", "one knee": "FL_calf"}
TILT, DURATION = 1e-3, 0.7  # rad, s


def standing(robot: mb.System, q0: np.ndarray) -> mb.System:
    """Return the robot with its feet held where they are: twelve rows, twelve freedoms lost."""
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    points = [robot.frame(foot).pose for foot in FEET]
    away = ca.vertcat(*(point(q)[0] - point(q0)[0] for point in points))
    return robot.with_rows(q, v, phi=away)


def words(linear: mb.control.regulators.Linearization) -> dict[str, str]:
    """Return the controllability report of each set of motors."""
    names = linear.system.actuator_names
    said = {}
    for label, part in MOTORS.items():
        alive = np.array([float(part in name) for name in names])
        said[label] = controllability(replace(linear, dfdu=linear.dfdu * alive)).in_words
    return said


def main(figure: str | None = None) -> dict[str, object]:
    """Return the holding torques, the eigenvalues, both falls and the reports."""
    robot = mb.read_mjcf(models.path("quadruped"))
    contacts = [mb.Contact(foot, friction=0.6) for foot in FEET]
    held = mb.equilibrium(robot, robot.tree.keyframes["stand"], contacts=contacts)
    system = standing(robot, held.q)
    linear = mb.linearize(system, held)
    said = words(linear)
    rates, modes = np.linalg.eig(linear.dfdx)
    fastest = np.real(modes[:, rates.real.argmax()])
    start = TILT * fastest / np.abs(linear.to_dq @ fastest).max()
    t = np.linspace(0, DURATION, 61)
    torque = np.array(robot.actuation(held.q) @ held.u).ravel()
    path = mb.simulate(
        system, *linear.state(start), DURATION, force=lambda *_: torque, times=t, rtol=1e-8
    )
    states = zip(path.q, path.v, strict=True)
    falls = np.array([start @ linear.coordinates(q, v) for q, v in states]) / (start @ start)
    ours = np.array([start @ expm(linear.dfdx * time) @ start for time in t]) / (start @ start)
    print(held.in_words, f"fastest mode: e-fold in {1 / rates.real.max():.3f} s", sep="\n")
    print(*(f"{label}: {line}" for label, line in said.items()), sep="\n")
    print(f"a push of {TILT} rad grows {falls[-1]:.1f}-fold in {DURATION} s; linear {ours[-1]:.1f}")
    if figure is not None:
        curves = {"nonlinear": (t, falls), "linear": (t, ours)}
        title = "growth of the fastest mode"
        save_figure(figure, {title: curves}, log=[title], dashed=["linear"])
    return {"held": held, "t": t, "falls": falls, "linear": ours, "rates": rates, "words": said}


if __name__ == "__main__":
    main(*sys.argv[1:])
