"""Residuals of a level's solution, on the original equations.

A level is judged as a QP of its own, by `residuals.py`: its cost is that of its tasks, and of the
gradient counts what lies in the directions that the levels before it have left free. That these
directions leave the levels before it alone is checked at the end, by the tasks' rows themselves;
dynamics and constraints are those of the forces that act, which are the last ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.carried import carried_condensed, carried_rows
from mbcasadi.control.inverse_dynamics.condensed_dynamics import Dynamics
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.priorities.level_factor import DROPPED
from mbcasadi.control.inverse_dynamics.priorities.levels import (
    Level,
    force_level_weights,
    unit_weights,
)
from mbcasadi.control.inverse_dynamics.priorities.point import LevelPoint
from mbcasadi.control.inverse_dynamics.residuals import (
    NOTHING,
    Allowance,
    Candidate,
    CostAt,
    residuals,
)
from mbcasadi.control.inverse_dynamics.scales import ForceWeights, ProblemScales
from mbcasadi.control.inverse_dynamics.weighed_forces import WeighedForces
from mbcasadi.linalg.scalars import in_scalars
from mbcasadi.qp.kkt_residuals import length, positive
from mbcasadi.qp.quadratic_cones import in_dual_cones
from mbcasadi.qp.rows import Rows
from mbcasadi.qp.whitening import Whitened

Array = NDArray[np.float64]
Values = dict[str, ca.SX]


def worse(first: ca.SX, second: ca.SX) -> ca.SX:
    """Return the larger residuals; NaN stays NaN."""
    return first + positive(second - first)


@dataclass(frozen=True)
class _Metric:
    """The metric of a level, in place of `Whitened`.

    Attributes:
        gradient: from a gradient (n,) by y to what is left of it.
        distance: scale of rounding errors in x.
    """

    gradient: Callable[[ca.SX], ca.SX]
    distance: ca.SX


@dataclass(frozen=True)
class LevelJudge:
    """What the levels' solutions are judged with.

    Attributes:
        setup: the options.
        levels: without the regularisation.
        rows: the hard rows, whose numbers are in the carried ones.
        scales: the units of the problem.
        units: `y = y_ref + D⁻¹ ỹ`; y_ref is in the carried numbers.
    """

    setup: Setup
    levels: tuple[Level, ...]
    rows: Rows
    scales: ProblemScales
    units: Whitened

    def unknowns(self, carried: Values, y: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the forces p, within their limits, and w at ỹ."""
        nu = self.setup.system.nu
        forces = self._units(carried).unknown(y)
        lower, upper = carried["actuators.lower"], carried["actuators.upper"]
        return ca.fmin(ca.fmax(forces[:nu, 0], lower), upper), forces[nu:, 0]

    def level(
        self, k: int, carried: Values, point: LevelPoint, y: ca.SX, found: Values
    ) -> tuple[ca.SX, ca.SX]:
        """Return the residuals (5,) of level k at ỹ, and the size of its cost.

        Args:
            k: number of the level.
            carried: numbers of `build`.
            point: the coordinates of the level.
            y: (n,) ỹ.
            found: `x` and `lam_a` of the solver.
        """
        count = point.L_inv.shape[0]
        s = point.start + linalg.product(point.L_inv, found["x"][:count, 0])
        metric = _Metric(lambda by_y: point.gradient(self._by_units(by_y), s), point.distance)
        b, weight = carried[f"level{k}.b"], carried[f"level{k}.weight"]
        size = length(ca.sqrt(weight) * b)
        cost = self._cost(carried, self.levels[k], carried[f"level{k}.own_weight"], size)
        residual = self._residuals(carried, y, found, metric, cost, acts=False)
        return residual, point.distance + size

    def step(self, k: int, carried: Values, step: ca.SX, size: ca.SX) -> ca.SX:
        """Return the residuals (5,) of a step (n,) from the optimum of level k: of second order."""
        A, weight = carried[f"level{k}.A"], carried[f"level{k}.weight"]
        change = length(ca.sqrt(weight) * linalg.product(A, step[: A.shape[1], 0]))
        return ca.vertcat(0, 0, 0, (change / (size + NOTHING)) ** 2, 0)

    def last(self, carried: Values, passed: Values, y: ca.SX, zeta: ca.SX, found: Values) -> ca.SX:
        """Return the residuals (5,) of the regularisation at ỹ, and of all levels before it."""
        Z, c = passed["Z"], passed["Z"].shape[0]
        surplus = zeta - linalg.product(Z.T, linalg.product(Z, zeta))

        def gradient(by_y: ca.SX) -> ca.SX:
            by_units = self._by_units(by_y)
            return ca.vertcat(linalg.product(Z.T, by_units[:c, 0]) + surplus, by_units[c:, 0])

        size = length(passed["base"])
        kind = type(y)
        nothing = {"J": kind(0, self.setup.system.nv), "offset": kind(0, 1), "weight": kind(0, 1)}
        weights = unit_weights(self.setup, self.scales)
        cost = CostAt(
            **nothing,
            **self._force_terms(carried),
            weights=weights,
            force_weights=np.zeros(len(self.setup.weighed_forces)),
            size=size,
        )
        residual = self._residuals(carried, y, found, _Metric(gradient, size), cost, acts=True)
        return worse(worse(passed["worst"], residual), self._held(carried, passed, y, zeta))

    def _held(self, carried: Values, passed: Values, y: ca.SX, zeta: ca.SX) -> ca.SX:
        """Return by how much the levels' residuals have changed since their own solutions.

        It stands beside stationarity. A direction that is not strict may change by its strength
        times what the later levels have moved, rows of rounding by theirs.
        """
        total = type(y)(0)
        for k in range(len(self.levels)):
            A, weight = carried[f"level{k}.A"], carried[f"level{k}.weight"]
            step = y - passed[f"done{k}.y"]
            change = ca.sqrt(weight) * linalg.product(A, step[: A.shape[1], 0])
            travel = passed[f"done{k}.travel"] + length(zeta)
            known = {"change": change, "travel": travel, "weak": passed[f"done{k}.weak2"]}
            known["size"] = passed[f"done{k}.size"]
            total += in_scalars("held", _change, known)[0]
        return ca.vertcat(0, 0, 0, total, 0)

    def errors(self, carried: Values, p: ca.SX, w: ca.SX) -> ca.SX:
        """Return `|J a - a_des|_W` of each level at the forces, in the tasks' own units."""
        condensed = carried_condensed(carried)
        a, lam = condensed.acceleration(p), condensed.multipliers(p)
        misses = linalg.product(carried["cost.J"], a) + carried["cost.offset"]
        weight = carried["cost.weight"]
        found = []
        for level in self.levels:
            if level.is_forces:
                weights = np.array([each.weight for each in self.setup.weighed_forces])
                of_lam, of_w, f_ref = (
                    carried[f"cost.{key}"] for key in ("of_lam", "of_w", "f_ref")
                )
                gap = WeighedForces(of_lam, of_w, f_ref, weights).gap(lam, w)
                found.append(length(ca.DM(np.sqrt(weights)) * gap))
                continue
            rows = list(level.rows)
            found.append(length(ca.sqrt(weight[rows, 0]) * misses[rows, 0]))
        errors: ca.SX = ca.vertcat(*found)
        return errors

    def _units(self, carried: Values) -> Whitened:
        nw = carried["cost.of_w"].shape[1]
        return self.units._replace(y_0=ca.vertcat(carried["cost.p_ref"], ca.DM.zeros(nw)))

    def _by_units(self, by_y: ca.SX) -> ca.SX:
        """Return a derivative by y as one by ỹ."""
        return self.units.gradient(by_y)

    def _force_terms(self, carried: Values) -> dict[str, Any]:
        return {key: carried[f"cost.{key}"] for key in ("p_ref", "of_lam", "of_w", "f_ref")}

    def _cost(self, carried: Values, level: Level, weight: ca.SX, size: ca.SX) -> CostAt:
        """Return the cost of a level; `weight` is that of its rows, then of its slacks."""
        rows, of_forces = list(level.rows), np.zeros(len(self.setup.weighed_forces))
        if level.is_forces:
            of_forces = self.scales.contact**2 * force_level_weights(self.setup)
        units = unit_weights(self.setup, self.scales)  # of w² over ỹ²
        return CostAt(
            J=carried["cost.J"][rows, :],
            offset=carried["cost.offset"][rows, 0],
            weight=weight[: len(rows), 0],
            **self._force_terms(carried),
            weights=ForceWeights(np.zeros(self.setup.system.nu), 0.0),
            force_weights=of_forces,
            size=size,
            slack_weight=units.internal * weight[len(rows) :, 0] if level.slacks else None,
        )

    def _residuals(
        self, carried: Values, y: ca.SX, found: Values, metric: _Metric, cost: CostAt, *, acts: bool
    ) -> ca.SX:
        p, w = self.unknowns(carried, y)
        rows = carried_rows(self.rows, carried)
        return residuals(
            Candidate(p, w, in_dual_cones(found["lam_a"], rows.cones), found["x"]),
            Dynamics(*(carried[f"dynamics.{key}"] for key in Dynamics._fields)),
            carried_condensed(carried),
            metric,
            rows,
            cost,
            self.scales,
            Allowance(self.setup.rank_tol, carried["rate"], self.setup.tolerance),
            carried.get("drag"),
            acts=acts,
        )


def _change(known: Values) -> list[ca.SX]:
    allowed = (ca.sqrt(known["weak"]) + DROPPED) * known["travel"]
    return [positive(length(known["change"]) - allowed) / (known["size"] + NOTHING)]
