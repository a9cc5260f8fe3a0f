"""A five-bar feels a push from its sensors."""

import numpy as np
from support.examples import shown


def test_a_push_is_felt_along_both_axes(tmp_path):
    _, felt = shown(40, tmp_path)
    error = felt["estimate"] - felt["push"]
    assert np.abs(felt["push"]).max(axis=1).min() > 2.9
    assert np.sqrt(np.mean(error**2, axis=1)).max() < 0.2  # N
