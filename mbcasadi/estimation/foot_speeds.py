"""How fast contacts move that a mask takes to stand: feet that bounce, or land late or lower.

The velocity of a landmark y, by the IMU, the joints and what a ball rolls by,

    u = v + R (J q̇ + ω × y) - ω_f × r n - |ω_f × n| s,

beyond what the estimate's own errors explain, is noise of the foot: white, as of a velocity with a
correlation time τ,

    Q_u = τ (1 - 9 σ²/|u|²)₊ (|u_t|² (1 - n nᵀ) + u_n² n nᵀ),
    σ² = tr P_ν + tr J Σ Jᵀ + tr [y]× P_β [y]×ᵀ

with u_n along the normal and u_t along the ground, Σ of the rates of joints and P_β of the bias of
the gyroscope. So is the rate of a sole, `ω_f = ω + J_ω q̇`, that rolls over its edge:

    Q_ω = τ (1 - 9 σ_ω²/|ω_f|²)₊ |ω_f|² 1,     σ_ω² = tr P_β + tr J_ω Σ J_ωᵀ

and its place moves by up to |ω_f| times the reach r of its contacts, `Q_u` by r² Q_ω. That takes no
velocity of the estimate: a sole which turns moves for sure, and draws none away. A foot that stands
keeps its noise; one that falls for 50 ms counts little; one that bounces counts less the faster it
moves. A threshold in place of it drops the fast half of each bounce, whose mean is not zero then.

A ball with rolling friction slides while it rolls on a slope: force and moment share one cone
[MuJoCo, elliptic], and its flow is normal to it, `(u, ω) ~ (f_t/μ², τ_r/μ_r²)`; with τ_r = μ_r f_n

    u = -(μ_r/μ²) |ω| f_t/f_n = |ω| s,     s = (μ_r/μ²) g_t/(-nᵀ g)     by the weight.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.estimation.base_design import BaseDesign
from mbcasadi.estimation.estimator import DOUBTED
from mbcasadi.estimation.invariant import BETA_G, NU, Mean, Motion
from mbcasadi.estimation.landmarks import Landmark, Sight

LATE = 0.1
"""s for which a foot may be late to land before its motion contradicts the estimate."""

LASTS = 0.2
"""s for which all feet move until the estimate is doubted: beyond a period of feet that bounce."""

DEVIATIONS = 3.0
"""Of the speed of a landmark, by which the estimate's own errors may be larger."""

SLOWEST, LEVEL = 1e-6, 1e-9
"""m/s, of a landmark that moves; slope below which a plane is level."""


class FootSpeed(NamedTuple):
    """Of a landmark.

    Attributes:
        u: (3,) velocity, world axes.
        variance: of the estimate's errors in it.
        turn2: |ω_f|², of a sole.
        turn_variance: σ_ω².
    """

    u: ca.SX
    variance: ca.SX
    turn2: ca.SX
    turn_variance: ca.SX


class Moves(NamedTuple):
    """Whether a landmark moves along, and whether a sole turns: more than one that stands."""

    along: ca.SX
    turns: ca.SX


def rolled(design: BaseDesign, mark: Landmark, turn: ca.SX) -> ca.SX:
    """Return the velocity (3,) of the centre of a ball on its plane, world axes.

    Args:
        design: of the estimator.
        mark: the ball.
        turn: (3,) angular velocity of its body, world axes, rad/s.
    """
    velocity = ca.cross(turn, ca.DM(mark.radius * mark.normal))
    n, g = mark.normal, design.gravity
    slope = (g - (g @ n) * n) / -(g @ n)
    if not design.footing.slide or np.abs(slope).max() < LEVEL:
        return velocity
    rate = ca.norm_2(turn - ca.dot(turn, ca.DM(n)) * ca.DM(n))
    return velocity + rate * ca.DM(design.footing.slide * slope)


