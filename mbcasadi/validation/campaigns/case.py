"""The cases of a campaign: one run each, reproducible from its numbers alone."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.plant.options import require_errors
from mbcasadi.shapes import require_numbers, require_whole


@dataclass(frozen=True)
class Case:
    """One run of a campaign.

    Attributes:
        seed: of the parameter errors and of the initial state.
        perturb: relative parameter errors by name, as in `validate`.
        delay: ticks.
        start_error: rad or m, largest error of each coordinate at the start.
        disturbance: factor on the disturbance of the campaign.
        each_body: each body (geom, joint) draws its own error within `perturb`; else all of them
            have just this error.

    Raises:
        ProblemError: a delay or a seed that is no whole number of at least 0, an error of the
            start that is negative or no number.
        UnknownNameError, SimulationError: an error that `plant.perturb` refuses.
    """

    seed: int
    perturb: Mapping[str, float] = field(default_factory=dict)
    delay: int = 0
    start_error: float = 0.0
    disturbance: float = 1.0
    each_body: bool = True

    def __post_init__(self) -> None:
        require_fields(self)
        require_whole(0, delay=self.delay, seed=self.seed)
        require_numbers(start_error=self.start_error)
        require_errors(self.perturb, drawn=self.each_body)
        if not abs(self.disturbance) < float("inf"):
            raise ProblemError(f"disturbance = {self.disturbance}; expected a finite factor")

    @property
    def plant_seed(self) -> int | None:
        """The seed of the plant's errors; None where all bodies have the same."""
        return self.seed if self.each_body else None

    @property
    def parameters(self) -> dict[str, float]:
        """What a design may vary, by name."""
        return {
            **{name: float(error) for name, error in self.perturb.items()},
            "delay": float(self.delay),
            "start_error": float(self.start_error),
            "disturbance": float(self.disturbance),
        }

    def to_json(self) -> str:
        """Return the case as JSON text, all digits kept."""
        return json.dumps(asdict(self), sort_keys=True)


def case_of_json(text: str, origin: str = "it") -> Case:
    """Return the case of `Case.to_json`.

    Raises:
        ProblemError: the text is none; `origin` names where it comes from.
    """
    try:
        return Case(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{origin} holds a case that is none: {text!r:.60}") from error


@checked
def cases(
    seeds: Sequence[int],
    perturbs: Sequence[Mapping[str, float]] = ({},),
    delays: Sequence[int] = (0,),
    start_errors: Sequence[float] = (0.0,),
    disturbances: Sequence[float] = (1.0,),
    *,
    each_body: bool = True,
) -> list[Case]:
    """Return every combination of seeds, errors, delays and disturbances.

    Args:
        seeds: of the parameter errors and of the initial state.
        perturbs: relative parameter errors by name, as in `validate`.
        delays: ticks.
        start_errors: rad or m, largest error of each coordinate at the start.
        disturbances: factors on the campaign's disturbance.
        each_body: each body draws its own error within `perturbs`; else all have just these.

    Raises:
        ProblemError: an error of the start that is negative or no number, a delay or a seed that is
            no whole number.
    """
    return [
        Case(seed, dict(perturb), delay, start_error, disturbance, each_body)
        for perturb, delay, start_error, disturbance, seed in product(
            perturbs, delays, start_errors, disturbances, seeds
        )
    ]


def hash_of_cases(plan: Sequence[Case]) -> str:
    """Return what tells one list of cases from another."""
    return hashlib.sha256("\n".join(case.to_json() for case in plan).encode()).hexdigest()
