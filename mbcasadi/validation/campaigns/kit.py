"""Everything that the cases of a campaign share, as data that another process can be sent."""

import hashlib
import pickle
import zlib
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.shapes import count_of_periods
from mbcasadi.validation.campaigns.installed_code import Files
from mbcasadi.validation.campaigns.monitor_code import monitor_code
from mbcasadi.validation.campaigns.sampled_signals import (
    SampledSignal,
    SampledSwitches,
    sample_signal,
    sample_switches,
)
from mbcasadi.validation.campaigns.shipped_laws import (
    ShippedOuterLaw,
    ShippedReaction,
    ship_outer_law,
    ship_reaction,
)
from mbcasadi.validation.campaigns.shipping import ShippedController, ship
from mbcasadi.validation.closed_loop import (
    CompiledLaw,
    FastLaw,
    Push,
    Runnable,
    TimeSignal,
    generalised_force,
)
from mbcasadi.validation.metrics import Criteria
from mbcasadi.validation.trial import Trial

Array = NDArray[np.float64]

COMPILE_MONITOR_FROM = 20_000
"""Ticks of a campaign from which on any monitor is compiled; one that solves a QP always is, as
CasADi cannot send its solver to another process."""


@dataclass(frozen=True)
class Conditions:
    """What acts on all cases alike, sampled at the ticks.

    Attributes:
        duration: s, of each run.
        q0, v0, keyframe: the start.
        rigid, timestep: of the plants.
        reference, mask, tuning, p: vectors, or rows at the ticks.
        disturbance: the same, or pushes.
        switch: switched constraints at the ticks.
        mocap: poses of mocap bodies by name, as the reference.
        outer, reaction: as data.
    """

    duration: float
    q0: Array | None
    v0: Array | None
    keyframe: str | None
    rigid: bool
    timestep: float | None
    reference: Array | SampledSignal | None
    mask: Array | SampledSignal | None
    tuning: Array | SampledSignal | None
    p: Array | SampledSignal | None
    disturbance: Array | SampledSignal | tuple[Push, ...] | None
    switch: SampledSwitches | None
    mocap: dict[str, Array | SampledSignal | None]
    outer: ShippedOuterLaw | None
    reaction: ShippedReaction | None


@dataclass(frozen=True)
class Kit:
    """What every worker of a campaign needs.

    Attributes:
        controller: as data.
        monitor: the export of its monitor; None where CasADi evaluates it.
        model: the plant's model without errors, in MuJoCo's binary format.
        conditions: of all cases.
        criteria: limits on metrics, and the settling time.
    """

    controller: ShippedController
    monitor: Files | None
    model: bytes
    conditions: Conditions
    criteria: Criteria

    def fingerprint(self) -> dict[str, str]:
        """Return what tells one campaign from another, part by part."""
        conditions = self.conditions
        return {
            "controller": self.controller.identity[:16],
            "model": hashlib.sha256(self.model).hexdigest()[:16],
            "duration": f"{conditions.duration!r} s",
            "criteria": repr(
                (sorted((self.criteria.limits or {"defaults": 0.0}).items()), self.criteria.settle)
            ),
            "conditions": hashlib.sha256(pickle.dumps(conditions)).hexdigest()[:16],
            "mujoco": mujoco.__version__,
        }

    def to_bytes(self) -> bytes:
        """Return the kit as bytes."""
        return zlib.compress(pickle.dumps(self), level=1)


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
        conditions=conditions_of(trial, controller.period),
        criteria=trial.criteria,
    )


def conditions_of(trial: Trial, period: float) -> Conditions:
    """Return the conditions of a trial as data, functions of time sampled at the ticks."""
    options, ticks = trial.scenario, count_of_periods("duration", trial.duration, period)

    def rows(signal: TimeSignal) -> Array | SampledSignal | None:
        return sample_signal(signal, period, ticks)

    return Conditions(
        duration=trial.duration,
        q0=None if trial.q0 is None else np.array(trial.q0, dtype=float),
        v0=None if trial.v0 is None else np.array(trial.v0, dtype=float),
        keyframe=options.keyframe,
        rigid=trial.rigid,
        timestep=options.timestep,
        reference=rows(trial.reference),
        mask=rows(options.mask),
        tuning=rows(options.tuning),
        p=rows(options.p),
        disturbance=trial.pushes or rows(generalised_force(trial.disturbance)),
        switch=sample_switches(options.switch, period, ticks),
        mocap={body: rows(pose) for body, pose in (options.mocap or {}).items()},
        outer=ship_outer_law(options.outer, period, ticks),
        reaction=ship_reaction(options.reaction),
    )


def model_bytes(model: mujoco.MjModel) -> bytes:
    """Return a compiled model with its meshes, in MuJoCo's binary format."""
    buffer = np.zeros(mujoco.mj_sizeModel(model), dtype=np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def model_of_bytes(content: bytes) -> mujoco.MjModel:
    """Return the model of `model_bytes`."""
    return mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": content})
