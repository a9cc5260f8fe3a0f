"""The same run again: with other softness, without delay, without the plant's errors.

Law and scenario are the same; the plant's parameter errors and the delay are left out in turn.
"""

from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import numpy as np

from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ProblemError, SimulationError
from mbcasadi.plant import Plant
from mbcasadi.progress import Progress
from mbcasadi.validation.closed_loop import (
    Recording,
    Runnable,
    Scenario,
    compile_controller,
    run_loop,
)
from mbcasadi.validation.metrics import margins, safe_outputs, solref_sweep, tracking_statistics
from mbcasadi.validation.metrics.text import number_text, value_text
from mbcasadi.validation.run.preparation import Controlled, PlantFactory

NOMINAL, DELAYED, ERRONEOUS, BOTH = "nominal", "delay only", "model error only", "both"


@dataclass(frozen=True)
class FinishedRun:
    """A run that may be repeated.

    Attributes:
        law: what ran.
        given: what it was compiled from.
        plants, scenario, recording: of the run.
    """

    law: Runnable
    given: Controlled
    plants: PlantFactory
    scenario: Scenario
    recording: Recording

    def outer_record_kept(self) -> ExitStack:
        """Return a context after which an outer law has its record of the run itself again."""
        stack, outer = ExitStack(), self.scenario.options.outer
        if outer is not None:
            stack.callback(setattr, outer, "record", outer.record)
        return stack


@dataclass(frozen=True)
class Condition:
    """One run of the scenario; NaN where a number could not be measured.

    Attributes:
        name: of the condition.
        finished: whether the run reached its end.
        tracking: worst RMS error of a component, in its unit.
        effort: root of the mean of |u|².
        margin: least margin of a hard row, of its range.
        safe_output: share of ticks that fell back to a safe output.
    """

    name: str
    finished: bool
    tracking: float
    effort: float
    margin: float
    safe_output: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The condition as a row of a table."""
        return (
            self.name,
            number_text(self.tracking),
            number_text(self.effort),
            value_text("limits.least", self.margin),
            value_text("status.safe_output", self.safe_output),
            "yes" if self.finished else "no",
        )


@dataclass(frozen=True)
class WhatIf:
    """The conditions side by side.

    Attributes:
        rows: one for each condition; the last is that of the run itself.
        unit: of tracking.
        delay_expected: the runs without delay used a law that accounts for a delay.
    """

    rows: tuple[Condition, ...]
    unit: str
    delay_expected: bool = False

    @property
    def sentence(self) -> str:
        """The costs in words."""
        first = self.rows[0]
        ratios = [
            f"{row.name}: {row.tracking / first.tracking:.3g} times the tracking error"
            for row in self.rows[1:]
            if np.isfinite(row.tracking) and first.tracking > 0
        ]
        text = "; ".join(ratios) or "tracking was not measured"
        stopped = [row.name for row in self.rows if not row.finished]
        early = f" Ended early: {', '.join(stopped)}." if stopped else ""
        note = (
            " The law accounts for a delay, and is inaccurate without one."
            if self.delay_expected
            else ""
        )
        return f"Relative to {first.name}: {text}.{early}{note}"

    @property
    def headings(self) -> tuple[str, ...]:
        """Headings of a table, that of the names first."""
        unit = f", {self.unit}" if self.unit else ""
        return ("condition", f"tracking{unit}", "effort", "margin", "safe output", "finished")

    def __str__(self) -> str:
        rows = [self.headings, *(row.cells for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in rows
        )

    def to_dict(self) -> dict[str, object]:
        """Return the table as plain data."""
        rows = [asdict(row) for row in self.rows]
        return {"unit": self.unit, "sentence": self.sentence, "conditions": rows}


class _Case(NamedTuple):
    law: Runnable
    with_errors: bool
    scenario: Scenario


def compare_conditions(
    run: FinishedRun,
    settle: float,
    undelayed: Controller | HasController | Runnable | None,
    progress: Progress,
) -> WhatIf:
    """Repeat a run without its delay and without its plant's errors.

    Args:
        run: the run itself.
        settle: s at the start that tracking leaves out.
        undelayed: the law for conditions without delay; the law of the run where None.
        progress: called with what is being done.

    Raises:
        ProblemError: neither delay nor errors, so that there is nothing to compare.
    """
    progress("repeating the run without delay and errors", 0.83)
    law, scenario, recording = run.law, run.scenario, run.recording
    perturbed = bool(run.plants.perturb)
    require_conditions(scenario.delay, perturbed)
    prompt = replace(scenario, delay=0)
    rows = []
    with run.outer_record_kept() as stack:
        prompt_law = law
        if undelayed is not None:
            prompt_law = stack.enter_context(compile_controller(undelayed))
        cases = {NOMINAL: _Case(prompt_law, False, prompt)}
        if scenario.delay:
            cases[DELAYED] = _Case(law, False, scenario)
        if perturbed:
            cases[ERRONEOUS] = _Case(prompt_law, True, prompt)
        if perturbed and scenario.delay:
            cases[BOTH] = _Case(law, True, scenario)
        last = list(cases)[-1]
        for name, case in cases.items():
            known = name == last and case.law is law
            again = recording if known else _run(case, run.plants.make(case.with_errors))
            rows.append(_condition(name, case.law, again, settle))
    units = {row.unit for row in tracking_statistics(law.controller, recording, settle)}
    delay_expected = scenario.delay > 0 and prompt_law.controller.delay > 0
    return WhatIf(tuple(rows), " or ".join(sorted(units - {""})), delay_expected)


def solref_gaps(run: FinishedRun, progress: Progress) -> tuple[tuple[float, float], ...]:
    """Return the worst residual with other `solref`; () without equality constraints."""
    if not run.plants.make().model.neq:
        return ()
    progress("repeating the run with other solref", 0.82)
    with run.outer_record_kept():
        return solref_sweep(run.plants.make, lambda on: run_loop(run.law, on, run.scenario))


def require_conditions(delay: int, perturbed: bool) -> None:
    """Raise where there is neither delay nor error, so that there is nothing to compare.

    Raises:
        ProblemError: neither is given.
    """
    if not perturbed and not delay:
        raise ProblemError("what_if compares a run with delay or perturb to one without; give one")


def _run(case: _Case, plant: Plant) -> Recording | None:
    """Return the recording; None where this plant cannot be closed at the initial state."""
    try:
        return run_loop(case.law, plant, case.scenario)
    except SimulationError:
        return None


def _condition(name: str, law: Runnable, recording: Recording | None, settle: float) -> Condition:
    if recording is None:
        return Condition(name, False, np.nan, np.nan, np.nan, np.nan)
    tracking = tracking_statistics(law.controller, recording, settle)
    shares = [row.share for row in margins(law.controller, recording) if not row.soft]
    return Condition(
        name=name,
        finished=not recording.events,
        tracking=max((row.rms for row in tracking), default=np.nan),
        effort=float(np.sqrt(np.mean(np.sum(recording.u**2, axis=1)))),
        margin=min(shares, default=np.nan),
        safe_output=safe_outputs(law.controller, recording.status).share,
    )
