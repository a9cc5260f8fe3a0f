"""Inner pyramids are inside the cone, outer ones around it, and both touch it."""

import numpy as np
import pytest

from mbcasadi.contacts.friction_cone import force_rows, pyramid_rows, require_contacts
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


@pytest.mark.parametrize("limits", [{}, {"min_force": 2.0}, {"max_force": 5.0}, {"adhesion": 1.5}])
def test_the_rows_of_a_contact_hold_inside_its_cone_and_range_only(limits):
    """Where it may pull, the cone's apex is at the largest pull."""
    contact = Contact("FL", friction=MU, sides=64, **limits)
    D, ends = force_rows(contact)
    rng = np.random.default_rng(0)
    forces = rng.uniform(-1, 1, (2000, 3)) * [8, 4, 4]
    within = ((ends[:, :1] <= D @ forces.T) & (ends[:, 1:] >= D @ forces.T)).all(axis=0)
    reach = MU * (forces[:, 0] + contact.adhesion) - np.linalg.norm(forces[:, 1:], axis=1)
    low, high = contact.min_force or -np.inf, contact.max_force or np.inf
    held = (reach >= 0) & (forces[:, 0] >= low) & (forces[:, 0] <= high)
    assert 0 < within.sum() < len(forces)
    clear = np.abs(reach) > 0.01  # the pyramid lacks 0.1 % of the cone
    np.testing.assert_array_equal(within[clear], held[clear])


def test_another_kind_of_cone_is_refused_by_name():
    with pytest.raises(ProblemError, match=r"'FL'.*'round'.*'inner', 'outer', 'quadratic'"):
        require_contacts([Contact("FL", cone="round")])
