"""Everything that the cases of a campaign share, as data that another process can be sent."""

import hashlib
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen import export_c
from mbcasadi.description import Controller
from mbcasadi.shapes import count_of_periods
from mbcasadi.validation.campaigns.shipped_code import ShippedCode
from mbcasadi.validation.campaigns.shipping import ShippedController, ship, to_bytes
from mbcasadi.validation.closed_loop import (
    CompiledLaw,
    Disturbance,
    FastLaw,
    OuterLaw,
    Push,
    Runnable,
    Sensing,
    TimeSignal,
    generalised_force,
)
from mbcasadi.validation.closed_loop.compiled_law import FAST_FLAGS
from mbcasadi.validation.closed_loop.monitor_in_c import export_monitor
from mbcasadi.validation.closed_loop.scenario import scaled_push
from mbcasadi.validation.metrics import Criteria
from mbcasadi.validation.run.model_bytes import model_bytes
from mbcasadi.validation.trial import Trial

Array = NDArray[np.float64]

COMPILE_MONITOR_FROM = 20_000
"""Ticks of a campaign from which on any monitor is compiled; one that solves a QP always is, as
CasADi cannot send its solver to another process."""


@dataclass(frozen=True)
class Kit:
    """What every worker of a campaign needs.

    Attributes:
        controller: as data.
        monitor: the export of its monitor; None where CasADi evaluates it.
        estimator: the export of the sensors' estimator; None without sensors.
        model: the plant's model without errors, in MuJoCo's binary format.
        trial: conditions of all cases, functions of time sampled at the ticks.
    """

    controller: ShippedController
    monitor: ShippedCode | None
    estimator: ShippedCode | None
    model: bytes
    trial: Trial

    def fingerprint(self) -> dict[str, str]:
        """Return what tells one campaign from another, part by part."""
        trial, criteria = self.trial, self.trial.criteria
        conditions = replace(trial, criteria=Criteria(), period=None, fast=False)
        return {
            "controller": self.controller.identity[:16],
            "model": hashlib.sha256(self.model).hexdigest()[:16],
            "duration": f"{trial.duration!r} s",
            "criteria": repr(
                (sorted((criteria.limits or {"defaults": 0.0}).items()), criteria.settle)
            ),
            "conditions": hashlib.sha256(to_bytes(conditions)).hexdigest()[:16],
            "mujoco": mujoco.__version__,
        }

    def to_bytes(self) -> bytes:
        """Return the kit as bytes, with the libraries of all its C, compiled here.

        Raises:
            CompilerError: no compiler, or it failed.
        """
        complete = replace(
            self,
            controller=self.controller.with_library(),
            monitor=self.monitor and self.monitor.with_library(),
            estimator=self.estimator and self.estimator.with_library(),
        )
        return zlib.compress(to_bytes(complete, libraries=True), level=1)


def make_kit(law: Runnable, model: mujoco.MjModel, trial: Trial, cases: int) -> Kit:
    """Return the kit of a campaign.

    Args:
        law: the controller; one of ours is exported.
        model: of the plants.
        trial: conditions of all cases, with the reference and the time step that they have.
        cases: number of runs, from which follows whether the monitor is compiled.
    """
    controller, monitor = law.controller, None
    ticks = cases * count_of_periods("duration", trial.duration, controller.period)
    is_ours = isinstance(law, CompiledLaw) or (isinstance(law, FastLaw) and law.project is not None)
    if is_ours and (controller.monitor_stages is not None or ticks >= COMPILE_MONITOR_FROM):
        monitor = monitor_code(controller)
    return Kit(
        controller=ship(law, monitor=monitor is None),
        monitor=monitor,
        estimator=None if trial.sensors is None else estimator_code(trial.sensors),
        model=model_bytes(model),
        trial=sampled_trial(trial, controller.period),
    )


@dataclass(frozen=True)
class SampledSignal:
    """A signal at ticks: rows (nt, size) at multiples of a period, s."""

    period: float
    rows: Array

    def __call__(self, t: float) -> Array:
        """Return the row of the tick at time t."""
        return np.asarray(self.rows[round(t / self.period)])


@dataclass(frozen=True)
class SampledSwitches:
    """A schedule of switched constraints at ticks."""

    period: float
    rows: tuple[dict[str, bool], ...]

    def __call__(self, t: float) -> Mapping[str, bool]:
        """Return the switches of the tick at time t."""
        return self.rows[round(t / self.period)]


def sampled_trial(trial: Trial, period: float) -> Trial:
    """Return the conditions of a trial as data, functions of time sampled at the ticks."""
    options, ticks = trial.scenario, count_of_periods("duration", trial.duration, period)
    switch, outer = options.switch, options.outer

    def rows(signal: TimeSignal) -> Array | SampledSignal | None:
        """Return a signal at ticks, as the loop would evaluate it; a constant one is a vector."""
        if signal is None:
            return None
        if not callable(signal):
            return np.array(signal, dtype=float).ravel()
        at_ticks = [np.asarray(signal(k * period), dtype=float).ravel() for k in range(ticks)]
        table = np.array(at_ticks)
        return SampledSignal(period, table) if np.ptp(table, axis=0).any() else table[0]

    if switch is not None:
        switch = SampledSwitches(period, tuple(dict(switch(k * period)) for k in range(ticks)))
    if outer is not None:
        command = rows(outer.command)
        assert command is not None  # an outer law has a command
        outer = OuterLaw(outer.law, outer.planner, outer.project, command)
    scenario = replace(
        options,
        mask=rows(options.mask),
        tuning=rows(options.tuning),
        p=rows(options.p),
        switch=switch,
        mocap={body: rows(pose) for body, pose in (options.mocap or {}).items()},
        outer=outer,
    )
    return replace(
        trial,
        q0=None if trial.q0 is None else np.array(trial.q0, dtype=float),
        v0=None if trial.v0 is None else np.array(trial.v0, dtype=float),
        reference=rows(trial.reference),
        disturbance=trial.pushes or rows(generalised_force(trial.disturbance)),
        scenario=scenario,
    )


def scaled(disturbance: Disturbance, factor: float) -> Disturbance:
    """Return a disturbance of a sampled trial times a factor."""
    if disturbance is None or factor == 1.0:
        return disturbance
    if isinstance(disturbance, tuple):
        return tuple(scaled_push(push, factor) for push in disturbance if isinstance(push, Push))
    if isinstance(disturbance, SampledSignal):
        return replace(disturbance, rows=factor * disturbance.rows)
    assert isinstance(disturbance, np.ndarray)  # of `sampled_trial`
    return np.asarray(factor * disturbance)


def monitor_code(controller: Controller) -> ShippedCode | None:
    """Return the export of a controller's monitor; None where it has none, or no generated C."""
    with tempfile.TemporaryDirectory(prefix="mbcasadi-") as folder:
        project = export_monitor(controller, Path(folder) / "c")
        return None if project is None else ShippedCode.of(project)


def estimator_code(sensing: Sensing) -> ShippedCode:
    """Return the export of an estimator."""
    with tempfile.TemporaryDirectory(prefix="mbcasadi-") as folder:
        project = export_c(sensing.estimator.function, Path(folder) / "estimator")
        return ShippedCode.of(project, FAST_FLAGS)
