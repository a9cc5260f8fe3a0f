"""Footholds by the capture point: the step adjustment of a linear inverted pendulum."""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.legged.gait import Gait
from mbcasadi.shapes import require_numbers

Array = NDArray[np.float64]

SAME_TIME = 1e-9
"""Share of a period below which two switches of feet are one."""

FORGOTTEN = 36.0
"""ω times the time after which a support no longer counts: exp(-36) is rounding."""

BESIDE = 0.02
"""m, from which on feet are beside each other, and not one in front of the other."""


@dataclass(frozen=True)
class CaptureFoothold:
    """Step adjustment by the capture point of a linear inverted pendulum.

    The centre of mass c on a support p, at the height h above it, obeys `a = ω² (c - p) + g_t` with
    `ω² = g_n / h` and gravity's part g_t along the ground. Its capture point

        ξ = c + v / ω + g_t / ω²,    dξ/dt = ω (ξ - p)

    runs away from the support, and stays bounded where the next foothold is right [J. Pratt et al.,
    Humanoids 2006; J. Englsberger et al., T-RO 2015]. For a gait whose feet stand where they
    should, the support p is constant between two switches of feet, and the bounded motion is

        ξ(τ) = p_k + (ξ(τ_{k+1}) - p_k) exp(-ω (τ_{k+1} - τ)),
        ξ(τ_k) = ω ∫ exp(-ω s) p(τ_k + s) ds.

    What the measured point is off by, `e = ξ - ξ(τ)`, is `e exp(ω t)` when the foot lands in the
    time t: the foothold moves by as much [M. Khadiv et al., T-RO 2020, at a fixed time of the
    step].

    Attributes:
        gain: share of the error that a step takes up; one brings the pendulum to its nominal
            motion within the step. Its error shrinks where `|1 - gain| exp(ω T) < 1`, T of a step.
        least_width: share of the nominal distance of feet beside each other that a foothold keeps,
            so that legs do not cross; below 1.
        commit: share of the swing from which on the foothold stays where it is, so that a foot
            that touches is not dragged over the ground; at most 1.

    Raises:
        ProblemError: a number out of these ranges.
    """

    gain: float = 1.0
    least_width: float = 0.6
    commit: float = 0.75

    def __post_init__(self) -> None:
        require_fields(self)
        require_numbers(gain=self.gain, least_width=self.least_width, commit=self.commit)
        if self.least_width >= 1 or self.commit > 1:
            raise ProblemError(
                f"least_width = {self.least_width}, commit = {self.commit}; expected a share of "
                "the nominal width, below 1, and one of the swing, at most 1"
            )


class Support(NamedTuple):
    """The support between two switches of feet, and the capture point at its end from there.

    Of a body that is at the origin at phase zero and goes along x without turning, with times from
    phase zero, s.

    Attributes:
        end: phase of the switch at its end, as a share of the period.
        hips: (2,) of the point, for the feet below the hips, m.
        hips_in_time: (2,) the same with each hip times the middle of its stance, m s.
        speed: s, of the point for each m/s of speed.
        speed_in_time: s², the same with half the square of the middle of each stance.
    """

    end: float
    hips: Array
    hips_in_time: Array
    speed: float
    speed_in_time: float


def supports(gait: Gait, hips: Array, omega: float) -> list[Support]:
    """Return the nominal motion of the capture point over one period.

    It is `ξ(τ) = ω ∫ exp(-ω s) p(τ + s) ds` over all times to come.

    Args:
        gait: at least one foot is on the ground at each time.
        hips: (feet, 2) of the contacts from the centre of mass, m.
        omega: ω, 1/s.

    Raises:
        ProblemError: a gait with flight.
    """
    edges = _switches(gait)
    periods = int(np.ceil(FORGOTTEN / (omega * gait.period))) + 1
    times = np.concatenate([k + edges[:-1] for k in range(periods)] + [[float(periods)]])
    centres = np.array([_centre(gait, hips, (a + b) / 2) for a, b in pairwise(times)])
    decay = np.exp(-omega * gait.period * times)
    found = []
    for k in range(len(edges) - 1):
        shares = -np.diff(decay[k + 1 :]) / decay[k + 1]
        away = shares @ centres[k + 1 :] - centres[k]
        found.append(
            Support(float(edges[k + 1]), away[:2], away[2:4], float(away[4]), float(away[5]))
        )
    return found


