"""A stub of ProxQP that solves another problem: its solutions are a tenth too large."""

from types import SimpleNamespace

import numpy as np
from solved_problems import solution

TOO_LARGE = 1.1


class QP:
    """One dense problem."""

    def __init__(self, n, equalities, inequalities):
        self.settings, self.results = SimpleNamespace(), SimpleNamespace()
        self.sizes = (equalities, n), (inequalities, n)

    def init(self, H, g, E, e, C, lower, upper=None):
        upper = np.full(len(lower), np.inf) if upper is None else upper
        E, e = (np.zeros((0, len(g))), np.zeros(0)) if E is None else (E, e)
        assert (E.shape, C.shape) == self.sizes
        self.problem = H, g, E, e, C, lower, upper

    def solve(self):
        self.results.x = TOO_LARGE * solution(*self.problem)


proxqp = SimpleNamespace(dense=SimpleNamespace(QP=QP))
