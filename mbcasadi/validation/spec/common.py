"""What the TOML files of all controllers have: type, name, period, start, and the trial."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen import Supervision
from mbcasadi.control import ControlMode, LawOptions, Transition
from mbcasadi.errors import ProblemError
from mbcasadi.plant import FreeObject, Ground, Source, with_ground, with_object
from mbcasadi.shapes import column, require_name
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.names_by_kind import require_name_of
from mbcasadi.validation.closed_loop import Push, ScenarioOptions
from mbcasadi.validation.metrics import Criteria
from mbcasadi.validation.spec.estimation import AnyEstimation
from mbcasadi.validation.spec.signals import Component
from mbcasadi.validation.spec.tables import (
    TABLE,
    Names,
    NotNegative,
    Positive,
    Range,
    StrictTable,
    Table,
    fields_of,
)
from mbcasadi.validation.trial import Trial

Array = NDArray[np.float64]
Identifier = Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]
Motion = Annotated[
    dict[str, Component],
    Field(
        description="Motion that is added to the start, by the entry of the reference: a joint, an "
        "axis, or slice.entry."
    ),
]
Ranges = dict[str, Range]
"""Lowest and highest value by the actuator's name, in place of the model's."""


class Start(StrictTable):
    """Where the motion starts: a key frame, or q; the initial pose by default."""

    keyframe: str | None = None
    q: tuple[float, ...] | None = None

    def configuration(self, system: System, default: Array | None = None) -> Array:
        """Return the configuration; by default that of the argument, or the authored one.

        Raises:
            ProblemError: both a key frame and q are given.
            UnknownNameError: the model has no such key frame.
            ShapeError: q has another size.
        """
        tree = system.tree
        assert tree is not None  # `read_mjcf` always gives one
        if self.keyframe is not None and self.q is not None:
            raise ProblemError("start: give keyframe or q, not both")
        if self.q is not None:
            return column("start.q", self.q, system.nq)
        if self.keyframe is not None:
            require_name_of(system, "key frame", self.keyframe, list(tree.keyframes))
            return np.array(tree.keyframes[self.keyframe], dtype=float)
        return np.array(tree.q0 if default is None else default, dtype=float)


class ControlLimits(StrictTable):
    """Limits of controls, N, N m or their own unit."""

    ctrl: Ranges = Field(default={})


class MaskSwitch(StrictTable):
    """From the time `at` on, these rows are on or off."""

    at: NotNegative
    on: Names = ()
    off: Names = ()


def _trial(
    *,
    duration: float = 5.0,
    push: Sequence[Push] = (),
    criteria: dict[str, float] | None = None,
    settle: float = 0.0,
    timestep: float | None = None,
    seed: int | None = None,
    **conditions: Any,
) -> Trial:
    """Return the conditions of the table, without start and motion."""
    return Trial(
        duration,
        disturbance=tuple(push) or None,
        scenario=ScenarioOptions(timestep=timestep, seed=seed),
        criteria=Criteria(criteria, settle),
        **conditions,
    )


TRIAL = Table(
    _trial,
    duration=(Annotated[Positive, Field(description="s")], 5.0),
    **fields_of(Trial, ("delay", "rigid", "perturb", "fast")),
    **fields_of(ScenarioOptions, ("timestep", "seed")),
    **fields_of(Criteria, ("settle",)),
    push=(tuple[Annotated[Push, TABLE], ...], ()),
    criteria=(dict[str, float] | None, Field(None, description="limits, by metric")),
)
"""The conditions of a `Trial` that a file has, those within it at the top."""


class ModesTable(StrictTable):
    """Modes of the controller and what leads from one to another: `sequence`."""

    mode: Annotated[
        dict[str, Annotated[ControlMode, TABLE]],
        Field(min_length=1, description="By name; the first one is the start."),
    ]
    transition: Annotated[
        tuple[Annotated[Transition, TABLE], ...],
        Field(description="In the order in which they are tried."),
    ] = ()


@summarised
class Spec(StrictTable):
    """One controller, and the motion that it has to track; a subclass for each type."""

    type: str
    name: Annotated[Identifier, Field(description="Prefix of the C symbols.")] = "controller"
    period: Annotated[Positive, Field(description="Sample time, s.")] = 0.001
    start: Start = Start()
    supervision: Annotated[
        Annotated[Supervision, TABLE] | None,
        Field(description="Of the exported C; left out by default."),
    ] = None
    ground: Annotated[
        Annotated[Ground, TABLE] | None,
        Field(description="A floor, for a model that has none; left out by default."),
    ] = None
    object: Annotated[
        Annotated[FreeObject, TABLE] | None,
        Field(description="A ball or box that is free to move; left out by default."),
    ] = None
    estimation: Annotated[
        AnyEstimation | None,
        Field(description="Of the state, from sensors; by default the law gets q and v."),
    ] = None
    sequence: Annotated[
        ModesTable | None, Field(description="Its modes; by default there is one.")
    ] = None
    validation: Annotated[Trial, TRIAL, Field(default_factory=_trial)]

    @property
    def trial(self) -> Trial:
        """The conditions of the trial, without start and motion."""
        return self.validation

    @checked
    def model(self, path: str | Path) -> Source:
        """Return a model as the file has it: on its ground and with its object, if there are any.

        Raises:
            ModelError: the model cannot be read.
            UnknownNameError, ProblemError: as `with_ground`, `with_object`.
        """
        model = str(path) if self.ground is None else with_ground(path, self.ground)
        return model if self.object is None else with_object(model, self.object)

    @checked
    def with_trial(self, **conditions: Any) -> "Spec":
        """Return the same spec with other conditions of its trial.

        Args:
            conditions: of `Trial`, by name; None keeps the present one.

        Raises:
            UnknownNameError: a trial has no such condition.
            ProblemError: as `Trial`.
        """
        for name in conditions:
            require_name("condition", name, [field.name for field in fields(Trial)])
        given = {name: value for name, value in conditions.items() if value is not None}
        return self.model_copy(update={"validation": replace(self.validation, **given)})


def ranges_of(system: System, limits: Array, changed: dict[str, Range]) -> Array:
    """Return limits (nu, 2), those of some actuators changed.

    Raises:
        UnknownNameError: the model has no such actuator.
    """
    result = np.array(limits, dtype=float)
    for name, ends in changed.items():
        require_name_of(system, "actuator", name, system.actuator_names)
        result[system.actuator_names.index(name)] = ends
    return result


def options_for(
    function: Callable[..., object], spec: Any, system: System, **own: Any
) -> dict[str, Any]:
    """Return what a function of a controller takes of a file: its options, name, period, limits.

    Args:
        function: whose signature says what it takes; the fields of its `options: LawOptions` are
            keys of a file at the top.
        spec: the tables.
        system: the model.
        own: further arguments, in place of those of the file.
    """
    limits = ranges_of(system, system.limits.ctrl, spec.limits.ctrl)
    usual = {"name": spec.name, "period": spec.period, "ctrl_limits": limits}
    usual["u_bounds"] = limits
    known = spec.given | usual | own
    options = [field.name for field in fields(LawOptions) if field.name in known]
    known["options"] = LawOptions(**{name: known[name] for name in options})
    takes = inspect.signature(function).parameters
    return {name: value for name, value in known.items() if name in takes}
