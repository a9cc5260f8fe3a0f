"""The conditions of a run, stated once for `validate`, `campaign`, `margin` and TOML files."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import require_whole
from mbcasadi.short_text import summarised
from mbcasadi.validation.closed_loop import (
    Disturbance,
    Push,
    ScenarioOptions,
    Sensing,
    TimeSignal,
    pushes_of,
)
from mbcasadi.validation.metrics import Criteria


@readable_fields
@summarised
@dataclass(frozen=True)
class Trial:
    """The conditions of a run, or of all runs of a campaign.

    Attributes:
        duration: s, a multiple of the controller's period.
        period: s, of a controller that has none of its own; the plant's time step by default.
        reference: (nref,), or a function of time that returns it. None holds the start where the
            controller has a `reference_at`; in a campaign without the start error of a case.
        q0, v0: initial state; `qpos0` and zero by default. Moved onto the equality constraints.
        rigid: make the plant's equality constraints as stiff as MuJoCo allows.
        perturb: relative errors of the plant's parameters, e.g. `{"mass": 0.1}`. Cases of a
            campaign have their own.
        delay: ticks from a measurement to the moment at which its control acts. The first control
            acts at once, until the second is due. Cases of a campaign have their own.
        disturbance: (nv,) generalised force on the plant, or a function of time; a `Push` on a
            body, or several.
        fast: run the Python Function of a controller of ours, or in long runs its C compiled at
            -O1, whichever finishes first; the report says in its head that the C as shipped did
            not run, and has no times of ticks. In a campaign the ticks of all cases decide.
        scenario: mask, tuning, switched constraints, outer law, key frame, time step, seed. Where
            the model's own time step does not divide the period, the plant has a smaller one that
            does.
        criteria: limits on metrics, and the settling time; those of `DEFAULTS` unless given. A run
            to which no default applies is not judged: `passed` is None.
        sensors: an estimator in the loop, and the errors of the sensors that it reads; None gives
            the controller the plant's own q and v.

    Raises:
        ProblemError: a reference although an outer law computes it, a delay that is no whole
            number of ticks, or a push that starts after the run.
    """

    duration: float
    period: float | None = None
    reference: TimeSignal = None
    q0: ArrayLike | None = None
    v0: ArrayLike | None = None
    rigid: bool = False
    perturb: Mapping[str, float] = field(default_factory=dict)
    delay: int = 0
    disturbance: Disturbance = None
    fast: bool = False
    scenario: ScenarioOptions = field(default_factory=ScenarioOptions)
    criteria: Criteria = field(default_factory=Criteria)
    sensors: Sensing | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        require_whole(0, delay=self.delay)
        if self.scenario.outer is not None and self.reference is not None:
            raise ProblemError(
                "an outer law computes the reference; give reference or outer, not both"
            )
        for push in self.pushes:
            if push.start >= self.duration:
                raise ProblemError(
                    f"the push {push} would start after the run, which lasts {self.duration:g} s; "
                    "expected start < duration"
                )

    @property
    def pushes(self) -> tuple[Push, ...]:
        """Forces on bodies of the plant."""
        return pushes_of(self.disturbance)

    @property
    def of_all_cases(self) -> "Trial":
        """The trial without what each case of a campaign has of its own."""
        scenario = replace(self.scenario, seed=None)
        return replace(self, perturb={}, delay=0, scenario=scenario)
