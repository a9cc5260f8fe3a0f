"""The cheap rows of the table of plans, on models of our own."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from robots.plans import drone, hopper, swing_up


def test_the_eight_is_8_m_by_4_m_and_flown_at_a_constant_speed():
    along = drone.path(mb.read_mjcf(models.path("quadrotor")))
    lap = slice(drone.FINE * round(drone.RAMP / drone.PERIOD), drone.FINE * along.ticks)
    np.testing.assert_allclose(np.ptp(along.q[lap, :2], axis=0), [8.0, 4.0], atol=2e-3)
    np.testing.assert_allclose(np.linalg.norm(along.v[lap, :3], axis=1), drone.SPEED, rtol=1e-3)


@pytest.mark.long
def test_a_cart_pole_on_redundant_rows_swings_up_by_what_it_has_learned():
    """10 % heavier, one tick late, in MuJoCo."""
    _, model, start, rti = swing_up.cart_pole()
    run = mb.validate(
        rti,
        model,
        3.0,
        q0=start,
        reference=rti.nominal_reference,
        delay=swing_up.DELAY,
        perturb={"mass": swing_up.MASS},
        fast=True,
    ).runs[0]
    t, lean = run.recording.t, swing_up.cart_lean(run.recording.q)
    assert np.abs(lean[0]) > 3.0
    assert swing_up.stands_after(t, lean, 3.0) < 2.5


def test_only_flights_that_last_count():
    in_air = np.array([0, 1, 1, 1, 1, 1, 0, 0, 1, 0, 1, 1, 1, 1], dtype=bool)
    assert hopper.flights(in_air, 0.025) == 2
