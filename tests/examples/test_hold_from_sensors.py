"""A quadruped sways by C that is told what its sensors read."""

import numpy as np
import pytest
from support.examples import shown


@pytest.mark.long
def test_the_trunk_follows_its_reference_by_sensors_alone(tmp_path):
    _, found = shown(45, tmp_path)
    t, off = found["t"], np.linalg.norm(found["place"] - found["reference"], axis=0)
    assert np.ptp(found["reference"][1]) > 0.03
    assert off[t < 1.5].max() < 0.002  # m, until it is pushed
    assert 0.005 < off.max() < 0.03
    unsure = t[found["unsure"]]
    assert unsure.min() >= 2.49, "while the IMU fails"
    assert unsure.max() < 2.6
    assert unsure.size > 30
