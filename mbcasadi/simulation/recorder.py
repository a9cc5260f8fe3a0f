"""Collects states as they come, and computes everything else for all of them at once."""

from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.simulation.call import Array
from mbcasadi.simulation.events import Happening
from mbcasadi.simulation.flow import Flow
from mbcasadi.simulation.functions import Rule, sample_fun
from mbcasadi.simulation.manifold import DOUBT, OffManifoldError
from mbcasadi.simulation.trajectory import Trajectory
from mbcasadi.system import System

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
    """Samples of a run, its counters and what happened."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.happenings: list[Happening] = []
        self.steps = self.rejected = 0
        self.stopped = ""

    def add(self, flow: Flow, t: float, q: Array, v: Array, act: Array) -> None:
        """Keep a state and what acts on it now."""
        f, manifold = flow.applied(t, q, v), flow.manifold
        self.samples.append(Sample(t, q, v, act, flow.u, f, manifold.mask, manifold.offset))

    def finish(self, system: System, rule: Rule, flow: Flow) -> Trajectory:
        """Return the trajectory."""
        columns = zip(*self.samples, strict=True)
        s = _Columns(*(np.array(column, dtype=float) for column in columns))
        a, lam, f_c, energy = mapped(
            sample_fun(system, rule), s.q, s.v, s.t, s.act, s.u, s.f, s.mask
        )
        measured = mapped(flow.manifold.tangent, s.q, s.v, s.t, s.mask, s.offset)
        gap, slip, clearance, rank = (column.ravel() for column in measured[1:5])
        for i in _doubtful(s.mask, clearance, rank):
            limit = self._limit(flow, i)
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
            events=tuple(self.happenings),
            steps=self.steps,
            rejected=self.rejected,
            evaluations=flow.evaluations,
            stopped=self.stopped,
        )

    def _limit(self, flow: Flow, i: int) -> Array | None:
        """Return the acceleration at a pose where the rank is in doubt, as the run saw it.

        None where no state of the mechanism is found there, in a run that did not project.
        """
        sample = self.samples[i]
        flow.manifold.switch(sample.mask, sample.offset)
        flow.u = sample.u
        flow.manifold.scout(sample.q, sample.v, sample.t)
        try:
            return flow.acceleration(sample.t, sample.q, sample.v, sample.act)
        except OffManifoldError:
            return None


def mapped(function: ca.Function, *rows: Array) -> list[Array]:
    """Return the outputs for all samples; arguments and results have one row for each."""
    count = len(rows[0])
    parts = []
    for start in range(0, count, CHUNK):
        chunk = [x[start : start + CHUNK].reshape(min(CHUNK, count - start), -1).T for x in rows]
        many = function.map(chunk[0].shape[1])
        parts.append([np.asarray(out.full()).T for out in many.call([ca.DM(x) for x in chunk])])
    return [np.vstack(columns) for columns in zip(*parts, strict=True)]


def _doubtful(mask: Array, clearance: Array, rank: Array) -> NDArray[np.int64]:
    """Return the samples whose rank is not the usual one of their mask, or nearly so."""
    doubtful = np.zeros(len(rank), dtype=bool)
    for rows in np.unique(mask, axis=0):
        same = np.all(mask == rows, axis=1)
        usual = same & (rank == rank[same].max(initial=0))
        finite = clearance[usual & np.isfinite(clearance)]
        doubtful |= same & ((rank < rank[same].max()) | (clearance < DOUBT * finite.max(initial=0)))
    return np.flatnonzero(doubtful)
