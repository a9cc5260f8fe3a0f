"""Estimates of physical parameters in the state of a law: their step, inside physical bounds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.law_interface.law import Array
from mbcasadi.description.parameters import Parameter, Parameters
from mbcasadi.dynamics.regressor import parameter_sizes
from mbcasadi.errors import ProblemError
from mbcasadi.qp.input_guard import clamp
from mbcasadi.shapes import require_positive
from mbcasadi.system import System
from mbcasadi.unknown_names import require_name

RANGE = 2.0
"""Estimates stay within this many sizes of the model's value, unless bounds are given."""

LEAST_MASS = 0.05
"""Share of its mass that a body keeps."""

MOMENTS_OF_MASS = ("mass", "com", "inertia")
"""Attributes of a body that `mass`, `first_moment` and `origin_inertia` are made from."""


@dataclass(frozen=True)
class Adaptation:
    """How estimates follow the error of a law.

    Attributes:
        gain: γ, 1/J: rate of an estimate for one watt, in sizes of its parameter and 1/s.
        leakage: 1/s, at which estimates return to the model's values (σ-modification).
        dead_zone: J, kinetic energy of the velocity error below which they rest: below what noise
            and unmodelled forces cause.
        bounds: (lower, upper) of entries by name, "body:tool:mass"; by default around the model's
            values, with masses, principal entries of inertias, armature and damping not negative.
    """

    gain: float = 1.0
    leakage: float = 0.0
    dead_zone: float = 0.0
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the numbers."""
        require_fields(self)
        require_positive(gain=self.gain)
        for name in ("leakage", "dead_zone"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ProblemError(
                    f"{name} = {getattr(self, name)}; expected a finite number of at least 0"
                )


class Estimates:
    """The parameters of a law that are estimated."""

    def __init__(
        self, system: System, theta: Parameters, options: Adaptation, period: float
    ) -> None:
        """Check bounds and period.

        Args:
            system: the mechanism.
            theta: what is estimated.
            options: of the user.
            period: of a tick, s.
        """
        require_positive(period=period)
        self._options, self._period = options, period
        self._values, self.sizes = theta.values, parameter_sizes(system, theta)
        self._lower, self._upper = _bounds(theta, self.sizes, options.bounds)

    def bounded(self, theta: ca.SX) -> ca.SX:
        """Return estimates (nθ, 1) inside their bounds, whatever the state holds."""
        return clamp(theta, self._lower, self._upper)

    def next(self, theta: ca.SX, power: ca.SX, free: ca.SX, energy: ca.SX) -> ca.SX:
        """Return the estimates of the next tick, `θ̂ - period γ D² Yᵀ ε` inside their bounds.

        Args:
            theta: (nθ, 1) present ones.
            power: (nθ, 1) `Yᵀ ε`.
            free: one where u is inside its limits; else the estimates do not follow.
            energy: J, of the velocity error.
        """
        rate = -self._options.gain * ca.DM(self.sizes**2) * power
        if self._options.dead_zone:
            free = ca.logic_and(free, energy >= self._options.dead_zone)
        step = ca.if_else(free, rate, 0) + self._options.leakage * (ca.DM(self._values) - theta)
        return self.bounded(theta + self._period * step)


def require_apart(system: System, theta: Parameters) -> None:
    """Raise `ProblemError` where an estimate would replace a parameter of the input p."""
    for item in system.parameters.items:
        for estimate in theta.items:
            same = (item.kind, item.index) == (estimate.kind, estimate.index)
            mass = item.kind == "body" and item.attribute in MOMENTS_OF_MASS
            if same and (mass or item.attribute == estimate.attribute):
                raise ProblemError(
                    f"'{item.name}' is an input p of the system, and '{estimate.name}' is "
                    "estimated; leave one of them out"
                )


def _bounds(
    theta: Parameters, sizes: Array, given: Mapping[str, tuple[float, float]]
) -> tuple[Array, Array]:
    """Return the bounds (nθ,), (nθ,) of all entries.

    Raises:
        UnknownNameError: bounds of an entry that is not estimated.
        ProblemError: bounds that do not hold the model's value.
    """
    lower, upper = theta.values - RANGE * sizes, theta.values + RANGE * sizes
    lower = np.maximum(lower, [x for item in theta.items for x in _least(item)])
    for name, pair in given.items():
        require_name("estimated parameter", name, theta.names)
        place = theta.names.index(name)
        lower[place], upper[place] = pair
        value = theta.values[place]
        if not lower[place] <= value <= upper[place]:
            raise ProblemError(
                f"bounds of '{name}' are {pair}, and the model has {value:g}; expected "
                "lower <= the model's value <= upper"
            )
    return lower, upper


def _least(item: Parameter) -> list[float]:
    """Return the least physical value of each entry, where it has one of its own."""
    if item.attribute == "mass":
        return [LEAST_MASS * item.value[0]]
    if item.attribute == "origin_inertia":
        principal = [0.0] * 3
        return principal + [-np.inf] * (len(item.value) - len(principal))
    return [item.least] * len(item.value)
