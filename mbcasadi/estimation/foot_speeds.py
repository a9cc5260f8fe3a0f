"""Which contacts move that a mask takes to stand: feet that land late, or on lower ground.

The velocity of a landmark y, by the IMU, the joints and what a ball rolls by,

    u = v + R (J q̇ + ω × y) - ω_f × r n,

is no more than that of a foot which creeps, and the estimate's own errors,

    |u| <= u_most + 3 √(tr P_ν + tr J Σ Jᵀ + tr [y]× P_β [y]×ᵀ)

with Σ of the rates of joints and P_β of the bias of the gyroscope.

The noise of a touch-down is wide, so that innovations do not tell a foot that falls for 50 ms from
one that settles; its speed does. A foot that moves has not landed: its landmark stays set to where
the joints see it, and the noise of the touch-down begins when it comes to rest.

The time for which a landmark has stood is negative while it is to stand and moves: from zero down
for one that has not landed yet, from `-LATE` down for one that had settled.
"""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.estimation.base_design import BaseDesign
from mbcasadi.estimation.invariant import BETA_G, NU, Mean
from mbcasadi.estimation.landmarks import Sight

LATE = 0.1
"""s for which a foot may be late to land before its motion contradicts the estimate."""

LONGEST_STAND = 1e3
"""s, bound of the time for which a landmark has stood."""

DEVIATIONS = 3.0
"""Of the speed of a landmark, by which the estimate's own errors may be larger."""


def moving(
    design: BaseDesign,
    now: tuple[Mean, ca.SX],
    sights: Sequence[Sight],
    rate: ca.SX,
    joint_rates: ca.SX,
) -> list[ca.SX]:
    """Return whether each landmark is faster than one that stands.

    Args:
        design: of the estimator.
        now: the predicted estimate and its covariance.
        sights: of all landmarks.
        rate: (3,) of the IMU, its axes.
        joint_rates: (m + k,) of joints with encoders and of passive ones.
    """
    mean, P = now
    layout, m, found = design.layout, design.joints, list[ca.SX]()
    for mark, s in zip(layout.landmarks, sights, strict=True):
        u = mean.v + mean.R @ (s.J[:3, :] @ joint_rates + ca.cross(rate, s.place))
        if mark.rolls:
            turn = mean.R @ (rate + s.J[3:, :] @ joint_rates)
            u -= ca.cross(turn, ca.DM(mark.radius * mark.normal))
        arm, by_passive = ca.skew(s.place), s.J[:3, m:]
        variance = ca.trace(P[NU, NU]) + ca.sumsqr(s.J[:3, :m]) * design.rate_noise**2
        variance += ca.trace(arm @ P[BETA_G, BETA_G] @ arm.T)
        variance += ca.trace(by_passive @ P[layout.bending, layout.bending] @ by_passive.T)
        most = design.footing.largest_speed + DEVIATIONS * ca.sqrt(variance)
        found.append(ca.sumsqr(u) > most**2)
    return found


def standing_times(
    before: ca.SX, on: Sequence[ca.SX], moves: Sequence[ca.SX], settling: float, dt: ca.SX
) -> list[ca.SX]:
    """Return for how long each landmark has stood, s; negative while it is to stand and moves.

    Args:
        before: (n,) of the tick before.
        on: whether each is to stand.
        moves: whether each moves.
        settling: s, from which on it had landed.
        dt: s.
    """
    times = []
    for s, o, fast in zip(ca.vertsplit(before), on, moves, strict=True):
        late = ca.if_else(s > settling, -LATE, ca.fmin(s, 0)) - dt
        rests = ca.fmin(ca.fmax(s, 0) + dt, LONGEST_STAND)
        times.append(ca.if_else(o, ca.if_else(fast, ca.fmax(late, -LONGEST_STAND), rests), 0))
    return times
