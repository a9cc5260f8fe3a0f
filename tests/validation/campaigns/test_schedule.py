"""Cases handed to workers that die: nothing is lost, and who kills them is named."""

from collections import Counter
from concurrent.futures import BrokenExecutor, Executor, Future

import pytest

from mbcasadi.errors import ProblemError
from mbcasadi.validation import Case, Outcome
from mbcasadi.validation.campaigns.schedule import (
    MOST_DEATHS,
    GivenExecutor,
    Schedule,
    Shipment,
    Workers,
)
from mbcasadi.validation.campaigns.trials import BatchResult


class Mortal(Workers):
    """Runs a batch when its result is asked for; some cases kill all workers, or one."""

    death_errors = (BrokenExecutor,)

    def __init__(self, killers, *, names_the_batch, deaths_of_error):
        self.in_flight = 4
        self.names_the_batch = names_the_batch
        self.deaths_of_error = deaths_of_error
        self.killers, self.runs, self.rebuilt = killers, Counter(), 0
        self.broken, self.has_kit = False, False
        self.waiting = []

    def submit(self, *arguments):
        _key, kit, batch, _time_limit, _attempt = arguments
        if self.broken:
            raise BrokenExecutor
        future = Future()
        self.waiting.append((future, kit, batch))
        if len(self.waiting) >= self.in_flight or len(batch) == 1 or not self.has_kit:
            self.finish()
        return future

    def finish(self):
        """Run what waits; a killer breaks the batches in flight beside its own."""
        waiting, self.waiting = self.waiting, []
        for future, kit, batch in waiting:
            self.has_kit |= kit is not None
            deadly = any(self.kills(number) for number, _ in batch)
            if deadly or (self.broken and not self.names_the_batch):
                self.broken = not self.names_the_batch
                self.has_kit = False
                future.set_exception(BrokenExecutor("a worker died"))
            elif not self.has_kit:
                future.set_result(BatchResult(lacks_kit=True))
            else:
                self.runs.update(number for number, _ in batch)
                outcomes = tuple(Outcome(n, case, (), (), ()) for n, case in batch)
                future.set_result(BatchResult(outcomes, 0.5 * len(batch)))

    def kills(self, number):
        left = self.killers.get(number, 0)
        self.killers[number] = left - 1
        return left > 0

    def rebuild(self):
        self.broken = False
        self.rebuilt += 1

    def close(self):
        pass


def shipment():
    return Shipment("key", b"kit", None, lambda numbered, why: Outcome(*numbered, (), (), (why,)))


@pytest.mark.parametrize("names_the_batch", [False, True], ids=["pool", "cluster"])
def test_a_case_that_always_kills_is_given_up_and_all_others_run_once(names_the_batch):
    deaths = MOST_DEATHS if names_the_batch else 1
    workers = Mortal({17: 99, 30: 1}, names_the_batch=names_the_batch, deaths_of_error=deaths)
    plan = list(enumerate(Case(k) for k in range(60)))
    schedule = Schedule(workers, shipment(), 0.5)
    outcomes = [outcome for batch in schedule.run(plan) for outcome in batch]
    assert sorted(outcome.number for outcome in outcomes) == list(range(60))
    (lost,) = [outcome for outcome in outcomes if outcome.events]
    assert lost.number == 17
    assert "3 workers died" in lost.events[0]
    assert 17 not in workers.runs
    assert set(workers.runs.values()) == {1}
    assert workers.rebuilt >= 1


def test_a_campaign_ends_where_every_case_kills_its_worker():
    workers = Mortal(dict.fromkeys(range(20), 99), names_the_batch=False, deaths_of_error=1)
    plan = list(enumerate(Case(k) for k in range(20)))
    with pytest.raises(ProblemError, match="3 cases in a row"):
        list(Schedule(workers, shipment(), 0.5).run(plan))


def test_an_executor_of_the_caller_that_breaks_is_an_error_that_says_so():
    class Broken(Executor):
        def submit(self, *_arguments):
            if self.first:
                future = Future()
                future.set_exception(BrokenExecutor("a process died"))
                return future
            raise BrokenExecutor("already")

    plan = list(enumerate(Case(k) for k in range(3)))
    for first in (True, False):
        executor = Broken()
        executor.first = first
        with pytest.raises(ProblemError, match="the executor is broken"):
            list(Schedule(GivenExecutor(executor), shipment(), None).run(plan))


def test_batches_are_larger_where_cases_are_short():
    for seconds, largest in ((5.0, 1), (0.5, 4), (0.01, 125)):
        workers = Mortal({}, names_the_batch=False, deaths_of_error=1)
        workers.has_kit = True
        plan = list(enumerate(Case(k) for k in range(1000)))
        schedule = Schedule(workers, shipment(), seconds)
        sizes = [len(schedule._next_batch().cases) for _ in schedule._pending.extend(plan) or [0]]
        assert sizes == [largest]
