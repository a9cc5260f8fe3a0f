"""A ball or a box that is free to move, beside a robot."""

from dataclasses import dataclass
from typing import Literal, get_args

import mujoco
import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.plant.api import Source, compile_model
from mbcasadi.plant.ground import let_touch, named_shapes
from mbcasadi.plant.imu import spec_of

OBJECT = "object"
"""Name of the body, its joint and its geom."""
Shape = Literal["ball", "box"]
SHAPES: tuple[Shape, ...] = get_args(Shape)

SOLREF = [0.01, 1.0]
SOLIMP = [0.999, 0.9999, 1e-3, 0.5, 2.0]
"""Of the contacts: time constant, s, and damping ratio; impedances and width, m."""


@dataclass(frozen=True)
class FreeObject:
    """A body with a free joint and one geom, the last one of the model.

    Its surface decides in all its contacts (its priority is the highest), which have three
    dimensions. It is hard: in MuJoCo what is held by friction creeps at `(1 - d)/d g/b`, 5 mm/s
    with the stock solimp and solref, and about 0.05 mm/s with these.

    Attributes:
        shape: "ball" or "box".
        size: its diameter, or the length of the box's edges, m.
        mass: kg.
        position: (3,) of its middle where the model is authored, m.
        friction: sliding coefficient of all its contacts.
        touches: geoms that touch it whatever the model's contype and conaffinity say; "geom7" is
            the name of an unnamed one, the seventh from 0 on.
    """

    shape: Shape
    size: float
    mass: float
    position: tuple[float, float, float]
    friction: float = 1.0
    touches: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_fields(self)
        if self.shape not in SHAPES:
            expected = " or ".join(map(repr, SHAPES))
            raise ProblemError(f"object: shape = {self.shape!r}; expected {expected}")
        for name in ("size", "mass", "friction"):
            if not 0 < getattr(self, name) < np.inf:
                value = getattr(self, name)
                raise ProblemError(f"object: {name} = {value}; expected a positive number")
        if len(self.position) != 3 or not np.all(np.isfinite(self.position)):
            raise ProblemError(f"object: position = {self.position}; expected three numbers, m")


@checked
def with_object(source: Source, thing: FreeObject) -> mujoco.MjSpec:
    """Return a copy of a model with a free body named "object" as its last one.

    Key frames have it at its authored position.

    Args:
        source: MJCF or URDF file, XML text, or `mujoco.MjSpec`.
        thing: what is added.

    Raises:
        ModelError: the model cannot be read.
        ProblemError: a compiled model, to which nothing can be added; a body or geom "object"
            exists.
        UnknownNameError: the model has no geom of a name in `touches`.
    """
    if isinstance(source, mujoco.MjModel):
        raise ProblemError(
            "a compiled model gets no object; expected its file, XML text or MjSpec, to a copy of "
            "which it is added"
        )
    model, spec = compile_model(source), spec_of(source)
    for kind, count in (("body", model.nbody), ("geom", model.ngeom)):
        if OBJECT in [getattr(model, kind)(k).name for k in range(count)]:
            raise ProblemError(f"object: the model has a {kind} '{OBJECT}'; leave [object] out")
    shapes = named_shapes(model, spec, thing.touches)
    body = spec.worldbody.add_body(name=OBJECT, pos=thing.position)
    body.add_freejoint(name=OBJECT)
    is_ball = thing.shape == "ball"
    geom = body.add_geom(
        name=OBJECT,
        type=mujoco.mjtGeom.mjGEOM_SPHERE if is_ball else mujoco.mjtGeom.mjGEOM_BOX,
        size=[thing.size / 2] * 3,
        mass=thing.mass,
        contype=1,
        conaffinity=1,
        condim=3,
        friction=[thing.friction, 0.005, 0.0001],
        priority=1 + int(model.geom_priority.max(initial=0)),
        solref=SOLREF,
        solimp=SOLIMP,
    )
    for name in thing.touches:
        let_touch(spec, shapes[name], geom)
    start = [*thing.position, 1.0, 0.0, 0.0, 0.0]
    for key in spec.keys:
        for name, added in (("qpos", start), ("qvel", [0.0] * 6)):
            known = np.asarray(getattr(key, name))
            if known.size:
                setattr(key, name, [*known, *added])
    return spec
