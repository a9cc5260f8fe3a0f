"""What a filter of a mechanism measures, and what beside q and v it estimates."""

from dataclasses import dataclass
from typing import Literal

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.fixes import require_delay
from mbcasadi.shapes import require_positive


@dataclass(frozen=True)
class Measured:
    """A sensor of the model, or an encoder of a joint.

    Attributes:
        name: of the sensor, or of the joint or coordinate.
        noise: standard deviation of each entry of a sample, in the unit of the reading; density of
            white noise where `density` says so.
        kind: "sensor" of the model; "position" or "rate" of a joint of one coordinate.
        density: whether the noise of a sample has the variance `noise² / dt`.
        turns: whether the reading is an angle that is known up to 2 π.
        longest_delay: s, by which a sample may be late; 0 for samples of the tick that gets them.

    Raises:
        ProblemError: a noise that is not positive; a negative delay, or one of a density, which is
            that of a whole tick.
    """

    name: str
    noise: float
    kind: Literal["sensor", "position", "rate"] = "sensor"
    density: bool = False
    turns: bool = False
    longest_delay: float = 0.0

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(noise=self.noise)
        require_delay(self.longest_delay)
        if self.density and self.longest_delay:
            raise ProblemError(
                f"'{self.name}': a delay of a density; expected the standard deviation of a sample "
                "that may lie between ticks"
            )

    @property
    def label(self) -> str:
        """Its name among the sensors of an estimator."""
        return f"{self.name}.rate" if self.kind == "rate" else self.name


@dataclass(frozen=True)
class UnknownForce:
    """A generalised force that is estimated: a random walk.

    Attributes:
        coordinate: that it acts on, by the name of its rate.
        walk: density of its change, N/s/√Hz or N m/s/√Hz.
        deviation: standard deviation at the start, N or N m.

    Raises:
        ProblemError: a number that is not positive.
    """

    coordinate: str
    walk: float
    deviation: float

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(walk=self.walk, deviation=self.deviation)


@dataclass(frozen=True)
class UnknownParameter:
    """A physical parameter of the system that is estimated: a random walk.

    Attributes:
        name: of the parameter, or of one of its entries: "body:payload:mass".
        deviation: standard deviation at the start, in the parameter's unit.
        walk: density of its change, unit/√s; a thousandth of the deviation by default.

    Raises:
        ProblemError: a number that is not positive.
    """

    name: str
    deviation: float
    walk: float | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(deviation=self.deviation)
        if self.walk is not None:
            require_positive(walk=self.walk)

    @property
    def density(self) -> float:
        """Of its change."""
        return self.deviation * 1e-3 if self.walk is None else self.walk


@dataclass(frozen=True)
class FilterOptions:
    """How a filter starts and corrects.

    Attributes:
        position: standard deviation of the first pose, rad, or shares of the model's length.
        speed: of the first velocity, the same per second.
        false_alarm: share of good samples of a sensor that its gate rejects; None for no gate.
        iterations: of the linearisation in a correction.

    Raises:
        ProblemError: a number out of its range.
    """

    position: float = 0.1
    speed: float = 0.3
    false_alarm: float | None = 1e-6
    iterations: int = 1

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(position=self.position, speed=self.speed)
        if self.false_alarm is not None and not 0 < self.false_alarm < 1:
            raise ProblemError(f"false_alarm = {self.false_alarm}; expected a share in (0, 1)")
        if not 1 <= self.iterations <= MOST_ITERATIONS:
            raise ProblemError(f"iterations = {self.iterations}; expected 1 to {MOST_ITERATIONS}")


MOST_ITERATIONS = 10
