"""Problems that are none: the Function in Python and the C refuse the same ones, without a word."""

import numpy as np
import pytest
from codegen_problems import least_distance_controller

import mbcasadi.codegen as codegen
from mbcasadi.qp.solver import controller_fun

N, M = 3, 4
ROUNDING = 1e-12
SOLVED, CONTRADICTORY, STOPPED = 0, 2, 4


@pytest.fixture(scope="module")
def laws(tmp_path_factory):
    """Return the law as a Function, and as C."""
    controller = least_distance_controller(N, M)
    project = codegen.export_c(controller, tmp_path_factory.mktemp("ill") / "c")
    return controller_fun("law", controller.stages, "daqp"), project.load()


def problem():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(M, N))
    middle = A @ rng.normal(size=N)
    return A, middle - 0.5, middle + 0.5


def with_entry(part, place, value):
    parts = [x.copy() for x in problem()]
    parts[part][place] = value
    return parts


CASES = {
    "NaN in a row": (with_entry(0, (1, 2), np.nan), STOPPED),
    "infinity in a row": (with_entry(0, (1, 2), np.inf), STOPPED),
    "squares that overflow": (with_entry(0, (1, 2), 1e160), STOPPED),
    "NaN below": (with_entry(1, 1, np.nan), STOPPED),
    "NaN above": (with_entry(2, 1, np.nan), STOPPED),
    "a floor at infinity": (with_entry(1, 1, np.inf), CONTRADICTORY),
    "a ceiling at minus infinity": (with_entry(2, 1, -np.inf), CONTRADICTORY),
    "crossed bounds": (with_entry(1, 1, 1e3), CONTRADICTORY),
    "no floor": (with_entry(1, 1, -np.inf), SOLVED),
    "no ceiling": (with_entry(2, 1, np.inf), SOLVED),
    "a good problem": (problem(), SOLVED),
}


@pytest.mark.parametrize("case", CASES)
def test_function_and_c_refuse_the_same_problems(case, laws):
    problem_values, expected = CASES[case]
    for law in laws:
        x, active, status, lam = (
            np.array(out).ravel() for out in law(*problem_values, np.zeros(M))
        )
        assert status == expected
        if expected != SOLVED:
            assert not np.any(np.concatenate([x, active, lam]))
        else:
            assert np.any(x)


def test_an_equality_crossed_by_rounding_has_its_solution(laws):
    A, lower, upper = problem()
    upper[0] = lower[0] - ROUNDING
    for law in laws:
        x, _, status, *_ = (np.array(out).ravel() for out in law(A, lower, upper, np.zeros(M)))
        assert status == SOLVED
        assert A[0] @ x == pytest.approx(lower[0], abs=1e-10)
