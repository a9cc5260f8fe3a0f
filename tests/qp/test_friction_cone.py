"""Inner pyramids are inside the cone, outer ones around it, and both touch it."""

import numpy as np
import pytest

from mbcasadi.contacts.friction_cone import pyramid_rows, require_contacts
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError

MU = 0.6
ROUNDING = 1e-12


def largest(rows, angle):
    """Return the largest `|f_t|` in a direction at f_n = 1."""
    along = rows[:, 1:] @ np.array([np.cos(angle), np.sin(angle)])
    return np.min(-rows[along > ROUNDING, 0] / along[along > ROUNDING])


@pytest.mark.parametrize("sides", [3, 4, 5, 8, 31])
def test_the_cone_is_between_its_pyramids(sides):
    inner, outer = (np.array(pyramid_rows(MU, sides, outer=o)) for o in (False, True))
    angles = np.linspace(0, 2 * np.pi, 24 * sides, endpoint=False)
    inside = np.array([largest(inner, a) for a in angles])
    around = np.array([largest(outer, a) for a in angles])
    assert inside.max() <= MU * (1 + ROUNDING)
    assert around.min() >= MU * (1 - ROUNDING)
    np.testing.assert_allclose([inside.max(), around.min()], MU)  # at edges, on faces
    np.testing.assert_allclose(around / inside, 1 / np.cos(np.pi / sides))


def test_another_kind_of_cone_is_refused_by_name():
    with pytest.raises(ProblemError, match=r"'FL'.*'round'.*'inner', 'outer', 'quadratic'"):
        require_contacts([Contact("FL", cone="round")])
