"""How well constant targets are held, in absolute terms.

A constant target has no amplitude that an error could be compared with. Its scale is one radian
for an angle, the extent of the model for a length, and the weight for a force; the deviation at the
start is added, as a regulator may begin far from its target:

    share = RMS of the error in the last quarter of the run / (scale + |error at the start|).

A transient counts only if it lasts: a cart may move far to raise its pendulum.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from mbcasadi.description import Controller
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.metric import Metric
from mbcasadi.validation.metrics.state_components import dof_units
from mbcasadi.validation.metrics.tracking_metrics import (
    TrackingStatistics,
    rows_of_scope,
    tracking_statistics,
)
from mbcasadi.validation.metrics.unit_scales import unit_scale

HOLD_SHARE = "tracking.hold_share"
LATE = 0.25  # share of the run, at its end, in which a constant target is reached


@dataclass(frozen=True)
class HoldStatistics:
    """The error of one component whose target is constant.

    Attributes:
        name, unit: of the component.
        late: RMS of the error in the last quarter of the run.
        start: |error| at the start.
        scale: what an error of 100 % is, in `unit`; 0 where the unit gives none.
    """

    name: str
    unit: str
    late: float
    start: float
    scale: float

    @property
    def share(self) -> float:
        """`late / (scale + start)`; NaN without a scale and a deviation at the start."""
        whole = self.scale + self.start
        return self.late / whole if whole > 0 else float("nan")


def hold_statistics(
    controller: Controller, recording: Recording, model: mujoco.MjModel, settle: float = 0.0
) -> tuple[HoldStatistics, ...]:
    """Return the components of the tasks whose target is constant from `settle` s on.

    Args:
        controller, recording: of the run.
        model: of the plant, for the scales. Where no component has a unit, and there is one for
            each degree of freedom, the units are those of the plant's coordinates.
        settle: s at the start that count as a transient.
    """
    rows = tracking_statistics(controller, recording, settle, model)
    units = [row.unit for row in rows]
    if len(rows) == model.nv and not any(units):
        units = [*dof_units(model)]
    end = float(recording.t[-1])
    begin = end - LATE * max(0.0, end - settle)
    late = tracking_statistics(controller, recording, begin, model)
    return tuple(
        HoldStatistics(
            name=row.name,
            unit=unit,
            late=late[i].rms,
            start=float(np.abs(recording.monitor["error"][0, i])),
            scale=unit_scale(model, unit),
        )
        for i, (row, unit) in enumerate(zip(rows, units, strict=True))
        if not row.moves
    )


def hold_metrics(
    rows: Sequence[HoldStatistics],
    tracking: Sequence[TrackingStatistics],
    scopes: Sequence[str] = (),
) -> Iterator[Metric]:
    """Yield the worst share over all judged constant targets, then over those of each scope.

    Args:
        rows: components with a constant target.
        tracking: all components.
        scopes: as in `tracking_metrics`.
    """
    meaning = "worst RMS in the last quarter, of 1 rad, extent or weight, plus the first error"
    for scope in ("", *scopes):
        chosen = rows_of_scope(tracking, scope) if scope else [x for x in tracking if x.judged]
        matches = {row.name for row in chosen}
        shares = [row.share for row in rows if row.name in matches]
        if shares:
            suffix = f":{scope}" if scope else ""
            yield Metric(f"{HOLD_SHARE}{suffix}", float(np.max(shares)), "", meaning)