def foot_speeds(
    design: BaseDesign,
    now: tuple[Mean, ca.SX],
    sights: Sequence[Sight],
    rate: ca.SX,
    joint_rates: ca.SX,
    rolling: Mapping[int, Motion],
) -> list[FootSpeed]:
    """Return how each landmark moves.

    Args:
        design: of the estimator.
        now: the estimate and its covariance.
        sights: of all landmarks.
        rate: (3,) of the IMU, its axes.
        joint_rates: (m + k,) of joints with encoders and of passive ones.
        rolling: of landmarks that roll.
    """
    mean, P = now
    layout, m, found = design.layout, design.joints, list[FootSpeed]()
    for i, s in enumerate(sights):
        u = mean.v + mean.R @ s.velocity(rate, joint_rates)
        if i in rolling:
            u -= rolling[i].velocity
        arm, by_passive = ca.skew(s.place), s.J[:3, m:]
        variance = ca.trace(P[NU, NU]) + ca.sumsqr(s.J[:3, :m]) * design.rate_noise**2
        variance += ca.trace(arm @ P[BETA_G, BETA_G] @ arm.T)
        variance += ca.trace(by_passive @ P[layout.bending, layout.bending] @ by_passive.T)
        by_turn = s.J[3:, m:]
        turn_variance = ca.sumsqr(s.J[3:, :m]) * design.rate_noise**2 + ca.trace(P[BETA_G, BETA_G])
        turn_variance += ca.trace(by_turn @ P[layout.bending, layout.bending] @ by_turn.T)
        turn2 = ca.sumsqr(rate + s.J[3:, :] @ joint_rates)
        found.append(FootSpeed(u, variance, turn2, turn_variance))
    return found


def noise_of_speed(design: BaseDesign, mark: Landmark, speed: FootSpeed) -> ca.SX:
    """Return Q_u, of a sole with Q_ω, (size, size): the covariance in a second by its speed."""
    square, n = ca.sumsqr(speed.u), ca.DM(mark.normal)
    up, across = ca.dot(n, speed.u) ** 2, ca.sparsify(n @ n.T)
    Q = _beyond(square, speed.variance) * ((square - up) * (ca.DM.eye(3) - across) + up * across)
    turns = speed.turn2 * _beyond(speed.turn2, speed.turn_variance)
    if mark.sole:
        Q += turns * mark.reach**2 * ca.SX.eye(3)
    return design.footing.bounce * ca.diagcat(ca.sparsify(Q), turns * ca.SX.eye(mark.size - 3))


def _beyond(square: ca.SX, variance: ca.SX) -> ca.SX:
    """Return the share of a squared speed that the estimate's own errors do not explain."""
    return ca.fmax(1 - DEVIATIONS**2 * variance / ca.fmax(square, SLOWEST**2), 0)


def doubt_by_feet(
    feet: Sequence[tuple[ca.SX, ca.SX, ca.SX, Moves]], before: ca.SX, dt: ca.SX
) -> ca.SX:
    """Return for how long feet stand and none of them fits, s: all are rejected, or move.

    Where the estimate's velocity is wrong all feet move, for as long as it is; one that bounces
    comes to rest twice in a period, one that is late to land or turns says nothing. So `LASTS` of
    motion count for `DOUBTED`.

    Args:
        feet: of each landmark, whether it was used, whether it is to stand, for how long, s, and
            how it moves.
        before: of the tick before, s.
        dt: s.
    """
    tells, fits = list[ca.SX](), list[ca.SX]()
    for used, stands, lasted, (moves, turns) in feet:
        early = ca.logic_and(moves, lasted <= LATE)
        tells.append(ca.logic_and(stands, ca.logic_not(ca.logic_or(early, turns))))
        fits.append(ca.logic_and(used, ca.logic_not(moves)))
    told, fit = (ca.sum1(ca.vertcat(*x)) > 0 for x in (tells, fits))
    any_used = ca.sum1(ca.vertcat(*(used for used, *_ in feet))) > 0
    counts = ca.if_else(any_used, DOUBTED / LASTS, 1) * told
    return ca.if_else(fit, 0, ca.fmin(before + dt * counts, 1e3))
