"""The examples of impedance and of laws within their limits show what they promise."""

import numpy as np
import pytest
from support.examples import shown


@pytest.mark.long
def test_a_pushed_tool_gives_way_by_force_over_stiffness(tmp_path):
    _, found = shown(23, tmp_path)
    for run in found.values():
        np.testing.assert_allclose(run["end"], [15.0, -7.5], rtol=0.02)
        assert np.abs(run["shift"][0]).max() < 1e-6
    light, heavy = found["own inertia"]["soon"], found["5 kg, push measured"]["soon"]
    assert heavy == pytest.approx(light / 2, rel=0.2)
    expected = 1e3 * np.hypot(6.0, 3.0) / 5.0 * 0.05**2 / 2  # of 5 kg, springs not yet felt
    assert 0.7 * expected < heavy < expected


@pytest.mark.long
def test_a_tool_keeps_its_line_though_a_motor_is_too_weak(tmp_path):
    _, found = shown(24, tmp_path)
    clipped, kept = found["clipped"], found["within limits"]
    assert clipped["saturated"] > 0.1
    assert np.abs(kept["u"][:, 0]).max() <= 4.0
    assert clipped["largest"] > 20.0
    assert kept["largest"] < 0.4 * clipped["largest"]
    assert kept["off"] < 0.6 * clipped["off"]
