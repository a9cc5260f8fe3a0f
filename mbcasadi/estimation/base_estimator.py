"""Base pose and velocity of a robot that walks, from its IMU, its encoders and its contacts.

A right-invariant extended Kalman filter (`invariant.py`) in the IMU's frame, corrected by landmarks
of feet that stand (`landmark_update.py`). The base follows from the IMU by the joints between them.
"""

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.description import Contact, Signal
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.base_design import BaseDesign
from mbcasadi.estimation.base_start import memory_at
from mbcasadi.estimation.base_tick import base_function
from mbcasadi.estimation.estimator import LIKELIHOOD, Estimator, EstimatorSensor
from mbcasadi.estimation.fixes import PARTS, Fix, fix_names, unseen_by
from mbcasadi.estimation.invariant import Layout
from mbcasadi.estimation.landmarks import (
    FREE_Q,
    FREE_V,
    landmarks_of,
    mounting,
    require_free_base,
    sight,
)
from mbcasadi.estimation.late_samples import with_late_samples
from mbcasadi.estimation.linkage import Linkage, posed, require_determined
from mbcasadi.estimation.noise import Encoders, FirstEstimate, Footing, Imu, PassiveJoint
from mbcasadi.shapes import require_identifier, require_name, require_positive
from mbcasadi.system import System
from mbcasadi.system.coordinates import (
    coordinates,
    pose_of,
    rate_names,
    rates,
    scalar_coordinates,
    start_pose,
    unitless_signal,
)

Array = NDArray[np.float64]
AXES = ("x", "y", "z")
UNIT = 1e-3
"""By which the length of a quaternion may differ from 1."""


@checked
def base_estimator(
    system: System,
    contacts: Sequence[Contact],
    *,
    imu: Imu,
    encoders: Encoders | None = None,
    passive: Sequence[PassiveJoint] = (),
    footing: Footing | None = None,
    fixes: Sequence[Fix] = (),
    start: FirstEstimate | None = None,
    q0: ArrayLike | None = None,
    period: float = 1e-3,
    likelihood: bool = False,
    name: str = "base_estimator",
) -> Estimator:
    """Return the estimator of a robot with a free base [Hartley et al. 2020], on balls or soles.

    Its Function is (y, valid, mask, [age], dt, z) → (q, v, z_next, covariance, status, flags,
    residual):

    - `y`: gyroscope, rad/s, and accelerometer, m/s², as means over the last dt, then positions and,
      where they are measured, rates of the joints, then the fixes. A sample that is NaN or out of
      range counts as not valid.
    - `valid`: for the IMU, each joint and each fix, above one half for valid. A fix that has no
      sample in a tick is not valid.
    - `mask`: for each contact, probability that it stands; above one half it does. One that moves
      all the same counts less: see `Footing`.
    - `age`: s, of the samples of fixes that may be late; see `late_samples`.
    - `q`, `v`: in MuJoCo's order; joints as measured, others by the loops and the passive joints.
    - `covariance`: (12 + 2k, 12 + 2k) of the base's position (m, world), rotation (rad, base axes),
      linear velocity (world) and angular velocity (base axes), coordinates of `System.difference`,
      then of positions and rates of the k passive joints.
    - `status`: 0 estimated, 1 for half a second no foot has stood, 2 no foot fits for 20 ms, all
      move for 0.2 s, or four samples of a fix in a row did not and none did since, 3 the IMU is
      not valid, the state is predicted without it, 4 started anew.
    - `flags`: the bit GATED where a foot that stands or a fix was rejected, OVERDUE where the age
      of a sample was refused.
    - `residual`: distance of each landmark and each fix from what was expected, in standard
      deviations.

    A landmark is a contact's point or the centre of its ball; three contacts of one body that are
    not on a line are one, of position and rotation. At the first tick roll and pitch are taken from
    the accelerometer. What `start` does not tell of heading and position is unknown where a fix
    sees it: the first such fix is accepted whatever it reads, and sets it; a start of wrong yaw
    comes right with the first sample of a compass. What `start` tells is gated from the first fix
    on. A fix that is rejected for 0.3 s and four samples in a row sets what it sees anew; where
    that does not help, tilt and biases start anew too.

    Joints without an encoder follow from measured and passive ones by the loops (`linkage.py`);
    what loops leave free and moves neither a foot nor the IMU nor a fix stays as it is.

    Args:
        system: with a free base as its first joint.
        contacts: of its feet with the world.
        imu: where it is, and its noise.
        encoders: of joints of one coordinate; of all joints by default.
        passive: joints without an encoder that loops leave free: springs. Feet that stand and the
            IMU tell how they bend.
        footing: how well feet stand; `Footing()` by default.
        fixes: what sees heading, height or position; each at its own rate.
        start: deviations of the first estimate; `FirstEstimate()` by default.
        q0: (nq,) pose at the start; the first key frame or the initial pose by default.
        period: s, the usual dt.
        likelihood: whether there is a last output, the logarithm of the samples' density; a sample
            that is rejected counts as if it were at its gate. `fit_noise` needs it.
        name: a C identifier.

    Raises:
        ProblemError: a q0 without a rotation, or with open loops; no free base; joints without
            encoders that move a foot and are neither passive nor determined by loops; a passive
            joint that loops determine, or that moves the IMU or a fix; contacts with bodies that
            move, that slide, or of bodies that roll and are no balls; no contacts; no gravity; a
            system with parameters.
        UnknownNameError: no such frame or joint, of the IMU, the encoders or a fix.
        ShapeError: q0 has a wrong shape, or NaN.
    """
    require_identifier("name", name)
    require_positive(period=period)
    require_free_base(system)
    encoders, footing = encoders or Encoders(), footing or Footing()
    _require(system, contacts)
    feet = landmarks_of(system, contacts, footing.rolling)
    q_start = pose_of(system, "q0", start_pose(system) if q0 is None else q0)
    if abs(np.linalg.norm(q_start[3:FREE_Q]) - 1) > UNIT:
        raise ProblemError(f"q0 has the quaternion {q_start[3:FREE_Q]}; expected one of length 1")
    linkage = _linkage(system, encoders, passive)
    joints, q_start = linkage.encoded, linkage.assembled(q_start)
    rests = q_start[FREE_Q:][linkage.places(linkage.passive)]
    springs = [
        joint if joint.rest is not None else replace(joint, rest=float(rest))
        for joint, rest in zip(passive, rests, strict=True)
    ]
    layout = Layout(tuple(landmark for foot in feet for landmark in foot), tuple(springs))
    design = BaseDesign(
        system=system,
        linkage=linkage,
        contacts=tuple(contacts),
        layout=layout,
        imu=imu,
        encoders=encoders,
        footing=footing,
        fixes=tuple(fixes),
        start=start or FirstEstimate(),
        q0=q_start,
        period=period,
        likelihood=likelihood,
    )
    loose = _loose(design)
    function = base_function(design, name)
    estimator = Estimator(
        name=name,
        function=function,
        inputs=_inputs(design, joints, contacts),
        outputs=_outputs(system, design),
        sensors=_sensors(design, joints),
        z0=np.array(memory_at(design)).ravel(),
        period=period,
        source=system.name,
        unobservable=(*unseen_by(fixes), *loose),
        covered=_covered(design),
        y0=_at_rest(design, function.numel_in("y")),
    )
    delays = {1 + design.joints + k: fix.longest_delay for k, fix in enumerate(fixes)}
    return with_late_samples(estimator, delays, len(layout.landmarks) - 1 - design.joints)


