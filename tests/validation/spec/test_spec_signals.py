"""Reference signals of a controller's spec."""

import casadi as ca
import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from mbcasadi.validation.spec.signals import Component, component_expression, time_derivatives

READ = TypeAdapter(Component)
ROUNDING = 1e-12
STEP = 1e-5  # central differences: truncation and rounding both near 1e-9


def signal(given):
    """Return (t) -> (x, dx, ddx) of a component as a Function."""
    t = ca.SX.sym("t")
    x = component_expression(READ.validate_python(given), t)
    return ca.Function("signal", [t], [x, *time_derivatives(x, t)])


def values(function, t):
    return np.array([float(value) for value in function(t)])


def test_a_sine_has_its_closed_form_in_the_given_unit():
    f = signal({"amplitude": 40, "frequency": 0.5, "unit": "mm"})
    t, w = 0.3, 2 * np.pi * 0.5
    expected = 0.04 * np.array([np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)])
    np.testing.assert_allclose(values(f, t), expected, rtol=ROUNDING)


def test_terms_add_up():
    both = signal([0.5, {"amplitude": 1, "frequency": 1}, {"by": 90, "duration": 1, "unit": "deg"}])
    np.testing.assert_allclose(values(both, 2.25)[0], 0.5 + 1 + np.pi / 2, rtol=ROUNDING)


@pytest.mark.parametrize(
    "given",
    [
        {"amplitude": 1, "frequency": 0.5, "ramp": 2.0, "start": 0.5, "phase": 90},
        {"amplitude": 1, "frequency": 0.5, "ramp": 1.0, "stop": 1.2},
        {"by": 0.3, "start": 0.5, "duration": 1.5},
        {"rate": 2.0, "start": 0.5, "ramp": 1.5},
    ],
)
def test_derivatives_are_those_of_the_position(given):
    f = signal(given)
    for t in (0.2, 0.9, 1.7, 3.1):
        ahead, behind = values(f, t + STEP), values(f, t - STEP)
        slope = (ahead[:2] - behind[:2]) / (2 * STEP)
        np.testing.assert_allclose(values(f, t)[1:], slope, atol=1e-7)


def test_a_ramp_starts_from_rest_and_ends_at_the_full_signal():
    f = signal({"amplitude": 1, "frequency": 0.5, "phase": 90, "ramp": 2.0, "start": 1.0})
    np.testing.assert_allclose(values(f, 1.0), 0, atol=ROUNDING)
    full = signal({"amplitude": 1, "frequency": 0.5, "phase": 90, "start": 1.0})
    np.testing.assert_allclose(values(f, 3.7), values(full, 3.7), rtol=ROUNDING)


def test_a_stopped_sine_comes_to_rest():
    f = signal({"amplitude": 1, "frequency": 0.5, "phase": 40, "ramp": 0.5, "stop": 2.0})
    assert abs(values(f, 1.9)[0]) > 0.1
    np.testing.assert_allclose(values(f, 2.5), 0, atol=ROUNDING)


def test_a_turn_reaches_its_rate():
    f = signal({"rate": 90, "ramp": 1.0, "unit": "deg"})
    np.testing.assert_allclose(values(f, 3.0), [np.pi / 2 * 2.5, np.pi / 2, 0], atol=ROUNDING)


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"amplitude": 1, "frequencie": 2}, "frequencie"),
        ({"by": 1, "duration": 0}, "duration"),
        ("fast", "number"),
        ({"amplitude": 1, "frequency": 1, "unit": "inch"}, "unit"),
    ],
)
def test_a_wrong_term_is_refused_by_name(given, where):
    with pytest.raises(ValidationError, match=where):
        READ.validate_python(given)
