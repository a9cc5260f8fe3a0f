"""A quadruped lifts a foot by modes of one law."""

import numpy as np
import pytest
from support.examples import shown


@pytest.mark.long
def test_a_foot_is_unloaded_lifted_and_loaded_in_modes(tmp_path):
    names, found = shown(47, tmp_path)
    assert found["report"].passed
    mode, height, load = (found[name] for name in ("mode", "height", "load"))
    assert list(dict.fromkeys(mode)) == [0, 1, 2, 3, 4, 5]
    assert mode[-1] == 0  # it stands again
    on_ground, lifted = mode <= 1, mode == 3
    assert load[on_ground].min() > 5.0
    assert np.ptp(height[lifted]) > 0.9 * names["HEIGHT"]
    assert load[lifted].max() == 0.0
    switched_off = np.flatnonzero(mode == 2)[round(names["FADE"] / names["PERIOD"]) - 5]
    assert load[switched_off] < 2 * names["LIGHT"], "unloaded before its contact is off"
    landed = load[mode == 5]
    assert landed[-1] > 10.0
    assert landed.max() < 1.1 * landed[-1], "no blow"
