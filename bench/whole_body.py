"""Real-time iterations of a whole body in generated C, beside others on the same problem.

A quadruped trots (`whole_body_cases`). "whole tick" is that of the exported controller, hard limits
of torques and friction pyramids included, in closed loop with the problem's own step as plant and
noise in its velocities, with its phases. All solvers start from the same guesses: those of recorded
ticks, shifted. "one iteration" is the first from there. "to a residual of 1e-3" is the time until
gaps, violations, stationarity and complementarity of the plan are below it, by differences of the
nonlinear problem (`whole_body_residual`), not by a solver. Of several passes each tick counts with
the least time, and medians are over ticks. Peers without limits run beside ours without them; what
they solve is compared first: next states at random guesses, and the cost where both have converged.

A quadrotor and an arm are beside acados (`whole_body_acados`).

    python -m bench whole_body --json > whole_body.json
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from bench import whole_body_acados, whole_body_cases
from bench import whole_body_programs as programs
from bench.rows import row
from bench.tick_cases import LEGS, QUADRUPED, TickCase, robots
from bench.tick_tsid import Program
from bench.whole_body_cases import Record, Trot, closed_loop
from bench.whole_body_residual import Judge, Plan
from mbcasadi.codegen import CProject, export_c
from mbcasadi.errors import SolverError
from mbcasadi.mpc.rti.iteration import RealTimeIteration

Array = NDArray[np.float64]

FLAGS = ("-O3", "-march=native")
TICKS, QUICK_TICKS = 200, 20
EVERY = 5  # of the ticks are solved to the end
REPEATS, QUICK_REPEATS = 5, 2
ITERATIONS = 10  # from a guess at most
RESIDUAL = 1e-3
SAME_MOTION = 1e-8  # of next states, relative to the largest number in them
SAME_COST = 1e-4  # of converged plans, relative
LONG, SHORT = 40, 10  # horizons of which the growth is measured
MEGABYTE = 1e6


def run(quick: bool = False) -> dict[str, Any]:
    """Time the robots and their peers; return `{"rows", "flags", "sizes", "checks"}`."""
    results: dict[str, Any] = {"rows": [], "sizes": {}, "checks": {}}
    results["flags"] = " ".join(FLAGS)
    results["peers' flags"] = programs.FLAGS_TEXT
    cases = [QUADRUPED, *(case for case in robots() if len(case.feet) == len(LEGS))]
    with tempfile.TemporaryDirectory(prefix="mbcasadi-peers-") as folder:
        peers = [(peer, peer.build(Path(folder))) for peer in PEERS]
        for case in cases:
            _trot(results, case, peers, quick=quick)
    ticks, repeats = (QUICK_TICKS, QUICK_REPEATS) if quick else (TICKS, REPEATS)
    for shuttle in whole_body_acados.shuttles():
        whole_body_acados.add_rows(results, shuttle, tick_rows, (FLAGS, ticks, repeats))
    if not quick:
        _growth(results)
    return results


PEERS = (programs.CROCODDYL,)


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
        start = np.concatenate([record.inputs[key][tick] for key in ("q", "v")])
        p = self.trot.parameters(int(record.tick[tick]))
        return Plan(start, p, x, u, lam.reshape(len(u), rows))

    def seconds(self, record: Record, begun: Array, repeats: int) -> Array:
        """Return (ticks, count) s of the iterations, the least of all passes."""
        columns = []
        for z in begun:
            inputs = {key: record.inputs[key] for key in ("q", "v", "ref")} | {"z": z}
            times = self.project.time(inputs, repeats, flags=FLAGS).seconds
            columns.append(times.reshape(repeats, -1).min(axis=0))
        return np.array(columns).T


def _trot(
    results: dict[str, Any],
    case: TickCase,
    peers: list[tuple[programs.Peer, Program]],
    *,
    quick: bool,
) -> None:
    """Add the rows of one robot."""
    trot = Trot(case, whole_body_cases.INTERVALS)
    model = f"{case.name}, trot, N = {trot.intervals}"
    repeats = QUICK_REPEATS if quick else REPEATS
    with tempfile.TemporaryDirectory(prefix="mbcasadi-trot-") as name:
        folder = Path(name)
        law = trot.law()
        project = export_c(law, folder / "tick")
        results["sizes"][model] = sizes(project)
        record = closed_loop(trot, law, project.load(flags=FLAGS), QUICK_TICKS if quick else TICKS)
        results["checks"][f"{model}: unsolved ticks"] = int(np.count_nonzero(record.status))
        results["rows"] += tick_rows(model, project, record.inputs, repeats)
        few = record[::EVERY]
        for limited, words in ((False, "no limits"), (True, "limits and cones")):
            which = [(p, program) for p, program in peers if p.limited == limited]
            solver = Solver.of(Trot(case, trot.intervals, limited), folder / f"limited{limited:d}")
            _beside(results, f"{model}, {words}", solver, which, few, repeats)


def sizes(project: CProject) -> dict[str, Any]:
    """Return operations, sizes of text, library and memory, and what the compiler needs."""
    size = project.size(flags=FLAGS)
    return {
        "operations": size.operations,
        "C, MB": round(project.source.stat().st_size / MEGABYTE, 2),
        "library, kB": round(size.library_bytes / 1e3),
        "memory, MB": round(project.manifest["memory_bytes"] / MEGABYTE, 2),
        "compiler, s": round(size.build.seconds, 1),
        "compiler, MB": round(size.build.peak_bytes / MEGABYTE),
    }


def tick_rows(
    model: str, project: CProject, inputs: dict[str, Array], repeats: int
) -> list[dict[str, Any]]:
    """Return median and 99th percentile of whole ticks and their phases."""
    times = project.time(inputs, repeats, flags=FLAGS)
    parts = {"whole tick": times, "preparation": times.preparation, "feedback": times.feedback}
    lines = []
    for name, part in parts.items():
        assert part is not None
        best = part.seconds.reshape(repeats, -1).min(axis=0)
        values = ((name, np.median(best)), (f"{name}, p99", np.percentile(best, 99)))
        lines += [row(model, quantity, float(value), "-", None) for quantity, value in values]
    return lines


def _beside(
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
    answers = {}
    labels = {program.label: None for _, program in peers}
    for _, program in peers:
        if program.path is None:
            continue
        try:
            found = programs.run_program(program, solver.trot, record, ITERATIONS, repeats)
        except SolverError as error:
            labels = {k: v for k, v in labels.items() if k != program.label}
            labels[f"{program.name} ({error})"] = None
            continue
        gaps = differences(solver, record, found, cost)
        results["checks"] |= {f"{model}, {program.name}: {k}": v for k, v in gaps.items()}
        answers[program.label] = found
    ours = np.minimum(ours, solver.seconds(record, begun, repeats))
    mine = {"one iteration": ours[:, 0], f"to a residual of {RESIDUAL:g}": total(ours, needed)}
    results["checks"][f"{model}: iterations to the residual"] = float(np.median(needed))
    for label in labels or {"-": None}:
        theirs: dict[str, Any] = {}
        if label in answers:
            found = answers[label]
            every = [
                [programs.plan(solver.trot, record, k, found.x[k, j], found.u[k, j])
                 for k in range(len(record.tick))] for j in range(ITERATIONS)
            ]  # fmt: skip
            count, _ = reached(solver.judge, every)
            results["checks"][f"{model}, {label}: iterations to the residual"] = float(
                np.median(count)
            )
            steps = np.diff(found.seconds, axis=1, prepend=0.0)
            theirs = dict(zip(mine, (found.seconds[:, 0], total(steps, count)), strict=True))
        for quantity, values in mine.items():
            ours_time = float(np.median(values))
            peer_time = float(np.median(theirs[quantity])) if theirs else None
            if np.isfinite(ours_time):
                reaches = peer_time is not None and np.isfinite(peer_time)
                at = peer_time if reaches else None
                results["rows"].append(row(model, quantity, ours_time, label, at))


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
    solver: Solver, record: Record, found: programs.Answers, cost: Array
) -> dict[str, float]:
    """Return how far a peer's problem is from ours: next states, costs at the end, both relative.

    Raises:
        SolverError: they are further than `SAME_MOTION`, `SAME_COST`.
    """
    x, u = programs.guesses(solver.trot, record)
    motion = solver.trot.ocp.dynamics.map(solver.trot.intervals)
    gaps = []
    for k, tick in enumerate(record.tick):
        p = solver.trot.parameters(int(tick))
        ours = np.array(motion(x[k, :-1].T, u[k].T, p[:-1].T)).T
        gaps.append(np.abs(ours - found.motion[k]).max() / np.abs(ours).max())
    result = {
        "next states differ by": float(max(gaps)),
        "costs differ by": float(np.max(np.abs(found.cost[:, -1] / cost - 1))),
    }
    for (name, gap), most in zip(result.items(), (SAME_MOTION, SAME_COST), strict=True):
        if not gap <= most:
            raise SolverError(f"{name} {gap:.1e}, at most {most:g}: another problem")
    return result


def _growth(results: dict[str, Any]) -> None:
    """Add sizes and times of a short and a long horizon."""
    for intervals in (SHORT, LONG):
        trot = Trot(QUADRUPED, intervals)
        model = f"{QUADRUPED.name}, trot, N = {intervals}"
        with tempfile.TemporaryDirectory(prefix="mbcasadi-trot-") as name:
            law = trot.law()
            project = export_c(law, Path(name) / "c")
            results["sizes"][model] = sizes(project)
            record = closed_loop(trot, law, project.load(flags=FLAGS), TICKS)
            results["rows"] += tick_rows(model, project, record.inputs, REPEATS)
