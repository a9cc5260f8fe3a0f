"""Medians over forces and torques are the same in all units of the model."""

import numpy as np
import pytest
from support.unit_systems import KINDS, SI, Units, closed_state, linkage_text, rates_of
from support.validation_problems import recording

from mbcasadi.plant import Plant
from mbcasadi.system import read_mjcf
from mbcasadi.validation.metrics import softness_sweep
from mbcasadi.validation.run.model_comparison import comparison_dynamics

OTHERS = (Units(m=1e3, kg=1e3), Units(m=1e-3, kg=1e-3))
CRANKS = (0.5, 0.8, 1.1, 1.4, 1.9)  # rad
AGREE = 1e-5  # MuJoCo's solver at an impedance of 0.9999


def swept(u):
    """Return the sweep over closed states of the linkage in units u."""
    text, nothing = linkage_text(u), np.zeros((len(CRANKS), 4))
    states = [closed_state((0.05, crank, 0.0, 0.0)) for crank in CRANKS]
    record = recording(
        t=np.arange(len(CRANKS)) * 1e-3,
        q=np.array([u.of(KINDS) * q for q, _ in states]),
        v=np.array([rates_of(u) * v for _, v in states]),
        u_applied=nothing,
        act=np.zeros((len(CRANKS), 0)),
    )
    system = read_mjcf(text)
    return softness_sweep(lambda: Plant(text), system, comparison_dynamics(system), record)


def test_softness_is_measured_alike_in_all_units():
    expected = swept(SI)
    assert expected.states == len(CRANKS)
    assert expected.own > 1e-3
    assert list(expected.errors) == sorted(expected.errors, reverse=True)
    for units in OTHERS:
        found = swept(units)
        assert found.own == pytest.approx(expected.own, rel=AGREE)
        assert found.errors == pytest.approx(expected.errors, rel=AGREE)
