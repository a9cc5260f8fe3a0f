"""The longest tick: a bound of its operations, and times over many ticks."""

from dataclasses import dataclass

import numpy as np

from mbcasadi.codegen.manifest import Manifest
from mbcasadi.codegen.timing import TickTimes
from mbcasadi.short_text import summarised

RARE = 99.99  # percentile


@summarised
@dataclass(frozen=True)
class LongestTick:
    """What a tick takes at most.

    Attributes:
        ticks: how many were timed.
        median, p99, p9999, longest: s, on this machine; a scheduler that interrupts the program
            counts, so the longest is that of machine and tick together.
        operations: of a tick at the limit of iterations; None where the solver has no bound.
        iteration_limit: of the QP solver, 0 without one. `<name>_limit_iterations` sets another.
    """

    ticks: int
    median: float
    p99: float
    p9999: float
    longest: float
    operations: int | None
    iteration_limit: int


def operations_at(manifest: Manifest, iterations: int) -> int | None:
    """Return the most operations of a tick with so many iterations; None without a bound."""
    bound = manifest["tick_operations"]
    slope = bound["per_iteration"]
    return None if slope is None else bound["fixed"] + slope * iterations


def worst_case_of(manifest: Manifest, times: TickTimes) -> LongestTick:
    """Return the worst case of timed ticks."""
    solver = manifest["solver"]
    limit = 0 if solver is None else solver["iteration_limit"]
    rare = float(np.percentile(times.seconds, RARE))
    bound = operations_at(manifest, limit)
    return LongestTick(times.seconds.size, times.median, times.p99, rare, times.max, bound, limit)
