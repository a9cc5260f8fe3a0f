"""Runs of A05's laws in MuJoCo: pushes, references, heavier bodies."""

import numpy as np

HEAVIER = {"mass": 0.1}
TURN = 3.0  # s, one turn of the crank


def push(dof, size, nv, begin, end):
    def force(t):
        f = np.zeros(nv)
        f[dof] = size if begin <= t < end else 0.0
        return f

    return force


def turn_reference(law, start):
    """Return the reference of one turn of the crank, from rest to rest."""
    w = 2 * np.pi / TURN

    def reference(t):
        return law.reference(
            theta_q=start + w * t - np.sin(w * t),
            theta_v=w * (1 - np.cos(w * t)),
            theta_a=w * w * np.sin(w * t),
        )

    return reference


def sway_reference(law, start, size, period, **more):
    """Return the reference `start + size (1 - cos)`, vectors."""
    w = 2 * np.pi / period
    start, size = np.asarray(start), np.asarray(size)

    def reference(t):
        return law.reference(
            theta_q=start + size * (1 - np.cos(w * t)),
            theta_v=size * w * np.sin(w * t),
            theta_a=size * w * w * np.cos(w * t),
            **more,
        )

    return reference
