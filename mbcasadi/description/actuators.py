"""Actuators as plain numbers."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mbcasadi.short_text import summarised

Transmission = Literal["joint", "jointinparent", "tendon", "site"]


@summarised
@dataclass(frozen=True)
class Actuator:
    """`force = clip((g0 + g1 l + g2 l̇) clip(u) + b0 + b1 l + b2 l̇)` along its transmission.

    With an activation state, the state replaces `clip(u)`.

    Attributes:
        name: unique name; unnamed MJCF actuators get `actuator<id>`.
        transmission: kind of element that the force acts on.
        target: index of the joint, tendon or frame.
        reference: index of the reference frame (site transmission with `refsite`), or None.
        gear: (6,) scale of length and force.
        gain: (g0, g1, g2).
        bias: (b0, b1, b2).
        ctrl_range, force_range: limits, or None.
        armature: rotor inertia; adds `momentᵀ armature moment` to M. Zero from MJCF: there it
            belongs to the target, and is part of the joint's or tendon's armature already.
        damping: damping of the actuator length, part of the passive force. Zero from MJCF, for
            the same reason.
        damping_poly: higher coefficients, () where linear.
        dynamics: "none", or the kind of activation state: "integrator", "filter", "filterexact".
        time_constant: of the filter, s.
        act: index of the activation state, or None.
        act_range: clip of the activation, or None.
        period: of a servo on a rotation in space, whose set-point means any of
            `u + k period`: MuJoCo uses the one nearest to the length. 0 otherwise.
    """

    name: str
    transmission: Transmission
    target: int
    gear: NDArray[np.float64]
    gain: tuple[float, float, float]
    bias: tuple[float, float, float]
    reference: int | None = None
    ctrl_range: tuple[float, float] | None = None
    force_range: tuple[float, float] | None = None
    armature: float = 0.0
    damping: float = 0.0
    damping_poly: tuple[float, ...] = ()
    dynamics: Literal["none", "integrator", "filter", "filterexact"] = "none"
    time_constant: float = 1.0
    act: int | None = None
    act_range: tuple[float, float] | None = None
    period: float = 0.0
