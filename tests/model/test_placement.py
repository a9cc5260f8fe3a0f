"""Where the constant pose between two joints is shifted along the axis behind it."""

import numpy as np
import pytest
from model_mechanisms import EVERY_JOINT, tree_of
from scipy.spatial.transform import Rotation

from mbcasadi.model.placement import Pose, decompose

INCLINED = Rotation.from_euler("x", 0.5).as_matrix()


@pytest.mark.parametrize(
    ("R", "p", "shift"),
    [
        (INCLINED, 0.2 * INCLINED[:, 2], 0.2),  # one number in place of two
        (np.eye(3), np.array([0.3, 0.0, 0.2]), 0.0),  # two either way
        (np.eye(3), np.array([0.0, 0.0, 0.2]), 0.0),
    ],
)
def test_a_shift_along_the_axis_is_made_only_where_it_saves_a_number(R, p, shift):
    hinge = next(joint for joint in tree_of(EVERY_JOINT).joints if joint.kind == "hinge")
    assert decompose(hinge, Pose(R, p))[2] == pytest.approx(shift)
