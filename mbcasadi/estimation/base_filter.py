"""The filter of a base: prediction by the IMU, correction by feet and fixes, bounds."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.estimation.base_design import BaseDesign
from mbcasadi.estimation.base_samples import Sample
from mbcasadi.estimation.base_start import levelled, without_false_bias
from mbcasadi.estimation.covariance import congruence, shares_within, unpacked
from mbcasadi.estimation.estimator import DOUBTED
from mbcasadi.estimation.fix_update import (
    Fixed,
    fix_state,
    frame_view,
    is_contradicted,
    is_lapsed,
    knows,
    sets_in_vain,
    update_by_fix,
)
from mbcasadi.estimation.foot_speeds import (
    Moves,
    doubt_by_feet,
    foot_speeds,
    noise_of_speed,
    rolled,
)
from mbcasadi.estimation.invariant import (
    Densities,
    Layout,
    Mean,
    Motion,
    passive_deviations,
    propagate,
)
from mbcasadi.estimation.invariant_correction import corrected, reset_map
from mbcasadi.estimation.joints import Joints
from mbcasadi.estimation.landmark_update import Update, set_landmarks, update_by_landmarks
from mbcasadi.estimation.landmarks import Landmark, Sight
from mbcasadi.qp.input_guard import MASK_ON

Array = NDArray[np.float64]

OUTAGE_NOISE = (1.0, 20.0)
"""Densities while samples are missing: rad/s/√Hz, m/s²/√Hz."""

DOUBT_NOISE = (0.3, 5.0)
"""Densities that are added to those of the IMU while the estimate is doubted."""

LONGEST_STAND = 1e3
"""s, bound of the time for which a landmark has stood."""

SLOW, CALM = 0.2, 0.3
"""m/s of the IMU beside a contact at which half of the variances of a moving robot count: swaying
moves no feet; and s for which all contacts stand before it may be at rest."""

LARGEST = {"tilt": 4.0, "speed": 30.0, "gyro": 1.0, "force": 10.0, "place": 3.0, "position": 1e4}
"""Bounds of standard deviations: rad, m/s, rad/s, m/s², m, m."""

FARTHEST = {
    "speed": 1e3, "position": 1e7, "gyro": 5.0, "force": 50.0, "place": 1e2, "passive": 1e2,
}  # fmt: skip
"""Bounds of the estimate, in the same units; of passive joints rad or m, and by s."""


class Outcome(NamedTuple):
    """A tick: estimate, covariance, which landmarks and fixes were used, the times without them."""

    mean: Mean
    P: ca.SX
    update: Update
    stands: list[ca.SX]
    lost: ca.SX
    doubt: ca.SX
    fixed: list[Fixed]


class Measurements(NamedTuple):
    """What a tick measures.

    Attributes:
        imu: its sample.
        joints: positions and rates of those with encoders.
        posture: (nq - 7,) of all joints.
        smooth: the same of smooth positions; see `joints.smoothed`.
        passive: (2k,) predicted positions and rates of passive ones.
        read: (m,) which encoders have been read.
        mask: of the contacts.
        fixes: sample, entry of `valid`, and age in the tick of each; None for none.
        dt: s.
    """

    imu: Sample
    joints: Joints
    posture: ca.SX
    smooth: ca.SX
    passive: ca.SX
    read: ca.SX
    mask: ca.SX
    fixes: Sequence[tuple[ca.SX, ca.SX, ca.SX | None]]
    dt: ca.SX


def estimate(design: BaseDesign, at: Measurements, before: dict[str, ca.SX]) -> Outcome:
    """Return the estimate after prediction and correction."""
    layout, dt = design.layout, at.dt
    _, sights = design.kinematics(at.posture)
    shares = [ca.mmin(ca.vertcat(*(at.mask[i] for i in mark.members))) for mark in layout.landmarks]
    on = [
        ca.logic_and(share > MASK_ON, _all_read(s, at.read))
        for share, s in zip(shares, sights, strict=True)
    ]
    moved, P, moves = _predicted(design, at, sights, shares, before)
    smooth = design.kinematics(at.smooth)[1] if layout.passive else sights
    seen = [design.seen(s, k, moved, smooth[k]) for k, s in enumerate(sights)]
    times = ca.vertsplit(before["stood"])
    stood = [ca.logic_and(s > 0, o) for s, o in zip(times, on, strict=True)]
    update = update_by_landmarks(
        layout, moved, P, seen, design.feet(sights), stood, design.split(before["mean"]),
        design.footing.false_alarm,
    )  # fmt: skip
    mean = corrected(layout, set_landmarks(layout, moved, seen, update.used), update.e)
    P = congruence(reset_map(layout, moved, update.e), update.P)
    within = shares_within(ca.diag(P), _largest(layout))
    P = P * (within @ within.T)
    mean, P, fixed = _fixed(design, at, (mean, P), before)
    any_used = ca.sum1(ca.vertcat(*update.used)) > 0
    told = list(zip(update.used, stood, times, moves, strict=True))
    doubt = doubt_by_feet(told, before["doubt"], dt)
    placed = [own.used for fix, own in zip(design.fixes, fixed, strict=True) if fix.seen[2]]
    bounding = ca.sum1(ca.vertcat(any_used, *placed)) > 0
    lost = ca.if_else(bounding, 0, ca.fmin(before["lost"] + dt, 1e3))
    stands = [
        ca.if_else(o, ca.fmin(s + dt, LONGEST_STAND), 0) for s, o in zip(times, on, strict=True)
    ]
    return Outcome(_limited(mean), P, update, stands, lost, doubt, fixed)


def _predicted(
    design: BaseDesign,
    at: Measurements,
    sights: Sequence[Sight],
    shares: Sequence[ca.SX],
    before: dict[str, ca.SX],
) -> tuple[Mean, ca.SX, list[Moves]]:
    """Return the estimate, levelled at the first tick, and its covariance, moved by the IMU.

    Last how each landmark moves: its noise by speed is more than that of one that stands.
    """
    layout, sample, started = design.layout, at.imu, before["started"] > MASK_ON
    P = unpacked(before["P"], layout.n)
    mean, P = levelled(design, layout.mean(before["x"]), P, sample, started, at.dt)
    doubted, certain = before["doubt"] > DOUBTED, ca.SX(0)
    if design.fixes:
        doubted = ca.logic_or(doubted, is_contradicted(before["refused"]))
        certain = sets_in_vain(fix_state(before))
    mean, P = without_false_bias(design, mean, P, doubted, certain)
    rate = sample.rate - mean.b_g
    rates, m = ca.vertcat(at.joints.rate, at.passive[len(layout.passive) :]), design.joints
    activity = _activity(design, sights, rate, rates, before["stood"])
    turns = [mean.R @ (rate + s.J[3:, :] @ rates) for s in sights]
    rolling = {
        i: Motion(
            turns[i],
            rolled(design, layout.landmarks[i], turns[i]),
            mean.R @ s.J[3:, :m],
            mean.R @ ca.sparsify(s.J[3:, m:]),
            design.rate_noise,
        )
        for i, s in enumerate(sights)
        if layout.landmarks[i].rolls
    }
    speeds = foot_speeds(design, (mean, P), sights, rate, rates, rolling)
    moving = [
        noise_of_speed(design, mark, speed)
        for mark, speed in zip(layout.landmarks, speeds, strict=True)
    ]
    noise = _densities(design, sample, before, shares, activity, moving)
    moved = propagate(
        layout, mean, (sample.rate, sample.force), at.dt, design.gravity, rolling, noise
    )
    usual, turn = 2 * design.footing.slip**2 + design.footing.sink**2, design.footing.turn
    moves = [
        Moves(
            ca.trace(Q[:3, :3]) > usual * _creep(mark, activity) ** 2,
            ca.trace(Q[3:, 3:]) > 3 * turn**2,
        )
        for mark, Q in zip(layout.landmarks, moving, strict=True)
    ]
    return moved.mean, congruence(moved.F, P) + moved.Q, moves


def _fixed(
    design: BaseDesign, at: Measurements, now: tuple[Mean, ca.SX], before: dict[str, ca.SX]
) -> tuple[Mean, ca.SX, list[Fixed]]:
    """Return the estimate after fixes, one after the other."""
    found, (mean, P) = list[Fixed](), now
    motion = (at.imu.rate, at.imu.force, design.gravity)
    for k, (fix, (y, valid, age)) in enumerate(zip(design.fixes, at.fixes, strict=True)):
        here = then = frame_view(design.layout, mean, design.spot(fix, at.posture), motion, None)
        if age is not None:
            earlier = design.linkage.before(at.posture, at.joints.rate, age)
            spot = design.spot(fix, earlier)
            then = frame_view(design.layout, mean, spot, motion, age)
        state = fix_state(before)
        own = update_by_fix(
            design.layout, fix, (mean, P), (then, here), (y, valid),
            (knows(state, fix), is_lapsed(state, k)),
        )  # fmt: skip
        mean, P = own.mean, own.P
        found.append(own)
    return mean, P, found


def _activity(
    design: BaseDesign, sights: Sequence[Sight], rate: ca.SX, joint_rates: ca.SX, stood: ca.SX
) -> ca.SX:
    """Return the factor of the densities of landmarks: `rest` of a robot that stands still, to 1.

    Args:
        design: of the estimator.
        sights: of all landmarks.
        rate: (3,) of the IMU, its axes.
        joint_rates: (m + k,) of joints with encoders and of passive ones.
        stood: s, for which each landmark has stood.
    """
    least, square = design.footing.rest**2, ca.SX(0)
    for s in sights:
        of_noise = ca.sumsqr(s.J[:3, : design.joints]) * design.rate_noise**2
        square = ca.fmax(square, ca.sumsqr(s.velocity(rate, joint_rates)) - of_noise)
    moving = ca.if_else(ca.mmin(stood) > CALM, square / (square + SLOW**2), 1)
    return ca.sqrt(least + (1 - least) * moving)


def _creep(mark: Landmark, activity: ca.SX) -> ca.SX:
    """Return the factor of the densities of a landmark's place, 1 for a sole.

    The rotation of a sole shows the bias of the gyroscope without it, and a sole whose load moves
    creeps: of a robot that squats the creep looks like a tilt.
    """
    return ca.SX(1) if mark.sole else activity


def _densities(
    design: BaseDesign,
    sample: Sample,
    before: dict[str, ca.SX],
    shares: Sequence[ca.SX],
    activity: ca.SX,
    moving: Sequence[ca.SX],
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
        fresh = ca.exp(-ca.fmax(before["stood"][k], 0) / footing.settling)
        growth = (1 + (footing.landing - 1) * fresh) / ca.fmax(shares[k], MASK_ON)
        across = np.outer(landmark.normal, landmark.normal)
        own = footing.slip**2 * (np.eye(3) - across) + footing.sink**2 * across
        place = ca.sparsify(ca.DM(own)) * _creep(landmark, activity) ** 2
        turn = (footing.turn * activity) ** 2 * ca.SX.eye(landmark.size - 3)
        covariances.append(ca.diagcat(place, turn) * growth**2 + moving[k])
    return Densities(gyro, force, imu.gyro_walk, imu.accelerometer_walk, covariances)


def _largest(layout: Layout) -> Array:
    """Return the bounds (n,) of standard deviations."""
    names = ["tilt", "speed", "gyro", "force"]
    for landmark in layout.landmarks:
        names += ["place", "tilt"][: landmark.size // 3]
    bounds = [LARGEST[name] for name in (*names, "position")]
    return np.concatenate(
        [np.repeat(bounds[:-1], 3), passive_deviations(layout), np.repeat(bounds[-1:], 3)]
    )


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
        passive=inside(mean.passive, "passive"),
    )


def _all_read(s: Sight, read: ca.SX) -> ca.SX:
    """Return whether all encoders of a landmark have been read."""
    columns = sorted(set(s.J[:, : read.numel()].sparsity().get_triplet()[1]))
    return ca.SX(1) if not columns else ca.mmin(ca.vertcat(*(read[c] for c in columns)))