def _at_rest(design: BaseDesign, size: int) -> Array:
    """Return y (size,) of a robot that rests at q0."""
    y, force = np.zeros(size), design.memory.split(memory_at(design))["force"]
    y[3:6] = np.array(force).ravel()
    joints = design.linkage.places(design.linkage.encoded)
    y[6 : 6 + design.joints] = design.q0[FREE_Q:][joints]
    return y


def _linkage(system: System, encoders: Encoders, passive: Sequence[PassiveJoint]) -> Linkage:
    """Return the joints beside the free base."""
    assert system.tree is not None  # of a system with a free base
    known = scalar_coordinates(system)
    names = tuple(joint.name for joint in system.tree.joints[1:])
    springs = tuple(joint.joint for joint in passive)
    measured = encoders.joints
    for name in (*springs, *(measured or ())):
        require_name("joint", name, list(known))
    if measured is None:
        measured = tuple(name for name in names if name in known and name not in springs)
    both = [name for name in springs if name in measured]
    if both or len(set(springs)) < len(springs):
        raise ProblemError(
            f"passive joints {', '.join(springs)}; expected each once, and none with an encoder"
        )
    return Linkage(system, tuple(name for name in names if name in measured), springs)


def _loose(design: BaseDesign) -> tuple[str, ...]:
    """Return what nothing determines among the joints, in words."""
    system, linkage, joints = design.system, design.linkage, ca.SX(ca.DM(design.q0[FREE_Q:]))
    at, q = mounting(system, design.imu, posed(joints)), posed(joints)
    frames = {design.imu.frame: at.J}
    for fix in design.fixes:
        frames[fix.frame] = sight(system.frame(fix.frame, fix.frame_kind), None, at, q).J
    stiff, own = tuple(frames), linkage.dofs(linkage.passive)
    for mark in design.layout.landmarks:
        frames[mark.name] = sight(mark.frame, mark.above, at, q).J
    slopes = {name: np.array(ca.evalf(J)) for name, J in frames.items()}
    loose = require_determined(linkage, design.q0, slopes)
    bent = np.array(ca.evalf(linkage.motion(joints)))[:, len(linkage.encoded) :]
    moved = [name for name in stiff if np.abs(slopes[name] @ bent).max(initial=0.0) > 0]
    if own and moved:
        raise ProblemError(
            f"passive joints move '{moved[0]}'; expected the IMU and fixes on bodies that only "
            "joints with encoders move"
        )
    return tuple(f"position of {name}" for name in loose)


