"""Where the models of robots lie, and which are missing."""

from collections.abc import Sequence

import mujoco

from robots.models import folder


class MissingModelError(Exception):
    """A model is not in the folder; the text is its path."""


def robot_spec(name: str) -> mujoco.MjSpec:
    """Return a robot's model, editable.

    Raises:
        MissingModelError: there is no such file.
    """
    path = folder() / f"{name}.xml"
    if not path.is_file():
        raise MissingModelError(str(path))
    return mujoco.MjSpec.from_file(str(path))


def make_motors(spec: mujoco.MjSpec, torques: Sequence[float]) -> None:
    """Put a motor in the place of each actuator."""
    for actuator, largest in zip(spec.actuators, torques, strict=True):
        actuator.set_to_motor()
        actuator.ctrlrange = -largest, largest
