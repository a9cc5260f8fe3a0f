"""The same run again: with other softness, without delay, without the plant's errors."""

from contextlib import ExitStack
from dataclasses import dataclass

from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.validation.closed_loop import (
    Progress,
    Recording,
    Runnable,
    Scenario,
    compile_controller,
    run_loop,
)
from mbcasadi.validation.metrics import solref_sweep
from mbcasadi.validation.run.conditions import WhatIf, compare_conditions
from mbcasadi.validation.run.preparation import PlantFactory


@dataclass(frozen=True)
class Repetitions:
    """A run that may be repeated.

    Attributes:
        law: compiled.
        plants, scenario: of the run.
        progress: called with what is being done.
    """

    law: Runnable
    plants: PlantFactory
    scenario: Scenario
    progress: Progress

    def solref_gaps(self) -> tuple[tuple[float, float], ...]:
        """Return the worst residual with other `solref`; () without equality constraints."""
        if not self.plants.make().model.neq:
            return ()
        self.progress("repeating the run with other solref", 0.82)
        with self.restore_outer_record():
            return solref_sweep(
                self.plants.make, lambda other: run_loop(self.law, other, self.scenario)
            )

    def conditions(
        self,
        recording: Recording,
        settle: float,
        undelayed: Controller | HasController | Runnable | None,
    ) -> WhatIf:
        """Return the cost of delay and errors; see `conditions.compare_conditions`.

        Args:
            recording: of the run.
            settle: s at the start that tracking leaves out.
            undelayed: the law for conditions without delay; the law of the run where None.
        """
        self.progress("repeating the run without delay and errors", 0.83)
        with self.restore_outer_record() as stack:
            undelayed_law = self.law
            if undelayed is not None:
                undelayed_law = stack.enter_context(compile_controller(undelayed))
            return compare_conditions(
                (self.law, undelayed_law),
                self.plants.make,
                self.scenario,
                recording,
                settle,
                perturbed=bool(self.plants.perturb),
            )

    def restore_outer_record(self) -> ExitStack:
        """Return a context that restores an outer law's record of the run itself at its end."""
        stack, outer = ExitStack(), self.scenario.options.outer
        if outer is not None:
            stack.callback(setattr, outer, "record", outer.record)
        return stack
