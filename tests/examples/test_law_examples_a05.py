"""The examples of A05's control laws run, and show what their first lines promise."""

import numpy as np
import pytest
from support.examples import EXAMPLES, example, shown
from support.pages import assert_shows

DOCS = (EXAMPLES.parent / "docs" / "guides/control-laws.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_one_motor_turns_the_slider_crank_and_a_coarse_tolerance_keeps_its_torque_smooth(
    tmp_path, capsys
):
    _, found = shown(10, tmp_path)
    said = capsys.readouterr().out
    assert "The only motion of 'slider_crank' can be driven here" in said
    assert "Motion along slider (+0.71), rod (-0.71) cannot be" in said
    assert_shows(DOCS, "\n".join(said.splitlines()[:2]))
    fine, coarse = found[1e-6], found[0.03]
    for one in (fine, coarse):
        assert one["RMS error, mrad"] < 5  # of a turn of 6283
        assert one["slider off its branch, mm"] < 20
    assert fine["ticks at a limit, %"] > coarse["ticks at a limit, %"] == 0


@pytest.mark.long
def test_the_arm_presses_as_it_should_with_pi_only(tmp_path):
    _, found = shown(11, tmp_path)
    alone, with_pi, diverged = found.values()
    assert with_pi["RMS force error, %"] < 2 < alone["RMS force error, %"] < 10
    assert diverged["RMS force error, %"] > 100
    np.testing.assert_allclose(
        alone["RMS error of the tip, mm"], with_pi["RMS error of the tip, mm"], rtol=0.01
    )
    assert alone["ticks at a limit, %"] == with_pi["ticks at a limit, %"] == 0


@pytest.mark.long
def test_the_platform_follows_its_circle(tmp_path, capsys):
    _, found = shown(12, tmp_path)
    said = capsys.readouterr().out
    assert "Each of the 3 motions of 'planar_3rrr' can be driven here" in said
    assert "at 200 of 200 poses" in said
    assert_shows(DOCS, "\n".join(said.splitlines()[:2]))
    assert found["RMS error of x, m or rad"] < 0.02 * 0.05  # of the circle's radius
    assert found["RMS error of y, m or rad"] < 0.02 * 0.05
    assert found["RMS error of phi, m or rad"] < 0.02 * 0.2
    assert found["ticks at a limit, share"] == 0


def test_the_circle_starts_at_rest_and_is_one_after_its_ramp():
    names = example(12)
    path = names["path"]()
    np.testing.assert_array_equal(path.values(0.0), 0)
    x, y, _ = path(1.3).q
    np.testing.assert_allclose(np.hypot(x + names["RADIUS"], y), names["RADIUS"], rtol=1e-12)
