"""The part of a real-time iteration's tick that needs no measured state.

It linearises about the guess, and a Riccati recursion whitens the cost:

    (ref, z) → (prepared, A_qp)

`prepared` is one column that the stages split again.
"""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.rti.condensing import IntervalFunctions
from mbcasadi.mpc.rti.constraints import Rows
from mbcasadi.mpc.rti.memory import Memory


class Prepared(NamedTuple):
    """The result of `prepare`: one column of `lin` and of `gain` for each interval, and the end.

    `complete` is one; any other value means that nothing was prepared.
    """

    complete: ca.MX
    lin: ca.MX
    gain: ca.MX
    cost: ca.MX
    end: ca.MX


@dataclass(frozen=True)
class Preparation:
    """The phase `prepare`.

    Attributes:
        ocp, intervals, rows: the problem, its intervals and its rows.
        memory: the layout of z.
        z0: initial z, also used in place of an invalid one.
    """

    ocp: OptimalControlProblem
    intervals: IntervalFunctions
    rows: Rows
    memory: Memory
    z0: Array

    def function(self) -> ca.Function:
        """Return (ref, z) → (prepared, A_qp): everything that needs no measured state."""
        ocp, N = self.ocp, self.ocp.horizon
        inputs = {key: self.memory.inputs()[key] for key in ("ref", "z")}
        guess = self.memory.guess(inputs, self.z0)
        X, U, P = guess.X, guess.U, guess.P
        backward = list(reversed(range(N)))
        lin = self.intervals.linearise.map(N)(X[:, :N], U, P[:, :N], X[:, 1:])
        cost, end = self.intervals.ending(X[:, N], P[:, N])
        _, gain = self.intervals.riccati.mapaccum("riccati_all", N, 1)(cost, lin[:, backward])
        gain = gain[:, backward]
        zeros = ca.MX.zeros(ocp.nx, N * ocp.nu)
        loop = self.intervals.rows.mapaccum("rows_all", N, 1)
        X_of_w, rows = loop(zeros, lin, gain, ca.DM.eye(N))
        end_of_w = end[:, : ocp.nx] @ X_of_w[:, (N - 1) * N * ocp.nu :]
        blocks = Prepared(ca.MX(1), lin, gain, cost, end)
        prepared = ca.vertcat(*(ca.vec(block) for block in blocks))
        A_qp = self.rows.matrix(rows.T, end_of_w)
        names = ["prepared", "A_qp"]
        return ca.Function("prepare", list(inputs.values()), [prepared, A_qp], list(inputs), names)

    def split(self, column: ca.MX) -> Prepared:
        """Return the blocks of `prepared`."""
        ocp, N = self.ocp, self.ocp.horizon
        n_lin, n_gain = self.intervals.linearise.numel_out(0), self.intervals.riccati.numel_out(1)
        sizes = [(1, 1), (n_lin, N), (n_gain, N), (ocp.nx, ocp.nx + 1)]
        sizes.append((len(ocp.end_bounds), ocp.nx + 1))
        blocks = ca.vertsplit(column, np.cumsum([0, *(a * b for a, b in sizes)]).tolist())
        return Prepared(
            *(ca.reshape(block, *size) for block, size in zip(blocks, sizes, strict=True))
        )

    @property
    def size(self) -> int:
        """Number of entries of `prepared`."""
        ocp, N = self.ocp, self.ocp.horizon
        per = self.intervals.linearise.numel_out(0) + self.intervals.riccati.numel_out(1)
        return 1 + N * per + (ocp.nx + len(ocp.end_bounds)) * (ocp.nx + 1)
