"""Collects states as they come, and computes everything else for all of them at once."""

from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.simulation.buffered_function import Array
from mbcasadi.simulation.events import EventRecord
from mbcasadi.simulation.functions import sample_fun
from mbcasadi.simulation.manifold import CLEARANCE_SHARE, OffManifoldError
from mbcasadi.simulation.options import EquationOptions
from mbcasadi.simulation.right_hand_side import RightHandSide
from mbcasadi.simulation.trajectory import Trajectory

CHUNK = 512
"""Samples that one mapped call takes."""


class Sample(NamedTuple):
    """One state of a run, with what acts on it."""

    t: float
    q: Array
    v: Array
    act: Array
    u: Array
    f: Array
    mask: Array
    offset: Array


class _Columns(NamedTuple):
    """The same, with one row for each sample."""

    t: Array
    q: Array
    v: Array
    act: Array
    u: Array
    f: Array
    mask: Array
    offset: Array


class Recorder:
    """Samples of a run, its counters, and its events."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.events: list[EventRecord] = []
        self.steps = self.rejected = 0
        self.stopped = ""

    def add(self, right_hand_side: RightHandSide, t: float, q: Array, v: Array, act: Array) -> None:
        """Keep a state and what acts on it now.

        Args:
            right_hand_side: the motion, with the present control and active rows.
            t: s.
            q, v, act: (nq,), (nv,), (na,) state.
        """
        f, manifold = right_hand_side.applied_force(t, q, v), right_hand_side.manifold
        u = right_hand_side.u
        self.samples.append(Sample(t, q, v, act, u, f, manifold.mask, manifold.offset))

    def trajectory(
        self, right_hand_side: RightHandSide, formulation: str, equations: EquationOptions
    ) -> Trajectory:
        """Return the trajectory of all samples."""
        system, manifold = right_hand_side.system, right_hand_side.manifold
        columns = zip(*self.samples, strict=True)
        s = _Columns(*(np.array(column, dtype=float) for column in columns))
        a, lam, f_c, energy = map_samples(
            sample_fun(system, formulation, equations), s.q, s.v, s.t, s.act, s.u, s.f, s.mask
        )
        quality = map_samples(manifold.tangent, s.q, s.v, s.t, s.mask, s.offset)
        gap, slip, clearance, rank = (column.ravel() for column in quality[1:5])
        for i in _samples_of_doubtful_rank(s.mask, clearance, rank):
            limit = self._limit_acceleration(right_hand_side, i)
            if limit is None:
                continue
            M = system.mass_matrix(s.q[i]).full()
            f_c[i] += M @ (limit - a[i])  # M a + h = f + f_c for both accelerations
            a[i] = limit
        return Trajectory(
            t=s.t,
            q=s.q,
            v=s.v,
            a=a,
            lam=lam,
            f_c=f_c,
            u=s.u,
            act=s.act,
            mask=s.mask,
            energy=energy.ravel(),
            drift=gap,
            drift_velocity=slip,
            rank=rank.astype(np.int64),
            events=tuple(self.events),
            steps=self.steps,
            rejected=self.rejected,
            evaluations=right_hand_side.evaluations,
            stopped=self.stopped,
        )

    def _limit_acceleration(self, right_hand_side: RightHandSide, i: int) -> Array | None:
        """Return the acceleration of a sample where the rank is in doubt, as the run saw it.

        None where no state of the mechanism is near, in a run that did not project.
        """
        sample, manifold = self.samples[i], right_hand_side.manifold
        manifold.set_active_rows(sample.mask, sample.offset)
        right_hand_side.u = sample.u
        manifold.probe_usual_rank(sample.q, sample.v, sample.t)
        try:
            return right_hand_side.acceleration(sample.t, sample.q, sample.v, sample.act)
        except OffManifoldError:
            return None


def map_samples(function: ca.Function, *rows: Array) -> list[Array]:
    """Return the outputs for all samples; arguments and results have one row for each."""
    count = len(rows[0])
    parts = []
    for start in range(0, count, CHUNK):
        chunk = [x[start : start + CHUNK].reshape(min(CHUNK, count - start), -1).T for x in rows]
        mapped = function.map(chunk[0].shape[1])
        parts.append([np.asarray(y.full()).T for y in mapped.call([ca.DM(x) for x in chunk])])
    return [np.vstack(columns) for columns in zip(*parts, strict=True)]


def _samples_of_doubtful_rank(mask: Array, clearance: Array, rank: Array) -> NDArray[np.int64]:
    """Return the samples whose rank is not the usual one of their mask, or nearly so."""
    doubtful = np.zeros(len(rank), dtype=bool)
    for rows in np.unique(mask, axis=0):
        same = np.all(mask == rows, axis=1)
        usual = same & (rank == rank[same].max(initial=0))
        finite = clearance[usual & np.isfinite(clearance)]
        low = clearance < CLEARANCE_SHARE * finite.max(initial=0)
        doubtful |= same & ((rank < rank[same].max()) | low)
    return np.flatnonzero(doubtful)
