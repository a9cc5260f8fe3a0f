"""Inverse dynamics of S20 on a parallel robot: by QR, and of the linear model.

The 3-RRR has nine rows of rank six. By QR with the rank revealed (eq. 20-21) the law is exact; the
one of the linear model (eq. 14-15) is two constant products, valid near its operating point: its
difference from the exact control grows with the square of the distance.

You will see both laws track in MuJoCo as C with masses 10 % off, and the difference of their
controls: divided by the square of the motion's size, the curves coincide.
"""

import sys

import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import PostureTask
from mbcasadi.control.laws import Law, qr_inverse_dynamics
from mbcasadi.control.regulators import Linearization, lti_inverse_dynamics
from mbcasadi.plots import save_figure
from mbcasadi.validation import validate

MODEL = models.path("planar_3rrr")
RATE, KP, DURATION = 3.0, 400.0, 1.0  # rad/s, 1/s², s
REACH = np.array([0.35, -0.2, 0.15])  # of ξ: a few centimetres and a tenth of a radian
SIZES = (0.125, 0.25, 0.5, 1.0)
TIMES = np.linspace(0, 2 * np.pi / RATE, 31)


def motion(t: float) -> np.ndarray:
    """Return ξ, its rate and its acceleration: out and back, from rest."""
    shape = np.array([1 - np.cos(RATE * t), RATE * np.sin(RATE * t), RATE**2 * np.cos(RATE * t)])
    return np.outer(shape / 2, REACH)


def torques(exact: Law, approximate: Law, linear: Linearization, size: float) -> np.ndarray:
    """Return (2, nt, nu): the exact and the linear control over the motion, at rest everywhere."""
    rest, found = np.zeros(linear.system.nv), []
    for t in TIMES:
        xi, _, eta_dot = size * motion(t)
        q = mb.assemble(linear.system, linear.state(np.concatenate([xi, 0 * xi]))[0])
        x = linear.coordinates(q, rest)
        theirs = exact.function(q, rest, np.concatenate([q, rest, linear.Z_v @ eta_dot]), [])[0]
        ours = approximate.function(q, rest, np.concatenate([x, eta_dot]), [])[0]
        found.append([np.array(theirs).ravel(), np.array(ours).ravel()])
    return np.array(found).transpose(1, 0, 2)


def main(figure: str | None = None) -> dict[str, object]:
    """Return the tracking of both laws, and the difference of their controls over the distance."""
    system = mb.read_mjcf(MODEL)
    held = mb.equilibrium(system)
    linear = mb.linearize(system, held)
    exact = qr_inverse_dynamics(system, PostureTask(joints=("x", "y", "phi"), kp=KP))
    approximate = lti_inverse_dynamics(linear, kp=KP)

    def along(t: float) -> np.ndarray:
        q, v, a = motion(t) @ linear.Z_q[6:].T
        return exact.reference(posture_q=held.q[6:] + q, posture_v=v, posture_a=a)

    errors, runs = {"perturb": {"mass": 0.1}, "delay": 1}, {}
    for law, reference in ((exact, along), (approximate, lambda t: motion(t).ravel())):
        run = validate(law, MODEL, DURATION, reference=reference, **errors).runs[0]
        name = "QR" if law is exact else "LTI"
        print(f"{name}: rms error {100 * run.metric('tracking.rms_share'):.2f} % of the motion")
        runs[name] = run
    every_joint = qr_inverse_dynamics(system, PostureTask(kp=KP))
    pairs = {size: torques(every_joint, approximate, linear, size) for size in SIZES}
    off = {size: np.abs(pair[1] - pair[0]).max(axis=1) for size, pair in pairs.items()}
    for size, each in off.items():
        print(f"size {size}: difference at most {each.max():.1e} N m")
    if figure is not None:
        one = {"exact": (TIMES, pairs[1.0][0, :, 0]), "linear": (TIMES, pairs[1.0][1, :, 0])}
        scaled = {f"size {size}": (TIMES, each / size**2) for size, each in off.items()}
        save_figure(figure, {"torque of leg_a, N m": one, "difference / size², N m": scaled})
    return {"runs": runs, "off": off}


if __name__ == "__main__":
    main(*sys.argv[1:])
