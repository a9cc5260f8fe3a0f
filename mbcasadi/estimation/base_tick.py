"""One tick of the base estimator as a Function: guard, estimate, output."""

import casadi as ca

from mbcasadi.description.status import Flag
from mbcasadi.estimation.base_design import BaseDesign
from mbcasadi.estimation.base_filter import estimate
from mbcasadi.estimation.base_samples import encoders_read, imu_sample
from mbcasadi.estimation.base_start import memory_at
from mbcasadi.estimation.covariance import packed
from mbcasadi.estimation.estimator import ADRIFT, DOUBTED, LONGEST
from mbcasadi.estimation.joints import joints_of
from mbcasadi.qp.input_guard import MASK_ON

LARGEST_MEMORY = 1e15
"""Sum of the absolute entries of a memory that is sound."""


def base_function(design: BaseDesign, name: str) -> ca.Function:
    """Return (y, valid, mask, dt, z) → (q, v, z_next, covariance, status, flags, residual)."""
    m, rated = design.joints, design.encoders.rate_noise is not None
    y = ca.SX.sym("y", 6 + m + m * rated)
    valid, mask = ca.SX.sym("valid", 1 + m), ca.SX.sym("mask", len(design.contacts))
    dt_in, z = ca.SX.sym("dt"), ca.SX.sym("z", design.memory.size)
    dt = ca.if_else(ca.logic_and(dt_in > 0, dt_in <= LONGEST), dt_in, design.period)
    z0 = memory_at(design)
    sound = _is_sound(design, z)
    before = design.memory.split(ca.if_else(sound, z, z0))
    outputs = _outputs(design, y, valid, mask, dt, before)
    finite = ca.sum1(ca.fabs(ca.vertcat(*outputs.values()))) <= LARGEST_MEMORY
    state = design.memory.split(ca.SX(z0))
    rest: dict[str, ca.DM | ca.SX] = {
        "q": ca.DM(design.q0),
        "v": ca.DM.zeros(design.system.nv),
        "z_next": z0,
        "covariance": ca.vec(
            design.base(state, state["joint"], state["gyro"], ca.SX(design.period)).covariance
        ),
        "status": ca.DM(4),
        "flags": ca.DM(0),
        "residual": ca.DM.zeros(len(design.layout.landmarks)),
    }
    outputs["status"] = ca.if_else(sound, outputs["status"], 4)
    outputs = {k: ca.densify(ca.if_else(finite, x, rest[k])) for k, x in outputs.items()}
    inputs = {"y": y, "valid": valid, "mask": mask, "dt": dt_in, "z": z}
    outputs["covariance"] = ca.reshape(outputs["covariance"], 12, 12)
    return ca.Function(
        name, [*inputs.values()], [*outputs.values()], [*inputs], [*outputs], {"cse": True}
    )


def _is_sound(design: BaseDesign, z: ca.SX) -> ca.SX:
    """Return whether a memory is one."""
    parts = design.memory.split(z)
    quat = ca.sumsqr(parts["x"][:4])
    unit = ca.logic_and(quat > 0.5, quat < 2.0)
    return ca.logic_and(unit, ca.sum1(ca.fabs(z)) <= LARGEST_MEMORY)


def _outputs(
    design: BaseDesign, y: ca.SX, valid: ca.SX, mask: ca.SX, dt: ca.SX, before: dict[str, ca.SX]
) -> dict[str, ca.SX]:
    """Return all outputs of a tick from a sound memory."""
    m, started = design.joints, before["started"] > MASK_ON
    sample = imu_sample(design, y, valid, before, dt)
    read = encoders_read(design, y, valid)
    joints = joints_of(
        design.encoders,
        design.period,
        (y[6 : 6 + m], y[6 + m :]),
        read,
        (before["joint"], before["joint_rate"]),
        started,
        dt,
    )
    outcome = estimate(design, sample, joints, read, mask, dt, before)
    parts = {
        "x": outcome.mean.column,
        "P": packed(outcome.P),
        "stood": ca.vertcat(*outcome.stands),
        "mean": ca.vertcat(*outcome.update.means),
        "joint": joints.filtered,
        "joint_rate": joints.rate,
        "gyro": sample.rate,
        "force": sample.force,
        "missing": sample.missing,
        "lost": outcome.lost,
        "doubt": outcome.doubt,
        "started": ca.logic_or(started, sample.valid),
    }
    for key in ("x", "P", "stood", "mean"):  # nothing is concluded before the IMU's first sample
        parts[key] = ca.if_else(parts["started"], parts[key], before[key])
    base = design.base(parts, joints.q, before["gyro"], dt)
    status = ca.if_else(outcome.lost > ADRIFT, 1, 0)
    status = ca.if_else(outcome.doubt > DOUBTED, 2, status)
    status = ca.if_else(sample.valid, status, 3)
    update = outcome.update
    expected = zip(update.distances, update.used, strict=True)
    gated = [ca.logic_and(distance > 0, ca.logic_not(used)) for distance, used in expected]
    rejected = ca.sum1(ca.vertcat(*gated)) > 0
    return {
        "q": ca.vertcat(base.pose, joints.q),
        "v": ca.vertcat(base.velocity, joints.rate),
        "z_next": design.memory.join(parts),
        "covariance": ca.vec(base.covariance),
        "status": status,
        "flags": Flag.GATED * rejected,
        "residual": ca.vertcat(*update.distances),
    }
