"""Two convex shapes for the campaign: drawn, posed, and solved by Clarabel and over directions."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import clarabel
import numpy as np
from scipy.optimize import minimize
from scipy.sparse import bmat, csc_matrix, eye
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from campaign.mechanics import Array
from campaign.second_solver import settings
from mbcasadi.model.geometry import MeshPoints, mesh_points

KINDS = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")  # MuJoCo's order
NO_MESH = MeshPoints(np.zeros((0, 3)), 0.0)
LEAST, MOST = 0.02, 0.5  # m, half lengths
ALIGNED = 0.3  # share of pairs whose axes are parallel
SEEDS = 400  # directions from which overlap is refined
REFINED = 12


@dataclass(frozen=True)
class Shape:
    """A shape as MuJoCo's numbers, with its pose."""

    kind: str
    size: Array
    p: Array
    R: Array
    points: Array = field(default_factory=lambda: np.zeros((0, 3)))  # vertices of a mesh
    mesh: MeshPoints = NO_MESH  # what stands for them

    @cached_property
    def planes(self) -> Array:
        """(k, 4) `normal · x + offset <= 0` in a mesh."""
        return np.unique(np.round(ConvexHull(self.mesh.points).equations, 12), axis=0)

    @property
    def radius(self) -> float:
        """Of the sphere about it."""
        a, b, c = self.size
        if self.kind == "mesh":
            return float(np.max(np.linalg.norm(self.mesh.points, axis=1))) + self.round
        return float(
            {
                "sphere": a,
                "capsule": a + b,
                "cylinder": np.hypot(a, b),
                "ellipsoid": max(a, b, c),
                "box": np.sqrt(a * a + b * b + c * c),
            }[self.kind]
        )

    def support(self, n: Array) -> Array:
        """Return the largest `nᵀ (x - p)` for each row of n."""
        t, (a, b, c) = n @ self.R, self.size
        match self.kind:
            case "sphere":
                return a * np.linalg.norm(t, axis=1)
            case "capsule":
                return a * np.linalg.norm(t, axis=1) + b * np.abs(t[:, 2])
            case "cylinder":
                return a * np.hypot(t[:, 0], t[:, 1]) + b * np.abs(t[:, 2])
            case "ellipsoid":
                return np.linalg.norm(t * self.size, axis=1)
            case "mesh":
                return np.max(t @ self.mesh.points.T, axis=1) + self.round * np.linalg.norm(
                    t, axis=1
                )
        return np.abs(t) @ np.array([a, b, c])

    def constraints(self) -> tuple[Array, Array, list[object]]:
        """Return G, g and cones with `g - G y` in the cones for y = Rᵀ (x - p) of points x.

        A capsule is its axis; its radius is taken from the distance.
        """
        a, b, c = self.size
        one, nothing = np.eye(3), np.zeros((1, 3))
        both = np.vstack([one, -one])
        match self.kind:
            case "sphere":
                return one, np.zeros(3), [clarabel.ZeroConeT(3)]
            case "capsule":
                G = np.vstack([one[:2], one[2:], -one[2:]])
                cones = [clarabel.ZeroConeT(2), clarabel.NonnegativeConeT(2)]
                return G, np.array([0, 0, b, b]), cones
            case "cylinder":
                G = np.vstack([one[2:], -one[2:], nothing, -one[:2]])
                cones = [clarabel.NonnegativeConeT(2), clarabel.SecondOrderConeT(3)]
                return G, np.array([b, b, a, 0, 0]), cones
            case "ellipsoid":
                G = np.vstack([nothing, -np.diag(1 / self.size)])
                return G, np.array([1.0, 0, 0, 0]), [clarabel.SecondOrderConeT(4)]
            case "mesh":
                count = len(self.planes)
                return self.planes[:, :3], -self.planes[:, 3], [clarabel.NonnegativeConeT(count)]
        return both, np.array([a, b, c, a, b, c]), [clarabel.NonnegativeConeT(6)]

    @property
    def round(self) -> float:
        """Radius that is taken from the distance."""
        if self.kind == "mesh":
            return self.mesh.radius
        return float(self.size[0]) if self.kind in ("sphere", "capsule") else 0.0

    def scaled(self, by: float) -> "Shape":
        """Return it in other units of length."""
        mesh = MeshPoints(self.mesh.points * by, self.mesh.radius * by)
        return Shape(self.kind, self.size * by, self.p * by, self.R, self.points * by, mesh)


