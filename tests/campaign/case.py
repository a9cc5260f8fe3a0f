"""A controller of the campaign with what the judge needs beside it, and its random inputs."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from campaign.mechanics import Array, Mechanics, Numbers
from mbcasadi.control import InverseDynamicsQP
from mbcasadi.description import Contact

CLOSING_TOL = 5e-3  # relative singular value of the scaled rows that Newton's steps leave alone
CLOSED = 1e-11  # largest residual of a closed state, relative to the rows' lengths
STEPS = 40


@dataclass(frozen=True)
class Posture:
    """Coordinates `places` of q, rates `dofs`; the name of the slices is `posture`."""

    places: Array
    dofs: Array
    kp: float
    weight: Array


@dataclass(frozen=True)
class Pose:
    """Position and orientation of a frame in world axes; `name` is that of the slices.

    The frame `("com", body)` is the centre of mass of the tree of a body: its position alone.
    """

    frame: tuple[str, str]
    name: str
    kp: float
    weight: Array


@dataclass(frozen=True, eq=False)
class Case:
    """One controller, and how its states are drawn.

    Attributes:
        name: of the mechanism, its size and its units.
        controller: the law.
        mechanics: the judge's own numbers of the same mechanism.
        tasks: as the judge computes them.
        limits: (nu, 2) of the controls, which are the actuator forces.
        q0: a closed pose.
        rate: 1/time: how fast the mechanism swings.
        spread, speed: of states, relative to the coordinates' sizes and `rate`.
        length: of the mechanism.
        size: (nv,) of each coordinate: `length`, or 1 rad.
        reach: where given, references are poses at rest that are up to this many metres and rad
            away, in each direction.
        switched_loops: whether the mask may open loops.
        slipping: whether contacts have a velocity.
    """

    name: str
    controller: InverseDynamicsQP
    mechanics: Mechanics
    tasks: tuple[Posture | Pose, ...]
    limits: Array
    q0: Array
    rate: float
    length: float
    size: Array
    spread: float = 0.2
    speed: float = 0.5
    switched_loops: bool = True
    largest_level: float = 3.0
    noisy: bool = True
    slipping: bool = False
    reach: float | None = None
    contact_roots: tuple[int, ...] = ()

    @property
    def contacts(self) -> tuple[Contact, ...]:
        return tuple(self.controller.contacts)

    @cached_property
    def metric(self) -> Array:
        """(nv,) the metric in which a measured state is closed, of the size of the coordinates."""
        metric = np.asarray(self.controller.system.scales.coordinates)
        return np.asarray(metric * np.exp(np.mean(np.log(self.size / metric))))

    @cached_property
    def row_lengths(self) -> Array:
        """(nc,) usual length of each row in scaled coordinates, over closed poses."""
        on = np.ones(len(self.controller.equality_sizes))
        rng = np.random.default_rng(12345)
        samples = []
        for _ in range(20):
            q, good = close(self, self._scattered(rng), on)
            if good:
                samples.append(np.linalg.norm(self.mechanics.rows(q, on) * self.metric, axis=1))
        samples.append(np.linalg.norm(self.mechanics.rows(self.q0, on) * self.metric, axis=1))
        usual = np.median(samples, axis=0)
        return np.maximum(usual, 1e-3 * usual.max(initial=0.0) or 1.0)

    def lengths_on(self, on: Array) -> Array:
        """Return the usual lengths of the rows that are on."""
        return self.row_lengths[np.repeat(np.asarray(on) > 0.5, self.controller.equality_sizes)]

    def force_of(self, inputs: "Inputs", u: Array) -> tuple[Array, Array]:
        """Return the actuator forces of controls u, as MuJoCo clips them, and their size."""
        gain, bias, limited = self.mechanics.servos(inputs.closed_q, inputs.closed_v)
        return np.clip(gain * u + bias, *limited.T), np.abs(gain * u) + np.abs(bias)

    def force_range(self, inputs: "Inputs") -> Array:
        """Return the range (nu, 2) of the actuator forces that controls within limits give."""
        low, high = (self.force_of(inputs, u)[0] for u in self.limits.T)
        return np.sort(np.column_stack([low, high]), axis=1)

    def _scattered(self, rng: np.random.Generator) -> Array:
        dv = self.spread * self.size * rng.standard_normal(self.mechanics.nv)
        return self.mechanics.integrate(self.q0, dv)


@dataclass(frozen=True)
class Inputs:
    """Inputs of one tick, and the closed state that the judge made of the measured one."""

    q: Array
    v: Array
    ref: Array
    mask: Array
    z: Array
    noise: float
    level: float
    closed_q: Array
    closed_v: Array
    numbers: Numbers = field(repr=False)
    is_closed: bool = True

    def moved(self, case: Case) -> float:
        """Return how far the measured state is from the closed one, relative to its sizes."""
        away = case.mechanics.difference(self.closed_q, self.q) / case.size
        return float(np.linalg.norm(away)) + self.noise


def close(case: Case, q: Array, on: Array) -> tuple[Array, bool]:
    """Return the nearest closed pose in the metric of the coordinates' sizes, and if there is one.

    Directions weaker than `CLOSING_TOL` are left alone: off the manifold they are redundant rows.
    """
    mechanics = case.mechanics
    if not len(mechanics.residual(q, on)):
        return q, True
    usual = case.__dict__.get("row_lengths")
    for _ in range(STEPS):
        phi, A = mechanics.residual(q, on), mechanics.rows(q, on) * case.metric
        lengths = np.maximum(np.linalg.norm(A, axis=1), 1e-3 * np.linalg.norm(A, axis=1).max())
        if usual is not None:
            lengths = case.lengths_on(on)
        gap = np.abs(phi / lengths).max()
        if not np.isfinite(gap) or gap > 10:
            return q, False
        if gap < CLOSED * 1e-3:
            break
        x = np.linalg.lstsq(A / lengths[:, None], -phi / lengths, rcond=CLOSING_TOL)[0]
        q = mechanics.integrate(q, case.metric * x)
    return q, bool(np.abs(mechanics.residual(q, on) / lengths).max() < CLOSED)


def project(case: Case, rows: Array, v: Array) -> Array:
    """Return the part of a velocity that rows leave free, in the metric of the sizes."""
    if not len(rows):
        return v
    A = rows * case.metric
    lengths = np.linalg.norm(A, axis=1)
    lengths = np.maximum(lengths, 1e-3 * lengths.max() or 1.0)[:, None]
    return (
        v
        - case.metric
        * np.linalg.lstsq(A / lengths, (rows @ v)[:, None] / lengths, rcond=1e-6)[0].ravel()
    )
