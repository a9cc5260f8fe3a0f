"""One contact of a model's own geometry: gap, point, normal, friction and Jacobians."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import model
from mbcasadi.argument_kinds import checked
from mbcasadi.description import Contact, Geom, RigidTree
from mbcasadi.errors import ProblemError
from mbcasadi.model import geometry
from mbcasadi.model.geometry import ContactSpot, Placed, Witness
from mbcasadi.short_text import with_table
from mbcasadi.system.contact_frames import frame_of_geom, plane_normal, point_on_body
from mbcasadi.system.geom_pairs import TouchingPair, is_static

Array = NDArray[np.float64]
SMOOTHING = 1e-4
"""What rounded edges may take from a gap, m."""
Expressions = Callable[[ca.SX, ca.SX], list[ca.SX]]


@with_table
@dataclass(frozen=True, eq=False, repr=False)
class GeometryContact:
    """A point at which two geoms touch, or would where they are moved together.

    The point, the normal and the order of the geoms are MuJoCo's: a plane comes before a sphere,
    capsule, ellipsoid, cylinder, box; of equal kinds, the geom of the lower body comes first.

    Attributes:
        geom1, geom2: names of the geoms.
        bodies: names of the bodies that carry them.
        label: which point of geom2 it is: "end +" of a capsule, "corner 3" of a box, "edge -" and
            "rim +120" of a cylinder; "" where there is one only.
        friction: (5,) sliding along two tangents; spinning, m; rolling about two axes, m.
        condim: dimension of MuJoCo's contact: 1, 3, 4 or 6.
    """

    geom1: str
    geom2: str
    bodies: tuple[str, str]
    label: str
    friction: Array
    condim: int
    _tree: RigidTree
    _pair: TouchingPair
    _spot: ContactSpot | None
    _smoothing: float

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.name,
            "friction": self.friction,
            "condim": self.condim,
            "bodies": self.bodies,
        }

    @property
    def name(self) -> str:
        """`foot on floor, corner 3`: geom2, geom1, and the point."""
        return f"{self.geom2} on {self.geom1}" + (f", {self.label}" if self.label else "")

    def __repr__(self) -> str:
        return (
            f"GeometryContact('{self.name}', friction={self.friction[0]:g}, condim={self.condim})"
        )

    @cached_property
    def gap(self) -> ca.Function:
        """(q) → (gap, point, normal), world axes.

        Signed distance, m; (3,) point half way between the surfaces, m; (3,) unit normal from geom1
        to geom2.
        """
        return self._function("gap", ["gap", "point", "normal"], lambda q, _: [*self._witness(q)])

    @cached_property
    def gap_jacobian(self) -> ca.Function:
        """(q) → (J): (1, nv), `dgap/dt = J v`: the normal times `jacobian`, which is exact."""

        def rows(q: ca.SX, _: ca.SX) -> list[ca.SX]:
            return [self._normal_rows(q)]

        return self._function("gap_jacobian", ["J"], rows)

    @cached_property
    def gap_bias(self) -> ca.Function:
        """(q, v) → (J_dot_v): `d²gap/dt²` at zero joint acceleration, m/s²."""

        def rate(q: ca.SX, v: ca.SX) -> list[ca.SX]:
            along = model.velocity_map(self._tree, q) @ v
            return [ca.jtimes(self._normal_rows(q) @ v, q, along)]

        return self._function("gap_bias", ["J_dot_v"], rate, moving=True)

    @cached_property
    def jacobian(self) -> ca.Function:
        """(q) → (J): (3, nv) velocity of geom2's material at the point minus that of geom1's.

        World axes: MuJoCo's contact rows, before they are turned into the contact frame.
        """
        return self._function("contact_jacobian", ["J"], lambda q, _: [self._rows(q)])

    @cached_property
    def bias(self) -> ca.Function:
        """(q, v) → (J_dot_v): (3,) rate of `J v` at zero joint acceleration.

        The point moves with q, over a surface that rolls, too.
        """

        def rate(q: ca.SX, v: ca.SX) -> list[ca.SX]:
            point = self._witness(q).point
            return [geometry.relative_bias(self._tree, self._body_indices, point, (q, v))]

        return self._function("contact_bias", ["J_dot_v"], rate, moving=True)

    @checked
    def as_contact(
        self,
        *,
        friction: float | None = None,
        sides: int = 8,
        max_force: float | None = None,
        min_force: float = 0.0,
        cone: str = "inner",
    ) -> Contact:
        """Return the contact for `InverseDynamicsQP`, `equilibrium` and `single_rigid_body`.

        Its frame, `system.frame(name, "contact")`, has the Jacobian of the material: on a plane of
        the world that of geom2, at its surface; of two convex geoms that of geom2 less that of
        geom1. Its bias is the rate of `J v`, so that what rolls does not slip. The normal of two
        convex geoms turns with them, and the contact is for `InverseDynamicsQP` only.

        Args:
            friction: Coulomb coefficient; by default the smaller one of the two tangents.
            sides, max_force, min_force, cone: as of `Contact`.

        Raises:
            ProblemError: geom1 is a plane that moves; or the pair has no friction (`condim="1"`)
                and none is given.
        """
        if self._spot is not None and not is_static(self._tree, self._pair.first):
            raise ProblemError(
                f"contact '{self.name}': {self.geom1!r} is a plane of body {self.bodies[0]!r}, "
                "which moves; expected a plane of the world, or two convex geoms"
            )
        if friction is None and self.condim == 1:
            raise ProblemError(
                f"contact '{self.name}' has condim=1, no friction; expected friction=, or a larger "
                "condim in the model"
            )
        contact = Contact(
            frame=self.name,
            friction=float(min(self.friction[:2])) if friction is None else friction,
            sides=sides,
            kind="contact",
            max_force=max_force,
            min_force=min_force,
            cone=cone,
        )
        if self._spot is None:
            return replace(contact, geoms=(self.geom1, self.geom2))
        normal = plane_normal(self._tree, self._pair.first)
        at = point_on_body(self._pair.second, self._spot)
        return replace(
            contact,
            normal=(float(normal[0]), float(normal[1]), float(normal[2])),
            place=(self.bodies[1], (float(at[0]), float(at[1]), float(at[2]))),
        )

    @property
    def is_pair(self) -> bool:
        """Whether it is the nearest points of two convex geoms, not a spot on a plane."""
        return self._spot is None

    @property
    def has_formula(self) -> bool:
        """Whether the gap is a closed formula, not an iteration."""
        kinds = self._pair.first.kind, self._pair.second.kind
        return self._spot is not None or kinds in geometry.PAIRS

    @property
    def excess(self) -> float:
        """Length by which the shapes of meshes may be larger than their hulls, both together, m."""
        if self._spot is not None:
            return 0.0
        return sum(geometry.mesh_points(g.points).radius for g in self.geoms if g.kind == "mesh")

    @property
    def geoms(self) -> tuple[Geom, Geom]:
        """Both geoms, as data."""
        return self._pair.first, self._pair.second

    @property
    def tree(self) -> RigidTree:
        """The mechanism."""
        return self._tree

    @property
    def _body_indices(self) -> tuple[int, int]:
        return self._pair.first.body, self._pair.second.body

    def _witness(self, q: ca.SX) -> Witness:
        first, second = (placed(self._tree, g, q) for g in (self._pair.first, self._pair.second))
        if self._spot is not None:
            return geometry.plane_witness(first, second, self._spot)
        if self.has_formula:
            return geometry.round_witness(first, second)
        return geometry.convex_witness(first, second, self._smoothing)

    def _rows(self, q: ca.SX) -> ca.SX:
        point = self._witness(q).point
        return geometry.relative_jacobian(self._tree, self._body_indices, point, q)

    def _normal_rows(self, q: ca.SX) -> ca.SX:
        return self._witness(q).normal.T @ self._rows(q)

    def _function(
        self, name: str, outputs: list[str], expressions: Expressions, moving: bool = False
    ) -> ca.Function:
        """Return a Function of q, or of q and v."""
        q, v = ca.SX.sym("q", self._tree.nq), ca.SX.sym("v", self._tree.nv)
        inputs = [q, v] if moving else [q]
        values = [x if name.endswith("jacobian") else ca.densify(x) for x in expressions(q, v)]
        return ca.Function(name, inputs, values, ["q", "v"][: len(inputs)], outputs, {"cse": True})


def contact_of_pair(
    tree: RigidTree, pair: TouchingPair, spot: ContactSpot | None, smoothing: float = SMOOTHING
) -> GeometryContact:
    """Return the contact of two geoms: at a spot of the second on a plane, or of convex ones."""
    return GeometryContact(
        geom1=pair.first.name,
        geom2=pair.second.name,
        bodies=(tree.bodies[pair.first.body].name, tree.bodies[pair.second.body].name),
        label="" if spot is None else spot.label,
        friction=pair.friction,
        condim=pair.condim,
        _tree=tree,
        _pair=pair,
        _spot=spot,
        _smoothing=smoothing,
    )


def placed(tree: RigidTree, geom: Geom, q: ca.SX) -> Placed:
    """Return a geom of a tree with its pose at q."""
    return Placed(geom, *model.frame_pose(tree, frame_of_geom(geom), q))
