"""Everything that the cases of a campaign share, as data that another process can be sent."""

import hashlib
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import casadi as ca
import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen import export_c
from mbcasadi.description import Controller, Signal
from mbcasadi.description.qp_stages import LeastDistanceStages
from mbcasadi.errors import ExportError
from mbcasadi.qp.solver import controller_fun
from mbcasadi.shapes import count_of_periods
from mbcasadi.validation.campaigns.shipping import (
    Files,
    ShippedController,
    read_files,
    ship,
    to_bytes,
)
from mbcasadi.validation.closed_loop import (
    CompiledLaw,
    Disturbance,
    FastLaw,
    OuterLaw,
    Push,
    Runnable,
    TimeSignal,
    generalised_force,
)
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
        model: the plant's model without errors, in MuJoCo's binary format.
        trial: conditions of all cases, functions of time sampled at the ticks.
    """

    controller: ShippedController
    monitor: Files | None
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
        """Return the kit as bytes."""
        return zlib.compress(to_bytes(self), level=1)


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


def monitor_code(controller: Controller) -> dict[str, bytes] | None:
    """Return the export of a controller's monitor; None where it has none, or no generated C.

    In a campaign it would take longer than the controller itself: CasADi evaluates a Function 10 to
    30 times more slowly than its C, and that of inverse dynamics solves the QP again.
    """
    exported = _exported(controller)
    if exported is None:
        return None
    with tempfile.TemporaryDirectory(prefix="mbcasadi-") as folder:
        try:
            return read_files(export_c(exported, Path(folder) / "c", name=_name(controller)))
        except ExportError:
            return None  # it calls a solver without generated C: CasADi evaluates it


def _name(controller: Controller) -> str:
    return f"{controller.name}_monitor"


def _exported(controller: Controller) -> Controller | ca.Function | None:
    """Return what is exported: the monitor, or a controller that has its outputs."""
    stages = controller.monitor_stages
    if controller.monitor is None or stages is None:
        return controller.monitor
    sizes = {name: controller.function.numel_in(name) for name in controller.function.name_in()}
    if {name: pattern.numel() for name, pattern in stages.inputs.items()} != sizes:
        return controller.monitor  # the law was extended since
    return _as_controller(controller, stages)


def _as_controller(controller: Controller, stages: LeastDistanceStages) -> Controller:
    function = controller_fun(_name(controller), stages, "qrqp")
    known = {signal.name: signal for signal in (*controller.outputs, *controller.monitors)}
    sizes = {name: function.numel_out(name) for name in function.name_out()}
    unnamed = {
        name: Signal(name, tuple(f"{name}{i}" for i in range(size)), ("",) * size)
        for name, size in sizes.items()
    }
    return replace(
        controller,
        function=function,
        stages=stages,
        outputs=tuple(known.get(name, unnamed[name]) for name in sizes),
        u_min=np.zeros(0),
        u_max=np.zeros(0),
        monitor=None,
        monitors=(),
        monitor_stages=None,
        limits=None,
        emergency=None,
    )
