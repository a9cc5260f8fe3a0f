"""Reference signals over time, with exact first and second derivatives.

A component of a reference is a sum of terms; each term is an expression of `t`, so that
velocity and acceleration follow by differentiation and never disagree with the position.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from pydantic import Discriminator, Field, Tag

from mbcasadi.motion.timing import ramped_time, smooth_step
from mbcasadi.validation.spec.tables import NotNegative, Positive, StrictTable

UNITS = {"": 1.0, "deg": float(ca.pi) / 180.0, "mm": 1e-3}  # to rad and m
Unit = Literal["", "deg", "mm"]


class _Term(StrictTable):
    """What all terms have; lengths and angles are in `unit`, "" for m and rad."""

    start: Annotated[NotNegative, Field(description="s")] = 0.0
    unit: Unit = ""


class Sine(_Term):
    """`amplitude s(t) sin(2 pi frequency (t - start) + phase)`.

    `s` rises from 0 to 1 during `ramp`, with continuous acceleration, so that a motion can start
    from rest; from `stop` on it falls to 0 in the same way.
    """

    amplitude: float
    frequency: Annotated[NotNegative, Field(description="Hz")]
    phase: Annotated[float, Field(description="degrees")] = 0.0
    ramp: Annotated[NotNegative, Field(description="s")] = 0.0
    stop: Annotated[NotNegative | None, Field(description="s; without it there is no end")] = None

    def expression(self, t: ca.SX) -> ca.SX:
        """Return the term as an expression of `t`, in rad or m."""
        angle = 2 * ca.pi * self.frequency * (t - self.start) + self.phase * UNITS["deg"]
        rise = smooth_step(t, self.start, self.ramp)
        fall = ca.SX(0) if self.stop is None else smooth_step(t, self.stop, self.ramp)
        return self.amplitude * UNITS[self.unit] * rise * (1 - fall) * ca.sin(angle)


class Step(_Term):
    """`by s(t)`: a step that takes `duration`, with continuous acceleration."""

    by: float
    duration: Annotated[Positive, Field(description="s")]

    def expression(self, t: ca.SX) -> ca.SX:
        """Return the term as an expression of `t`, in rad or m."""
        return self.by * UNITS[self.unit] * smooth_step(t, self.start, self.duration)


class SteadyMotion(_Term):
    """Steady motion at `rate`, per second, reached during `ramp` with continuous acceleration."""

    rate: float
    ramp: Annotated[NotNegative, Field(description="s")] = 0.0

    def expression(self, t: ca.SX) -> ca.SX:
        """Return the term as an expression of `t`, in rad or m."""
        return self.rate * UNITS[self.unit] * ramped_time(t, self.start, self.ramp)


def _tag(value: object) -> str:
    """Return the kind of a term, which its keys determine."""
    keys = value if isinstance(value, dict) else getattr(value, "model_fields_set", None)
    if keys is None:
        return "number"
    return "step" if "by" in keys else "rate" if "rate" in keys else "sine"


Term = Annotated[
    Annotated[float, Tag("number")]
    | Annotated[Sine, Tag("sine")]
    | Annotated[Step, Tag("step")]
    | Annotated[SteadyMotion, Tag("rate")],
    Discriminator(_tag),
]
Component = Annotated[
    Annotated[list[Term], Tag("sum")] | Annotated[Term, Tag("term")],
    Discriminator(lambda value: "sum" if isinstance(value, list) else "term"),
]

Command = NDArray[np.float64] | Callable[[float], NDArray[np.float64]]


def component_expression(component: Component, t: ca.SX) -> ca.SX:
    """Return the sum of the terms of one component as an expression of `t`."""
    terms = component if isinstance(component, list) else [component]
    total = ca.SX(0)
    for term in terms:
        total = total + (term if isinstance(term, float) else term.expression(t))
    return total


def command_of(components: Sequence[Component]) -> Command:
    """Return (n,) a command of these components: a vector, or a function of time in s."""
    t = ca.SX.sym("t")
    values = ca.densify(ca.vertcat(*(component_expression(each, t) for each in components)))
    if values.is_constant():
        return np.array(ca.DM(values)).ravel()
    function = ca.Function("command", [t], [values])
    return lambda now: np.asarray(function(now)).ravel()


def time_derivatives(x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return `dx/dt` and `d²x/dt²`."""
    first = ca.jacobian(x, t)
    return first, ca.jacobian(first, t)
