"""What acts on a closed loop from outside: references, pushes, switched constraints."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.plant.body_forces import movable_body
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import column
from mbcasadi.validation.closed_loop.outer_law import OuterLaw
from mbcasadi.validation.closed_loop.reaction import Reaction
from mbcasadi.validation.closed_loop.runnable import RunningLaw
from mbcasadi.validation.closed_loop.sensing import RunningEstimator

Array = NDArray[np.float64]

SHARE_ROUNDING = 1e-9
"""Share of a control period below which a push counts as absent: rounding of the ticks' times."""


@readable_fields
@dataclass(frozen=True)
class Push:
    """A force on a body of the plant, at its centre of mass, from `start` to `stop`.

    MuJoCo applies it as `Jᵀ F` at the state of each of its time steps. In a control period of which
    the push lasts a part it acts with its mean over the period: its impulse is
    `force * (stop - start)` whatever the period is.

    Attributes:
        body: name of the body in the plant.
        force: (3,) N, world axes.
        start, stop: s.
        frequency: Hz; above zero the force is `force sin(2π frequency (t - start))`.

    Raises:
        ShapeError: a force that is not three finite numbers.
        ProblemError: a start before 0, a stop that is not after the start, or a frequency below 0.
    """

    body: str
    force: ArrayLike
    start: float
    stop: float
    frequency: float = 0.0

    def __post_init__(self) -> None:
        require_fields(self)
        force = column(f"the force of the push on {self.body!r}", self.force, 3)
        object.__setattr__(self, "force", tuple(map(float, force)))
        if not 0 <= self.start < self.stop < np.inf:
            raise ProblemError(
                f"the push on {self.body!r} is from {self.start:g} s to {self.stop:g} s; expected "
                "0 <= start < stop"
            )
        if not 0 <= self.frequency < np.inf:
            raise ProblemError(
                f"the push on {self.body!r} has a frequency of {self.frequency:g} Hz; expected "
                "zero for a constant force, or more"
            )

    def __str__(self) -> str:
        force = ", ".join(f"{value:g}" for value in np.array(self.force))
        swings = f" sin({self.frequency:g} Hz)" if self.frequency else ""
        return f"({force}) N{swings} on {self.body!r} from {self.start:g} s to {self.stop:g} s"


def mean_force(push: Push, t: float, period: float) -> Array:
    """Return the (3,) mean force of a push from time t on, during a period, s."""
    share = (min(push.stop, t + period) - max(push.start, t)) / period
    if share < SHARE_ROUNDING:
        return np.zeros(3)
    if push.frequency:
        w = 2 * np.pi * push.frequency
        begin, end = max(push.start, t) - push.start, min(push.stop, t + period) - push.start
        return np.asarray(push.force) * float(np.cos(w * begin) - np.cos(w * end)) / (w * period)
    return np.array(push.force) * (1.0 if share > 1.0 - SHARE_ROUNDING else share)


def scaled_push(push: Push, factor: float) -> Push:
    """Return a push with a force that is `factor` times as large."""
    return replace(push, force=factor * np.array(push.force))


def body_forces(pushes: Iterable[Push], t: float, period: float) -> dict[str, Array]:
    """Return body → (3,) force, N, the sum of its pushes from time t on, during a period, s."""
    forces: dict[str, Array] = {}
    for push in pushes:
        forces[push.body] = forces.get(push.body, np.zeros(3)) + mean_force(push, t, period)
    return forces


def require_pushes(pushes: Sequence[Push], plant: Plant) -> None:
    """Raise unless pushes can act on a plant.

    Raises:
        UnknownNameError: the plant has no such body; the message lists the valid names.
        ProblemError: a body that is fixed to the world.
    """
    for push in pushes:
        movable_body(plant.model, push.body)


TimeSignal = Callable[[float], ArrayLike] | ArrayLike | None
"""A constant vector, a function of time in s, or None for the default."""

Disturbance = TimeSignal | Push | Sequence[Push]
"""What acts on the plant from outside: a generalised force as a signal, or pushes on bodies."""

SwitchSchedule = Callable[[float], Mapping[str, bool]]
"""Time in s → {name of an equality constraint of the plant: whether it is enforced}."""


@readable_fields
@dataclass(frozen=True)
class ScenarioOptions:
    """Less common parts of a scenario, beside the keywords of `validate` and `campaign`.

    Attributes:
        mask: (nmask,) active contacts or rows as the controller is given them, or a function of
            time; all ones by default.
        tuning: (ntuning,) numbers that may change between ticks, or a function of time; the
            controller's defaults where None.
        p: (np,) physical parameters as the controller is given them, or a function of time; the
            model's own where None. `perturb` changes those of the plant.
        switch: time → {name: whether the plant enforces this equality constraint}; constraints
            that it does not name keep their state. The controller gets `mask` only.
        mocap: name of a mocap body of the plant → its pose in the world, (3,) position, m, or (7,)
            with a quaternion w x y z behind it, or a function of time. The controller gets `p`.
        outer: a slower law, from `outer_law`, that computes reference and mask.
        reaction: what changes reference, mask or tuning by what is measured, from `reaction`.
        keyframe: name of the key frame to start from, in place of `q0`.
        timestep: s, of the plant, in place of the model's.
        seed: None gives every body the same relative error of `perturb`; a number draws one error
            for each body within that bound.

    Raises:
        ProblemError: a time step that is not positive, a negative seed, or both mask and outer law.
    """

    mask: TimeSignal = None
    tuning: TimeSignal = None
    p: TimeSignal = None
    switch: SwitchSchedule | None = None
    mocap: Mapping[str, TimeSignal] | None = None
    outer: OuterLaw | None = None
    reaction: Reaction | None = None
    keyframe: str | None = None
    timestep: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        if self.timestep is not None and not self.timestep > 0:
            raise ProblemError(f"timestep is {self.timestep} s; expected a positive number")
        if self.seed is not None and self.seed < 0:
            raise ProblemError(f"seed is {self.seed}; expected a non-negative integer or None")
        if self.outer is not None and self.mask is not None:
            raise ProblemError("an outer law computes the mask; give mask or outer, not both")


