"""The numbers of the least-distance solver in double or single precision.

Single precision takes its tolerances from its epsilon: sums of rounding errors in proportion, a
power of epsilon as the same power.
"""

import math
from typing import Literal

import numpy as np

from mbcasadi.codegen.constant_rows import FAR
from mbcasadi.codegen.text import number
from mbcasadi.description.qp_stages import (
    C_PRIMAL_TOLERANCE,
    DEPENDENT,
    INDEPENDENT,
    LEAST_DISTANCE,
    NEWTON_LAST,
    NEWTON_STEP,
    PROOF_RADIUS,
    PROOF_ROUNDING,
    RAY_ROUNDING,
    ROUNDING,
    SMALL_DISTANCE,
    UNBOUNDED,
    ZERO_BOUND,
    ZERO_ROW,
)

Real = Literal["double", "float"]

POWERS = {
    "primal_tol": C_PRIMAL_TOLERANCE,
    "dependent": DEPENDENT,
    "independent": INDEPENDENT,
    "small_distance": SMALL_DISTANCE,
    "zero_row": ZERO_ROW,
    "zero_bound": ZERO_BOUND,
    "ray_rounding": RAY_ROUNDING,
    "proof_radius": PROOF_RADIUS,
    "proof_rounding": PROOF_ROUNDING,
    "newton_step": NEWTON_STEP,
    "newton_last": NEWTON_LAST,
}
"""Numbers that single precision takes as the same power of its epsilon."""

MATHEMATICS = ("sqrt", "fma", "frexp", "ldexp")
"""Functions of the C library that the solver calls."""

MUCH = 0.1
"""Squared length of a unit row beside the active ones below which it is projected twice: once keeps
all digits but half of one."""

FLOAT_RANGE = {"far": 1e18, "least_distance": 1e-15, "unbounded": UNBOUNDED}
DOUBLE_RANGE = {"far": FAR, "least_distance": LEAST_DISTANCE, "unbounded": UNBOUNDED}


SINGLE, DOUBLE = float(np.finfo(np.float32).eps), float(np.finfo(np.float64).eps)


def same_power(value: float, real: Real) -> float:
    """Return a number of double, or the same power of float's epsilon."""
    return value if real == "double" else float(value ** (math.log(SINGLE) / math.log(DOUBLE)))


def range_of(real: Real) -> float:
    """Return the number above which squares overflow."""
    return FAR if real == "double" else FLOAT_RANGE["far"]


def numbers_of(real: Real) -> dict[str, str]:
    """Return the values of the solver's template that depend on the precision."""
    if real == "double":
        numbers = POWERS | DOUBLE_RANGE | {"rounding": ROUNDING, "much": MUCH}
        names = {"real": real} | {name: name for name in MATHEMATICS} | {"abs": "fabs"}
        values = {name: number(value) for name, value in numbers.items()}
        return values | names | {"least_square": "DBL_MIN"}
    numbers = {name: same_power(value, real) for name, value in POWERS.items()} | FLOAT_RANGE
    numbers |= {"rounding": ROUNDING * SINGLE / DOUBLE, "much": MUCH}
    names = {"real": real} | {name: f"{name}f" for name in MATHEMATICS} | {"abs": "fabsf"}
    values = {name: f"{value:.6e}f" for name, value in numbers.items()}
    return values | names | {"least_square": "FLT_MIN"}
