"""A floor under the model of a robot that has none."""

from collections.abc import Iterable
from dataclasses import dataclass

import mujoco
import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.plant.api import Source, compile_model
from mbcasadi.plant.imu import spec_of
from mbcasadi.unknown_names import unknown_name

FLOOR = "floor"
"""Name of the plane."""


@dataclass(frozen=True)
class Ground:
    """A plane through the origin of the world.

    Attributes:
        slope: angle, rad, by which it rises along x of the world.
        friction: sliding coefficient of its contacts; by default the larger one of both geoms, as
            in MuJoCo.
        feet: geoms that touch it whatever the model's contype and conaffinity say; "geom7" is the
            name of an unnamed one, the seventh from 0 on.
    """

    slope: float = 0.0
    friction: float | None = None
    feet: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_fields(self)
        if not abs(self.slope) < 0.5 * np.pi:
            raise ProblemError(f"ground: slope = {self.slope}; expected less than π/2, rad")
        if self.friction is not None and not self.friction > 0:
            raise ProblemError(f"ground: friction = {self.friction}; expected a positive number")


@checked
def with_ground(source: Source, ground: Ground) -> mujoco.MjSpec:
    """Return a copy of a model with a plane named "floor" in its world.

    Args:
        source: MJCF or URDF file, XML text, or `mujoco.MjSpec`.
        ground: the plane.

    Raises:
        ModelError: the model cannot be read.
        ProblemError: a compiled model, to which nothing can be added; a geom "floor" exists.
        UnknownNameError: the model has no geom of a foot's name.
    """
    if isinstance(source, mujoco.MjModel):
        raise ProblemError(
            "a compiled model gets no ground; expected its file, XML text or MjSpec, to a copy of "
            "which it is added"
        )
    model, spec = compile_model(source), spec_of(source)
    shapes = named_shapes(model, spec, ground.feet)
    if FLOOR in shapes:
        raise ProblemError(f"ground: the model has a geom '{FLOOR}' already; leave [ground] out")
    plane = spec.worldbody.add_geom(
        name=FLOOR,
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0, 0, 1],
        contype=1,
        conaffinity=1,
        condim=3,
        quat=[np.cos(ground.slope / 2), 0, -np.sin(ground.slope / 2), 0],
    )
    for foot in ground.feet:
        let_touch(spec, plane, shapes[foot])
    if ground.friction is not None:
        for geom in (plane, *(shapes[foot] for foot in ground.feet or shapes)):
            geom.friction[0] = ground.friction
        for pair in spec.pairs:
            if FLOOR in (pair.geomname1, pair.geomname2):
                pair.friction[:2] = ground.friction
    return spec


def named_shapes(
    model: mujoco.MjModel, spec: mujoco.MjSpec, wanted: Iterable[str]
) -> dict[str, mujoco.MjsGeom]:
    """Return all geoms of a model by their names, which they keep where geoms are added.

    Raises:
        UnknownNameError: the model has no geom of a name that is wanted.
    """
    spec.compile()  # numbers the geoms
    nameless = {f"geom{geom.id}": geom for geom in spec.geoms if not model.geom(geom.id).name}
    shapes = nameless | {model.geom(geom.id).name: geom for geom in spec.geoms if geom.name}
    for name in wanted:
        if name not in shapes:
            raise unknown_name("geom", name, shapes)
    for name, shape in shapes.items():
        shape.name = name
    return shapes


def let_touch(spec: mujoco.MjSpec, geom: mujoco.MjsGeom, other: mujoco.MjsGeom) -> None:
    """Add a pair of two named geoms where their masks do not let them touch.

    Softness is that of the second one; friction too, where its priority is higher.
    """
    if other.contype & geom.conaffinity or geom.contype & other.conaffinity:
        return
    decides = other.priority > geom.priority
    both = [other] if decides else [geom, other]
    slide, spin, roll = np.max([each.friction for each in both], axis=0)
    spec.add_pair(
        geomname1=geom.name,
        geomname2=other.name,
        condim=max(each.condim for each in both),
        friction=[slide, slide, spin, roll, roll],
        solref=other.solref,
        solimp=other.solimp,
    )
