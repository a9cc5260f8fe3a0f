"""Iterations of ours and of peers on one problem, to a residual in the nonlinear problem.

All begin with the same guesses, multipliers included. What peers solve is compared first: next
states at random guesses, and the cost where both have converged.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from bench import whole_body_programs as programs
from bench.rows import row
from bench.tick_tsid import Program
from bench.whole_body_cases import Record, Trot
from bench.whole_body_residual import Judge, Plan
from mbcasadi.codegen import CProject, export_c
from mbcasadi.errors import SolverError
from mbcasadi.mpc.rti.iteration import RealTimeIteration

Array = NDArray[np.float64]

FLAGS = ("-O3", "-march=native")
ITERATIONS = 15  # of ours from a guess at most
RESIDUAL = 1e-3
SAME_MOTION = 1e-8  # of next states, relative to the largest number in them
SAME_COST = 1e-4  # of converged plans, relative


@dataclass(frozen=True)
class Solver:
    """Our controller of a trot without a shift, which iterates at one state."""

    trot: Trot
    law: RealTimeIteration
    project: CProject
    loaded: ca.Function
    judge: Judge

    @classmethod
    def of(cls, trot: Trot, folder: Path) -> "Solver":
        """Export it into new folders."""
        law = trot.law(shift=False)
        project = export_c(law, folder / "c")
        loaded = project.load(flags=FLAGS)
        return cls(trot, law, project, loaded, Judge(trot.ocp, folder))

    def first(self, record: Record) -> Array:
        """Return z (ticks, nz) with the guesses of the record, and its multipliers if they fit."""
        if record.inputs["z"].shape[1] == self.law.controller.z0.size:
            return record.inputs["z"]
        x, u = programs.guesses(self.trot, record)
        count = x[0].size + u[0].size
        z = np.tile(self.law.controller.z0, (len(x), 1))
        z[:, :count] = record.inputs["z"][:, :count]
        return z

    def rows(self, record: Record) -> Array:
        """Return (ticks, N, nu + ng) the multipliers of the guesses; none of no limits."""
        if not self.trot.limited:
            return np.zeros((len(record.tick), self.trot.intervals, 0))
        plans = [self.plan(record, k, z) for k, z in enumerate(self.first(record))]
        return np.array([plan.rows for plan in plans])

    def iterates(self, record: Record, count: int) -> tuple[Array, list[list[Plan]]]:
        """Return z (count, ticks, nz) that iterations begin with, and the plans after each."""
        z, begun, plans = self.first(record), list[Array](), list[list[Plan]]()
        for _ in range(count):
            begun.append(z)
            after = [
                np.array(self.loaded(q, v, ref, each)[1]).ravel()
                for q, v, ref, each in zip(
                    *(record.inputs[key] for key in ("q", "v", "ref")), z, strict=True
                )
            ]
            z = np.array(after)
            plans.append([self.plan(record, k, each) for k, each in enumerate(z)])
        return np.array(begun), plans

    def plan(self, record: Record, tick: int, z: Array) -> Plan:
        """Return the plan in z, with its multipliers."""
        x, u = self.law.trajectory(z)
        stages = self.law.controller.stages
        assert stages is not None
        assert stages.horizon is not None
        rows = stages.horizon.inside.count
        lam = self.law.memory.split(ca.DM(z)).active.full().ravel()[: rows * len(u)]
        return self.trot.plan(record, tick, x, u, lam.reshape(len(u), rows))

    def seconds(self, record: Record, begun: Array, repeats: int) -> Array:
        """Return (ticks, count) s of the iterations, the least of all passes."""
        columns = []
        for z in begun:
            inputs = {key: record.inputs[key] for key in ("q", "v", "ref")} | {"z": z}
            times = self.project.time(inputs, repeats, flags=FLAGS).seconds
            columns.append(times.reshape(repeats, -1).min(axis=0))
        return np.array(columns).T


def add_rows(
    results: dict[str, Any],
    model: str,
    solver: Solver,
    peers: list[tuple[programs.Peer, Program]],
    record: Record,
    repeats: int,
) -> None:
    """Add the rows of ours beside the peers, by turns, on the ticks of a record."""
    begun, plans = solver.iterates(record, ITERATIONS)
    needed, cost = reached(solver.judge, plans)
    ours = solver.seconds(record, begun, repeats)
    theirs: dict[str, tuple[Array, Array]] = {}
    labels = []
    for peer, program in peers:
        labels.append(program.label)
        if program.path is None:
            continue
        try:
            found = programs.run_program(
                program, solver.trot, record, solver.rows(record), peer.iterations, repeats
            )
            every = [
                [found.plan(solver.trot, record, k, j) for k in range(len(record.tick))]
                for j in range(peer.iterations)
            ]
            count, _ = reached(solver.judge, every)
            both = (needed <= ITERATIONS) & (count <= peer.iterations)
            gaps = differences(solver, record, found, cost, both)
        except SolverError as error:
            labels[-1] = f"{program.name} ({error})"
            continue
        checks = {f"{model}, {program.name}: {k}": v for k, v in gaps.items()}
        checks[f"{model}, {program.name}: iterations to the residual"] = float(np.median(count))
        results["checks"] |= checks
        steps = np.diff(found.seconds, axis=1, prepend=0.0)
        theirs[program.label] = found.seconds[:, 0], total(steps, count)
    ours = np.minimum(ours, solver.seconds(record, begun, repeats))
    results["checks"][f"{model}: iterations to the residual"] = float(np.median(needed))
    mine = ours[:, 0], total(ours, needed)
    for label in labels or ["-"]:
        results["rows"] += _rows(model, mine, label, theirs.get(label))


def _rows(
    model: str, mine: tuple[Array, Array], label: str, theirs: tuple[Array, Array] | None
) -> list[dict[str, Any]]:
    """Return the rows beside a peer: of one iteration, and to the residual where both reach it."""
    at = None if theirs is None else float(np.median(theirs[0]))
    lines = [row(model, "one iteration", float(np.median(mine[0])), label, at)]
    reach = [np.isfinite(each[1]) for each in (mine, theirs) if each is not None]
    shares = [float(np.mean(each)) for each in reach]
    both = np.all(reach, axis=0)
    if not both.any():
        return lines
    quantity = f"to a residual of {RESIDUAL:g}"
    if min(shares) < 1:
        words = " and ".join(f"{100 * share:.0f} %" for share in shares)
        quantity += f" ({'each ' if theirs else ''}in {words} of the ticks)"
    at = None if theirs is None else float(np.median(theirs[1][both]))
    return [*lines, row(model, quantity, float(np.median(mine[1][both])), label, at)]


def reached(judge: Judge, plans: list[list[Plan]]) -> tuple[Array, Array]:
    """Return after how many iterations each tick's residual is below `RESIDUAL`, and the last cost.

    One that is never below counts as one iteration more than there are.
    """
    residuals = [[judge.residuals(plan) for plan in each] for each in plans]
    below = np.array([[r.largest <= RESIDUAL for r in each] for each in residuals])
    count = np.where(below.any(axis=0), below.argmax(axis=0) + 1, len(plans) + 1)
    return count, np.array([r.cost for r in residuals[-1]])


def total(seconds: Array, count: Array) -> Array:
    """Return (ticks,) the sums of the first `count` iterations; inf where there are fewer."""
    sums = np.hstack([np.cumsum(seconds, axis=1), np.full((len(seconds), 1), np.inf)])
    return np.array(sums[np.arange(len(sums)), count - 1])


def differences(
    solver: Solver, record: Record, found: programs.Answers, cost: Array, both: NDArray[np.bool_]
) -> dict[str, float]:
    """Return how far a peer's problem is from ours: next states, costs at the end, both relative.

    Costs are compared at the ticks where `both` have converged.

    Raises:
        SolverError: they are further than `SAME_MOTION`, `SAME_COST`, or no tick has converged.
    """
    x, u = programs.guesses(solver.trot, record)
    motion = solver.trot.ocp.dynamics.map(solver.trot.intervals)
    gaps = []
    for k, tick in enumerate(record.tick):
        p = solver.trot.parameters(int(tick))
        ours = np.array(motion(x[k, :-1].T, u[k].T, p[:-1].T)).T
        gaps.append(np.abs(ours - found.motion[k]).max() / np.abs(ours).max())
    if not both.any():
        raise SolverError("no tick at which both converge")
    result = {
        "next states differ by": float(max(gaps)),
        "costs differ by": float(np.max(np.abs(found.cost[both, -1] / cost[both] - 1))),
    }
    for (name, gap), most in zip(result.items(), (SAME_MOTION, SAME_COST), strict=True):
        if not gap <= most:
            raise SolverError(f"{name} {gap:.1e}, at most {most:g}: another problem")
    return result
