"""What a servo does during one tick: the force at its start and end, from the mean acceleration.

A servo pulls with `p = p_0 - kp (l - l_0) - kd (l̇ - l̇_0)` while its control is constant; `p_0` is
its force at the start of the tick. With the inertia I that it moves, a damping d of the same
coordinate and any other force r, constant over the tick,

    I l̈ = p + r - d (l̇ - l̇_0).

This is linear: the velocity changes by `h α`, the length by `δ`, with

    α = A₁ (p_0 + r)/I + A₂ l̇_0,    δ = D₁ (p_0 + r)/I + D₂ l̇_0

where A and D follow from the exact solution, or from the rule of the simulation that is the plant,
composed over its steps. What acts on average is `I α - r`, so that

    I α = r + p_0 + K₁ l̇_0 - K₂ α,    K₂ = I/A₁ - I,    K₁ = I A₂/A₁:

the servo adds the inertia K₂. Where length and speed at the start are larger by `Δl`, `Δl̇` than
predicted and the control is the same, α changes by `-by_length Δl - by_rate Δl̇`.

K₂ is `h kd` for one step that is implicit in the velocity, whatever I is; for the exact solution it
is between `½ h kd` (heavy) and `h kd` (light).
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

IMPLICIT = ("implicit", "implicitfast", "discrete")
RK4_ORDER = 4

UNDAMPED_EULER = "euler without eulerdamp"
"""MuJoCo's Euler of a model whose flag `eulerdamp` is off."""


@dataclass(frozen=True)
class Coordinate:
    """A servo on its coordinate: `I l̈ = -kp l - (kd + d) l̇ + force`.

    `explicit`: whether implicit integrators leave it out, as MuJoCo's do with a plugin.
    """

    inertia: float
    kp: float
    kd: float
    damping: float = 0.0
    explicit: bool = False


@dataclass(frozen=True)
class TickMap:
    """The linear map of one tick, from force and state at its start to its mean force.

    Attributes:
        added_inertia, drift: K₂ and K₁ of the mean force `p_0 + drift l̇_0 - added_inertia α`.
        length_by_acceleration, length_by_rate: `δ = (…) α + (…) l̇_0`.
        fall, decay: A₁, A₂.
        by_length, by_rate: how α falls with the length and the speed at the start.
    """

    added_inertia: float
    drift: float
    length_by_acceleration: float
    length_by_rate: float
    fall: float
    decay: float
    by_length: float
    by_rate: float


def tick_map(servo: Coordinate, rule: str, timestep: float, period: float) -> TickMap:
    """Return the map of a tick; not finite where the force at its start has no effect.

    Args:
        servo: on its coordinate.
        rule: "continuous", or MuJoCo's "euler", "rk4", "implicit", "implicitfast", "discrete".
        timestep: of the plant, s; a divisor of the period. Not read for "continuous".
        period: h, s.
    """
    steps = 1 if rule == "continuous" else round(period / timestep)
    E = np.linalg.matrix_power(step_matrix(servo, rule, period / steps), steps)
    rate = (servo.kd + servo.damping) / servo.inertia
    fall = E[1, 2] / period
    decay = (E[1, 1] - 1 + E[1, 2] * rate) / period
    length = E[0, 1] + E[0, 2] * rate
    return TickMap(
        added_inertia=servo.inertia / fall - servo.inertia if fall else np.inf,
        drift=servo.inertia * decay / fall if fall else np.inf,
        length_by_acceleration=E[0, 2] / fall if fall else np.inf,
        length_by_rate=length - E[0, 2] * decay / fall if fall else np.inf,
        fall=fall,
        decay=decay,
        by_length=fall * servo.kp / servo.inertia,
        by_rate=fall * rate - decay,
    )


def step_matrix(servo: Coordinate, rule: str, step: float) -> Array:
    """Return the map (3, 3) of `(l, l̇, c)` over one step, `l̈ = c - kp/I l - (kd + d)/I l̇`.

    MuJoCo's "euler" takes the damping of joints at the end of the step, "implicit" and
    "implicitfast" that of actuators too, "discrete" also their stiffness; all four move the length
    with the new velocity.
    """
    stiffness = servo.kp / servo.inertia
    damping = (servo.kd + servo.damping) / servo.inertia
    A = np.array([[0.0, 1.0, 0.0], [-stiffness, -damping, 1.0], [0.0, 0.0, 0.0]])
    if rule == "continuous":
        return np.asarray(scipy.linalg.expm(A * step))
    if rule == "rk4":
        term, total = np.eye(3), np.eye(3)
        for k in range(1, RK4_ORDER + 1):
            term = term @ A * (step / k)
            total = total + term
        return total
    if servo.explicit and rule in IMPLICIT:
        rule = "euler"
    held = damping if rule in IMPLICIT else servo.damping / servo.inertia
    if rule == UNDAMPED_EULER:
        held = 0.0
    row, share = A[1].copy(), 1 + step * held
    if rule == "discrete":
        row[1] -= step * stiffness
        share += step**2 * stiffness
    rate = np.array([0.0, 1.0, 0.0]) + step / share * row
    return np.array([np.array([1.0, 0.0, 0.0]) + step * rate, rate, [0.0, 0.0, 1.0]])
