"""Gyroscopes and accelerometers for frames of a model that has none there."""

from pathlib import Path
from typing import Literal, NamedTuple

import mujoco

from mbcasadi import models
from mbcasadi.errors import ProblemError
from mbcasadi.plant.api import Source, compile_model

KINDS = {
    "gyro": mujoco.mjtSensor.mjSENS_GYRO,
    "accelerometer": mujoco.mjtSensor.mjSENS_ACCELEROMETER,
}
"""What an IMU reads."""

PREFIX = "mbcasadi."
"""Of the names of what is added."""


class ImuOfModel(NamedTuple):
    """A model with an IMU: the model, and the name of each of its sensors by kind."""

    model: Source
    names: dict[str, str]


def with_imu(source: Source, frame: str, kind: Literal["site", "body"] = "site") -> ImuOfModel:
    """Return a model that has a gyroscope and an accelerometer at a frame, and their names.

    Sensors that the model has there are taken, unless they have a cutoff; others are added to a
    copy.

    Args:
        source: of a plant.
        frame, kind: name of a site, or of a body, whose origin and axes are taken.

    Raises:
        ProblemError: no such frame; or the sensors are missing in a compiled model, to which
            nothing can be added.
    """
    model = compile_model(source)
    object_type = mujoco.mjtObj.mjOBJ_SITE if kind == "site" else mujoco.mjtObj.mjOBJ_BODY
    if mujoco.mj_name2id(model, object_type, frame) < 0:
        raise ProblemError(f"the plant has no {kind} {frame!r}, where the IMU is")
    site = frame if kind == "site" else f"{PREFIX}{frame}"
    names = _present(model, site)
    missing = [each for each in KINDS if each not in names]
    if not missing:
        return ImuOfModel(source, names)
    if isinstance(source, mujoco.MjModel):
        raise ProblemError(
            f"the compiled model has no {' and no '.join(missing)} at {kind} {frame!r}; expected "
            "its file, XML text or MjSpec, to a copy of which they are added"
        )
    spec = spec_of(source)
    if spec.site(site) is None:
        spec.body(frame).add_site(name=site)
    for each in missing:
        names[each] = f"{PREFIX}{each}.{frame}"
        spec.add_sensor(
            name=names[each], type=KINDS[each], objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site
        )
    return ImuOfModel(spec, names)


def spec_of(source: str | Path | mujoco.MjSpec) -> mujoco.MjSpec:
    """Return an `MjSpec` of its own of a file, the name of a model, XML text or `MjSpec`."""
    if isinstance(source, mujoco.MjSpec):
        return source.copy()
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return mujoco.MjSpec.from_string(source)
    return mujoco.MjSpec.from_file(str(models.find(source)))


def _present(model: mujoco.MjModel, site: str) -> dict[str, str]:
    """Return the names of sensors at a site, by kind, of those without a cutoff."""
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, site)
    names = {}
    for i in range(model.nsensor):
        own = (int(model.sensor_objtype[i]), int(model.sensor_objid[i]))
        at_site = own == (int(mujoco.mjtObj.mjOBJ_SITE), index)
        for kind, number in KINDS.items():
            if at_site and int(model.sensor_type[i]) == int(number) and not model.sensor_cutoff[i]:
                names[kind] = model.sensor(i).name or f"sensor{i}"
    return names
