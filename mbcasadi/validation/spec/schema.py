"""The tables of a controller's TOML file.

Example:
    type = "inverse_dynamics_qp"
    period = 0.001                      # s

    [start]
    keyframe = "stand"                  # the authored pose by default

    [[task]]
    type = "frame"                      # or another one of `task_tables`
    frame = "trunk"
    kp = 200.0
    [task.reference]                    # added to where the frame is at the start
    z = { amplitude = 40, unit = "mm", frequency = 0.5, ramp = 1.0 }

    [[contact]]
    frame = "FL"
    friction = 0.6

    [[contact]]                         # of the model's geometry, with its friction
    frame = "FR on floor"
    kind = "contact"

    [[mask]]                            # switch rows while the same controller runs
    at = 4.0
    off = ["FL"]

    [limits.ctrl]                       # the model's by default
    FL_hip = [-20.0, 20.0]

    [limits.joint]                      # those with a range in the model
    velocity = 6.0                      # rad/s

    [[limits.soft]]                     # may be violated at a price
    limits = "joints"

    [limits.loop]                       # forces of equality constraints, by name
    pin = [-50.0, 50.0]                 # of each row, or a pair for each

    [sharing]                           # of loads that the motion does not determine
    kind = "free"

    [options]                           # of InverseDynamicsQP
    torque_weight = 1e-6

    [validation]
    duration = 6.0
    delay = 1
    perturb = { mass = 0.1 }
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.short_text import summarised
from mbcasadi.validation.spec.contact_tables import (
    LoopForce,
    NotNegative,
    PointContact,
    Positive,
)
from mbcasadi.validation.spec.limit_tables import Limits, Sharing
from mbcasadi.validation.spec.signals import StrictTable
from mbcasadi.validation.spec.task_tables import AnyTask

Tunable = Literal["gains", "weights", "friction", "forces", "normals", "limits", "prices"]
ServoPlant = Literal[
    "model", "continuous", "euler", "rk4", "implicit", "implicitfast", "discrete", "start"
]


class Start(StrictTable):
    """Where the motion starts: a key frame, or q; the authored pose by default."""

    keyframe: str | None = None
    q: tuple[float, ...] | None = None


class MaskSwitch(StrictTable):
    """From the time `at` on, these rows are on or off."""

    at: NotNegative
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()


class Observer(StrictTable):
    """The observer of what the model lacks, as `DisturbanceObserver`."""

    bandwidth: Positive = 10.0


class Feedback(StrictTable):
    """The feedback of measured contact forces, as `ForceFeedback`."""

    limit: Positive
    gain: Positive = 5.0


class Friction(StrictTable):
    """Dry friction that counts in the equations, as `FrictionLoss`."""

    losses: dict[str, NotNegative] | None = None
    speed: Positive = 0.02
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    task: str = ""


class Springs(StrictTable):
    """Springs that the law holds at their present deflection, as `RigidSprings`."""

    joints: tuple[str, ...] = ()
    tendons: tuple[str, ...] = ()
    damping: NotNegative | None = None


class Ramp(StrictTable):
    """How a contact that is switched on takes its load, as `LoadRamp`."""

    duration: Positive
    force: Positive


class Options(StrictTable):
    """Options of `InverseDynamicsQP`, its own defaults where None."""

    torque_weight: Positive | tuple[Positive, ...] | None = None
    torque_rate_weight: NotNegative | tuple[NotNegative, ...] | None = None
    levels: tuple[tuple[str, ...], ...] | None = None
    level_damping: Positive | None = None
    internal_force_weight: Positive | None = None
    force_weight: NotNegative | tuple[NotNegative, ...] | None = None
    stabilisation: NotNegative | None = None
    contact_damping: NotNegative | None = None
    internal_forces: Literal["body", "none", "wrench"] | None = None
    fallback: Literal["safe", "hold", "zero"] | None = None
    servo_plant: ServoPlant | None = None
    servo_timestep: Positive | None = None
    delay: Annotated[int, Field(ge=0)] | None = None
    tunable: tuple[Tunable, ...] | None = None
    rank_tol: Positive | None = None
    tolerance: Positive | None = None


class Trial(StrictTable):
    """How the controller is validated; options of the command line take precedence."""

    duration: Positive = 5.0
    settle: NotNegative = 0.0
    delay: Annotated[int, Field(ge=0)] = 0
    rigid: bool = False
    timestep: Positive | None = None
    perturb: Annotated[dict[str, float], Field(default_factory=dict)]
    seed: int | None = None
    criteria: dict[str, float] | None = None


@summarised
class Spec(StrictTable):
    """One controller, and the motion that it has to track."""

    type: Literal["inverse_dynamics_qp"]
    name: Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")] = "controller"
    period: Positive = 0.001
    start: Start = Start()
    task: Annotated[tuple[AnyTask, ...], Field(min_length=1)]
    contact: tuple[PointContact, ...] = ()
    loop_force: tuple[LoopForce, ...] = ()
    mask: tuple[MaskSwitch, ...] = ()
    limits: Annotated[Limits, Field(default_factory=lambda: Limits(ctrl={}, force={}, loop={}))]
    sharing: Sharing | None = None
    observer: Observer | None = None
    force_feedback: Feedback | None = None
    friction_loss: Friction | None = None
    rigid_springs: Springs | None = None
    load_ramp: Ramp | None = None
    options: Options = Options()
    validation: Annotated[Trial, Field(default_factory=lambda: Trial(perturb={}))]

    @checked
    def with_trial(
        self,
        *,
        duration: float | None = None,
        rigid: bool | None = None,
        delay: int | None = None,
        perturb: dict[str, float] | None = None,
    ) -> "Spec":
        """Return the same spec with other conditions of its trial; None keeps the present one.

        Args:
            duration: s.
            rigid: use the rigid recipe for the plant's equality constraints.
            delay: ticks.
            perturb: relative errors of the plant's parameters.
        """
        options = {"duration": duration, "rigid": rigid, "delay": delay, "perturb": perturb}
        update = {name: value for name, value in options.items() if value is not None}
        trial = self.validation.model_copy(update=update)
        return self.model_copy(update={"validation": trial})


@checked
def read_spec(path: Path) -> Spec:
    """Read a controller's TOML file.

    Raises:
        ProblemError: no such file, not TOML, or an unknown key or a wrong value; the message
            names the file and the wrong keys.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProblemError(f"cannot read the controller {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProblemError(f"{path} is not TOML: {error}") from error
    except RecursionError as error:
        raise ProblemError(
            f"{path} nests its values too deeply to be read; expected the tables and lists of a "
            "controller, at most a few levels deep"
        ) from error
    return parse_spec(tables, str(path))


@checked
def parse_spec(tables: Mapping[str, object], origin: str = "spec") -> Spec:
    """Return the tables of a file as a `Spec`; `origin` names them in messages.

    Raises:
        ProblemError: an unknown key or a wrong value.
    """
    try:
        return Spec.model_validate(tables)
    except ValidationError as error:
        raise ProblemError(f"{origin}: {_error_text(error)}") from error


def _error_text(error: ValidationError) -> str:
    """Return the wrong keys in one line, unknown ones first: they often cause the others."""
    details = sorted(error.errors(include_url=False), key=lambda d: d["type"] != "extra_forbidden")
    lines = []
    for detail in details:
        key = _key(detail["loc"])
        if detail["type"] == "extra_forbidden":
            lines.append(f"{key}: unknown key")
        else:
            lines.append(f"{key}: {detail['msg'].lower()}, found {detail['input']!r:.60}")
    return "; ".join(lines)


def _key(loc: tuple[int | str, ...]) -> str:
    """Return a key of the file, without the tags of the alternatives that pydantic tried."""
    inner = [part for part in loc[:-1] if part not in TAGS]
    last = [part for part in loc[-1:] if part not in VALUE_TAGS]
    return ".".join(str(part) for part in inner + last)


VALUE_TAGS = {"term", "sum", "number", "sine", "step", "steadymotion"}
TAGS = VALUE_TAGS | {"posture", "frame"}
