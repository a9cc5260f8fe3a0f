"""The filter of a base: prediction by the IMU, correction by feet, bounds."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import casadi as ca
import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.estimation.base_design import BaseDesign
from mbcasadi.estimation.base_samples import Sample
from mbcasadi.estimation.base_start import levelled
from mbcasadi.estimation.covariance import bounded, congruence, unpacked
from mbcasadi.estimation.estimator import DOUBTED
from mbcasadi.estimation.invariant import (
    Densities,
    Layout,
    Mean,
    Motion,
    corrected,
    propagate,
    reset_map,
)
from mbcasadi.estimation.joints import Joints
from mbcasadi.estimation.landmark_update import Update, set_landmarks, update_by_landmarks
from mbcasadi.estimation.landmarks import Sight
from mbcasadi.qp.input_guard import MASK_ON

Array = NDArray[np.float64]

OUTAGE_NOISE = (1.0, 20.0)
"""Densities while samples are missing: rad/s/√Hz, m/s²/√Hz."""

DOUBT_NOISE = (0.3, 5.0)
"""Densities that are added to those of the IMU while the estimate is doubted."""

SLOW, CALM = 0.2, 0.3
"""m/s of the IMU beside a contact at which half of the variances of a moving robot count: swaying
moves no feet; and s for which all contacts stand before it may be at rest."""

LARGEST = {"tilt": 1.0, "speed": 30.0, "gyro": 1.0, "force": 10.0, "place": 3.0, "position": 1e4}
"""Bounds of standard deviations: rad, m/s, rad/s, m/s², m, m."""

FARTHEST = {"speed": 1e3, "position": 1e7, "gyro": 5.0, "force": 50.0, "place": 1e2}
"""Bounds of the estimate, in the same units."""


class Outcome(NamedTuple):
    """A tick: estimate, covariance, which landmarks were used, and the times without them."""

    mean: Mean
    P: ca.SX
    update: Update
    stands: list[ca.SX]
    lost: ca.SX
    doubt: ca.SX


def estimate(
    design: BaseDesign,
    sample: Sample,
    joints: Joints,
    read: ca.SX,
    mask: ca.SX,
    dt: ca.SX,
    before: dict[str, ca.SX],
) -> Outcome:
    """Return the estimate after prediction and correction."""
    layout, started = design.layout, before["started"] > MASK_ON
    _, sights = design.kinematics(joints.q)
    mean, P = levelled(
        design, layout.mean(before["x"]), unpacked(before["P"], layout.n), sample, started, dt
    )
    shares = [ca.mmin(ca.vertcat(*(mask[i] for i in mark.members))) for mark in layout.landmarks]
    on = [
        ca.logic_and(share > MASK_ON, _all_read(s, read))
        for share, s in zip(shares, sights, strict=True)
    ]
    rate = sample.rate - mean.b_g
    activity = _activity(design, sights, rate, joints.rate, before["stood"])
    noise = _densities(design, sample, before, shares, activity)
    turning = mean.R @ rate
    rolling = {
        i: Motion(
            turning + mean.R @ s.J[3:, :] @ joints.rate, mean.R @ s.J[3:, :], design.rate_noise
        )
        for i, s in enumerate(sights)
        if layout.landmarks[i].rolls
    }
    moved = propagate(layout, mean, (sample.rate, sample.force), dt, design.gravity, rolling, noise)
    F, Q = moved.F, moved.Q
    P = congruence(F, P) + Q
    seen = [design.seen(s, k, moved.mean) for k, s in enumerate(sights)]
    stood = [ca.logic_and(s > 0, o) for s, o in zip(ca.vertsplit(before["stood"]), on, strict=True)]
    update = update_by_landmarks(
        layout, moved.mean, P, seen, design.feet(sights), stood, design.split(before["mean"]),
        design.footing.false_alarm,
    )  # fmt: skip
    mean = set_landmarks(layout, moved.mean, seen, update.used)
    mean = _limited(corrected(layout, mean, update.e))
    any_used = ca.sum1(ca.vertcat(*update.used)) > 0
    any_stands = ca.sum1(ca.vertcat(*stood)) > 0
    lost = ca.if_else(any_used, 0, ca.fmin(before["lost"] + dt, 1e3))
    failing = ca.logic_and(any_stands, ca.logic_not(any_used))
    doubt = ca.if_else(any_used, 0, ca.fmin(before["doubt"] + dt * failing, 1e3))
    stands = [
        ca.if_else(o, ca.fmin(s + dt, 1e3), 0)
        for s, o in zip(ca.vertsplit(before["stood"]), on, strict=True)
    ]
    P = congruence(reset_map(layout, update.e), update.P)
    return Outcome(mean, bounded(P, _largest(design.layout)), update, stands, lost, doubt)


def _activity(
    design: BaseDesign, sights: Sequence[Sight], rate: ca.SX, joint_rates: ca.SX, stood: ca.SX
) -> ca.SX:
    """Return the factor of the densities of landmarks: `rest` of a robot that stands still, to 1.

    Args:
        design: of the estimator.
        sights: of all landmarks.
        rate: (3,) of the IMU, its axes.
        joint_rates: (m,).
        stood: s, for which each landmark has stood.
    """
    least, square = design.footing.rest**2, ca.SX(0)
    for s in sights:
        speed = s.J[:3, :] @ joint_rates + ca.cross(rate, s.place)
        of_noise = ca.sumsqr(s.J[:3, :]) * design.rate_noise**2
        square = ca.fmax(square, ca.sumsqr(speed) - of_noise)
    moving = ca.if_else(ca.mmin(stood) > CALM, square / (square + SLOW**2), 1)
    return ca.sqrt(least + (1 - least) * moving)


def _densities(
    design: BaseDesign,
    sample: Sample,
    before: dict[str, ca.SX],
    shares: Sequence[ca.SX],
    activity: ca.SX,
) -> Densities:
    """Return the noise of a tick."""
    imu, footing = design.imu, design.footing
    doubted = before["doubt"] > DOUBTED
    gyro, force = (
        ca.if_else(sample.valid, own, out) + ca.if_else(doubted, doubt, 0)
        for own, out, doubt in zip(
            (imu.gyro_noise, imu.accelerometer_noise), OUTAGE_NOISE, DOUBT_NOISE, strict=True
        )
    )
    covariances = []
    for k, landmark in enumerate(design.layout.landmarks):
        fresh = ca.exp(-before["stood"][k] / footing.settling)
        growth = (1 + (footing.landing - 1) * fresh) / ca.fmax(shares[k], MASK_ON) * activity
        across = np.outer(landmark.normal, landmark.normal)
        own = footing.slip**2 * (np.eye(3) - across) + footing.sink**2 * across
        own = scipy.linalg.block_diag(own, footing.turn**2 * np.eye(landmark.size - 3))
        covariances.append(ca.sparsify(ca.DM(own)) * growth**2)
    return Densities(gyro, force, imu.gyro_walk, imu.accelerometer_walk, covariances)


def _largest(layout: Layout) -> Array:
    """Return the bounds (n,) of standard deviations."""
    names = ["tilt", "speed", "gyro", "force"]
    for landmark in layout.landmarks:
        names += ["place", "tilt"][: landmark.size // 3]
    return np.repeat([LARGEST[name] for name in (*names, "position")], 3)


def _limited(mean: Mean) -> Mean:
    """Return the estimate within bounds that nothing sensible reaches."""

    def inside(x: ca.SX, name: str) -> ca.SX:
        return ca.fmax(ca.fmin(x, FARTHEST[name]), -FARTHEST[name])

    return replace(
        mean,
        v=inside(mean.v, "speed"),
        p=inside(mean.p, "position"),
        b_g=inside(mean.b_g, "gyro"),
        b_a=inside(mean.b_a, "force"),
        places=tuple(inside(place, "place") for place in mean.places),
    )


def _all_read(s: Sight, read: ca.SX) -> ca.SX:
    """Return whether all encoders of a landmark have been read."""
    columns = sorted(set(s.J.sparsity().get_triplet()[1]))
    return ca.SX(1) if not columns else ca.mmin(ca.vertcat(*(read[c] for c in columns)))