@dataclass(frozen=True)
class Scenario:
    """What acts on one closed loop from outside.

    Attributes:
        duration: s.
        reference: (nref,), or a function of time; None where the controller has none.
        q0, v0: initial state; the plant's `qpos0` and zero by default.
        delay: ticks from a measurement to the moment at which its control acts.
        disturbance: (nv,) generalised force on the plant that the controller does not measure, or
            a function of time, or pushes; zero by default.
        options: mask, tuning, switched constraints and outer law are used.
        estimator: whose q and v the controller gets in place of the plant's; None for those.
    """

    duration: float
    reference: TimeSignal = None
    q0: ArrayLike | None = None
    v0: ArrayLike | None = None
    delay: int = 0
    disturbance: Disturbance = None
    options: ScenarioOptions = ScenarioOptions()
    estimator: RunningEstimator | None = None

    @property
    def pushes(self) -> tuple[Push, ...]:
        """Forces on bodies of the plant."""
        return pushes_of(self.disturbance)


def pushes_of(disturbance: Disturbance) -> tuple[Push, ...]:
    """Return the pushes of a disturbance; none where it is a generalised force."""
    if isinstance(disturbance, Push):
        return (disturbance,)
    if isinstance(disturbance, (list, tuple)):
        return tuple(each for each in disturbance if isinstance(each, Push))
    return ()


def mocap_poses(options: ScenarioOptions, t: float) -> dict[str, ArrayLike]:
    """Return the poses of mocap bodies at a time in s, of those that a scenario moves."""
    return {
        name: pose(t) if callable(pose) else pose
        for name, pose in (options.mocap or {}).items()
        if pose is not None
    }


def generalised_force(disturbance: Disturbance) -> TimeSignal:
    """Return the generalised force of a disturbance; None where it is pushes."""
    return None if pushes_of(disturbance) else cast(TimeSignal, disturbance)


def require_taken(scenario: Scenario, controller: Controller, tick: RunningLaw) -> None:
    """Raise where a scenario gives a controller of others what it does not take.

    Raises:
        ProblemError: a reference, mask or tuning without such an input.
    """
    if not controller.unreported:
        return
    options = scenario.options
    given = {
        "ref": ("reference", scenario.reference),
        "mask": ("mask", options.mask),
        "tuning": ("tuning", options.tuning),
        "p": ("parameters p", options.p),
    }
    for name, (words, signal) in given.items():
        if signal is not None and not tick.size(name):
            raise ProblemError(
                f"the controller {controller.name!r} takes no {words}; expected an input "
                f"{name!r}, or leave {words} out and let the controller know it by itself, "
                "for example by its time t"
            )
    for label, source in (("an outer law", options.outer), ("a reaction", options.reaction)):
        if source is not None and not (tick.size("ref") or tick.size("mask")):
            raise ProblemError(
                f"the controller {controller.name!r} takes neither ref nor mask, which {label} "
                "computes; leave it out"
            )


def require_reference(
    scenario: Scenario, controller: Controller, tick: RunningLaw, kind: str
) -> None:
    """Raise where a controller has a reference and nothing gives one.

    Args:
        scenario: what acts from outside.
        controller: with the names of the reference's entries.
        tick: the controller during a run.
        kind: what runs, in words.

    Raises:
        ProblemError: neither a reference nor an outer law.
    """
    size = tick.size("ref")
    if not size or scenario.reference is not None or scenario.options.outer is not None:
        return
    needs = f"the controller requires a reference of size {size}; give one"
    if not controller.unreported:
        raise ProblemError(f"{needs}, for example reference=controller.reference_at(q0)")
    entries = next(s.components for s in controller.inputs if s.name == "ref") or ("-",)
    raise ProblemError(
        f"{needs}, a vector of its entries ({entries[0]}, …, {entries[-1]}) or a function of time: "
        f"{kind} has none of its own; the law that it was made from has, law.reference_at(q0), as "
        "has its file, build_experiment(read_spec(FILE), MODEL).reference"
    )


class RememberedSignal:
    """A function of time that is called once for each time: repetitions of a run get the same."""

    def __init__(self, signal: Callable[[float], ArrayLike]) -> None:
        self._signal = signal
        self._values: dict[float, ArrayLike] = {}

    def __call__(self, t: float) -> ArrayLike:
        """Return the value at a time, in s."""
        if t not in self._values:
            self._values[t] = deepcopy(self._signal(t))
        return self._values[t]


def remembered(signal: TimeSignal) -> TimeSignal:
    """Return a signal that calls its function once for each time."""
    return RememberedSignal(signal) if callable(signal) else signal


def signal_value(name: str, signal: TimeSignal, t: float, size: int, default: float = 0.0) -> Array:
    """Return the (size,) value of a signal at a time.

    Args:
        name: of the signal, for messages.
        signal: a vector, a function of time, or None.
        t: s.
        size: number of elements.
        default: of every element where the signal is None.

    Raises:
        ShapeError: another size.
    """
    if signal is None:
        return np.full(size, default)
    return column(name, signal(t) if callable(signal) else signal, size)
