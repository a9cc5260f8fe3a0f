"""What the TOML files of all controllers have: type, name, period, start, and the trial."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Self

from pydantic import Field, model_validator

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen import Supervision
from mbcasadi.short_text import summarised
from mbcasadi.validation.closed_loop import Push, ScenarioOptions
from mbcasadi.validation.metrics import Criteria
from mbcasadi.validation.spec.contact_tables import NotNegative, Positive, Vector3
from mbcasadi.validation.spec.signals import Component
from mbcasadi.validation.spec.tables import TABLE, StrictTable
from mbcasadi.validation.trial import Trial

Identifier = Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]
Motion = Annotated[
    dict[str, Component],
    Field(
        default_factory=dict,
        description="Motion that is added to the start, by the entry of the reference: a joint, or "
        "slice.entry.",
    ),
]


class Start(StrictTable):
    """Where the motion starts: a key frame, or q; the authored pose by default."""

    keyframe: str | None = None
    q: tuple[float, ...] | None = None


class PushTable(StrictTable):
    """A force on a body of the plant, at its centre of mass, as `Push`."""

    body: str
    force: Annotated[Vector3, Field(description="N, world axes.")]
    start: Annotated[float, Field(ge=0, allow_inf_nan=False, description="s")]
    stop: Annotated[float, Field(gt=0, allow_inf_nan=False, description="s")]

    @model_validator(mode="after")
    def _require_push(self) -> Self:
        self.push()  # raises ValueErrors of ours, which become one of the file
        return self

    def push(self) -> Push:
        """Return the push."""
        return Push(self.body, self.force, self.start, self.stop)


class TrialTable(StrictTable):
    """How the controller is validated; options of the command line take precedence."""

    duration: Positive = 5.0
    settle: NotNegative = 0.0
    delay: Annotated[int, Field(ge=0)] = 0
    rigid: bool = False
    timestep: Positive | None = None
    perturb: Annotated[dict[str, float], Field(default_factory=dict)]
    seed: int | None = None
    push: tuple[PushTable, ...] = ()
    criteria: dict[str, float] | None = None

    fast: bool = False

    def trial(self) -> Trial:
        """Return the conditions, without start and motion."""
        return Trial(
            self.duration,
            rigid=self.rigid,
            perturb=self.perturb,
            delay=self.delay,
            disturbance=tuple(table.push() for table in self.push) or None,
            fast=self.fast,
            scenario=ScenarioOptions(timestep=self.timestep, seed=self.seed),
            criteria=Criteria(self.criteria, self.settle),
        )


def ranges() -> dict[str, tuple[float, float]]:
    """Return an empty table of ranges."""
    return {}


class ControlLimits(StrictTable):
    """Limits of controls by the actuator's name, in place of the model's."""

    ctrl: Annotated[
        dict[str, tuple[float, float]],
        Field(default_factory=ranges, description="Lowest and highest control, N, N m or its own."),
    ]


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
    validation: Annotated[TrialTable, Field(default_factory=lambda: TrialTable(perturb={}))]

    @property
    def trial(self) -> Trial:
        """The conditions of the trial, without start and motion."""
        return self.validation.trial()

    @checked
    def with_trial(
        self,
        *,
        duration: float | None = None,
        rigid: bool | None = None,
        delay: int | None = None,
        perturb: dict[str, float] | None = None,
        push: Sequence[Push] | None = None,
        fast: bool | None = None,
    ) -> "Spec":
        """Return the same spec with other conditions of its trial; None keeps the present one.

        Args:
            duration: s.
            rigid: use the rigid recipe for the plant's equality constraints.
            delay: ticks.
            perturb: relative errors of the plant's parameters.
            push: forces on bodies of the plant.
            fast: do not wait for the C as shipped, as in `Trial`.
        """
        options = {
            "duration": duration,
            "rigid": rigid,
            "delay": delay,
            "perturb": perturb,
            "push": None if push is None else tuple(map(_table_of, push)),
            "fast": fast,
        }
        update = {name: value for name, value in options.items() if value is not None}
        trial = self.validation.model_copy(update=update)
        return self.model_copy(update={"validation": trial})


def _table_of(push: Push) -> PushTable:
    """Return the table of a push."""
    return PushTable.model_validate(asdict(push))
