"""The stages of a real-time iteration whose QP keeps its states: prepare, build, finish.

`prepare` linearises about the guess. The solver takes the data of all intervals as they are, and
begins with the multipliers of the tick before: its first recursion belongs to the preparation.
`finish` runs the motion of its controls forward and costates backward, and judges by them.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.description import LeastDistanceStages
from mbcasadi.mpc.lq.tick import solver_results, stage_function
from mbcasadi.mpc.rti.interval_derivatives import reached
from mbcasadi.mpc.rti.line_search import Slope
from mbcasadi.mpc.rti.stages import Found, RtiStages
from mbcasadi.mpc.rti.stagewise import StagewiseLinearised
from mbcasadi.qp.input_guard import LARGEST_INPUT
from mbcasadi.qp.solver import CLAIMED
from mbcasadi.qp.stagewise import Judged, columns_of, end_blocks, finite, judged, of_all_rows


@dataclass(frozen=True)
class StagewiseStages(RtiStages):
    """The QP over states and controls.

    Attributes:
        at: the problem about a guess.
    """

    at: StagewiseLinearised

    @property
    def row_names(self) -> list[str]:
        """Names of the rows of the QP: of all intervals, then of the end."""
        ocp = self.ocp
        states = np.flatnonzero(np.isfinite(ocp.x_bounds).any(axis=1))
        x = [ocp.names("x")[i] for i in states]
        inside = (*ocp.names("u"), *x, *ocp.names("path"))
        names = [f"{name}[{k}]" for k in range(ocp.horizon) for name in inside]
        return [*names, *(f"{name}[{ocp.horizon}]" for name in (*x, *ocp.names("end")))]

    @property
    def moved(self) -> ca.Function:
        """(x, deviation) → the state moved by it."""
        return self.at.moved

    @property
    def contradicts(self) -> bool:
        """Whether hard rows can be infeasible: those beyond the controls' own."""
        inside, at_end = self.at.problem.inside, self.at.problem.at_end
        hard = np.isinf(inside.prices[self.ocp.nu :, 0]), np.isinf(at_end.prices[:, 0])
        return bool(hard[0].any() or hard[1].any())

    @property
    def later(self) -> list[int]:
        """Index of the same row at the next sample."""
        rows, N = self.at.problem.inside.count, self.at.problem.horizon
        inside = [*range(rows, rows * N), *range(rows * (N - 1), rows * N)]
        return [*inside, *range(rows * N, self.at.problem.m)]

    def _next_state(self, x: ca.MX, u: ca.MX, p: ca.MX) -> ca.MX:
        """Return the state at the next sample, of a tangent form by the C of its derivatives."""
        form = self.ocp.motion
        if form is None:
            return super()._next_state(x, u, p)
        return reached(form, x, u, form.derivatives.call([x, u, p])[0], form.length(p))

    def _path(self, x: ca.MX, u: ca.MX, p: ca.MX) -> ca.MX:
        """Return rows of the path; those of a schedule do not depend on the motion."""
        form = self.ocp.motion
        if form is None:
            return super()._path(x, u, p)
        none = (ca.MX.zeros(form.path.size1_in(key)) for key in ("a", "lam"))
        g: ca.MX = form.path(x, u, p, *none)
        return g

    def stages(self) -> LeastDistanceStages:
        """Return the Functions."""
        return LeastDistanceStages(
            self._build(), self._finish(), self._prepare(), horizon=self.at.problem
        )

    def _prepare(self) -> ca.Function:
        """Return (ref, z) → (prepared, lam0): one, that it is complete, then the data."""
        inputs = self.memory.inputs_before()
        guess = self.memory.guess(inputs, self.z0)
        prepared = ca.vertcat(1, self.at.data(guess.X, guess.U, guess.P))
        return stage_function("prepare", inputs, {"prepared": prepared, "lam0": guess.active})

    def _inputs(self) -> dict[str, ca.MX]:
        return self.memory.inputs() | {"prepared": ca.MX.sym("prepared", 1 + self.at.problem.size)}

    def _build(self) -> ca.Function:
        inputs = self._inputs()
        guess = self.memory.guess(inputs, self.z0)
        x0, _ = self.memory.start(inputs, guess)
        outputs = {"x_first": self.at.gap(guess.X[:, 0], x0), "carry": ca.MX(0, 1)}
        return stage_function("build", inputs, outputs)

    def _finish(self) -> ca.Function:
        problem, inputs = self.at.problem, self._inputs()
        guess = self.memory.guess(inputs, self.z0)
        qp = solver_results(ca.MX, problem.n, problem.m, 0)
        x0, is_finite = self.memory.start(inputs, guess)
        valid = ca.logic_and(is_finite, inputs["prepared"][0] > CLAIMED)
        data = inputs["prepared"][1:]
        x_first = self.at.gap(guess.X[:, 0], x0)
        answer = judged(problem, data, x_first, qp["x"], qp["lam_a"])
        columns = columns_of(problem, data)
        gaps = ca.vertcat(*(columns[problem.column[key], :] for key in ("d_a", "d_b")))
        found = Found(
            x0,
            valid,
            (answer.X, answer.U),
            self._slope(columns, data, answer, ca.norm_inf(qp["lam_a"])),
            answer.slack,
            ca.fmax(ca.fmin(qp["lam_a"], LARGEST_INPUT), -LARGEST_INPUT),
            answer.residual,
            qp["flag"],
        )
        return stage_function("finish", inputs | qp, self.outputs(inputs, (guess, gaps), found))

    def _slope(self, columns: ca.MX, data: ca.MX, answer: Judged, largest: ca.MX) -> Slope:
        """Return the derivative of the cost along the step, and multipliers."""
        inside = columns[self.at.problem.column["g"], :]
        of_end = end_blocks(self.at.problem, data).g
        along = ca.dot(inside, ca.vertcat(answer.U, answer.X[:, :-1]))
        rate = along + ca.dot(of_end, answer.X[:, -1]) + self._paid(answer.slack)
        return Slope(rate, answer.costates, largest)

    def _paid(self, slack: ca.MX) -> ca.MX:
        """Return what slacks (m,) of soft rows cost."""
        linear = of_all_rows(self.at.problem, lambda prices: finite(prices[:, 0]))
        quadratic = of_all_rows(self.at.problem, lambda prices: finite(prices[:, 1]))
        paid: ca.MX = ca.dot(linear, ca.fabs(slack)) + ca.dot(quadratic, slack**2) / 2
        return paid
