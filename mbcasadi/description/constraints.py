"""Bilateral constraints and contacts as plain numbers."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mbcasadi.short_text import summarised

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Connect:
    """Two anchors coincide: `phi = p1 - p2`, 3 rows, world axes (MJCF `<connect>`)."""

    name: str
    body1: int
    body2: int
    anchor1: Array
    anchor2: Array
    active: bool = True

    @property
    def size(self) -> int:
        """Number of rows."""
        return 3


@dataclass(frozen=True)
class Weld:
    """Two frames coincide (MJCF `<weld>`): 3 rows of position, 3 of rotation.

    `phi = [p1 - p2; torquescale · vec(conj(q2 ∘ quat2) ∘ q1 ∘ relquat)]`, where `p1`, `p2` are
    the anchors in the world and `q1`, `q2` the orientations of the two bodies. `quat2` is the
    identity unless the weld is one of two sites.
    """

    name: str
    body1: int
    body2: int
    anchor1: Array
    anchor2: Array
    relquat: Array
    torquescale: float = 1.0
    active: bool = True
    quat2: Array = field(default_factory=lambda: np.array([1.0, 0.0, 0.0, 0.0]))

    @property
    def size(self) -> int:
        """Number of rows."""
        return 6


@dataclass(frozen=True)
class JointCoupling:
    """`phi = (q1 - ref1) - poly(q2 - ref2)`, or `(q1 - ref1) - poly[0]` with one joint."""

    name: str
    joint1: int
    joint2: int | None
    poly: tuple[float, float, float, float, float]
    active: bool = True

    @property
    def size(self) -> int:
        """Number of rows."""
        return 1


@dataclass(frozen=True)
class TendonCoupling:
    """`phi = (L1 - L1_0) - poly(L2 - L2_0)`, or `(L1 - L1_0) - poly[0]` with one tendon."""

    name: str
    tendon1: int
    tendon2: int | None
    poly: tuple[float, float, float, float, float]
    length1: float
    length2: float
    active: bool = True

    @property
    def size(self) -> int:
        """Number of rows."""
        return 1


Equality = Connect | Weld | JointCoupling | TendonCoupling


@dataclass(frozen=True)
class Baumgarte:
    """Stabilisation of drift: the constraint obeys `φ̈ + 2 α φ̇ + β² φ = 0` instead of `φ̈ = 0`.

    Attributes:
        alpha: rate α, 1/s; a scalar, or one for each row.
        beta: rate β, 1/s; a scalar, or one for each row. `α = β` is critically damped.
    """

    alpha: float | tuple[float, ...]
    beta: float | tuple[float, ...]


@dataclass(frozen=True)
class PointRow:
    """A row that is the velocity of a body's point along a direction.

    Attributes:
        row: its place among the rows of the system.
        body: index of the body.
        anchor: (3,) the point in the body's axes, m.
        direction: (3,) unit vector, world axes; None for one that turns with the body.
        of_position: whether it is the rate of a distance, which the row keeps.
    """

    row: int
    body: int
    anchor: Array
    direction: Array | None
    of_position: bool


@dataclass(frozen=True)
class Wheel:
    """A disc of a contact's frame that rolls on the ground.

    Attributes:
        axle: (3,) its axis in the axes of the frame; that of a cylinder is z.
        radius: m.
        center: (3,) in the axes of the frame, m.
        roller: of a wheel with rollers on its rim, angle of the axis of the one that touches from
            the direction in which the wheel rolls, `normal × axle`, towards `normal × (normal ×
            axle)`, rad: 0 of an omnidirectional wheel, ±π/4 of a mecanum wheel. None without
            rollers.
    """

    axle: tuple[float, float, float] = (0.0, 0.0, 1.0)
    radius: float = 0.1
    center: tuple[float, float, float] = (0.0, 0.0, 0.0)
    roller: float | None = None


@summarised
@dataclass(frozen=True)
class Contact:
    """A point contact of a frame's origin with the world, or with another body that moves.

    The force acts on the robot and is measured as (n, t1, t2): along `normal`, then along
    two tangents that complete a right-handed frame.

    Attributes:
        frame: name of the site or body that touches, of a frame of `System.with_frame`, or of a
            contact of `mb.contacts_of`.
        normal: (3,) unit normal in world axes, or in those of `other`, pointing from the ground, or
            from `other`, into the body that touches.
        friction: Coulomb coefficient mu.
        sides: sides of the friction pyramid, 3 to 360.
        kind: "site", "body", "geom", or "contact" for one of `mb.contacts_of`.
        max_force: upper bound of the normal force, N, or None.
        min_force: lower bound of the normal force while the contact is active, N.
        cone: what stands for the friction cone in a QP: "inner", the pyramid inside it; "outer",
            the pyramid around it; "quadratic", the cone itself, without `sides`.
        other: name of the frame of the body that is touched, which feels the opposite force; ""
            for the world.
        other_kind: "body", "site" or "geom".
        adhesion: N, by which the contact may pull: friction acts as if the normal force were
            larger by as much.
        place: name of the body that touches, and the point in its axes, m, by which a plant finds
            the force of a "contact"; None for the other kinds, which the plant has by name.
        geoms: names of both geoms of a contact whose normal turns with them, of `mb.contacts_of`;
            None for the others. It has the normal at each q, from the first geom to the second,
            and the force on the second.
        slides: whether only the normal direction is held, and friction opposes the motion along
            the surface; cone and sides do not count then.
        slide_speed: m/s, from which on the friction of a sliding contact is that of Coulomb.
        slide_task: name of a `FrameTask` whose reference has the velocity along the surface that
            the friction opposes; "" for the measured velocity.
        wheel: the disc that rolls, about the frame; None for a point of the frame.
    """

    frame: str
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    friction: float = 0.7
    sides: int = 8
    kind: str = "site"
    max_force: float | None = None
    min_force: float = 0.0
    cone: str = "inner"
    other: str = ""
    other_kind: str = "body"
    adhesion: float = 0.0
    place: tuple[str, tuple[float, float, float]] | None = None
    geoms: tuple[str, str] | None = None
    slides: bool = False
    slide_speed: float = 0.01
    slide_task: str = ""
    wheel: Wheel | None = None