def draw_shapes(rng: np.random.Generator) -> tuple[Shape, Shape]:
    """Return two shapes that touch about: the second one lies in a random direction."""
    kinds = sorted(rng.choice(len(KINDS), 2))
    sizes = np.exp(rng.uniform(np.log(LEAST), np.log(MOST), (2, 3)))
    first, second = (Rotation.random(random_state=rng).as_matrix() for _ in range(2))
    if rng.uniform() < ALIGNED:
        turns = Rotation.create_group("O").as_matrix()
        second = first @ turns[rng.integers(len(turns))]
    u = rng.normal(size=3)
    u /= np.linalg.norm(u)
    a, b = (
        _shape(rng, KINDS[kind], size, R)
        for kind, size, R in zip(kinds, sizes, (first, second), strict=True)
    )
    away = float(a.support(u[None])[0] + b.support(-u[None])[0])
    return a, replace(b, p=away * u)


def _shape(rng: np.random.Generator, kind: str, size: Array, R: Array) -> Shape:
    """Return a shape; a mesh is a prism, or the hull of points on an ellipsoid, of this size."""
    if kind != "mesh":
        return Shape(kind, size, np.zeros(3), R)
    count = int(rng.integers(4, 40))
    if count % 2:
        points = rng.normal(size=(count, 3))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
    else:
        turn = 2 * np.pi * np.arange(count) / count
        rim = np.column_stack([np.cos(turn), np.sin(turn)])
        points = np.vstack([np.insert(rim, 2, z, axis=1) for z in (-1.0, 1.0)])
    return Shape(kind, size, np.zeros(3), R, points * size, mesh_points(points * size))


def distance(a: Shape, b: Shape) -> float:
    """Return the distance of two shapes that do not overlap, by a conic program of Clarabel.

    `min s, |w| <= s, w = R_a y_a + p_a - R_b y_b - p_b`, with y in each shape; lengths are divided
    by the size, so that accuracies are relative.
    """
    length = min(a.radius, b.radius)
    parts = [x.scaled(1 / length) for x in (a, b)]
    (Ga, ga, ca), (Gb, gb, cb) = (x.constraints() for x in parts)
    zero = csc_matrix((1, 3))
    away = parts[0].p - parts[1].p
    A = bmat(
        [
            [csc_matrix(Ga), None, None],
            [None, csc_matrix(Gb), None],
            [zero, zero, -eye(1)],
            [csc_matrix(-a.R), csc_matrix(b.R), None],
        ],
        format="csc",
    )
    rhs = np.concatenate([ga, gb, [0.0], away])
    cones = [*ca, *cb, clarabel.SecondOrderConeT(4)]
    cost = np.array([0.0] * 6 + [1.0])
    answer = clarabel.DefaultSolver(csc_matrix((7, 7)), cost, A, rhs, cones, settings()).solve()
    y = np.array(answer.x)
    w = a.R @ y[:3] - b.R @ y[3:6] + away
    return float(length * np.linalg.norm(w) - a.round - b.round)


def depth(a: Shape, b: Shape) -> float:
    """Return how far two shapes that overlap have to be moved to touch, over directions.

    It is the least `h_a(n) + h_b(-n) - nᵀ d`: sampled, and refined from the best ones.
    """
    d = b.p - a.p

    def overlap(n: Array) -> Array:
        n = n / np.linalg.norm(n, axis=1, keepdims=True)
        return a.support(n) + b.support(-n) - n @ d

    i = np.arange(SEEDS) + 0.5
    height, turn = 1 - 2 * i / SEEDS, np.pi * (1 + np.sqrt(5)) * i
    level = np.sqrt(1 - height**2)
    seeds = np.column_stack([level * np.cos(turn), level * np.sin(turn), height])
    axes = np.vstack([a.R.T, b.R.T])
    faces = [s * x.planes[:, :3] @ x.R.T for x, s in ((a, 1), (b, -1)) if x.kind == "mesh"]
    edges = np.array([np.cross(x, y) for x in a.R.T for y in b.R.T])
    lengths = np.linalg.norm(edges, axis=1)
    edges = edges[lengths > 1e-6] / lengths[lengths > 1e-6, None]
    seeds = np.vstack([seeds, axes, -axes, edges, -edges, *faces])
    values = overlap(seeds)
    least = float(values.min())
    for seed in seeds[np.argsort(values)[:REFINED]]:
        found = minimize(
            lambda n: float(overlap(n[None])[0]),
            seed,
            method="Nelder-Mead",
            options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 400},
        )
        least = min(least, float(found.fun))
    return least
