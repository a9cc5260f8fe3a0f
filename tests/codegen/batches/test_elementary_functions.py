"""The elementary functions in lanes are within two units in the last place of fifty digits."""

import casadi as ca
import mpmath
import numpy as np
import pytest

import mbcasadi as mb

UNITS = 2.0
"""In the last place; stated in the C."""
SAMPLES = 400
LARGEST_REDUCED = 1e6
"""Beyond it an angle is the C library's."""


def spread(rng, low, high):
    """Numbers of all sizes between two, of both signs."""
    sizes = np.exp(rng.uniform(np.log(low), np.log(high), SAMPLES))
    return sizes * rng.choice([-1.0, 1.0], SAMPLES)


def angles(rng):
    """Angles of all sizes, those nearest to multiples of π/2, and both sides of the limit."""
    multiples = np.arange(1, LARGEST_REDUCED / 2) * (np.pi / 2)
    from_axis = np.minimum(np.abs(np.sin(multiples)), np.abs(np.cos(multiples)))
    nearest = multiples[np.argsort(from_axis)[:SAMPLES]]
    limit = LARGEST_REDUCED + np.arange(-20, 20) * 1.3e-10
    return [rng.uniform(-4, 4, SAMPLES), spread(rng, 1e-300, 1e15), nearest, -nearest, limit]


DOMAINS = {
    "sin": angles,
    "cos": angles,
    "tan": angles,
    "asin": lambda rng: [rng.uniform(-1, 1, SAMPLES), spread(rng, 1e-300, 1.0)],
    "acos": lambda rng: [rng.uniform(-1, 1, SAMPLES), 1 - np.abs(spread(rng, 1e-16, 1e-2))],
    "atan": lambda rng: [rng.uniform(-4, 4, SAMPLES), spread(rng, 1e-300, 1e300)],
    "exp": lambda rng: [rng.uniform(-1, 1, SAMPLES), rng.uniform(-708, 709.7, SAMPLES)],
    "log": lambda rng: [np.abs(spread(rng, 5e-324, 1e308)), 1 + spread(rng, 1e-16, 0.5)],
}


def units_off(value, exact):
    return abs(mpmath.mpf(float(value)) - exact) / mpmath.mpf(float(np.spacing(abs(float(exact)))))


@pytest.fixture(scope="module")
def batch():
    x = ca.SX.sym("x")
    names = list(DOMAINS)
    return mb.batch(ca.Function("f", [x], [getattr(ca, n)(x) for n in names], ["x"], names))


@pytest.mark.parametrize("name", DOMAINS)
def test_a_function_of_one_number_is_right_to_two_units(batch, name):
    assert batch.lanes > 1
    x = np.concatenate(DOMAINS[name](np.random.default_rng(5)))
    with mpmath.workdps(50):
        for argument, value in zip(x, batch(x)[name][:, 0], strict=True):
            exact = getattr(mpmath, name)(mpmath.mpf(float(argument)))
            assert units_off(value, exact) < UNITS, argument


def test_the_angle_of_a_point_is_right_to_two_units():
    y, x = ca.SX.sym("y"), ca.SX.sym("x")
    batch = mb.batch(ca.Function("f", [y, x], [ca.atan2(y, x)], ["y", "x"], ["angle"]))
    rng = np.random.default_rng(6)
    ranges = ((1e-2, 1e2), (1e-150, 1e150), (1e300, 1.7e308))
    y, x = (np.concatenate([spread(rng, *limits) for limits in ranges]) for _ in range(2))
    with mpmath.workdps(50):
        for a, b, value in zip(y, x, batch(y, x)["angle"][:, 0], strict=True):
            exact = mpmath.atan2(mpmath.mpf(float(a)), mpmath.mpf(float(b)))
            if abs(exact) > np.finfo(float).tiny:
                assert units_off(value, exact) < UNITS, (a, b)