def _switches(gait: Gait) -> Array:
    """Return the phases at which feet land or lift, from 0 to 1, both included."""
    phases = [(edge - offset) % 1.0 for offset in gait.offsets for edge in (0.0, gait.duty)]
    inside = [p for p in sorted(phases) if SAME_TIME < p < 1 - SAME_TIME]
    edges = [0.0]
    edges += [p for k, p in enumerate(inside) if not k or p - inside[k - 1] > SAME_TIME]
    return np.array([*edges, 1.0])


def _centre(gait: Gait, hips: Array, phase: float) -> Array:
    """Return (6,) the support at a phase, in the order of the fields of `Support`."""
    ages = (phase + np.array(gait.offsets)) % 1.0
    on = ages < gait.duty
    if not on.any():
        raise ProblemError(
            f"no foot is on the ground at {phase % 1.0:.3g} of the period; expected a gait without "
            "flight for a step by the capture point, or capture=None"
        )
    middle = gait.period * (phase - ages[on]) + gait.stance / 2
    in_time = middle[:, None] * hips[on]
    parts = [hips[on].mean(axis=0), in_time.mean(axis=0), [middle.mean(), (middle**2).mean() / 2]]
    return np.concatenate(parts)


def nominal_offset(
    parts: list[Support], gait: Gait, omega: float, phase: ca.SX, motion: "PlanarMotion"
) -> ca.SX:
    """Return (2,) the nominal capture point from the support at a phase, to first order in spin."""
    columns = [
        np.concatenate([[p.end], p.hips, p.hips_in_time, [p.speed, p.speed_in_time]]) for p in parts
    ]
    chosen = ca.SX(ca.DM(columns[-1]))
    for column in reversed(columns[:-1]):
        chosen = ca.if_else(phase < column[0], ca.DM(column), chosen)
    hips, speed = chosen[1:3], chosen[5]
    t = gait.period * phase
    turned_hips = hips + motion.spin * quarter_turn(chosen[3:5] - t * hips)
    along = speed * motion.velocity
    aside = (chosen[6] - t * speed) * motion.spin * quarter_turn(motion.velocity)
    shrunk = ca.exp(-omega * gait.period * (chosen[0] - phase))
    return shrunk * (rotate_about_vertical(motion.yaw, turned_hips) + along + aside)


class PlanarMotion(NamedTuple):
    """The desired motion along the ground: yaw, rad, velocity (2,), m/s, and spin, rad/s."""

    yaw: ca.SX
    velocity: ca.SX
    spin: ca.SX

    def displacement(self, time: ca.SX) -> ca.SX:
        """Return (2,) the way of the body in a time, the chord of its arc, m."""
        return time * rotate_about_vertical(time * self.spin / 2, self.velocity)

    def hip(self, time: ca.SX, hip: Array) -> ca.SX:
        """Return (2,) a hip from the body, after a time, m."""
        return rotate_about_vertical(self.yaw + time * self.spin, ca.SX(ca.DM(hip)))


def rotate_about_vertical(yaw: ca.SX, a: ca.SX) -> ca.SX:
    """Return a horizontal vector (2,), turned about the vertical."""
    c, s = ca.cos(yaw), ca.sin(yaw)
    return ca.vertcat(c * a[0] - s * a[1], s * a[0] + c * a[1])


def quarter_turn(a: ca.SX) -> ca.SX:
    """Return a horizontal vector (2,), turned by 90° to the left."""
    return ca.vertcat(-a[1], a[0])


def kept_width(
    step: CaptureFoothold, nominal: tuple[float, list[float]], lateral: ca.SX, others: list[ca.SX]
) -> ca.SX:
    """Return a lateral place that keeps its side of the feet on the ground.

    Args:
        step: its least width.
        nominal: lateral place of the foot and of the others below their hips, m.
        lateral: m, the desired place.
        others: m, the places of the others.
    """
    own, rest = nominal
    for far, other in zip(rest, others, strict=True):
        width = own - far
        if abs(width) > BESIDE:
            bound = other + step.least_width * width
            lateral = ca.fmax(lateral, bound) if width > 0 else ca.fmin(lateral, bound)
    return lateral
