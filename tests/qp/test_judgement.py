"""What residuals of a QP's solution allow to be said of it."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.description.qp_stages import SolverFlag
from mbcasadi.description.status import Status
from mbcasadi.qp.kkt_residuals import judge


def status_of(residual: list[float], flag: SolverFlag = SolverFlag.OPTIMAL) -> int:
    return int(judge(ca.DM(residual), flag=ca.DM(int(flag)), valid=ca.DM(1), tolerance=1e-6))


def test_small_residuals_are_a_solution_and_large_ones_are_not() -> None:
    assert status_of([0, 1e-8, 1e-8]) == Status.SOLVED
    assert status_of([0, 1e-3, 1e-8]) == Status.SUBOPTIMAL
    assert status_of([1e-3, 0, 0]) == Status.FAILED
    assert status_of([1e-3, 0, 0], SolverFlag.INFEASIBLE) == Status.INFEASIBLE


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("place", range(3))
def test_residuals_that_are_not_finite_are_a_failure(place: int, wrong: float) -> None:
    residual = [0.0, 0.0, 0.0]
    residual[place] = wrong
    assert status_of(residual) == Status.FAILED
