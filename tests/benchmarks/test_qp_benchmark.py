"""The benchmark of QPs: all solvers get one problem and find one solution."""

import numpy as np

from bench.qp_native import native_times
from bench.tick_peers import from_least_distance, solvers


def problems(rng, *, constant):
    A = rng.normal(size=(1 if constant else 12, 10, 5)) + np.zeros((12, 1, 1))
    values = np.einsum("kmn,kn->km", A, 3 * rng.normal(size=(12, 5)))
    return A, values - rng.exponential(size=values.shape), values + rng.exponential(size=(12, 10))


def test_solvers_in_c_agree_with_quadprog_cold_and_warm():
    for constant in (False, True):
        given = problems(np.random.default_rng(2), constant=constant)
        (expected,) = solvers(from_least_distance(*given), only=("quadprog",))
        for daqp in (False, True):
            for warm in (False, True):
                found = native_times(given, daqp=daqp, warm=warm, passes=2)
                np.testing.assert_allclose(found.x, expected.solutions, atol=1e-9)
                assert np.all(found.seconds > 0)
                assert np.all(found.active > 0)
