"""What sensors and feet are expected to do: noise, bias and range, from their data sheets.

Densities are those of data sheets: white noise of density σ has the variance `σ² / dt` in the mean
over dt; a bias walks by `σ² dt` in dt.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_numbers, require_positive, require_texts, require_whole
from mbcasadi.short_text import summarised


@summarised
@dataclass(frozen=True)
class Imu:
    """A gyroscope and an accelerometer at a frame; the defaults are those of an ICM-42688-P.

    Attributes:
        frame: name of the site or body that carries it; its axes are those of the readings.
        kind: "site" or "body".
        gyro_noise: density of the white noise, rad/s/√Hz.
        accelerometer_noise: the same, m/s²/√Hz.
        gyro_walk: density of the rate of the bias, rad/s²/√Hz.
        accelerometer_walk: the same, m/s³/√Hz.
        gyro_bias: standard deviation of the bias at the start, rad/s.
        accelerometer_bias: the same, m/s².
        gyro_range: reading beyond which the sample is invalid, rad/s.
        accelerometer_range: the same, m/s².

    Raises:
        ProblemError: a number that is not positive.
    """

    frame: str
    kind: Literal["site", "body"] = "site"
    gyro_noise: float = 5e-5
    accelerometer_noise: float = 7e-4
    gyro_walk: float = 1e-5
    accelerometer_walk: float = 2e-4
    gyro_bias: float = 9e-3
    accelerometer_bias: float = 0.1
    gyro_range: float = 35.0
    accelerometer_range: float = 157.0

    def __post_init__(self) -> None:
        require_fields(self)
        numbers = {k: x for k, x in vars(self).items() if k not in ("frame", "kind")}
        require_positive(**numbers)


@summarised
@dataclass(frozen=True)
class Encoders:
    """Encoders of joints with one coordinate.

    Attributes:
        joints: their names; None for all of them.
        noise: standard deviation of a measured position, rad or m.
        rate_noise: of a measured rate, rad/s or m/s; None where rates are not measured and follow
            from the positions.
        acceleration: density of the white acceleration, rad/s²/√Hz or m/s²/√Hz, by which the rates
            that are not measured may change: larger is faster and noisier.
        position_range, rate_range: readings beyond are invalid, rad or m, and by s.

    Raises:
        ProblemError: a number that is not positive.
    """

    joints: tuple[str, ...] | None = None
    noise: float = 1.1e-4
    rate_noise: float | None = None
    acceleration: float = 30.0
    position_range: float = 1e3
    rate_range: float = 1e3

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(noise=self.noise, acceleration=self.acceleration)
        require_positive(position_range=self.position_range, rate_range=self.rate_range)
        if self.rate_noise is not None:
            require_positive(rate_noise=self.rate_noise)
        if self.joints is not None:
            require_texts("joints", self.joints)


@summarised
@dataclass(frozen=True)
class PassiveJoint:
    """A joint without an encoder that loops leave free: a spring, as a smooth random motion.

        s̈ = -2 ω ṡ - ω² (s - s_rest) + 2 ω √ω σ w,     w white, of density 1

    Attributes:
        joint: its name, of a joint with one coordinate.
        deviation: standard deviation σ of its position, rad or m: what its load bends it by.
        bandwidth: ω, rad/s: how quickly the load changes; σ ω is the deviation of its rate.
        rest: mean of its position, rad or m; that of the pose at the start by default.

    Raises:
        ProblemError: a deviation or a bandwidth that is not positive.
    """

    joint: str
    deviation: float = 0.05
    bandwidth: float = 10.0
    rest: float | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(deviation=self.deviation, bandwidth=self.bandwidth)


@checked
def encoder_noise(bits: int, length: float = 2 * np.pi) -> float:
    """Return the standard deviation `length / 2^bits / √12` of rounding to a grid.

    Args:
        bits: of an encoder, 1 to 64.
        length: that its range covers, rad or m.

    Raises:
        ProblemError: bits or length out of their range.
    """
    require_positive(length=length)
    require_whole(1, bits=bits)
    if bits > 64:
        raise ProblemError(f"bits = {bits}; expected 1 to 64")
    return float(length / 2.0**bits / np.sqrt(12.0))


@summarised
@dataclass(frozen=True)
class Footing:
    """How well feet stand.

    Attributes:
        slip: density of the white velocity of a contact that stands, along the ground, m/s/√Hz.
        sink: the same along the normal.
        turn: the same of the rotation of a sole, rad/s/√Hz.
        place_noise: standard deviation of a contact's place beside the encoders', m: flexible
            links and soft feet, independent from sample to sample.
        turn_noise: the same of a sole's rotation, rad.
        landing: factor of these densities at touch-down.
        settling: time constant with which this factor falls to 1, s.
        rest: factor of these densities, of a sole that of `turn` alone, while all contacts stand
            and the IMU is still beside them: feet of a robot at rest do not creep, so the bias of
            the gyroscope shows.
        rolling: radius by which a ball rolls, by its own: less than 1 where it is soft.
        false_alarm: share of samples of a contact that stands which are rejected all the same.
        bounce: correlation time of the velocity of a contact that moves, s: what it moves by beside
            what the estimate does not know adds noise, of the density `speed * √bounce`.
        slide: m by which a ball slides down a slope while it rolls by 1 rad, by the slope's
            tangent: `μ_r / μ²` of MuJoCo's rolling friction μ_r, m, with the friction μ.

    Raises:
        ProblemError: a number that is not positive; a false alarm that is no share; a factor at
            rest above 1.
    """

    slip: float = 5e-3
    sink: float = 1e-2
    turn: float = 2e-2
    place_noise: float = 1e-4
    turn_noise: float = 1e-3
    landing: float = 20.0
    settling: float = 0.05
    rest: float = 0.05
    rolling: float = 1.0
    false_alarm: float = 1e-6
    bounce: float = 0.05
    slide: float = 0.0

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(**{k: x for k, x in vars(self).items() if k != "slide"})
        require_numbers(slide=self.slide)
        if self.false_alarm >= 1:
            raise ProblemError(f"false_alarm = {self.false_alarm}; expected a share in (0, 1)")
        if self.rest > 1:
            raise ProblemError(f"rest = {self.rest}; expected a factor of at most 1")


@summarised
@dataclass(frozen=True)
class FirstEstimate:
    """Standard deviations of the first estimate.

    Attributes:
        tilt: of roll and pitch, rad, beside the errors of the accelerometer from which they are
            taken: by motion at the start.
        heading: of the yaw, rad; None where it is not known: the first fix that sees it sets it,
            and without such a fix it is 1e-3, since then nobody can tell.
        speed: of the velocity, m/s.
        position: m; None as for the heading.

    Raises:
        ProblemError: a number that is not positive.
    """

    tilt: float = 2e-2
    heading: float | None = None
    speed: float = 0.3
    position: float | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(**{k: x for k, x in vars(self).items() if x is not None})
