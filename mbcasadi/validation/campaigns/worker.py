"""What a worker process does: batches of cases, with the kit that it was sent once."""

import pickle
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from mbcasadi.validation.campaigns.case import Case
from mbcasadi.validation.campaigns.outcome import Outcome
from mbcasadi.validation.campaigns.trials import Trials

KITS = 4  # of campaigns that a process keeps

Numbered = tuple[int, Case]
"""A case, and its place in the campaign."""


class _Loaded(threading.local):
    """The kits of a thread; a cluster's worker may have several threads."""

    def __init__(self) -> None:
        self.trials: OrderedDict[str, Trials] = OrderedDict()


_loaded = _Loaded()


@dataclass(frozen=True)
class BatchResult:
    """The outcomes of a batch.

    Attributes:
        outcomes: one for each case; empty where the worker has no kit.
        seconds: that the cases took, without the loading of the kit.
        lacks_kit: the worker does not have the kit of this key yet.
    """

    outcomes: tuple[Outcome, ...] = ()
    seconds: float = 0.0
    lacks_kit: bool = False


def run_batch(
    key: str,
    kit: bytes | None,
    batch: Sequence[Numbered],
    time_limit: float | None,
    attempt: int,  # noqa: ARG001 - tells one submission from another where results are cached
) -> BatchResult:
    """Run cases one after the other.

    Args:
        key: of the kit.
        kit: its bytes, or None to use the one that was sent before.
        batch: the cases.
        time_limit: s, of each case.
        attempt: number of this submission.
    """
    trials = _trials_of(key, kit)
    if trials is None:
        return BatchResult(lacks_kit=True)
    begin = time.perf_counter()
    outcomes = tuple(trials.run(number, case, time_limit) for number, case in batch)
    return BatchResult(outcomes, time.perf_counter() - begin)


def _trials_of(key: str, kit: bytes | None) -> Trials | None:
    """Return the loaded kit, or None where it was not sent yet."""
    known = _loaded.trials
    if key not in known:
        if kit is None:
            return None
        known[key] = Trials(pickle.loads(zlib.decompress(kit)))
        while len(known) > KITS:
            known.popitem(last=False)
    return known[key]
