"""What delay and model error cost: one scenario under four conditions.

The law and the scenario stay; the plant's parameter errors and the delay come and go.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from mbcasadi.errors import ProblemError, SimulationError
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop.closed_loop import Scenario, run_loop
from mbcasadi.validation.closed_loop.compiled_law import CompiledLaw
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics import metrics as measures
from mbcasadi.validation.metrics.margins import margins

NOMINAL, DELAYED, ERRONEOUS, BOTH = "nominal", "delay only", "model error only", "both"


@dataclass(frozen=True)
class Condition:
    """One run of the scenario; NaN where a number could not be measured.

    Attributes:
        name: of the condition.
        finished: the run came to its end.
        tracking: worst RMS error of a component, in its unit.
        effort: root of the mean of |u|².
        margin: least margin of a hard row, of its range.
        failed: share of ticks that fell back to a safe output.
    """

    name: str
    finished: bool
    tracking: float
    effort: float
    margin: float
    failed: float


@dataclass(frozen=True)
class WhatIf:
    """The conditions side by side.

    Attributes:
        rows: one for each condition; the last is that of the run itself.
        unit: of tracking.
        expectant: the conditions without delay ran a law that counts on one.
    """

    rows: tuple[Condition, ...]
    unit: str
    expectant: bool = False

    @property
    def sentence(self) -> str:
        """The costs in words."""
        first = self.rows[0]
        parts = [
            f"{row.name}: {row.tracking / first.tracking:.3g} times the tracking error"
            for row in self.rows[1:]
            if np.isfinite(row.tracking) and first.tracking > 0
        ]
        said = "; ".join(parts) or "tracking was not measured"
        lost = [row.name for row in self.rows if not row.finished]
        early = f" Ended early: {', '.join(lost)}." if lost else ""
        note = " The law counts on a delay, and errs where there is none." if self.expectant else ""
        return f"Beside {first.name}: {said}.{early}{note}"

    def __str__(self) -> str:
        unit = f", {self.unit}" if self.unit else ""
        head = ("condition", f"tracking{unit}", "effort", "margin", "safe output", "finished")
        cells = [
            (
                row.name,
                f"{row.tracking:.3g}",
                f"{row.effort:.3g}",
                f"{100 * row.margin:.3g} %",
                f"{100 * row.failed:.3g} %",
                "yes" if row.finished else "no",
            )
            for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
        return "\n".join(
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in (head, *cells)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain data."""
        rows = [asdict(row) for row in self.rows]
        return {"unit": self.unit, "sentence": self.sentence, "conditions": rows}


def what_if(
    laws: tuple[CompiledLaw, CompiledLaw],
    make_plant: Callable[[bool], Plant],
    scenario: Scenario,
    recording: Recording,
    settle: float,
    *,
    erroneous: bool,
) -> WhatIf:
    """Repeat a run without its delay and without its plant's errors.

    Args:
        laws: the law of the run, and the one for conditions without delay; often the same.
        make_plant: whether it has its parameter errors → a new plant.
        scenario, recording: the run itself.
        settle: s at the start that tracking leaves out.
        erroneous: whether the run's plant has parameter errors.

    Raises:
        ProblemError: neither delay nor errors, so that there is nothing to compare.
    """
    require_conditions(scenario.delay, erroneous)
    law, prompt_law = laws
    prompt = replace(scenario, delay=0)
    plan = {NOMINAL: (prompt_law, False, prompt)}
    if scenario.delay:
        plan[DELAYED] = (law, False, scenario)
    if erroneous:
        plan[ERRONEOUS] = (prompt_law, True, prompt)
    if erroneous and scenario.delay:
        plan[BOTH] = (law, True, scenario)
    own = list(plan)[-1]
    rows = []
    for name, (one, errors, asked) in plan.items():
        known = name == own and one is law
        done = recording if known else _run(one, make_plant(errors), asked)
        rows.append(_condition(name, one, done, settle))
    units = {row.unit for row in measures.tracked(law.controller, recording, settle)}
    blind = scenario.delay > 0 and prompt_law.controller.delay > 0
    return WhatIf(tuple(rows), " or ".join(sorted(units - {""})), blind)


def require_conditions(delay: int, erroneous: bool) -> None:
    """Raise where there is neither delay nor error, so that there is nothing to compare.

    Raises:
        ProblemError: neither is given.
    """
    if not erroneous and not delay:
        raise ProblemError("what_if compares a run with delay or perturb to one without; give one")


def _run(law: CompiledLaw, plant: Plant, scenario: Scenario) -> Recording | None:
    try:
        return run_loop(law, plant, scenario)
    except SimulationError:  # a start that this plant cannot take
        return None


def _condition(name: str, law: CompiledLaw, done: Recording | None, settle: float) -> Condition:
    if done is None:
        return Condition(name, False, np.nan, np.nan, np.nan, np.nan)
    tracked = measures.tracked(law.controller, done, settle)
    shares = [row.share for row in margins(law.controller, done) if not row.soft]
    return Condition(
        name=name,
        finished=not done.events,
        tracking=max((row.rms for row in tracked), default=np.nan),
        effort=float(np.sqrt(np.mean(np.sum(done.u**2, axis=1)))),
        margin=min(shares, default=np.nan),
        failed=float(np.isin(done.status, law.controller.safe_statuses).mean()),
    )
