"""The stages of a real-time iteration whose QP is in the controls alone: prepare, build, finish.

`prepare` uses the guess only: it linearises, and a Riccati recursion whitens the cost. With the
measured state, `build` runs forward once and gives the bounds of the least-distance problem.
`finish` updates the guess, checks the solution in the problem with states (motion forward,
costates backward), and passes the guess on, shifted by one interval.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.description import LeastDistanceStages
from mbcasadi.mpc.lq.horizon import Candidate, End, Motion
from mbcasadi.mpc.lq.rows import HorizonRows
from mbcasadi.mpc.lq.tick import solver_results, stage_function
from mbcasadi.mpc.rti.line_search import Slope
from mbcasadi.mpc.rti.linearise import Linearised
from mbcasadi.mpc.rti.memory import Guess
from mbcasadi.mpc.rti.stages import Found, RtiStages
from mbcasadi.qp.input_guard import active_signs
from mbcasadi.qp.solver import CLAIMED


class Prepared(NamedTuple):
    """The result of `prepare`: one column of `lin` and of the gain for each interval, and the end.

    `complete` is one; any other value means that nothing was prepared.
    """

    complete: ca.MX
    lin: ca.MX
    gain: ca.MX
    cost: ca.MX
    end: ca.MX


@dataclass(frozen=True)
class CondensedStages(RtiStages):
    """The QP in the controls alone.

    Attributes:
        at: the problem about a guess.
    """

    at: Linearised

    @property
    def rows(self) -> HorizonRows:
        """All rows of the QP."""
        return self.at.horizon.rows

    @property
    def row_names(self) -> list[str]:
        """Names of the rows of the QP."""
        return self.rows.names

    @cached_property
    def moved(self) -> ca.Function:
        """(x, deviation) → their sum: the QP is in the coordinates of x."""
        x, d = (ca.MX.sym(key, self.ocp.nx) for key in ("x", "d"))
        return ca.Function("moved", [x, d], [x + d])

    @property
    def contradicts(self) -> bool:
        """Whether hard rows can be infeasible."""
        return self.at.contradicts

    @property
    def later(self) -> list[int]:
        """Index of the same row at the next sample."""
        return self.rows.later if self.rows.m else []

    def stages(self) -> LeastDistanceStages:
        """Return the Functions."""
        return LeastDistanceStages(self._build(), self._finish(), self._prepare())

    def _prepare(self) -> ca.Function:
        """Return (ref, z) → (prepared, A_qp): everything that needs no measured state."""
        N, horizon = self.ocp.horizon, self.at.horizon
        inputs = self.memory.inputs_before()
        guess = self.memory.guess(inputs, self.z0)
        X, U, P = guess.X, guess.U, guess.P
        lin = self.at.interval.map(N)(X[:, :N], U, P[:, :N], X[:, 1:])
        cost, end = self.at.end(X[:, N], P[:, N])
        (gain,) = horizon.gains(cost, [(lin,)])
        A_qp = horizon.matrix([(lin,)], [gain], end)
        blocks = Prepared(ca.MX(1), lin, gain, cost, end)
        prepared = ca.vertcat(*(ca.vec(block) for block in blocks))
        return stage_function("prepare", inputs, {"prepared": prepared, "A_qp": A_qp})

    @cached_property
    def _prepared_sizes(self) -> list[tuple[int, int]]:
        """Sizes of the blocks of `Prepared`."""
        nx, N = self.ocp.nx, self.ocp.horizon
        n_lin = self.at.interval.numel_out(0)
        n_gain = self.at.horizon.phases[0].functions.riccati.numel_out(1)
        return [(1, 1), (n_lin, N), (n_gain, N), (nx, nx + 1), (len(self.ocp.end_bounds), nx + 1)]

    def _inputs(self) -> tuple[dict[str, ca.MX], Guess, Prepared]:
        """Return symbols of inputs and `prepared`, the guess, and what was prepared."""
        sizes = self._prepared_sizes
        ends = np.cumsum([0, *(a * b for a, b in sizes)]).tolist()
        inputs = self.memory.inputs() | {"prepared": ca.MX.sym("prepared", ends[-1])}
        guess = self.memory.guess(inputs, self.z0)
        blocks = zip(ca.vertsplit(inputs["prepared"], ends), sizes, strict=True)
        return inputs, guess, Prepared(*(ca.reshape(block, *size) for block, size in blocks))

    def _step(
        self, x0: ca.MX, guess: Guess, prepared: Prepared, w: ca.MX
    ) -> tuple[Motion, list[ca.MX]]:
        """Return deviations from the guess, and the values of the rows."""
        horizon, columns = self.at.horizon, [(prepared.lin,)]
        motion = horizon.motion(x0 - guess.X[:, 0], w, columns, [prepared.gain])
        about = Motion(guess.X, [guess.U])
        return motion, horizon.values(motion, columns, prepared.end, about)

    def _build(self) -> ca.Function:
        inputs, guess, prepared = self._inputs()
        x0, _ = self.memory.start(inputs, guess)
        _, values = self._step(x0, guess, prepared, ca.MX.zeros(self.rows.nw))
        lower, upper = self.rows.limits(self.rows.rows(values))
        active = active_signs(guess.active)
        outputs = {"lba": lower, "uba": upper, "active0": active, "carry": ca.MX(0, 1)}
        return stage_function("build", inputs, outputs)

    def _finish(self) -> ca.Function:
        rows, (inputs, guess, prepared) = self.rows, self._inputs()
        qp = solver_results(ca.MX, sum(rows.n), rows.m, 0)
        x0, is_finite = self.memory.start(inputs, guess)
        valid = ca.logic_and(is_finite, prepared.complete > CLAIMED)
        motion, values = self._step(x0, guess, prepared, qp["x"][: rows.nw])
        e = rows.slacks(qp["x"][rows.nw :])
        residual, costates = self.at.horizon.residuals(
            Candidate(motion, values, e, qp["lam_a"]),
            [(prepared.lin,)],
            End(prepared.cost, prepared.end),
        )
        slopes = self.at.slope.map(self.ocp.horizon)(prepared.lin, motion.X[:, :-1], motion.U[0])
        slope = ca.sum2(slopes) + ca.dot(prepared.cost[:, self.ocp.nx], motion.X[:, -1])
        paid = ca.dot(ca.DM(rows.linear), ca.fabs(e)) + ca.dot(ca.DM(rows.quadratic), e**2) / 2
        found = Found(
            x0,
            valid,
            (motion.X, motion.U[0]),
            Slope(slope + paid, costates, ca.norm_inf(qp["lam_a"])),
            e,
            active_signs(qp["active"]),
            residual,
            qp["flag"],
        )
        outputs = self.outputs(inputs, (guess, prepared.lin[self.at.gap, :]), found)
        return stage_function("finish", inputs | qp, outputs)
