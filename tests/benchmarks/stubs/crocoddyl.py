"""A stub of Crocoddyl: one pass over the models of a problem, at its guess."""

from types import SimpleNamespace

import numpy as np


class ActionModelAbstract:
    """What an interval derives from."""

    def __init__(self, state, nu, residuals):
        assert residuals == 0
        self.state, self.nu = state, nu


def StateVector(nx):  # Crocoddyl's name
    """Return a state of a size."""
    return SimpleNamespace(nx=nx)


def ShootingProblem(x0, models, end):
    """Return a problem."""
    return SimpleNamespace(x0=x0, models=models, end=end)


class SolverBoxFDDP:
    """Evaluates each model and its derivatives once, and keeps the controls."""

    def __init__(self, problem):
        self.problem = problem

    def solve(self, xs, us, most, feasible):
        assert self.th_stop > 0
        assert most > 1
        assert not feasible
        for model, x, u in zip(
            [*self.problem.models, self.problem.end], xs, [*us, None], strict=True
        ):
            data = SimpleNamespace()
            model.calc(data, x, u)
            model.calcDiff(data, x, u)
            assert np.isfinite(data.cost)
            assert data.Fx.shape == (data.xnext.size, model.state.nx)
            assert data.Luu.shape == (model.nu, model.nu)
        self.us = us
        return True
