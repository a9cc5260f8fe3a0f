"""Sensors of a compiled model; those without a smooth equation keep the reason."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Actuator, CoverageItem, Lens, Sensor, SensorFrame
from mbcasadi.description.sensors import SENSED_SOLVER, Cut
from mbcasadi.mjcf.compat import actuator_slots, static_sensors_feel_gravity
from mbcasadi.mjcf.names import names, object_names
from mbcasadi.mjcf.tree import frame_indices

Array = NDArray[np.float64]

MJCF_WORDS = {"JOINTACTFRC": "jointactuatorfrc", "TENDONACTFRC": "tendonactuatorfrc"}
"""Names of elements that are not those of MuJoCo's enumeration."""

GIVEN = "its Function takes the plant's number, `Plant.solver_readings`, as input `solver`"
CONTACTS = "a sum over MuJoCo's contacts, which come and go"
SHAPES = "MuJoCo's distance of shapes, which has kinks where the nearest features change"
NOT_SMOOTH = {
    "contact": CONTACTS,
    "tactile": CONTACTS,
    "rangefinder": "a ray that is cast against shapes",
    "insidesite": "it jumps between 0 and 1",
    "geomdist": SHAPES,
    "geomnormal": SHAPES,
    "geomfromto": SHAPES,
    "plugin": "a plugin's own quantity",
    "user": "a quantity of the user's own callback",
}
ADVICE = "; read it from the plant"

JOINT_KINDS = ("jointpos", "jointvel", "ballquat", "ballangvel", "jointactuatorfrc")
TENDON_KINDS = ("tendonpos", "tendonvel", "tendonactuatorfrc")
ACTUATOR_KINDS = ("actuatorpos", "actuatorvel", "actuatorfrc")
BODY_KINDS = ("subtreecom", "subtreelinvel", "subtreeangmom")
NO_OBJECT = -1


def sensors(model: mujoco.MjModel, actuators: Sequence[Actuator]) -> tuple[Sensor, ...]:
    """Return all sensors in MuJoCo's order.

    Args:
        model: the compiled model.
        actuators: read from it, one for each control.
    """
    places = count()
    described = [_sensor(model, actuators, i, n) for i, n in enumerate(names(model, "sensor"))]
    return tuple(
        replace(sensor, target=next(places)) if sensor.kind in SENSED_SOLVER else sensor
        for sensor in described
    )


def sensor_features(model: mujoco.MjModel, described: Sequence[Sensor]) -> list[CoverageItem]:
    """Return what became of each sensor, and of noise, delays and sampling."""
    used: dict[str, list[str]] = {}
    unused: dict[tuple[str, str], list[str]] = {}
    for sensor in described:
        if sensor.refusal:
            unused.setdefault((sensor.kind, sensor.refusal), []).append(sensor.name)
        else:
            used.setdefault(sensor.kind, []).append(sensor.name)
    items = [
        CoverageItem(
            f"{object_names('sensor', who)}: {kind}",
            "used",
            "",
            GIVEN if kind in SENSED_SOLVER else "",
        )
        for kind, who in used.items()
    ]
    items += [
        CoverageItem(f"{object_names('sensor', who)}: {kind}", "plant only", "", why + ADVICE)
        for (kind, why), who in unused.items()
    ]
    instant = "a Function gives the reading of the instant"
    features = [
        ("noise", model.sensor_noise > 0.0, "a Function gives the reading without noise"),
        ("delay", model.sensor_delay > 0.0, instant),
        ("interval", model.sensor_interval[:, 0] > 0.0, instant),
        ("nsample", model.sensor_history[:, 0] > 0, "a Function has no memory"),
    ]
    for what, mask, why in features:
        who = [described[int(i)].name for i in np.flatnonzero(mask)]
        if who:
            feature = f"{object_names('sensor', who)}: {what}"
            items.append(CoverageItem(feature, "plant only", "", why))
    return items


