"""A hand and a ball in MuJoCo: which shapes may hold it, how near they are, what touches."""

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.plant.free_object import OBJECT

Array = NDArray[np.float64]

CLEAR = 1e-3
"""M, between the ball and what does not hold it."""
UNBALANCED = 0.3
"""Largest share of the normal forces that friction has to balance."""
LEAST_SHARE = 0.15
"""Of the normal forces, of each tip."""
FAR = 1.0
"""M; a distance that is not looked at any more."""
DENSITY = 400.0
"""Kg/m³ of the ball, as a tennis ball has."""
REACH = 0.5
"""Tips are at least as far from the base as this share of the farthest one."""


@dataclass(frozen=True)
class Grasp:
    """A ball between tips.

    Attributes:
        radius: of the ball, m.
        centre: (3,) of the ball, m.
        q: (nq,) of the model with the ball, whose coordinates are the last seven.
        tips: geoms that hold it.
    """

    radius: float
    centre: Array
    q: Array
    tips: tuple[str, ...]


class Scene:
    """A model with a ball, and what of it may hold the ball."""

    def __init__(self, model: mujoco.MjModel, q0: Array) -> None:
        self.model, self.data = model, mujoco.MjData(model)
        self.ball = model.geom(OBJECT).id
        self.q0 = np.array(q0)
        self.place(self.q0)
        root = model.body_weldid[model.geom_bodyid]
        meets = (model.geom_contype | model.geom_conaffinity) > 0
        self.solid = np.flatnonzero(meets & (np.arange(model.ngeom) != self.ball))
        if not np.any(root[self.solid]):  # nothing that moves collides: all shapes count
            self.solid = np.flatnonzero(np.arange(model.ngeom) != self.ball)
        self.tips = self._tips(root)

    def place(self, q: Array) -> None:
        """Move all bodies to a configuration (nq,)."""
        self.data.qpos[:] = q
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)

    def resize(self, radius: float) -> None:
        """Give the ball a radius, m, and the mass of it."""
        body = int(self.model.geom_bodyid[self.ball])
        mass = mass_of_ball(radius)
        self.model.geom_size[self.ball, 0] = radius
        self.model.body_mass[body] = mass
        self.model.body_inertia[body] = 0.4 * mass * radius**2
        mujoco.mj_setConst(self.model, self.data)

    def _tips(self, root: Array) -> tuple[Array, ...]:
        """Return the geoms of each body that carries no other body with geoms, and reaches far."""
        model = self.model
        moving = {int(root[g]) for g in self.solid if root[g]}
        carrying = set()
        for body in moving:
            parent = model.body_weldid[model.body_parentid[body]]
            while parent:
                carrying.add(int(parent))
                parent = model.body_weldid[model.body_parentid[parent]]
        groups = [self.solid[root[self.solid] == body] for body in sorted(moving - carrying)]
        parents = model.body_weldid[model.body_parentid]
        first = (model.body_jntnum > 0) & (parents == 0)
        first[model.geom_bodyid[self.ball]] = False
        away = self.data.geom_xpos - self.data.xpos[first].mean(axis=0)
        far = [float(np.linalg.norm(away[geoms], axis=1).max()) for geoms in groups]
        return tuple(g for g, d in zip(groups, far, strict=True) if d >= REACH * max(far))

    def nearest(self, geoms: Array, radius: float) -> tuple[float, Array, int]:
        """Return the gap between the ball and the nearest geom, the normal towards it, and it."""
        self.model.geom_size[self.ball, 0] = radius
        best, normal, geom = FAR, np.zeros(3), -1
        ends = np.zeros(6)
        for each in geoms:
            gap = mujoco.mj_geomDistance(self.model, self.data, self.ball, int(each), FAR, ends)
            if gap < best:
                away = ends[3:] - self.data.geom_xpos[self.ball]
                length = float(np.linalg.norm(away))
                best, geom = gap, int(each)
                normal = away / length if length > 0 else np.zeros(3)
        return best, normal, geom

    def joints_before(self, geom: int) -> list[int]:
        """Return the joints that move a geom."""
        model = self.model
        joints: list[int] = []
        body = model.geom_bodyid[geom]
        while body:
            first = model.body_jntadr[body]
            joints += range(first, first + model.body_jntnum[body])
            body = model.body_parentid[body]
        return joints

    def collisions(self, q: Array) -> set[tuple[int, ...]]:
        """Return the pairs of geoms that touch at q, those with the ball apart."""
        self.place(q)
        mujoco.mj_collision(self.model, self.data)
        pairs = {tuple(sorted(map(int, each.geom))) for each in self.data.contact}
        return {pair for pair in pairs if self.ball not in pair}

    def opening(self, pair: tuple[int, int], q: Array) -> tuple[float, Array]:
        """Return the gap between two tips at q, and the place (3,) between their geoms.

        Of geoms that are as near to each other, the first ones count.
        """
        self.place(q)
        best, ends = (FAR, np.zeros(3)), np.zeros(6)
        for a in self.tips[pair[0]]:
            for b in self.tips[pair[1]]:
                gap = mujoco.mj_geomDistance(self.model, self.data, int(a), int(b), FAR, ends)
                if gap < best[0] - CLEAR:
                    middle = 0.5 * (self.data.geom_xpos[a] + self.data.geom_xpos[b])
                    best = gap, middle
        return best

    def name(self, geom: int) -> str:
        """Return the name of a geom, "geom7" for an unnamed one."""
        return self.model.geom(geom).name or f"geom{geom}"


def mass_of_ball(radius: float) -> float:
    """Return the mass of a ball, kg."""
    return float(DENSITY * np.pi / 0.75 * radius**3)


def balanced(normals: Sequence[Array]) -> bool:
    """Return whether normal forces along these unit vectors nearly cancel, none of them small.

    `min |Σ λ_i n_i|`, `Σ λ_i = 1`, `λ_i >= LEAST_SHARE`; what is left is for friction.
    """
    N, least = np.column_stack(normals), np.full(len(normals), LEAST_SHARE)
    sum_row = 100 * np.ones((1, len(normals)))
    A, b = np.vstack([N, sum_row]), np.array([0.0, 0.0, 0.0, 100.0])
    share = least + scipy.optimize.nnls(A, b - A @ least)[0]
    return bool(np.linalg.norm(N @ share) < UNBALANCED)
