"""A proof of infeasibility holds where there is none, and nowhere else."""

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import linprog

from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.qp.infeasibility import proves_infeasible
from mbcasadi.qp.solver import infeasible_where

N, M = 3, 6


def proven(A, lower, upper, ray):
    return bool(proves_infeasible(*(ca.DM(x) for x in (A, lower, upper, ray)), ca.DM(1)))


def is_feasible(A, lower, upper):
    rows, ends = np.vstack([A, -A]), np.concatenate([upper, -lower])
    finite = np.abs(ends) < UNBOUNDED
    found = linprog(np.zeros(N), rows[finite], ends[finite], bounds=(None, None))
    return found.status == 0


def draw(rng):
    """Return rows with one or two bounds each, and a ray that annihilates them."""
    A = rng.normal(size=(M, N))
    lower, upper = (rng.normal(size=M) + shift for shift in (-0.6, 0.6))
    lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
    ray = null_space(A.T) @ rng.normal(size=M - N)
    unused = rng.random(M) < 0.5  # bounds that the ray does not use, and now and then one it does
    unused_sides = np.where(ray > 0, unused, False), np.where(ray > 0, False, unused)
    lower[unused_sides[0]], upper[unused_sides[1]] = -UNBOUNDED, UNBOUNDED
    if rng.random() < 0.2:
        used = rng.integers(M)
        (upper if ray[used] > 0 else lower)[used] = np.sign(ray[used]) * UNBOUNDED
    return A, lower, upper, ray


def test_rays_prove_only_what_linear_programming_confirms():
    rng, count = np.random.default_rng(0), {True: 0, False: 0}
    for _ in range(600):
        A, lower, upper, ray = draw(rng)
        ends = np.where(ray > 0, upper, lower)
        verdict = proven(A, lower, upper, ray)
        assert verdict == (ends @ ray < -1e-9)  # Farkas
        assert not (verdict and is_feasible(A, lower, upper))
        count[verdict] += 1
    assert min(count.values()) > 10


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_the_size_of_a_ray_does_not_matter_its_direction_does(size):
    A = np.array([[1.0, 0.0], [-1.0, 0.0]])
    lower, upper = np.full(2, -UNBOUNDED), np.array([1.0, -1.5])  # x <= 1 and x >= 1.5
    assert proven(A, lower, upper, size * np.ones(2))
    assert not proven(A, lower, upper, -size * np.ones(2))
    assert not proven(A, lower, upper, size * np.array([1.0, 0.9]))
    assert not proven(A, lower, upper, np.zeros(2))
    assert not proven(A, lower, np.array([1.0, -0.5]), size * np.ones(2))
    assert not proven(A, lower, upper, np.array([np.nan, 1.0]))


def test_without_rows_nothing_is_infeasible():
    none = ca.MX(0, 1)
    assert int(ca.evalf(infeasible_where(ca.MX(1), ca.DM(0, N), none, none))) == 0