def _covered(design: BaseDesign) -> tuple[int, ...]:
    """Return the rows of (δq, δv) of which there is a covariance."""
    nv, linkage = design.system.nv, design.linkage
    base, bent = list(range(FREE_V)), [FREE_V + k for k in linkage.dofs(linkage.passive)]
    return (*base, *(nv + k for k in base), *bent, *(nv + k for k in bent))


def _require(system: System, contacts: Sequence[Contact]) -> None:
    assert system.tree is not None
    if not contacts:
        raise ProblemError(f"'{system.name}' without contacts; expected those of its feet")
    if not np.any(system.tree.gravity):
        raise ProblemError(
            f"'{system.name}' has no gravity; expected some: roll and pitch follow from it"
        )
    if len(system.parameters):
        raise ProblemError(
            f"'{system.name}' has physical parameters; expected a system with numbers: "
            "read_mjcf without parameters="
        )


def _sensors(design: BaseDesign, joints: Sequence[str]) -> tuple[EstimatorSensor, ...]:
    m, imu, encoders = len(joints), design.imu, design.encoders
    sensors = [
        EstimatorSensor(kind, kind, imu.frame, rows, noise, True, 0, imu.kind)
        for kind, rows, noise in (
            ("gyro", (0, 1, 2), imu.gyro_noise),
            ("accelerometer", (3, 4, 5), imu.accelerometer_noise),
        )
    ]
    sensors += [
        EstimatorSensor(joint, "position", joint, (6 + k,), encoders.noise, False, 1 + k)
        for k, joint in enumerate(joints)
    ]
    if encoders.rate_noise is not None:
        noise = encoders.rate_noise
        sensors += [
            EstimatorSensor(f"{joint}.rate", "rate", joint, (6 + m + k,), noise, False, 1 + k)
            for k, joint in enumerate(joints)
        ]
    names = fix_names(design.fixes)
    for k, (fix, name, rows) in enumerate(zip(design.fixes, names, design.fix_rows, strict=True)):
        at, entry = 0, 1 + m + k
        for kind, endings, _ in PARTS[fix.kind]:
            noise = fix.turn_noise if kind == "frame_rotation" else fix.noise
            own, label = rows[at : at + len(endings)], f"{name}.turn" if at else name
            sensors.append(
                EstimatorSensor(label, kind, fix.frame, own, noise, False, entry, fix.frame_kind)
            )
            at += len(endings)
    return tuple(sensors)


def _inputs(
    design: BaseDesign, joints: Sequence[str], contacts: Sequence[Contact]
) -> tuple[Signal, ...]:
    known = scalar_coordinates(design.system)
    units = [known[joint][2] for joint in joints]
    names = [f"gyro.{axis}" for axis in AXES] + [f"accelerometer.{axis}" for axis in AXES]
    measured, of_each = [*names, *joints], ["rad/s"] * 3 + ["m/s²"] * 3 + units
    if design.encoders.rate_noise is not None:
        measured += [f"{joint}.rate" for joint in joints]
        of_each += [f"{unit}/s" for unit in units]
    of_fixes = fix_names(design.fixes)
    for fix, name in zip(design.fixes, of_fixes, strict=True):
        for _, endings, unit in PARTS[fix.kind]:
            measured += [f"{name}{ending}" for ending in endings]
            of_each += [unit] * len(endings)
    return (
        Signal("y", tuple(measured), tuple(of_each)),
        unitless_signal("valid", ("imu", *joints, *of_fixes)),
        unitless_signal("mask", tuple(contact.frame for contact in contacts)),
        Signal("dt", ("dt",), ("s",)),
        unitless_signal("z", design.memory.components),
    )


def _outputs(system: System, design: BaseDesign) -> tuple[Signal, ...]:
    of_base = ("position", "rotation", "velocity", "rate")
    names = [f"{what}.{axis}" for what in of_base for axis in AXES]
    names += [*design.linkage.passive, *(f"{joint}.rate" for joint in design.linkage.passive)]
    pairs = tuple(f"{a} {b}" for b in names for a in names)
    landmarks = tuple(landmark.name for landmark in design.layout.landmarks)
    measured = (*landmarks, *fix_names(design.fixes))
    signals = (
        coordinates(system),
        Signal("v", rate_names(system), rates(system).units),
        unitless_signal("z_next", design.memory.components),
        unitless_signal("covariance", pairs),
        unitless_signal("status", ("status",)),
        unitless_signal("flags", ("flags",)),
        unitless_signal("residual", measured),
    )
    return (*signals, LIKELIHOOD) if design.likelihood else signals
