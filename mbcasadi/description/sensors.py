"""Sensors as plain numbers, in MuJoCo's order."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mbcasadi.short_text import summarised

Array = NDArray[np.float64]
Cut = Literal["both", "upper", "none"]

SENSED_ACCELERATIONS = (
    "accelerometer",
    "force",
    "torque",
    "framelinacc",
    "frameangacc",
)
"""Kinds whose reading depends on the acceleration a."""

SENSED_ACTUATION = ("actuatorfrc", "jointactuatorfrc", "tendonactuatorfrc")
"""Kinds whose reading depends on the control."""


SENSED_SOLVER = (
    "touch",
    *(f"{of}limit{what}" for of in ("joint", "tendon") for what in ("pos", "vel", "frc")),
)
"""Kinds that read what MuJoCo's solver did, an input of their Function."""


@dataclass(frozen=True)
class SensorFrame:
    """The frame that a sensor sits in, looks at or measures against.

    Attributes:
        index: of the frame in `RigidTree.frames`; of the body for its principal axes of inertia.
        principal: (4,) quaternion w x y z of the principal axes in the body's, whose origin is the
            centre of mass; None for a frame of the tree.
    """

    index: int
    principal: Array | None = None


@dataclass(frozen=True)
class Lens:
    """A camera's image, pixels: `x = center - focal p_x/p_z`, `y = center + focal p_y/p_z`.

    Attributes:
        focal: horizontal and vertical focal length.
        center: of the image.
    """

    focal: tuple[float, float]
    center: tuple[float, float]


@summarised
@dataclass(frozen=True)
class Sensor:
    """One sensor.

    Attributes:
        name: unique name; unnamed MJCF sensors get `sensor<id>`.
        kind: MJCF's name of its element, "accelerometer" and so on.
        address, size: its rows of MuJoCo's `sensordata`.
        target: index of the joint, tendon, actuator or body that it measures, -1 where it measures
            none of these; of `SENSED_SOLVER` its place among these sensors.
        frame: that it sits in or measures, or None.
        reference: frame that `frame` is measured in, None for the world; of "camprojection" the
            camera.
        cutoff: largest reading.
        cut: how the cutoff acts: on "both" signs, on the "upper" end, or not ("none").
        field: (3,) magnetic field, world axes, of a magnetometer.
        lens: of "camprojection".
        feels_gravity: whether an acceleration sensor that no joint moves reads gravity.
        refusal: why it is no smooth function here; "" where it is one.
    """

    name: str
    kind: str
    address: int
    size: int
    target: int
    frame: SensorFrame | None = None
    reference: SensorFrame | None = None
    cutoff: float = 0.0
    cut: Cut = "none"
    field: Array | None = None
    lens: Lens | None = None
    feels_gravity: bool = True
    refusal: str = ""
