"""What a campaign needs before its first case: the exported controller and all that cases share."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from numpy.typing import ArrayLike

from mbcasadi.codegen import export_c
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant, Source
from mbcasadi.validation.campaigns.case import Case
from mbcasadi.validation.campaigns.kit import Kit, conditions_of, make_kit
from mbcasadi.validation.closed_loop import (
    CompiledLaw,
    ProgressReporter,
    ScenarioOptions,
    TimeSignal,
    controller_of,
)
from mbcasadi.validation.metrics import Criteria, require_reportable
from mbcasadi.validation.run import fitted_to_plant


@contextmanager
def prepared(
    controller: Controller | HasController,
    model: Source,
    duration: float,
    cases: Sequence[Case],
    *,
    reference: TimeSignal,
    q0: ArrayLike | None,
    v0: ArrayLike | None,
    rigid: bool,
    disturbance: TimeSignal,
    scenario: ScenarioOptions | None,
    criteria: Criteria | None,
    report: ProgressReporter,
) -> Iterator[tuple[Kit, CompiledLaw | None]]:
    """Export the controller, and yield the kit of a campaign, with the law where it is compiled.

    The arguments are those of `campaign`.
    """
    options, criteria = scenario or ScenarioOptions(), criteria or Criteria()
    if not cases:
        raise ProblemError("a campaign needs at least one case")
    if options.seed is not None:
        raise ProblemError("each case of a campaign has a seed; leave seed out of the scenario")
    if options.outer is not None and reference is not None:
        raise ProblemError("an outer law computes the reference; give reference or outer, not both")
    report("generating C", 0.0)
    delays = {case.delay for case in cases}
    nominal = Plant(model, rigid=rigid, timestep=options.timestep)
    controller = fitted_to_plant(controller, nominal, delays.pop() if len(delays) == 1 else 0)
    with tempfile.TemporaryDirectory(prefix="mbcasadi-") as folder:
        if isinstance(controller, CompiledLaw):
            law = controller
        else:
            data = controller_of(controller)
            project = export_c(data, Path(folder) / "c", progress=report.note)
            law = CompiledLaw(data, data.function, project)
        require_reportable(law.controller)
        conditions = conditions_of(
            law.controller, duration, options,
            reference=reference, q0=q0, v0=v0, rigid=rigid, disturbance=disturbance,
        )  # fmt: skip
        kit = make_kit(law, model, conditions, criteria, len(cases))
        yield kit, law if law is controller else None
