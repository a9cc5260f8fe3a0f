"""What a plant measures at one instant."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.short_text import summarised

Array = NDArray[np.float64]


@summarised
@dataclass(frozen=True)
class Measurement:
    """All measurements of the plant at one instant, at one state.

    Attributes:
        time: s.
        q, v, a, act: (nq,), (nv,), (nv,), (na,); `a` is MuJoCo's `qacc`.
        u: (nu,) control, before any clip.
        motor_force: (nu,) `actuator_force`, after every clip.
        actuator_force: (nv,) `qfrc_actuator`.
        constraint_force: (nv,) `qfrc_constraint`: equalities, contacts, limits and friction.
        equality_force: (nv,) the part of the equality constraints.
        closure: m, worst distance of two points that a connect or weld holds together.
        residual: largest equality residual of any kind (m or rad).
        energy: J, kinetic plus potential.
    """

    time: float
    q: Array
    v: Array
    a: Array
    act: Array
    u: Array
    motor_force: Array
    actuator_force: Array
    constraint_force: Array
    equality_force: Array
    closure: float
    residual: float
    energy: float
