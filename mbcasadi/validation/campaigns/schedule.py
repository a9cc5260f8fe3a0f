"""The cases of a campaign, handed to workers batch by batch; a case that kills them is given up."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass

from mbcasadi.errors import ProblemError
from mbcasadi.validation.campaigns.outcome import Outcome
from mbcasadi.validation.campaigns.worker import BatchResult, Numbered
from mbcasadi.validation.campaigns.workers import BROKEN, Workers

BATCH_SECONDS = 2.0  # of work in a batch: milliseconds of overhead count little then
LARGEST_BATCH = 200
MOST_DEATHS = 3  # of workers, by one case
MOST_LOST = 3  # cases in a row that are given up
SHARE_OF_REST = 8  # the last batches are small, so that no worker waits long for another


@dataclass(frozen=True)
class Shipment:
    """What is sent with each batch.

    Attributes:
        key: of the kit.
        kit: its bytes, sent to workers that lack it.
        time_limit: s, of each case.
        give_up: number and reason → the outcome of a case that was given up.
    """

    key: str
    kit: bytes
    time_limit: float | None
    give_up: Callable[[Numbered, str], Outcome]


@dataclass
class _Batch:
    cases: tuple[Numbered, ...]
    with_kit: bool = False


class Schedule:
    """Hands cases to workers and collects their outcomes.

    A worker that dies takes the batches of its pool with it. Their cases are then run one by one
    with nothing beside them, so that a further death has one cause; a case that has
    killed `MOST_DEATHS` workers is given up.
    """

    def __init__(self, workers: Workers, shipment: Shipment, seconds: float | None) -> None:
        """Start with an estimate of the time of one case, s."""
        self._workers, self._shipment = workers, shipment
        self._seconds = seconds
        self._pending: deque[Numbered] = deque()
        self._suspects: deque[Numbered] = deque()
        self._again: deque[_Batch] = deque()  # for a worker that lacked the kit
        self._in_flight: dict[Future[BatchResult], _Batch] = {}
        self._deaths: Counter[int] = Counter()
        self._attempts = self._lost = 0

    def run(self, cases: Sequence[Numbered]) -> Iterator[tuple[Outcome, ...]]:
        """Yield the outcomes of each batch as it is done."""
        self._pending.extend(cases)
        while self._pending or self._suspects or self._again or self._in_flight:
            self._fill()
            done, _ = wait(self._in_flight, return_when=FIRST_COMPLETED)
            for future in done:
                outcomes = self._collect(future)
                if outcomes:
                    yield outcomes

    def _fill(self) -> None:
        """Submit batches; a suspect runs alone, when all others are done."""
        if self._suspects:
            if not self._in_flight:
                self._submit(_Batch((self._suspects.popleft(),), with_kit=True))
            return
        while len(self._in_flight) < self._workers.in_flight and (self._again or self._pending):
            if not self._submit(self._again.popleft() if self._again else self._next_batch()):
                return

    def _next_batch(self) -> _Batch:
        count = 1
        if self._seconds is not None:
            count = round(BATCH_SECONDS / max(self._seconds, BATCH_SECONDS / LARGEST_BATCH))
            count = min(count, len(self._pending) // SHARE_OF_REST)
        count = max(1, min(count, len(self._pending)))
        return _Batch(tuple(self._pending.popleft() for _ in range(count)))

    def _submit(self, batch: _Batch) -> bool:
        """Submit a batch; False where a worker has died meanwhile."""
        sent, self._attempts = self._shipment, self._attempts + 1
        kit = sent.kit if batch.with_kit else None
        try:
            future = self._workers.submit(
                sent.key, kit, batch.cases, sent.time_limit, self._attempts
            )
        except BrokenExecutor:
            self._again.appendleft(batch)
            if not self._in_flight:
                self._workers.rebuild()
            return False
        self._in_flight[future] = batch
        return True

    def _collect(self, future: "Future[BatchResult]") -> tuple[Outcome, ...]:
        """Return the outcomes of a batch, none where it has to be submitted again."""
        alone = len(self._in_flight) == 1
        batch = self._in_flight.pop(future)
        try:
            result = future.result()
        except self._workers.death_errors:
            return self._after_death(batch, alone and len(batch.cases) == 1)
        except BrokenExecutor as error:
            raise ProblemError(BROKEN) from error
        if result.lacks_kit:
            batch.with_kit = True
            self._again.append(batch)
            return ()
        self._seconds, self._lost = result.seconds / len(result.outcomes), 0
        return result.outcomes

    def _after_death(self, batch: _Batch, was_alone: bool) -> tuple[Outcome, ...]:
        """Put the cases of a batch back; give one up that has killed too many workers."""
        if not self._in_flight:
            self._workers.rebuild()
        if len(batch.cases) > 1 and self._workers.names_the_batch:
            self._again.extend(_Batch((case,)) for case in batch.cases)
            return ()
        if not was_alone:
            self._suspects.extend(batch.cases)
            return ()
        (numbered,) = batch.cases
        self._deaths[numbered[0]] += min(self._workers.deaths_of_error, MOST_DEATHS)
        if self._deaths[numbered[0]] < MOST_DEATHS:
            self._suspects.appendleft(numbered)
            return ()
        self._lost += 1
        if self._lost == MOST_LOST:
            raise ProblemError(
                f"{MOST_LOST} cases in a row, the last with the number {numbered[0]}, killed all "
                "workers that ran them alone; run one of them with jobs=1 to see why (often memory)"
            )
        reason = f"given up: {MOST_DEATHS} workers died while they ran this case alone"
        return (self._shipment.give_up(numbered, reason),)
