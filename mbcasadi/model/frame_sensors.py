"""Sensors of frames: where they are, how they move, and what is seen from them.

With a reference frame R, position, velocity and axes are those that R sees, in its axes:

    p = R_WRᵀ (p_F - p_R)          ω = R_WRᵀ (ω_F - ω_R)
    ṗ = R_WRᵀ (ṗ_F - ṗ_R - ω_R × (p_F - p_R))

Accelerations are less gravity: a frame at rest reads `-g` (MuJoCo, sensors).
"""

from collections.abc import Callable

import casadi as ca

from mbcasadi.description import Sensor, SensorFrame
from mbcasadi.model.interaction_wrench import interaction_wrench
from mbcasadi.model.sensed_state import SensedFrame, SensedState
from mbcasadi.spatial import ZERO3, Vec3, conjugate, cross, multiply, stack, subtract, vec3

LEAST_DEPTH = 1e-15
"""m, the smallest distance from a camera's plane that MuJoCo divides by (`mjMINVAL`)."""

AXES = {"framexaxis": 0, "frameyaxis": 1, "framezaxis": 2}
Reader = Callable[[SensedState, Sensor], ca.SX]


def own_frame(state: SensedState, sensor: Sensor) -> SensedFrame:
    """Return the frame that a sensor sits in or measures."""
    assert sensor.frame is not None  # the reader gives one to all kinds of this file
    return state.frame(sensor.frame)


def frame_position(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the position, m."""
    frame = own_frame(state, sensor)
    if sensor.reference is None:
        return stack(frame.origin)
    base = state.frame(sensor.reference)
    return stack(base.in_axes(subtract(frame.origin, base.origin)))


def frame_axis(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return one of the axes."""
    axis = own_frame(state, sensor).columns[AXES[sensor.kind]]
    return stack(_in_reference(state, sensor.reference, axis))


def frame_quaternion(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the orientation as a quaternion w x y z, with MuJoCo's sign."""
    quat = own_frame(state, sensor).quat
    if sensor.reference is not None:
        quat = multiply(conjugate(state.frame(sensor.reference).quat), quat)
    return ca.vertcat(*quat)


def frame_linear_velocity(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the velocity of the origin, m/s."""
    frame = own_frame(state, sensor)
    if sensor.reference is None:
        return stack(frame.velocity[0])
    base = state.frame(sensor.reference)
    turning = cross(base.velocity[1], subtract(frame.origin, base.origin))
    seen = subtract(subtract(frame.velocity[0], base.velocity[0]), turning)
    return stack(base.in_axes(seen))


def frame_angular_velocity(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the angular velocity, rad/s."""
    w = own_frame(state, sensor).velocity[1]
    if sensor.reference is None:
        return stack(w)
    base = state.frame(sensor.reference)
    return stack(base.in_axes(subtract(w, base.velocity[1])))


def frame_linear_acceleration(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the acceleration of the origin less gravity, m/s², world axes."""
    return stack(_felt(sensor, own_frame(state, sensor)))


def frame_angular_acceleration(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the angular acceleration, rad/s², world axes."""
    return stack(own_frame(state, sensor).acceleration[1])


def accelerometer(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the acceleration less gravity in the axes of the site, m/s²."""
    site = own_frame(state, sensor)
    return stack(site.in_axes(_felt(sensor, site)))


def velocimeter(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the velocity in the axes of the site, m/s."""
    site = own_frame(state, sensor)
    return stack(site.in_axes(site.velocity[0]))


def gyro(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the angular velocity in the axes of the site, rad/s."""
    site = own_frame(state, sensor)
    return stack(site.in_axes(site.velocity[1]))


def magnetometer(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the magnetic field in the axes of the site."""
    assert sensor.field is not None  # the reader gives it
    return stack(own_frame(state, sensor).in_axes(vec3(sensor.field)))


def force(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the force of the parent on the site's body, N, axes of the site."""
    return stack(interaction_wrench(state, own_frame(state, sensor))[0])


def torque(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the moment about the site of the parent on the site's body, N m, axes of the site."""
    return stack(interaction_wrench(state, own_frame(state, sensor))[1])


def camera_projection(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the pixel at which a camera sees a site; singular in the camera's plane."""
    assert sensor.reference is not None  # the reader gives both
    assert sensor.lens is not None
    camera, lens = state.frame(sensor.reference), sensor.lens
    x, y, z = camera.in_axes(subtract(own_frame(state, sensor).origin, camera.origin))
    depth = ca.SX(z)
    depth = ca.if_else(
        ca.fabs(depth) < LEAST_DEPTH, ca.if_else(depth < 0, -LEAST_DEPTH, LEAST_DEPTH), depth
    )
    return ca.vertcat(
        lens.center[0] - lens.focal[0] * x / depth, lens.center[1] + lens.focal[1] * y / depth
    )


FRAME_SENSORS: dict[str, Reader] = {
    "framepos": frame_position,
    "framequat": frame_quaternion,
    **dict.fromkeys(AXES, frame_axis),
    "framelinvel": frame_linear_velocity,
    "frameangvel": frame_angular_velocity,
    "framelinacc": frame_linear_acceleration,
    "frameangacc": frame_angular_acceleration,
    "accelerometer": accelerometer,
    "velocimeter": velocimeter,
    "gyro": gyro,
    "magnetometer": magnetometer,
    "force": force,
    "torque": torque,
    "camprojection": camera_projection,
}


def _felt(sensor: Sensor, frame: SensedFrame) -> Vec3:
    """Return the acceleration less gravity, world axes; MuJoCo 3 reads zero where nothing moves."""
    return frame.acceleration[0] if frame.moves or sensor.feels_gravity else ZERO3


def _in_reference(state: SensedState, reference: SensorFrame | None, vector: Vec3) -> Vec3:
    """Return a vector of world axes in those of the reference."""
    return vector if reference is None else state.frame(reference).in_axes(vector)