def _sensor(model: mujoco.MjModel, actuators: Sequence[Actuator], i: int, name: str) -> Sensor:
    kind = _kind(model, i)
    target, refusal = _target(model, actuators, i, kind)
    refusal = NOT_SMOOTH.get(kind, refusal)
    if kind == "torque" and not model.site_bodyid[model.sensor_objid[i]]:
        refusal = "on the world MuJoCo adds moments about different points"
    frame, reference, lens = None, None, None
    if not refusal:
        frame = _frame(model, model.sensor_objtype[i], int(model.sensor_objid[i]))
        reference = _frame(model, model.sensor_reftype[i], int(model.sensor_refid[i]))
        refusal = _moving_camera(model, i)
    if kind == "camprojection" and not refusal:
        lens = _lens(model, int(model.sensor_refid[i]))
    return Sensor(
        name=name,
        kind=kind,
        address=int(model.sensor_adr[i]),
        size=int(model.sensor_dim[i]),
        target=target,
        frame=frame,
        reference=reference,
        cutoff=float(model.sensor_cutoff[i]),
        cut=_cut(model, i),
        field=np.array(model.opt.magnetic) if kind == "magnetometer" else None,
        lens=lens,
        feels_gravity=static_sensors_feel_gravity(),
        refusal=refusal,
    )


def _kind(model: mujoco.MjModel, i: int) -> str:
    word: str = mujoco.mjtSensor(int(model.sensor_type[i])).name.removeprefix("mjSENS_")
    return MJCF_WORDS.get(word, word.lower())


def _cut(model: mujoco.MjModel, i: int) -> Cut:
    if model.sensor_cutoff[i] <= 0.0:
        return "none"
    cuts: dict[int, Cut] = {
        int(mujoco.mjtDataType.mjDATATYPE_REAL): "both",
        int(mujoco.mjtDataType.mjDATATYPE_POSITIVE): "upper",
    }
    return cuts.get(int(model.sensor_datatype[i]), "none")


def _target(
    model: mujoco.MjModel, actuators: Sequence[Actuator], i: int, kind: str
) -> tuple[int, str]:
    """Return the index of what a sensor measures, and why that has no equation, if so."""
    target = int(model.sensor_objid[i])
    if kind in ACTUATOR_KINDS:
        slots = actuator_slots(model)[target]
        if slots.ctrl_count != 1 or int(model.sensor_dim[i]) != 1:
            return NO_OBJECT, "of an actuator with several controls or forces"
        actuator = actuators[slots.ctrl]
        without = bool(np.isnan(np.asarray(actuator.gear, dtype=float)).any())
        return slots.ctrl, f"actuator '{actuator.name}' has no equation here" if without else ""
    return (target if kind in (*JOINT_KINDS, *TENDON_KINDS, *BODY_KINDS) else NO_OBJECT), ""


def _frame(model: mujoco.MjModel, object_type: int, index: int) -> SensorFrame | None:
    """Return the frame of an object of MuJoCo, None where it has none."""
    if index == NO_OBJECT:
        return None
    if object_type == int(mujoco.mjtObj.mjOBJ_BODY):  # the inertial frame
        return SensorFrame(index, np.array(model.body_iquat[index]))
    kinds = {
        int(mujoco.mjtObj.mjOBJ_SITE): "site",
        int(mujoco.mjtObj.mjOBJ_XBODY): "body",
        int(mujoco.mjtObj.mjOBJ_GEOM): "geom",
        int(mujoco.mjtObj.mjOBJ_CAMERA): "camera",
    }
    kind = kinds.get(int(object_type))
    place = None if kind is None else frame_indices(model, kind).get(index)
    return None if place is None else SensorFrame(place)


def _moving_camera(model: mujoco.MjModel, i: int) -> str:
    """Return a refusal where a sensor measures a camera that is not fixed to its body."""
    camera = int(mujoco.mjtObj.mjOBJ_CAMERA)
    fixed = frame_indices(model, "camera")
    for kind, index in (
        (model.sensor_objtype[i], int(model.sensor_objid[i])),
        (model.sensor_reftype[i], int(model.sensor_refid[i])),
    ):
        if int(kind) == camera and index != NO_OBJECT and index not in fixed:
            return f"camera '{names(model, 'camera')[index]}' is not fixed to its body"
    return ""


def _lens(model: mujoco.MjModel, camera: int) -> Lens:
    """Return focal lengths and centre of a camera's image, pixels, as MuJoCo projects a site."""
    width, height = (int(size) for size in model.cam_resolution[camera])
    sensor_width, sensor_height = (float(size) for size in model.cam_sensorsize[camera])
    focal_x, focal_y = (float(length) for length in model.cam_intrinsic[camera, :2])
    if sensor_width and sensor_height:
        focal = (focal_x / sensor_width * width, focal_y / sensor_height * height)
    else:
        half = math.tan(math.radians(float(model.cam_fovy[camera])) / 2)
        focal = (height / 2 / half, height / 2 / half)
    return Lens(focal, (width / 2, height / 2))
