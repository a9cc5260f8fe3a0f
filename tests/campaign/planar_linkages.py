"""Planar linkages in absolute coordinates (x, y, θ of each body): closed forms for M, h, phi, A, c.

A linkage is drawn by its joints: points of the plane, and bodies that hold two or more of them. A
point that several bodies hold is a pin between them. The drawing is a closed pose. Bodies may be
massless, pins may be said twice: M is then singular, and the rows are dependent.
"""

from dataclasses import dataclass
from itertools import pairwise

import casadi as ca
import numpy as np

import mbcasadi as mb
from campaign.mechanics import Array, Mechanics, Numbers
from campaign.units import Units

GROUND = -1
GRAVITY = 9.81  # m/s²


@dataclass(frozen=True)
class Linkage:
    """Numbers of a linkage in its units.

    Attributes:
        masses, inertias: (n,) of the bodies, about their centres.
        pins: (body, place, body, place), places in body axes; `GROUND` has world axes.
        slides: (body, height, angle) of bodies that only move along x.
        motors: (body, body) between which a torque acts.
        gravity: along -y.
        q0: (3 n,) the drawing.
    """

    masses: Array
    inertias: Array
    pins: tuple
    slides: tuple
    motors: tuple
    gravity: float
    q0: Array


def draw(
    points, bodies, ground, *, size, units: Units, motors, massless=(), repeat=(), slides=(), rng
) -> Linkage:
    """Return the linkage of a drawing.

    Args:
        points: (k, 2) joints; `bodies`: their indices by body; `ground`: those on the ground.
        size: metres for one unit of the drawing.
        units: of the numbers.
        motors: pairs of bodies.
        massless: bodies without inertia.
        repeat: pins that are said twice.
        slides: bodies that only move along x.
        rng: for masses and centres.
    """
    place = np.asarray(points, dtype=float) * size * units.length
    n, q0, local = len(bodies), [], {}
    for i, body in enumerate(bodies):
        middle = place[list(body)].mean(axis=0)
        centre = middle + 0.05 * size * units.length * rng.standard_normal(2)
        along = place[body[-1]] - place[body[0]]
        angle = np.arctan2(along[1], along[0])
        q0 += [*centre, angle]
        for point in body:
            local[i, point] = turn(angle).T @ (place[point] - centre)
    local |= {(GROUND, point): place[point] for point in ground}
    pins = []
    for point in range(len(place)):
        holders = [i for i in (GROUND, *range(n)) if (i, point) in local]
        pins += [(i, local[i, point], j, local[j, point]) for i, j in pairwise(holders)]
    pins += [pins[i] for i in repeat]
    masses = rng.uniform(0.3, 2.0, n) * size * units.mass
    inertias = masses * rng.uniform(0.02, 0.1, n) * (size * units.length) ** 2
    masses[list(massless)] = inertias[list(massless)] = 0.0
    gravity = GRAVITY * units.acceleration
    rails = tuple((i, q0[3 * i + 1], q0[3 * i + 2]) for i in slides)
    return Linkage(masses, inertias, tuple(pins), rails, tuple(motors), gravity, np.array(q0))


def turn(angle: float) -> Array:
    """Return the rotation by an angle."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def system_of(linkage: Linkage, name: str) -> mb.System:
    """Return the linkage as a `System`."""
    n = len(linkage.masses)
    q, v = ca.SX.sym("q", 3 * n), ca.SX.sym("v", 3 * n)
    diagonal = np.column_stack([linkage.masses, linkage.masses, linkage.inertias]).ravel()

    def point(i, r):
        if i == GROUND:
            return ca.DM(r)
        c, s = ca.cos(q[3 * i + 2]), ca.sin(q[3 * i + 2])
        return q[3 * i : 3 * i + 2] + ca.vertcat(c * r[0] - s * r[1], s * r[0] + c * r[1])

    rows = [point(i, r) - point(j, s) for i, r, j, s in linkage.pins]
    rows += [q[3 * i + 1 : 3 * i + 3] - ca.DM([y, angle]) for i, y, angle in linkage.slides]
    weight = np.zeros(3 * n)
    weight[1::3] = linkage.masses * linkage.gravity
    B = np.zeros((3 * n, len(linkage.motors)))
    for k, (i, j) in enumerate(linkage.motors):
        for body, sign in ((i, 1.0), (j, -1.0)):
            if body != GROUND:
                B[3 * body + 2, k] = sign
    return mb.from_equations(
        q, v, M=ca.diag(ca.DM(diagonal)), h=ca.DM(weight), B=ca.DM(B), phi=ca.vertcat(*rows),
        name=name,
    )  # fmt: skip


class LinkageMechanics(Mechanics):
    """The same by NumPy, in numbers of any kind; `on` has one entry for each row."""

    def __init__(self, linkage: Linkage) -> None:
        self.linkage = linkage
        self.nq = self.nv = 3 * len(linkage.masses)
        self.nu = len(linkage.motors)

    def integrate(self, q: Array, dv: Array) -> Array:
        return q + dv

    def difference(self, q0: Array, q1: Array) -> Array:
        return q1 - q0

    def residual(self, q: Array, on: Array) -> Array:
        gaps = [self._point(q, i, r) - self._point(q, j, s) for i, r, j, s in self.linkage.pins]
        gaps += [q[3 * i + 1 : 3 * i + 3] - [y, angle] for i, y, angle in self.linkage.slides]
        return np.concatenate(gaps)[np.asarray(on) > 0.5]

    def rows(self, q: Array, on: Array) -> Array:
        pins = len(self.linkage.pins)
        A = np.zeros((2 * (pins + len(self.linkage.slides)), self.nv), q.dtype)
        for k, (i, _, _) in enumerate(self.linkage.slides):
            row = 2 * (pins + k)
            A[row : row + 2, 3 * i + 1 : 3 * i + 3] = np.eye(2)
        for k, (i, r, j, s) in enumerate(self.linkage.pins):
            for body, place, sign in ((i, r, 1.0), (j, s, -1.0)):
                if body != GROUND:
                    x, y = turn(q[3 * body + 2]) @ place
                    columns = slice(3 * body, 3 * body + 3)
                    A[2 * k : 2 * k + 2, columns] += sign * np.array([[1, 0, -y], [0, 1, x]])
        return A[np.asarray(on) > 0.5]

    def numbers(self, q: Array, v: Array, on: Array) -> Numbers:
        linkage = self.linkage
        c = np.zeros(2 * (len(linkage.pins) + len(linkage.slides)), q.dtype)
        for k, (i, r, j, s) in enumerate(linkage.pins):
            for body, place, sign in ((i, r, 1.0), (j, s, -1.0)):
                if body != GROUND:
                    arm = turn(q[3 * body + 2]) @ place
                    c[2 * k : 2 * k + 2] -= sign * v[3 * body + 2] ** 2 * arm
        f = np.zeros(self.nv)
        f[1::3] = -linkage.masses * linkage.gravity
        B = np.zeros((self.nv, len(linkage.motors)))
        for k, (i, j) in enumerate(linkage.motors):
            B[3 * i + 2, k] += 1.0
            if j != GROUND:
                B[3 * j + 2, k] -= 1.0
        diagonal = np.column_stack([linkage.masses, linkage.masses, linkage.inertias]).ravel()
        return Numbers(np.diag(diagonal), f, B, self.rows(q, on), c[np.asarray(on) > 0.5])

    def _point(self, q: Array, i: int, r: Array) -> Array:
        if i == GROUND:
            return np.asarray(r)
        return q[3 * i : 3 * i + 2] + turn(q[3 * i + 2]) @ r
