"""The cases of a campaign, one run each, and designs: which points of some ranges they are."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

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
        sensor_noise: factor on noise, offsets and walks of the campaign's sensors.

    Raises:
        ProblemError: a delay or a seed that is no whole number of at least 0, an error of the
            start or a factor of noise that is negative or no number.
        UnknownNameError, SimulationError: an error that `plant.perturb` refuses.
    """

    seed: int
    perturb: Mapping[str, float] = field(default_factory=dict)
    delay: int = 0
    start_error: float = 0.0
    disturbance: float = 1.0
    each_body: bool = True
    sensor_noise: float = 1.0

    def __post_init__(self) -> None:
        require_fields(self)
        require_whole(0, delay=self.delay, seed=self.seed)
        require_numbers(start_error=self.start_error, sensor_noise=self.sensor_noise)
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
            "sensor_noise": float(self.sensor_noise),
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
    sensor_noises: Sequence[float] = (1.0,),
) -> list[Case]:
    """Return every combination of seeds, errors, delays, disturbances and noise.

    Args:
        seeds: of the parameter errors and of the initial state.
        perturbs: relative parameter errors by name, as in `validate`.
        delays: ticks.
        start_errors: rad or m, largest error of each coordinate at the start.
        disturbances: factors on the campaign's disturbance.
        each_body: each body draws its own error within `perturbs`; else all have just these.
        sensor_noises: factors on noise, offsets and walks of the campaign's sensors.

    Raises:
        ProblemError: an error of the start or a factor of noise that is negative or no number, a
            delay or a seed that is no whole number.
    """
    return [
        Case(seed, dict(perturb), delay, start_error, disturbance, each_body, noise)
        for perturb, delay, start_error, disturbance, noise, seed in product(
            perturbs, delays, start_errors, disturbances, sensor_noises, seeds
        )
    ]


def hash_of_cases(plan: Sequence[Case]) -> str:
    """Return what tells one list of cases from another."""
    return hashlib.sha256("\n".join(case.to_json() for case in plan).encode()).hexdigest()


Array = NDArray[np.float64]
Design = Literal["monte_carlo", "sobol", "latin_hypercube", "grid", "saltelli"]
OTHER_RANGES = ("delay", "start_error", "sensor_noise", "disturbance")
NOT_NEGATIVE, FACTORS = OTHER_RANGES[:3], OTHER_RANGES[2:]


@checked
def sampled_cases(
    ranges: Mapping[str, Sequence[float]],
    count: int,
    *,
    design: Design = "sobol",
    seed: int = 0,
    perturb: Mapping[str, float] | None = None,
    delay: int = 0,
    start_error: float = 0.0,
) -> list[Case]:
    """Return cases at points of named ranges.

    All bodies of a case have the same error, that of its point; `perturb` of `cases` is for errors
    that each body draws for itself.

    Args:
        ranges: name → (lowest, highest): a parameter of `validate`'s `perturb` ("mass",
            "friction", …; relative), "delay" (ticks, whole), "start_error" (rad or m),
            "disturbance" or "sensor_noise" (factors).
        count: number of cases. "grid": n^d for d ranges; "saltelli": n (d + 2) with n a power of
            two, the design that the report's Sobol indices need.
        design: "monte_carlo", "sobol" (best with a power of two), "latin_hypercube", "grid" or
            "saltelli".
        seed: of the points; case k has the seed `seed + k` for its start.
        perturb, delay, start_error: of all cases, where there is no range for them.

    Raises:
        ProblemError: no range, a range that is none, a count that the design does not have.
    """
    require_whole(0, seed=seed)
    require_whole(1, count=count)
    limits = _limits(ranges)
    shares = _points(design, count, len(limits), seed)
    values = limits[:, 0] + shares * (limits[:, 1] - limits[:, 0])
    usual = Case(seed, dict(perturb or {}), delay, start_error, each_body=False)
    points = [dict(zip(ranges, map(float, row), strict=True)) for row in values]
    return [at_point(usual, seed + k, point) for k, point in enumerate(points)]


def _limits(ranges: Mapping[str, Sequence[float]]) -> Array:
    """Return (d, 2) ends of the ranges."""
    if not ranges:
        raise ProblemError("a design needs at least one range, such as {'mass': (-0.2, 0.2)}")
    for name, ends in ranges.items():
        if len(ends) != 2 or not -np.inf < ends[0] < ends[1] < np.inf:
            raise ProblemError(
                f"range {name!r} is {tuple(ends)}; expected (lowest, highest), finite and different"
            )
    return np.array([tuple(ends) for ends in ranges.values()], dtype=float)


def at_point(usual: Case, seed: int, point: Mapping[str, float]) -> Case:
    """Return a case with another seed, and some of its parameters replaced by name."""
    errors = {name: value for name, value in point.items() if name not in OTHER_RANGES}
    return replace(
        usual,
        seed=seed,
        perturb={**usual.perturb, **errors},
        delay=round(point.get("delay", usual.delay)),
        start_error=point.get("start_error", usual.start_error),
        disturbance=point.get("disturbance", usual.disturbance),
        sensor_noise=point.get("sensor_noise", usual.sensor_noise),
    )


def _points(design: Design, count: int, d: int, seed: int) -> Array:
    """Return (count, d) points of the unit cube."""
    if design == "monte_carlo":
        return np.random.default_rng(seed).uniform(size=(count, d))
    if design == "latin_hypercube":
        return np.asarray(
            scipy.stats.qmc.LatinHypercube(d, rng=np.random.default_rng(seed)).random(count)
        )
    if design == "sobol":
        return _sobol(count, d, seed)
    if design == "grid":
        return _grid(count, d)
    return _saltelli(count, d, seed)


def _sobol(count: int, d: int, seed: int) -> Array:
    """Return the first points of a scrambled Sobol sequence."""
    power = max(0, int(np.ceil(np.log2(count))))
    sequence = scipy.stats.qmc.Sobol(d, rng=np.random.default_rng(seed))
    return np.asarray(sequence.random_base2(power)[:count])


def _grid(count: int, d: int) -> Array:
    levels = round(count ** (1 / d))
    if levels < 2 or levels**d != count:
        known = ", ".join(str(n**d) for n in range(2, 6))
        raise ProblemError(f"a grid of {d} ranges has {known} … cases; found count = {count}")
    axis = np.linspace(0.0, 1.0, levels)
    return np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(count, d)


def _saltelli(count: int, d: int, seed: int) -> Array:
    """Return A, B, then A with column i of B for each i  [Saltelli 2010]."""
    n = count // (d + 2)
    if n < 1 or n * (d + 2) != count or n & (n - 1):
        known = ", ".join(str(2**k * (d + 2)) for k in range(4, 8))
        raise ProblemError(
            f"a Saltelli design of {d} ranges has n (d + 2) cases with n a power of two: "
            f"{known} …; found count = {count}"
        )
    both = _sobol(n, 2 * d, seed)
    A, B = both[:, :d], both[:, d:]
    mixed = [np.where(np.arange(d) == i, B, A) for i in range(d)]
    return np.concatenate([A, B, *mixed])
