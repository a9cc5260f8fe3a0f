"""The same run again: with other softness, without delay, without the plant's errors."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from mbcasadi.description import Controller
from mbcasadi.plant import Plant, Source
from mbcasadi.validation.closed_loop.closed_loop import Progress, Scenario, run_loop
from mbcasadi.validation.closed_loop.compiled_law import CompiledLaw, HasController, compiled
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics.softness import solref_sweep
from mbcasadi.validation.run.conditions import WhatIf, what_if


@dataclass(frozen=True)
class Plants:
    """Makes the plant of a run, again and again.

    Attributes:
        model, options, perturb, seed: of `Plant`.
    """

    model: Source
    options: Mapping[str, Any]
    perturb: Mapping[str, float] | None
    seed: int | None

    def make(self, erroneous: bool = True) -> Plant:
        """Return a new plant, with its parameter errors or without."""
        if not erroneous:
            return Plant(self.model, **self.options)
        return Plant(self.model, **self.options, perturb=self.perturb, seed=self.seed)


@dataclass(frozen=True)
class Repetitions:
    """A run that may be repeated.

    Attributes:
        law: compiled.
        plants, scenario: of the run.
        tell: what is being done.
    """

    law: CompiledLaw
    plants: Plants
    scenario: Scenario
    tell: Progress

    def gaps(self) -> tuple[tuple[float, float], ...]:
        """Return how far the loops open with other `solref`; nothing where there are none."""
        if not self.plants.make().model.neq:
            return ()
        self.tell("repeating the run with other solref", 0.82)
        with self._record_kept():
            return solref_sweep(
                self.plants.make, lambda other: run_loop(self.law, other, self.scenario)
            )

    def costs(
        self, recording: Recording, settle: float, undelayed: Controller | HasController | None
    ) -> WhatIf:
        """Return what delay and errors cost; see `conditions`."""
        self.tell("repeating the run without delay and errors", 0.83)
        with self._record_kept() as stack:
            prompt = self.law if undelayed is None else stack.enter_context(compiled(undelayed))
            return what_if(
                (self.law, prompt),
                self.plants.make,
                self.scenario,
                recording,
                settle,
                erroneous=bool(self.plants.perturb),
            )

    def _record_kept(self) -> ExitStack:
        """Return a context after which an outer law has the record of the run itself."""
        stack, outer = ExitStack(), self.scenario.outer
        if outer is not None:
            stack.callback(setattr, outer, "record", outer.record)
        return stack
