"""One tick of the base estimator as a Function: guard, estimate, output."""

import casadi as ca

from mbcasadi.description.status import Flag
from mbcasadi.estimation.base_design import BaseDesign
from mbcasadi.estimation.base_filter import Measurements, estimate
from mbcasadi.estimation.base_samples import encoders_read, imu_sample
from mbcasadi.estimation.base_start import memory_at
from mbcasadi.estimation.covariance import packed
from mbcasadi.estimation.estimator import ADRIFT, DOUBTED, LONGEST
from mbcasadi.estimation.fix_update import fix_state, is_contradicted, remembered
from mbcasadi.estimation.invariant import passive_motion
from mbcasadi.estimation.joints import joints_of, smoothed
from mbcasadi.estimation.landmarks import FREE_Q
from mbcasadi.estimation.memory import finite_outputs
from mbcasadi.qp.input_guard import MASK_ON

FADES = 0.1
"""Share of a sample in what is remembered of changes of the rate: a shaken IMU's pass zero."""


def base_function(design: BaseDesign, name: str) -> ca.Function:
    """Return (y, valid, mask, [age], dt, z) → (q, v, z_next, covariance, …, residual).

    Ages of late fixes are less than dt.
    """
    sizes = {"y": design.ny, "valid": 1 + design.joints + len(design.fixes)}
    sizes |= {"mask": len(design.contacts)} | ({"age": len(design.late)} if design.late else {})
    sizes |= {"dt": 1, "z": design.memory.size}
    inputs = {key: ca.SX.sym(key, n) for key, n in sizes.items()}
    dt_in, z = inputs["dt"], inputs["z"]
    dt = ca.if_else(ca.logic_and(dt_in > 0, dt_in <= LONGEST), dt_in, design.period)
    z0, quat = memory_at(design), ca.sumsqr(design.memory.split(z)["x"][:4])
    before, sound = design.memory.recalled(z, z0, quat > 0.5, quat < 2.0)
    outputs = _outputs(design, inputs, dt, before)
    outputs["status"] = ca.if_else(sound, outputs["status"], 4)
    state, joints = design.memory.split(ca.SX(z0)), ca.SX(ca.DM(design.q0[FREE_Q:]))
    first = design.base(state, joints, ca.SX(design.period)).covariance
    rest: dict[str, ca.DM | float] = {
        "q": ca.DM(design.q0),
        "z_next": z0,
        "covariance": ca.evalf(ca.vec(first)),
        "status": 4,
    }
    outputs = finite_outputs(outputs, rest)
    outputs["covariance"] = ca.reshape(outputs["covariance"], design.covered, design.covered)
    return ca.Function(
        name, [*inputs.values()], [*outputs.values()], [*inputs], [*outputs], {"cse": True}
    )


def _measured(
    design: BaseDesign, s: dict[str, ca.SX], dt: ca.SX, before: dict[str, ca.SX]
) -> Measurements:
    """Return what a tick measures, by its inputs."""
    m, y, valid = design.joints, s["y"], s["valid"]
    read, started = encoders_read(design, y, valid), before["started"] > MASK_ON
    joints = joints_of(
        design.encoders,
        (y[6 : 6 + m], y[6 + m : 6 + (1 + design.rated) * m]),
        read,
        (before["joint"], before["joint_rate"]),
        started,
        dt,
    )
    passive = passive_motion(design.layout, dt)[0] @ design.layout.mean(before["x"]).passive
    posture = smooth = design.posture(joints.q, passive, before["follower"])
    if passive.numel():
        positions = smoothed(joints.q, before["smooth"], started, dt)
        smooth = design.posture(positions, passive, before["follower"])
    ages = {fix: s["age"][k] for k, fix in enumerate(design.late)}
    imu = imu_sample(design, y, valid, before, dt)
    level = ca.logic_or(started, imu.steady)  # before, no fix is taken
    fixes = [
        (y[list(rows)], valid[1 + m + k] * level, ages.get(k))
        for k, rows in enumerate(design.fix_rows)
    ]
    return Measurements(imu, joints, posture, smooth, passive, read, s["mask"], fixes, dt)


def _outputs(
    design: BaseDesign, s: dict[str, ca.SX], dt: ca.SX, before: dict[str, ca.SX]
) -> dict[str, ca.SX]:
    """Return all outputs of a tick from a sound memory."""
    at = _measured(design, s, dt, before)
    sample, joints, outcome = at.imu, at.joints, estimate(design, at, before)
    change2 = (sample.rate - before["gyro"]) ** 2
    parts = {
        "x": outcome.mean.column,
        "P": packed(outcome.P),
        "stood": ca.vertcat(*outcome.stands),
        "mean": ca.vertcat(*outcome.update.means),
        "joint": joints.filtered,
        "joint_rate": joints.rate,
        "follower": at.posture[design.linkage.followers],
        "smooth": at.smooth[design.smooth_places],
        "gyro": sample.rate,
        "changed": ca.fmax(change2, (1 - FADES) * before["changed"] + FADES * change2),
        "force": sample.force,
        "missing": sample.missing,
        "lost": outcome.lost,
        "doubt": outcome.doubt,
        "started": ca.logic_or(before["started"] > MASK_ON, sample.steady),
    }
    if design.fixes:
        state = fix_state(before)
        parts |= remembered(design.fixes, state, outcome.fixed, dt)._asdict()
    for key in ("x", "P", "stood", "mean"):  # nothing is concluded before a steady sample
        parts[key] = ca.if_else(parts["started"], parts[key], before[key])
    passive = design.layout.mean(parts["x"]).passive
    posture = (
        design.posture(joints.q, passive, parts["follower"], 1) if passive.numel() else at.posture
    )
    base = design.base(parts, posture, dt)
    rates = ca.vertcat(joints.rate, passive[len(design.layout.passive) :])
    status = ca.if_else(outcome.lost > ADRIFT, 1, 0)
    doubted = outcome.doubt > DOUBTED
    if design.fixes:
        doubted = ca.logic_or(doubted, is_contradicted(parts["refused"]))
    status = ca.if_else(doubted, 2, status)
    status = ca.if_else(sample.valid, status, 3)
    update = outcome.update
    expected = zip(update.distances, update.used, strict=True)
    gated = [ca.logic_and(distance > 0, ca.logic_not(used)) for distance, used in expected]
    rejected = ca.sum1(ca.vertcat(*gated, *(fix.rejected for fix in outcome.fixed))) > 0
    outputs = {
        "q": ca.vertcat(base.pose, posture),
        "v": ca.vertcat(base.velocity, design.linkage.motion(posture) @ rates),
        "z_next": design.memory.join(parts),
        "covariance": ca.vec(base.covariance),
        "status": status,
        "flags": Flag.GATED * rejected,
        "residual": ca.vertcat(*update.distances, *(fix.distance for fix in outcome.fixed)),
    }
    likelihood = update.likelihood + sum(fix.likelihood for fix in outcome.fixed)
    return outputs | ({"likelihood": likelihood} if design.likelihood else {})
