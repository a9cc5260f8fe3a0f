"""A run of the campaign: each family in several sizes, each problem from two active sets."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from campaign.least_distance.families import FAMILIES, FEASIBLE, INFEASIBLE, Problems, Size
from campaign.least_distance.program import Answers, Judge, Solver
from mbcasadi.description.qp_stages import C_PRIMAL_TOLERANCE, PROOF_RADIUS, SolverFlag

SEED = 11
SIZES = ((4, 3), (12, 6), (20, 8), (32, 12), (24, 24), (69, 41), (200, 60))  # rows, unknowns
SHARES = (0.2, 0.25, 0.25, 0.2, 0.08, 0.015, 0.005)
PART = 2000  # problems at once
UNIT = 2  # the solver's scale is a power of two: up to twice the judge's
TOLERANCES = np.array([UNIT * C_PRIMAL_TOLERANCE, UNIT * C_PRIMAL_TOLERANCE, 1e-13, 1e-10])
"""Violation, distance of active rows, stationarity, duality gap: see `judge.c`."""


@dataclass
class Tally:
    """Counts of one family: answers are twice as many as problems.

    `wrong` says of each wrong answer what it is and where: size, part, number.
    """

    name: str
    solved: int = 0
    infeasible: int = 0
    needless: int = 0
    unproven: int = 0
    undecided: int = 0
    iterations: int = 0
    worst: np.ndarray = field(default_factory=lambda: np.zeros(4))
    wrong: list[str] = field(default_factory=list)


def run(
    problems: int, folder: Path, families: list[Callable[..., Problems]], seed: int = SEED
) -> list[Tally]:
    """Return a tally of each family."""
    judge = Judge(folder)
    solvers = [Solver(m, n, folder) for m, n in SIZES]
    tallies = []
    for family in families:
        tally = Tally(family.__name__)
        for solver, part, size in parts(problems // len(families), solvers):
            rng = np.random.default_rng([seed, zlib.crc32(tally.name.encode()), *size, part])
            posed = family(rng, size)
            warm = rng.choice([-1.0, 0.0, 1.0], size=posed[1].shape)
            for start in (None, warm):
                place = f"{tally.name} {size.m} x {size.n}, part {part}, {start is not None}"
                count(tally, place, judge, FAMILIES[family], posed, solver(*posed, start))
        tallies.append(tally)
    return tallies


def parts(problems: int, solvers: list[Solver]) -> Iterator[tuple[Solver, int, Size]]:
    """Return pieces of work: the problems are shared among the sizes."""
    for solver, share in zip(solvers, SHARES, strict=True):
        left, part = max(1, round(share * problems)), 0
        while left > 0:
            yield solver, part, Size(min(left, PART), solver.m, solver.n)
            left, part = left - PART, part + 1


def count(
    tally: Tally, place: str, judge: Judge, known: str, posed: Problems, answers: Answers
) -> None:
    """Judge the answers and add them to the tally."""
    optimal, infeasible = (
        answers.flag == flag for flag in (SolverFlag.OPTIMAL, SolverFlag.INFEASIBLE)
    )
    figures = judge.optimum(*posed, answers.x, answers.lam)
    proven = judge.infeasible(*posed, answers.ray, PROOF_RADIUS)
    right = np.all(figures <= TOLERANCES, axis=1)
    stopped = ~(optimal | infeasible)
    tally.solved += int(np.sum(optimal & right))
    tally.infeasible += int(np.sum(infeasible & proven))
    tally.iterations += int(np.sum(answers.iterations))
    outcome = {FEASIBLE: "needless", INFEASIBLE: "unproven"}.get(known, "undecided")
    setattr(tally, outcome, getattr(tally, outcome) + int(np.sum(stopped)))
    if np.any(optimal):
        tally.worst = np.maximum(tally.worst, np.max(figures[optimal], axis=0))
    faults = {
        "not optimal": optimal & ~right,
        "solved, but infeasible": optimal & (known == INFEASIBLE),
        "infeasible without a proof": infeasible & ~proven,
        "false infeasible": infeasible & (known == FEASIBLE),
    }
    for fault, where in faults.items():
        tally.wrong += [f"{fault}: {place}, number {i}" for i in np.flatnonzero(where)]


def table(tallies: list[Tally]) -> str:
    """Return the tallies as a table, then the first wrong answers."""
    heads = ("solved", "infeasible", "needless", "unproven", "undecided", "wrong")
    lines = [f"{'family':22}" + "".join(f"{head:>11}" for head in heads)]
    lines[0] += "   iterations   violation, active rows, stationarity, gap"
    for t in tallies:
        counts = (t.solved, t.infeasible, t.needless, t.unproven, t.undecided, len(t.wrong))
        mean = t.iterations / max(1, sum(counts))
        worst = ", ".join(f"{value:.0e}" for value in t.worst)
        lines.append(
            f"{t.name:22}" + "".join(f"{c:11}" for c in counts) + f"{mean:13.1f}   {worst}"
        )
    return "\n".join(lines + [line for t in tallies for line in t.wrong[:10]])
