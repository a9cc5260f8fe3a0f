"""One validated run: settings, measurements, metrics and verdicts."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import mujoco
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen import TickTimes
from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError
from mbcasadi.plant import BrowserView, VideoOptions, save_video
from mbcasadi.plant.browser import browse_motion
from mbcasadi.plant.browser_player import RecordedMotion
from mbcasadi.plant.browser_server import HOST, PORT
from mbcasadi.plant.mocap import mocap_rows
from mbcasadi.short_text import summarised
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics import (
    Comparison,
    ContactForces,
    Margin,
    Metric,
    OuterLawRun,
    OuterPlans,
    Predictions,
    Softness,
    StatusRow,
    TrackingStatistics,
    Verdict,
    passed,
    status_rows,
)
from mbcasadi.validation.run.conditions import WhatIf
from mbcasadi.validation.run.explanations import Diagnosis


@summarised
@dataclass(frozen=True)
class Run:
    """One closed loop of a controller and MuJoCo.

    Attributes:
        name: heading in the report.
        controller: as data.
        settings: of the run, as text or numbers, in order.
        recording: all ticks.
        comparison: our dynamics and MuJoCo's, where the model has equality constraints.
        times: of single ticks of the C.
        tracking: each component of the tasks.
        metrics, verdicts: numbers, and the criteria on them.
        margins: each bounded control, and each row of the controller's limits.
        predictions: plans against what happened, where the controller plans.
        softness: the sweep, where it was made.
        what_if: cost of delay and model error, where it was measured.
        diagnosis: why it failed, where it did.
        outer: run of the outer law, where there is one.
        plans: some plans of the outer law, where it plans states of the plant.
        plan_frames: PNG images of the robot with some of `plans`, at `plan_times`, s.
        contact_forces: planned forces and MuJoCo's, where the controller plans them.
        frames: PNG images of the motion, with `frame_times` in s.
        model: of the plant, with its errors; shown by `video` and `browse`.
        notes: sentences for the reader: something not compared, no renderer, a divergence.
    """

    name: str
    controller: Controller
    settings: Mapping[str, object]
    recording: Recording
    metrics: tuple[Metric, ...]
    verdicts: tuple[Verdict, ...]
    tracking: tuple[TrackingStatistics, ...] = ()
    comparison: Comparison | None = None
    times: TickTimes | None = None
    margins: tuple[Margin, ...] = ()
    predictions: Predictions | None = None
    softness: Softness | None = None
    what_if: WhatIf | None = None
    diagnosis: Diagnosis | None = None
    outer: OuterLawRun | None = None
    plans: OuterPlans | None = None
    plan_frames: tuple[bytes, ...] = ()
    plan_times: tuple[float, ...] = ()
    contact_forces: ContactForces | None = None
    frames: tuple[bytes, ...] = ()
    frame_times: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()
    model: mujoco.MjModel | None = None

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.name,
            "passed": self.passed,
            "ticks": self.recording.ticks,
            "failed": [v.metric for v in self.verdicts if v.passed is False],
            "notes": len(self.notes),
        }

    @property
    def passed(self) -> bool | None:
        """Whether every criterion is fulfilled; None where no criterion judges the run."""
        return passed(verdict.passed for verdict in self.verdicts)

    @checked
    def metric(self, name: str) -> float:
        """Return the value of a metric, NaN where the run does not have it."""
        return next((m.value for m in self.metrics if m.name == name), math.nan)

    @checked
    def video(self, path: str | Path, options: VideoOptions | None = None) -> Path:
        """Write the motion as `.mp4` or `.gif`; arguments and errors as `plant.save_video`.

        Raises:
            ProblemError: the run was made without a plant's model.
        """
        return save_video(
            self._plant_model(),
            self.recording.t,
            self.recording.q,
            path,
            options,
            mocap=self.recording.mocap_or_none,
        )

    @checked
    def browse(self, *, host: str = HOST, port: int = PORT) -> BrowserView:
        """Show the motion, MuJoCo's contact forces with their cones, and plans in a browser.

        Arguments and errors as `plant.browse`. The forces are those of MuJoCo in the recorded
        states, under the recorded controls and disturbances.

        Raises:
            ProblemError: the run was made without a plant's model.
        """
        model, recording = self._plant_model(), self.recording
        state = {
            "qvel": recording.v,
            "act": recording.act,
            "ctrl": recording.u_applied,
            "qfrc_applied": recording.disturbance,
            "eq_active": recording.equality_active,
        }
        plans = () if self.plans is None else zip(self.plans.ticks, self.plans.q, strict=True)
        motion = RecordedMotion(
            recording.t,
            recording.q,
            mocap_rows(model, recording.mocap_or_none, recording.ticks),
            state,
            tuple((float(recording.t[tick]), q) for tick, q in plans),
        )
        return browse_motion(model, motion, host, port)

    def _plant_model(self) -> mujoco.MjModel:
        if self.model is None:
            raise ProblemError(f"run {self.name!r} has no model; expected a run of validate")
        return self.model

    @property
    def statuses(self) -> dict[str, int]:
        """Number of ticks of each status that occurred, by its text."""
        return {row.text: row.ticks for row in self.status_rows}

    @property
    def status_rows(self) -> tuple[StatusRow, ...]:
        """Each status that occurred: how often, when first, and its longest run."""
        return status_rows(self.controller, self.recording.status, self.recording.t)

    @property
    def in_words(self) -> str:
        """Largest share of a limit of the controls, ticks by status, time of a tick of the C."""
        controller, recording, tick = self.controller, self.recording, self.metric("time.median")
        parts = []
        extent = np.maximum(-controller.u_min, controller.u_max)
        bounded = np.isfinite(extent) & (extent > 0)
        if recording.ticks and bounded.any():
            used = np.abs(recording.u[:, bounded] / extent[bounded]).max()
            parts.append(f"controls at {100 * used:.0f} % of their limits at most")
        shares = [f"{100 * r.ticks / recording.ticks:.3g} % {r.text}" for r in self.status_rows]
        parts.append(", ".join(shares))
        if not math.isnan(tick):
            parts.append(f"{1e6 * tick:.3g} µs of {1e3 * controller.period:g} ms a tick")
        return "; ".join(part for part in parts if part)

    def to_dict(self) -> dict[str, object]:
        """Return everything but the recording as plain data."""
        return {
            "name": self.name,
            "passed": self.passed,
            "settings": dict(self.settings),
            "criteria": [asdict(verdict) for verdict in self.verdicts],
            "metrics": {m.name: {"value": m.value, "unit": m.unit} for m in self.metrics},
            "components": [asdict(row) for row in self.tracking],
            "status": self.statuses,
            "statuses": [asdict(row) for row in self.status_rows],
            "margins": [asdict(row) for row in self.margins],
            "predictions": None if self.predictions is None else self.predictions.to_dict(),
            "softness": None if self.softness is None else asdict(self.softness),
            "outer": None if self.outer is None else self.outer.to_dict(),
            "contact_forces": None
            if self.contact_forces is None
            else self.contact_forces.to_dict(),
            "what_if": None if self.what_if is None else self.what_if.to_dict(),
            "diagnosis": None if self.diagnosis is None else self.diagnosis.to_dict(),
            "notes": list(self.notes),
        }
