"""A run of the campaign: numbered states of each case, in several processes."""

import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

from campaign.cases import BUILDERS, case
from campaign.judge import Verdict, judge
from campaign.robots import ROBOTS, robot_case
from campaign.states import draw_inputs
from campaign.tally import Tally

SEED = 7
PART = 500  # states of one piece of work
SHARES = {
    "quadruped": 2.0, "humanoid": 0.5, "humanoid_rigid_soles": 0.4,
}  # of a case's states, where they are not one  # fmt: skip


def judged(name: str, number: int, seed: int = SEED) -> tuple[Verdict | None, str]:
    """Return the verdict on a numbered state of a case, and a note to find it again."""
    each = robot_case(name) if name in ROBOTS else case(name)
    inputs = draw_inputs(each, number, seed)
    if inputs is None:
        return None, ""
    solution = each.controller.solve(inputs.q, inputs.v, inputs.ref, mask=inputs.mask, z=inputs.z)
    verdict = judge(each, inputs, solution)
    figures = ", ".join(f"{key} {value:.1e}" for key, value in verdict.figures.items())
    residual = ", ".join(f"{value:.1e}" for value in solution.residual)
    note = f"(status {solution.status}, noise {inputs.noise:.0e}, level {inputs.level:.0e}; "
    return verdict, f"{note}{figures}; residual {residual})"


def work(name: str, first: int, last: int, seed: int) -> Tally:
    """Return the tally of the states `first` … `last - 1` of a case."""
    tally = Tally(name)
    for number in range(first, last):
        tally.add(number, *judged(name, number, seed))
    return tally


def parts(problems: int, names: list[str]) -> Iterator[tuple[str, int, int]]:
    """Return pieces of work: the problems are shared among the cases."""
    whole = sum(SHARES.get(name, 1.0) for name in names)
    for name in names:
        count = max(1, round(problems * SHARES.get(name, 1.0) / whole))
        for first in range(0, count, PART):
            yield name, first, min(first + PART, count)


def run(problems: int, workers: int, names: list[str] | None = None, seed: int = SEED):
    """Return the tallies by case; prints how far it is."""
    names = names or list(BUILDERS)
    tallies = {name: Tally(name) for name in names}
    start, done = time.perf_counter(), 0
    pieces = list(parts(problems, names))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting = [pool.submit(work, *piece, seed) for piece in pieces]
        for future in as_completed(waiting):
            tally = future.result()
            tallies[tally.name].merge(tally)
            done += tally.problems + tally.skipped
            seconds = time.perf_counter() - start
            print(f"{seconds:6.0f} s  {done:7d} of {problems}  {tally.name}", flush=True)
    return list(tallies.values())
