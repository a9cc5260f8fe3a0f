"""The examples of A10's laws run, and show what their first lines promise."""

import numpy as np
import pytest
from support.examples import shown

MARGIN = 0.02  # share of the wanted force, RMS


@pytest.mark.long
def test_the_error_decays_at_its_gain_and_in_mujoco_until_the_model_is_wrong(tmp_path, capsys):
    _, found = shown(16, tmp_path)
    believed, wrong = found.values()
    early = believed["t"] <= 0.5  # down to a twelfth
    bound = believed["epsilon"][0] * np.exp(-5.0 * believed["t"])
    assert believed["epsilon"][0] > 1.0
    np.testing.assert_allclose(believed["epsilon"][early], bound[early], atol=0.02)
    for run, least in ((believed, 0.1), (wrong, 0.75)):
        late = (run["t"] > 2.0) & (run["t"] < 7.0)
        assert run["epsilon"][late].max() < least * bound[0]
        assert np.abs(run["error"][late]).max() < 0.2
    said = capsys.readouterr().out
    assert "eq. 46 requires K_p > c_l c_v" in said


@pytest.mark.long
def test_the_force_is_right_with_feedback_and_the_path_the_same_without(tmp_path):
    _, found = shown(17, tmp_path)
    alone, fed = found["eq. 47 alone"], found["and PI"]
    assert 100 * MARGIN < alone["rms"] < 20
    assert fed["rms"] < 100 * MARGIN
    assert np.abs(alone["tip"]).max() > 0.05
    np.testing.assert_allclose(fed["tip"], alone["tip"], atol=1e-3)
