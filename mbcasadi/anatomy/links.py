"""The links of a model: bodies that move as one, who carries whom, and where they are in a pose."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import model
from mbcasadi.description import Frame, Geom, Joint, RigidTree
from mbcasadi.model.placement import rotation_of

Array = NDArray[np.float64]

UNTURNED = np.array([1.0, 0.0, 0.0, 0.0])
CORNERS = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
GRID = np.array([x for x in np.ndindex(3, 3, 3) if x != (1, 1, 1)]) - 1.0
DIRECTIONS = GRID / np.linalg.norm(GRID, axis=1)[:, None]
RIM = 16
"""Points of a circle."""


def standing(tree: RigidTree) -> "Links":
    """Return the links of a model in its first key frame, else in the initial pose."""
    return Links(tree, np.array(next(iter(tree.keyframes.values()), tree.q0), dtype=float).ravel())


@dataclass(frozen=True, eq=False)
class Links:
    """The links of a model in one pose; a link has the index of its first body.

    Attributes:
        tree: of the model.
        q: (nq,) the pose.
    """

    tree: RigidTree
    q: Array

    @cached_property
    def parents(self) -> dict[int, int]:
        """The link that carries each one; 0 is the world."""
        bodies = self.tree.bodies
        links = dict.fromkeys(body.weld_root for body in bodies if body.weld_root)
        return {link: bodies[bodies[link].parent].weld_root for link in links}

    @cached_property
    def children(self) -> dict[int, list[int]]:
        """The links that each one carries."""
        carried: dict[int, list[int]] = {link: [] for link in (0, *self.parents)}
        for link, parent in self.parents.items():
            carried[parent].append(link)
        return carried

    def subtree(self, link: int) -> Iterator[int]:
        """Yield a link and all that it carries."""
        yield link
        for child in self.children[link]:
            yield from self.subtree(child)

    def chain(self, link: int) -> list[int]:
        """Return the links from the base to one."""
        return [*self.chain(self.parents[link]), link] if link else []

    def joints(self, link: int) -> list[Joint]:
        """Return the joints that move a link against the one that carries it."""
        return [self.tree.joints[k] for k in self.tree.bodies[link].joints]

    def members(self, link: int) -> list[int]:
        """Return the bodies of a link."""
        return [k for k, body in enumerate(self.tree.bodies) if body.weld_root == link]

    def geoms(self, link: int) -> list[Geom]:
        """Return the shapes that a link carries."""
        bodies = set(self.members(link))
        return [geom for geom in self.tree.geoms if geom.body in bodies]

    def sites(self, link: int) -> list[Frame]:
        """Return the sites that a link carries."""
        bodies = set(self.members(link))
        return [each for each in self.tree.frames if each.kind == "site" and each.body in bodies]

    def carried(self, link: int) -> list[int]:
        """Return the bodies of a link and of all that it carries."""
        links = set(self.subtree(link))
        return [k for k, body in enumerate(self.tree.bodies) if body.weld_root in links]

    def name(self, link: int) -> str:
        """Return the name of a link's first body."""
        return self.tree.bodies[link].name

    @cached_property
    def _poses(self) -> list[tuple[Array, Array]]:
        """Position (3,) and rotation (3, 3) of each body."""
        tree = self.tree
        frames = [
            Frame(body.name, "body", k, np.zeros(3), UNTURNED) for k, body in enumerate(tree.bodies)
        ]
        poses = model.frame_poses(tree, frames, ca.SX(ca.DM(self.q)))
        return [(ca.evalf(p).full().ravel(), ca.evalf(R).full()) for p, R in poses]

    def pose(self, body: int) -> tuple[Array, Array]:
        """Return position (3,), m, and rotation (3, 3) of a body in the world."""
        return self._poses[body]

    def place(self, body: int, x: Array) -> Array:
        """Return points (..., 3) of a body in the world, m."""
        p, R = self._poses[body]
        return np.asarray(x @ R.T + p)

    def direction(self, body: int, x: Array) -> Array:
        """Return directions (..., 3) of a body in the world."""
        return np.asarray(x @ self._poses[body][1].T)

    def anchor(self, joint: Joint) -> Array:
        """Return the (3,) anchor of a joint in the world, m."""
        return self.place(joint.body, joint.pos)

    def axis(self, joint: Joint) -> Array:
        """Return the (3,) axis of a slide or hinge in the world."""
        return self.direction(joint.body, joint.axis)

    def points(self, geom: Geom) -> Array:
        """Return points (k, 3) of a shape's surface in the world, m; of a mesh its hull's."""
        local = geom.points if len(geom.points) else surface(geom.kind, geom.size)
        return self.place(geom.body, geom.pos + local @ rotation_of(geom.quat).T)

    def surface(self, link: int) -> Array:
        """Return points (k, 3) of a link and all that it carries, m; its bodies' without shapes."""
        bodies = self.carried(link)
        shapes = [self.points(g) for g in self.tree.geoms if g.body in bodies]
        return np.vstack(shapes or [self.place(k, np.zeros((1, 3))) for k in bodies])

    @cached_property
    def heights(self) -> tuple[float, float]:
        """The lowest point of shapes and origins of all that can move, and their height, m."""
        z = [self.surface(link)[:, 2] for link in self.children[0]]
        z.append(np.array([p[2] for p, _ in self._poses[1:]]))
        column = np.concatenate(z)
        return float(column.min()), float(np.ptp(column))

    def center(self, link: int) -> Array:
        """Return the (3,) centre of mass of a link and all that it carries, m."""
        bodies = self.carried(link)
        masses = np.array([self.tree.bodies[k].mass for k in bodies])
        places = np.array([self.place(k, self.tree.bodies[k].com) for k in bodies])
        return np.asarray(masses @ places / max(masses.sum(), 1e-300))


def surface(kind: str, size: Array) -> Array:
    """Return points (k, 3) of the surface of a shape, m, in its axes."""
    if kind in ("sphere", "ellipsoid"):
        return np.asarray(DIRECTIONS * (size if kind == "ellipsoid" else size[0]))
    if kind == "capsule":
        ends = [DIRECTIONS * size[0] + [0, 0, z] for z in (-size[1], size[1])]
        return np.vstack(ends)
    if kind == "cylinder":
        angle = 2 * np.pi * np.arange(RIM) / RIM
        rim = size[0] * np.column_stack([np.cos(angle), np.sin(angle)])
        return np.vstack([np.c_[rim, np.full(RIM, z)] for z in (-size[1], size[1])])
    return np.asarray(CORNERS * size)
