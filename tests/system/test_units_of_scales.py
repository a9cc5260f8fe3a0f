"""The sizes of a mechanism change with its units, and with nothing else."""

import casadi as ca
import numpy as np
import pytest
from support.unit_systems import (
    CONTROLS,
    KINDS,
    OTHERS,
    SI,
    assert_same,
    controls_of,
    forces_of,
    linkage,
    slider_crank,
)

import mbcasadi as mb
from mbcasadi.system.sizes import control_sizes, residual_sizes

ANGLES = ("rad", "rad", "m")  # of the slider-crank
AGREE = 1e-7  # relative; poses are closed to 1e-9


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_sizes_of_a_model_are_those_of_its_units(units):
    def found(u):
        system = linkage(u)
        scales = system.scales
        torque = u.torque / controls_of(u)  # a torque per unit of control
        return {
            "poses": np.array([q for q, _ in scales.states]) / u.of(KINDS),
            "speeds": np.array([v for _, v in scales.states]) / u.of(KINDS) * u.s,
            "coordinates": scales.coordinates / u.of(KINDS),
            "rows": scales.rows / u.m,
            "residuals": residual_sizes(system)[:6] / u.m,
            "controls": control_sizes(system) / torque,
            "rate": scales.rate * u.s,
        }

    expected, other = found(SI), found(units)
    length = expected["coordinates"][0]
    np.testing.assert_allclose(expected["coordinates"], [length, 1, 1, length])
    np.testing.assert_allclose(expected["controls"], [length, 1, 0.5, length])
    np.testing.assert_allclose(expected["rate"], np.sqrt(9.81 / length))
    assert {"force", "torque"} == set(CONTROLS)
    assert forces_of(SI).shape == (4,)
    for key, value in expected.items():
        assert_same(other[key], value, AGREE, key)


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_sizes_of_given_equations_are_those_of_their_units(units):
    """Their M depends on the pose, so that the poses at which it is measured count."""

    def found(u):
        system = slider_crank(u)
        scales = system.scales
        return {
            "poses": np.array([q for q, _ in scales.states]) / u.of(ANGLES),
            "coordinates": scales.coordinates / u.of(ANGLES),
            "rows": scales.rows / u.m,
            "rate": scales.rate * u.s,
        }

    expected, other = found(SI), found(units)
    for key, value in expected.items():
        assert_same(other[key], value, AGREE, key)


def bead(u):
    """Return a bead on a circle of 0.5 m in Cartesian coordinates: A vanishes at q = 0."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    return mb.from_lagrangian(
        q, v, kinetic=u.kg * 0.7 * ca.sumsqr(v), potential=u.kg * 9.81 * u.m / u.s**2 * q[1],
        phi=ca.sumsqr(q) - (0.5 * u.m) ** 2,
    )  # fmt: skip


def masses(u):
    """Return two masses on linear springs: no equation has a length."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    spring = u.kg / u.s**2 * (ca.sumsqr(q) + (q[0] - q[1]) ** 2)
    return mb.from_lagrangian(
        q, v, kinetic=u.kg * (0.7 * v[0] ** 2 + 2.1 * v[1] ** 2), potential=spring
    )


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_equations_without_a_first_derivative_or_a_length_have_sizes_too(units):
    for u in (SI, units):
        size = bead(u).scales.coordinates / u.m
        assert size[0] == pytest.approx(size[1])
        assert 0.1 < size[0] < 1.0  # of the circle, m
        ratio = masses(u).scales.coordinates
        assert ratio[0] / ratio[1] == pytest.approx(np.sqrt(3.0))  # of equal kinetic energy
        assert masses(u).scales.rate * u.s == pytest.approx(masses(SI).scales.rate)
    assert bead(units).scales.rate * units.s == pytest.approx(bead(SI).scales.rate)
