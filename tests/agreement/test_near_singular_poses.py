"""All formulations on the way into a singular pose, against the motion in one coordinate.

Near the pose of A05's slider-crank where two branches meet, one singular value of A goes to zero
and its condition to 1e8. The row keeps its direction, so the motion along the branch does not
feel it. At 1e-10 m the row is dropped.
"""

import numpy as np
import pytest
from support.admissible_states import call, column
from support.constrained_mechanisms import mechanism
from support.formulation_variants import labelled, motion, variants
from support.motion_references import lengths

import mbcasadi as mb
from mbcasadi.errors import UnsupportedFeatureError

AGREEMENT_TOL = 1e-10
OFFSETS = np.array([sign * 10.0**-k for k in range(1, 9) for sign in (1, -1)])  # rad
FORCE = np.array([0.3, -0.2, 0.1])


def branch() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return states on the branch where the slider moves, and the exact acceleration there."""
    system = mechanism("slider_crank").system
    angle, rate = np.pi / 2 + OFFSETS, 0.5
    one = np.ones_like(angle)
    along = np.array([one, -2 * np.sin(angle), one])
    states = {
        "q": np.array([angle, 2 * np.cos(angle), angle]),
        "v": rate * along,
        "f": np.tile(FORCE[:, None], angle.size),
    }
    M = call(system.mass_matrix, states)["M"]
    h = column(call(system.bias_force, states), "h").T
    h = h - column(call(system.passive_force, states), "f_passive").T
    bend = np.array([0 * one, -2 * np.cos(angle) * rate**2, 0 * one])
    force = states["f"] - h - np.einsum("kij,jk->ik", M, bend)
    inertia = np.einsum("ik,kij,jk->k", along, M, along)
    return states, (bend + along * np.sum(along * force, axis=0) / inertia).T


@pytest.mark.parametrize("label", labelled())
def test_the_acceleration_near_a_singular_pose_is_that_along_the_branch(label):
    it = mechanism("slider_crank")
    states, exact = branch()
    A = call(it.system.constraint_jacobian, states)["A"]
    smallest = np.linalg.svd(A, compute_uv=False)[:, 1]
    assert smallest.min() < 1e-7
    found = motion(it, label, states)["a"]
    error = lengths(found - exact) / lengths(exact)
    assert np.all(error < AGREEMENT_TOL), f"{label}: {np.max(error):.1e}"


def test_formulations_that_need_a_definite_inertia_refuse_another_by_name():
    it = mechanism("euler_parameters")
    served = {labelled()[label][0] for label in variants(it)}
    assert served == {"limbwise", "lagrange", "projection", "virtual_mass"}
    for label, (formulation, options) in labelled().items():
        if label not in variants(it):
            with pytest.raises(UnsupportedFeatureError, match=f"'{formulation}'.*definite M"):
                mb.forward_dynamics(it.system, formulation, **options, derivatives=False)
