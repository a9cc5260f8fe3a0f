"""Robots whose state follows from IMU and encoders: `robots.whole_body --sensors`.

An IMU of the class of an ICM-42688, encoders of 14 bits. Offsets of 5 mg and 0.3 °/s, one deviation
of each axis, are what a calibration has left.
"""

from collections.abc import Sequence

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP
from mbcasadi.estimation import Encoders, FirstEstimate, Footing, Imu, base_estimator, encoder_noise
from mbcasadi.estimation.landmarks import landmarks_of
from mbcasadi.validation import Recording, Sensing, SensorErrors
from mbcasadi.validation.metrics.estimate_metrics import estimate_metrics
from robots.ground import Array

BITS, RATE_NOISE = 14, 0.01  # of encoders; rad/s
REST = 2.0  # s for which a robot stands still before its task
SETTLE = 2.0  # s of the task that figures leave out
STANCE, SHAKEN = 0.5, 0.1  # s; both by a recording of Spot
LOAD, STIFF = 2.0, 1e5  # weight of a trot by that at rest; N m s/rad, of joints that stay
ROLLING = 6  # condim of a contact with rolling friction
SLOW, SINKS = 0.1, 2.0  # m/s, of a base that falls; s, until it rests
STANDS = FirstEstimate()
ESTIMATE_HEADS = ["velocity RMS, m/s", "tilt RMS, largest, °", "drift", "inside 3 σ"]
ERRORS = {
    "gyro": SensorErrors(bias=5e-3, walk=1e-5),
    "accelerometer": SensorErrors(bias=0.05, walk=1e-4),
    "position": SensorErrors(noise=0.0, quantum=2 * np.pi / 2**BITS),
}


def footing_of(
    model: mujoco.MjModel, system: mb.System, q0: Array, feet: Sequence[mb.Contact]
) -> Footing:
    """Return how feet stand, by how balls sink in, creep and roll; the usual one without balls.

    MuJoCo puts a contact into the middle of the depth d of two geoms in each other: a ball rolls by
    `r - d/2`. Other geoms of a leg may carry too, as the capsule of A1's shank in its ball: a foot
    rolls by the height of its centre over the contacts of its body, in the mean by their loads.

    The depth follows the load: over a stance of `STANCE` the foot sinks by about d, creeps as far
    along the ground, whose contacts are as soft there, and a share `SHAKEN` of d goes up and down
    with it. All are those of the model with stiff joints under the load of a trot, half of the
    feet; its base is damped, since soft feet bounce for long.
    """
    balls = [mark for foot in landmarks_of(system, feet, 1.0) for mark in foot if mark.rolls]
    if not balls:
        return Footing()
    data, up = mujoco.MjData(model), balls[0].normal
    gravity = LOAD * np.linalg.norm(model.opt.gravity)
    model.opt.gravity = -gravity * up
    model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)  # stiff
    model.dof_damping[:6], model.dof_damping[6:] = model.body_mass.sum() * gravity / SLOW, STIFF
    data.qpos[:] = q0
    mujoco.mj_step(model, data, int(SINKS / model.opt.timestep))
    centres = [m.frame.pose(data.qpos)[0].full().ravel() + m.above for m in balls]
    radius, usual = float(np.mean([mark.radius for mark in balls])), Footing()
    depth = radius - float(np.mean([centre @ up for centre in centres]))
    creep = depth / np.sqrt(STANCE)
    loads, arms, slides = list[float](), list[float](), list[float]()
    for k, contact in enumerate(data.contact[: data.ncon]):
        force, near = np.zeros(6), min(centres, key=lambda c: np.linalg.norm(c - contact.pos))
        mujoco.mj_contactForce(model, data, k, force)
        loads.append(force[0])
        arms.append(float((near - contact.pos) @ up))
        rolls = contact.friction[3] if contact.dim == ROLLING else 0.0
        slides.append(float(rolls / contact.friction[0] ** 2))
    slip = max(usual.slip, creep)
    return Footing(
        rolling=float(np.average(arms, weights=loads)) / radius,
        slip=slip,
        sink=max(usual.sink, creep),
        place_noise=max(usual.place_noise, SHAKEN * depth),
        landing=max(1.0, usual.landing * usual.slip / slip),
        slide=float(np.average(slides, weights=loads)),
    )


def sensing_of(
    system: mb.System,
    feet: Sequence[mb.Contact],
    q0: Array,
    footing: Footing,
    period: float,
    joints: tuple[str, ...] | None = None,
    start: FirstEstimate = STANDS,
) -> Sensing:
    """Return the estimator of a robot, with the errors of its sensors.

    Args:
        system, feet, q0, footing, period: of the robot, where it stands, and of a tick, s.
        joints: that have encoders; None for all.
        start: what is known of the first state.
    """
    tree = system.tree
    base = next(body.name for body in tree.bodies if 0 in body.joints)
    sites = [f.name for f in tree.frames if f.kind == "site" and "imu" in f.name.lower()]
    imu = Imu(sites[0]) if sites else Imu(base, kind="body")
    encoders = Encoders(joints, noise=encoder_noise(BITS), rate_noise=RATE_NOISE)
    estimator = base_estimator(
        system, feet, imu=imu, encoders=encoders, footing=footing, q0=q0, period=period, start=start
    )
    return Sensing(estimator, ERRORS)


def sensing_below(law: InverseDynamicsQP, model: mujoco.MjSpec, q0: Array) -> Sensing:
    """Return the estimator of a robot that a law drives and that stands at q0."""
    footing = footing_of(model.compile(), law.system, q0, law.contacts)
    return sensing_of(law.system, law.contacts, q0, footing, law.period)


def estimate_cells(recording: Recording, model: mujoco.MjModel) -> str:
    """Return errors of the estimate as cells of a table."""
    values = {m.name: m.value for m in estimate_metrics(recording, model, REST + SETTLE)}
    rms, tilt = (np.rad2deg(values[f"estimate.{key}"]) for key in ("tilt_rms", "tilt"))
    way = values.get("estimate.drift")
    drift = "" if way is None else f"{way:.1%}"  # of a robot that stays where it is
    return (
        f"{values['estimate.velocity']:.3f} | {rms:.2f}, {tilt:.2f} | {drift} | "
        f"{values['estimate.within']:.1%}"
    )
