"""The method of `cone_program.py` as a CasADi Function, for controllers with quadratic cones."""

from collections.abc import Sequence
from functools import cache

import casadi as ca

from mbcasadi.qp.cone_program import solve_cone_program

INPUTS, OUTPUTS = ("A_qp", "lba", "uba", "active0"), ("x", "lam_a", "active", "flag")


class ConeSolver(ca.Callback):
    """(A_qp, lba, uba, active0) → (x, lam_a, active, flag), evaluated in Python.

    It has no derivatives and no C: exported controllers have the same method in C.
    """

    def __init__(self, m: int, n: int, cones: int) -> None:
        ca.Callback.__init__(self)
        self._sizes = (m, n, cones)
        self.construct("cone_solver", {})

    def get_n_in(self) -> int:
        """Return the number of inputs."""
        return len(INPUTS)

    def get_n_out(self) -> int:
        """Return the number of outputs."""
        return len(OUTPUTS)

    def get_name_in(self, i: int) -> str:
        """Return the name of an input."""
        return INPUTS[i]

    def get_name_out(self, i: int) -> str:
        """Return the name of an output."""
        return OUTPUTS[i]

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        """Return the size of an input."""
        m, n, _ = self._sizes
        return ca.Sparsity.dense(m, n if i == 0 else 1)

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        """Return the size of an output."""
        m, n, _ = self._sizes
        return ca.Sparsity.dense((n, m, m, 1)[i], 1)

    def eval(self, arguments: Sequence[ca.DM]) -> list[ca.DM]:
        """Return the solution of one problem."""
        A, lower, upper, active = (x.full() for x in arguments)
        cones = self._sizes[2]
        found = solve_cone_program(A, lower.ravel(), upper.ravel(), cones, active.ravel())
        return [ca.DM(found.x), ca.DM(found.lam), ca.DM(found.active), ca.DM(found.flag)]


@cache
def cone_solver(m: int, n: int, cones: int) -> ConeSolver:
    """Return the Function for m rows, the last ones of cones, and n unknowns.

    CasADi does not keep Python's objects: they live here as long as the program.
    """
    return ConeSolver(m, n, cones)
