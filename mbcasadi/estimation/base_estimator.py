"""Base pose and velocity of a robot that walks, from its IMU, its encoders and its contacts.

A right-invariant extended Kalman filter (`invariant.py`) in the IMU's frame, corrected by landmarks
of feet that stand (`landmark_update.py`). The base follows from the IMU by the joints between them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.description import Contact, Signal
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.base_design import BaseDesign
from mbcasadi.estimation.base_output import BASE
from mbcasadi.estimation.base_start import memory_at
from mbcasadi.estimation.base_tick import base_function
from mbcasadi.estimation.estimator import LIKELIHOOD, Estimator, EstimatorSensor
from mbcasadi.estimation.fixes import PARTS, Fix, fix_names, unseen_by
from mbcasadi.estimation.invariant import Layout
from mbcasadi.estimation.landmarks import FREE_Q, FREE_V, landmarks_of, require_free_base
from mbcasadi.estimation.late_samples import with_late_samples
from mbcasadi.estimation.noise import Encoders, FirstEstimate, Footing, Imu
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
    - `mask`: for each contact, probability that it stands; above one half it does.
    - `age`: s, of the samples of fixes that may be late; see `late_samples`.
    - `q`, `v`: in MuJoCo's order; joints as measured.
    - `covariance`: (12, 12) of the base's position (m, world), rotation (rad, base axes), linear
      velocity (world) and angular velocity (base axes): coordinates of `System.difference`.
    - `status`: 0 estimated, 1 for half a second no foot has stood, 2 no foot fits for 20 ms, 3 the
      IMU is not valid, the state is predicted without it, 4 started anew.
    - `flags`: the bit GATED where a foot that stands or a fix was rejected, OVERDUE where the age
      of a sample was refused.
    - `residual`: distance of each landmark and each fix from what was expected, in standard
      deviations.

    A landmark is a contact's point or the centre of its ball; three contacts of one body that are
    not on a line are one, of position and rotation. At the first tick roll and pitch are taken from
    the accelerometer. What `start` does not tell of heading and position is unknown where a fix
    sees it: the first such fix is accepted whatever it reads, and sets it; a start of wrong yaw
    comes right with the first sample of a compass. What `start` tells is gated from the first fix
    on. A fix that is rejected for 0.3 s and four samples in a row sets what it sees anew.

    Args:
        system: with a free base as its first joint, and otherwise joints of one coordinate.
        contacts: of its feet with the world.
        imu: where it is, and its noise.
        encoders: of all joints; `Encoders()` by default.
        footing: how well feet stand; `Footing()` by default.
        fixes: what sees heading, height or position; each at its own rate.
        start: deviations of the first estimate; `FirstEstimate()` by default.
        q0: (nq,) pose at the start; the first key frame or the authored pose by default.
        period: s, the usual dt.
        likelihood: whether there is a last output, the logarithm of the samples' density; a sample
            that is rejected counts as if it were at its gate. `fit_noise` needs it.
        name: a C identifier.

    Raises:
        ProblemError: a q0 without a rotation; no free base, joints without encoders or of several
            coordinates; contacts with bodies that move, that slide, or of bodies that roll and are
            no balls; no contacts; no gravity; a system with parameters.
        UnknownNameError: no such frame or joint, of the IMU, the encoders or a fix.
        ShapeError: q0 has a wrong shape, or NaN.
    """
    require_identifier("name", name)
    require_positive(period=period)
    require_free_base(system)
    encoders, footing = encoders or Encoders(), footing or Footing()
    joints = _encoded(system, encoders)
    _require(system, contacts)
    feet = landmarks_of(system, contacts, footing.rolling)
    layout = Layout(tuple(landmark for foot in feet for landmark in foot))
    q_start = pose_of(system, "q0", start_pose(system) if q0 is None else q0)
    if abs(np.linalg.norm(q_start[3:FREE_Q]) - 1) > UNIT:
        raise ProblemError(f"q0 has the quaternion {q_start[3:FREE_Q]}; expected one of length 1")
    design = BaseDesign(
        system=system,
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
        unobservable=unseen_by(fixes),
        covered=(*range(FREE_V), *range(system.nv, system.nv + FREE_V)),
        y0=_at_rest(design, function.numel_in("y")),
    )
    delays = {1 + design.joints + k: fix.longest_delay for k, fix in enumerate(fixes)}
    return with_late_samples(estimator, delays, len(layout.landmarks) - 1 - design.joints)


def _at_rest(design: BaseDesign, size: int) -> Array:
    """Return y (size,) of a robot that rests at q0."""
    y, force = np.zeros(size), design.memory.split(memory_at(design))["force"]
    y[3:6] = np.array(force).ravel()
    y[6 : 6 + design.joints] = design.q0[FREE_Q:]
    return y


def _encoded(system: System, encoders: Encoders) -> tuple[str, ...]:
    """Return the names of the joints with encoders: all but the free one."""
    assert system.tree is not None  # of a system with a free base
    known = scalar_coordinates(system)
    joints = tuple(joint.name for joint in system.tree.joints[1:])
    several = [name for name in joints if name not in known]
    measured = joints if encoders.joints is None else encoders.joints
    for name in measured:
        require_name("joint", name, list(known))
    missing = [name for name in joints if name not in measured]
    if several or missing:
        named = ", ".join(repr(name) for name in (several or missing)[:4])
        what = "joints of several coordinates" if several else "joints without an encoder"
        raise ProblemError(
            f"'{system.name}' has {what}: {named}; expected an encoder for each joint beside the "
            "free base"
        )
    return joints


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
    pairs = tuple(f"{names[i]} {names[j]}" for j in range(BASE) for i in range(BASE))
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
