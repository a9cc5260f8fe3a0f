"""A tick with strict levels: one least-distance problem after the other.

With `ỹ` the unknown of `levels.py` and the hard rows `lower <= C ỹ <= upper`, level k is

    min ½ |A_k ỹ + b_k|²_W   subject to the hard rows and   A_j ỹ = A_j ỹ_j*,   j < k.

Its cost is strictly convex in `A_k ỹ`, so its optima are `ỹ_k + null(A_1 … A_k)` within the hard
rows, and the next level is a problem in `ỹ = ỹ_k + Z z` again, Z a basis of that null space. In the
coordinates of `level_factor.py` it is a least-distance problem, but for directions of no cost: they
get a small weight, and the problem is solved again around its solution, `PASSES` times (a proximal
point), which leaves nothing of it; where no hard row is active, the first solution is the last one,
and the C leaves the others out. The last problem is the regularisation, `½ |ỹ|²`, over what
all levels have left free.

The hard rows of every problem but the first are relaxed to what the solution before it meets, so
no later problem is infeasible, not even by rounding. What rows and quadratic cones that a level
presses against leave to later levels is in `pressed_rows.py` and `pressed_cones.py`.

Source: A. Escande, N. Mansard, P.-B. Wieber, Hierarchical quadratic programming, Int. J. Robotics
Research 33 (2014), for the levels; R. T. Rockafellar, Monotone operators and the proximal point
algorithm, SIAM J. Control and Optimization 14 (1976).
"""

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.priorities.judge import LevelJudge, worse
from mbcasadi.control.inverse_dynamics.priorities.level_factor import factor_level
from mbcasadi.control.inverse_dynamics.priorities.point import LevelPoint
from mbcasadi.control.inverse_dynamics.priorities.pressed_cones import along_rays
from mbcasadi.control.inverse_dynamics.priorities.pressed_rows import hold_pressed, without
from mbcasadi.control.tick.columns import Layout, matrix_symbols, pack, unpack
from mbcasadi.description.qp_stages import CONE_ROWS, SolverFlag
from mbcasadi.description.tolerance import marked
from mbcasadi.linalg.branches import either
from mbcasadi.linalg.scalars import in_scalars
from mbcasadi.qp.kkt_residuals import length
from mbcasadi.qp.quadratic_cones import first_rows, violations, warm_starts, warm_values
from mbcasadi.qp.quadratic_cones import sizes as quadratic_sizes
from mbcasadi.qp.whitening import shift_bounds

Values = dict[str, ca.SX]

PASSES = 3
"""Times that the problem of a level is solved, each around the solution before."""

SLACK = marked(2e-14, 1e-5)
"""Share of its value by which a hard row of a later problem is relaxed: rows that the levels before
it have pinned would otherwise stop steps along them by rounding."""

FOUND = (SolverFlag.STOPPED + SolverFlag.OPTIMAL) / 2
"""The solver's flag is above this where it claims an optimum."""


@dataclass(frozen=True)
class Posed:
    """One problem, and what is passed on beside it.

    Attributes:
        outputs: `lba`, `uba`, `active0`, by name; of the first problem `A_qp` too.
        passed: numbers, by name.
    """

    outputs: Values
    passed: Values


@dataclass(frozen=True)
class Cascade:
    """The problems of a tick with levels.

    Attributes:
        count: number of levels before the regularisation.
        n, m: numbers of unknowns and of hard rows.
        damping: θ of `level_factor.py`.
        layout: of the carried numbers.
        judge: of the levels' solutions.
        has_soles: whether several contacts are points of one body, whose rows nearly depend on each
            other.
    """

    count: int
    n: int
    m: int
    damping: float
    layout: Layout
    judge: LevelJudge
    has_soles: bool

    @property
    def cones(self) -> int:
        """Number of quadratic cones, whose rows are the last."""
        return self.judge.rows.cones

    def first(self, carried: Values, active0: ca.SX) -> Posed:
        """Return the problem of the first level; it starts at `ỹ = 0`."""
        kind = type(carried["level.C"])
        gone = kind(ca.DM.zeros(self.m if self.has_soles or self.cones else 0))
        start = {"worst": kind(ca.DM.zeros(5)), "flag": kind(1), "gone": gone}
        posed = self._level(0, carried, kind(ca.DM.zeros(self.n)), None, start, relaxed=False)
        own = {"A_qp": self._first_rows(carried, posed), "active0": active0}
        return Posed(posed.outputs | own, posed.passed)

    def _first_rows(self, carried: Values, posed: Posed) -> ca.SX:
        """Return the rows of the first problem; zeros where `x = 0` is its solution."""
        outputs = posed.outputs
        if self.cones or not self.m:
            return self._rows(carried, posed.passed)
        is_met = ca.logic_and(outputs["lba"] <= 0, outputs["uba"] >= 0)
        given = {"C": carried["level.C"], **posed.passed}
        zeros = type(carried["level.C"])(ca.DM.zeros(self.m, self.n))
        rows = either(
            "first_rows",
            ca.mmin(is_met) < 1,
            given,
            lambda x: [self._rows({"level.C": x["C"]}, x)],
            lambda _: [zeros],
        )
        return rows[0]

    def between(
        self, passed: Values
    ) -> tuple[tuple[ca.Function, ...], tuple[ca.Function | None, ...], Layout]:
        """Return the Functions between the problems, those of the rows, and the layout at the end.

        Args:
            passed: numbers of the first problem, for their sizes.
        """
        functions: list[ca.Function] = []
        rows: list[ca.Function | None] = []
        for k in range(self.count):
            for i, step in enumerate([self._again] * (PASSES - 1) + [self._next]):
                layout = pack_passed(passed)[1]
                function, passed = self._function(f"level{k}_{i}", step, k, layout)
                functions.append(function)
                is_new = step == self._next
                rows.append(self._rows_function(f"rows{k}", passed) if is_new else None)
        return tuple(functions), tuple(rows), pack_passed(passed)[1]

    def _rows_function(self, name: str, passed: Values) -> ca.Function:
        """Return (carry, passed) → A_qp."""
        layout = pack_passed(passed)[1]
        given = matrix_symbols({"carry": self.layout.size, "passed": layout.size})
        carried = unpack(self.layout, given["carry"])
        A_qp = ca.densify(self._rows(carried, unpack(layout, given["passed"])))
        return ca.Function(name, list(given.values()), [A_qp], list(given), ["A_qp"], {"cse": True})

    def _rows(self, carried: Values, passed: Values) -> ca.SX:
        """Return the hard rows over the unknown of a problem, that of the regularisation last."""
        C = without(carried["level.C"], passed["gone"])
        if "Z" in passed:
            Z = passed["Z"]
            c = Z.shape[0]
            return ca.densify(ca.horzcat(linalg.product(C[:, :c], Z), C[:, c:]))
        return LevelPoint(*(passed[key] for key in LevelPoint._fields)).rows(C)

    def _function(
        self, name: str, step: Callable[..., Posed], k: int, layout: Layout
    ) -> tuple[ca.Function, Values]:
        """Return (carry, passed, x, lam_a, active, flag) → the next problem, by name."""
        sizes = {"carry": self.layout.size, "passed": layout.size}
        sizes |= {"x": self.n, "lam_a": self.m, "active": self.m, "flag": 1}
        given = matrix_symbols(sizes)
        carried = unpack(self.layout, given["carry"])
        posed = step(k, carried, unpack(layout, given["passed"]), given)
        outputs = posed.outputs | {"passed_next": pack_passed(posed.passed)[0]}
        names = ["lba", "uba", "active0", "passed_next"]
        dense = [ca.densify(outputs[key]) for key in names]
        return ca.Function(
            name, list(given.values()), dense, list(given), names, {"cse": True}
        ), posed.passed

    def _level(
        self,
        k: int,
        carried: Values,
        base: ca.SX,
        Z: ca.SX | None,
        records: Values,
        *,
        relaxed: bool,
    ) -> Posed:
        """Return the problem of level k from a feasible point, over the directions Z, or all."""
        A, b, weight = (carried[f"level{k}.{key}"] for key in ("A", "b", "weight"))
        c = A.shape[1]
        whole = A if Z is None else ca.densify(linalg.product(A, Z))
        missing = b + linalg.product(A, base[:c, 0])
        level = factor_level(whole, -missing, weight, self.damping, Z)
        ZQ = level.ZQ
        own = linalg.product(ZQ[:, : level.s_0.numel()], level.s_0)
        rest = base.numel() - c
        point = LevelPoint(
            base=base,
            center=base + ca.vertcat(own, ca.DM.zeros(rest)),
            ZQ=ZQ,
            L_inv=level.L_inv,
            damping=level.damping,
            unseen=level.unseen,
            distance=level.distance,
            weak2=level.weak2,
            free=level.free,
            start=level.s_0,
            travel=length(level.s_0),
        )
        outputs = self._bounds(carried, point.base, point.center, records["gone"], relaxed=relaxed)
        outputs["active0"] = self._start(carried, k)
        return Posed(outputs, records | point._asdict())

    def _again(self, k: int, carried: Values, passed: Values, given: Values) -> Posed:
        """Return the problem of a level around its first solution."""
        point = LevelPoint(*(passed[key] for key in LevelPoint._fields))
        found, x = given["flag"] > FOUND, given["x"]
        point = point._replace(
            base=ca.if_else(found, point.moved(x), point.base),
            center=point.moved(x, share=point.unseen),
            travel=point.travel + point.step_length(x),
        )
        outputs = self._bounds(carried, point.base, point.center, passed["gone"], relaxed=True)
        outputs["active0"] = given["active"]
        flag = {"flag": ca.fmin(passed["flag"], given["flag"])} if k == 0 else {}
        return Posed(outputs, passed | point._asdict() | flag)

    def _next(self, k: int, carried: Values, passed: Values, given: Values) -> Posed:
        """Judge level k and return the problem of the one behind it."""
        point = LevelPoint(*(passed[key] for key in LevelPoint._fields))
        found = given["flag"] > FOUND
        y = ca.if_else(found, point.moved(given["x"]), point.base)
        given = given | {"lam_a": without(given["lam_a"], passed["gone"])}
        residual, size = self.judge.level(k, carried, point, y, given)
        records = {key: value for key, value in passed.items() if key not in LevelPoint._fields}
        records |= {f"done{k}.size": size, f"done{k}.weak2": point.weak2}
        travel = point.travel + point.step_length(given["x"])
        for before in range(k):
            records[f"done{before}.travel"] = passed[f"done{before}.travel"] + travel
        records[f"done{k}.travel"] = type(travel)(0)
        records[f"done{k}.active"] = given["active"]
        Z = point.ZQ * ca.repmat(point.free.T, point.ZQ.shape[0], 1)
        C, gone = carried["level.C"], passed["gone"]
        if self.has_soles:
            Z, gone = hold_pressed(Z, C, given["lam_a"], size, gone, self.cones)
        if self.cones:
            C = without(C, passed["gone"])
            inside = linalg.product(C, y) - without(carried["level.lower"], passed["gone"])
            held = given | {"inside": inside}
            Z, across, onto = along_rays(Z, point.ZQ, C, held, size, self.cones)
            gone, y = ca.fmax(gone, across), y + onto
            residual = worse(residual, self.judge.step(k, carried, onto, size))
        records["worst"] = worse(passed["worst"], residual)
        records |= {"gone": gone, f"done{k}.y": y}
        if k + 1 < self.count:
            return self._level(k + 1, carried, y, Z, records, relaxed=True)
        return self._last(carried, y, Z, records)

    def _last(self, carried: Values, base: ca.SX, Z: ca.SX, records: Values) -> Posed:
        """Return the problem of the regularisation, over the directions Z."""
        c = Z.shape[0]
        zeta = -linalg.product(Z.T, base[:c, 0])
        center = ca.vertcat(base[:c, 0] + linalg.product(Z, zeta), ca.DM.zeros(base.numel() - c))
        outputs = self._bounds(carried, base, center, records["gone"], relaxed=True)
        outputs["active0"] = self._start(carried, self.count)
        return Posed(outputs, records | {"base": base, "center": center, "Z": Z, "zeta": zeta})

    def _bounds(
        self, carried: Values, base: ca.SX, center: ca.SX, gone: ca.SX, *, relaxed: bool
    ) -> Values:
        """Return the bounds of the hard rows from the center, met by the base where relaxed."""
        at = (linalg.product(carried["level.C"], y) for y in (base, center))
        at_base, at_center = (without(each, gone) for each in at)
        lower, upper = (without(carried[f"level.{key}"], gone) for key in ("lower", "upper"))
        if relaxed:
            known = {"l": lower, "u": upper, "at": at_base, "center": at_center}
            lower, upper = in_scalars("relax", lambda k: _relaxed(k, self.cones), known)
        return {"lba": shift_bounds(lower, at_center), "uba": shift_bounds(upper, at_center)}

    def _start(self, carried: Values, k: int) -> ca.SX:
        """Return the active set that problem k of a tick starts from."""
        return carried["level.starts"][(k - 1) * self.m : k * self.m, 0] if k else ca.SX(0, 1)


def _relaxed(known: Values, cones: int) -> list[ca.SX]:
    """Return bounds that a point meets, and steps from it along pinned rows by rounding.

    The apex of a cone moves along its axis.
    """
    at, lower = known["at"], known["l"]
    slack = SLACK * (ca.fabs(at) + ca.fabs(known["center"]))
    linear = at.numel() - CONE_ROWS * cones
    below = [(ca.fmin(lower, at) - slack)[:linear, 0]]
    missing, sizes = violations(at, lower, known["u"], cones), quadratic_sizes(slack, cones)
    for i in first_rows(at.numel(), cones):
        below += [lower[i, 0] - missing[i, 0] - sizes[i, 0], lower[i + 1 : i + CONE_ROWS, 0]]
    return [ca.vertcat(*below), ca.fmax(known["u"], at) + slack]


def pack_passed(passed: Values) -> tuple[ca.SX, Layout]:
    """Return what is passed on as a column; it has one layout in all passes of a level."""
    return pack(passed, carried=("base", "flag"))


def solved_point(passed: Values, x: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return ỹ of the last problem's solution x, and `ζ` (c,)."""
    Z, c = passed["Z"], passed["Z"].shape[0]
    moved = ca.vertcat(linalg.product(Z, x[:c, 0]), x[c:, 0])
    return passed["center"] + moved, passed["zeta"] + x[:c, 0]


def starts(z: ca.SX, m: int, count: int, cones: int) -> list[ca.SX]:
    """Return the active sets that the first problem and those behind it start from."""
    first, further = z[:m, 0], z[m : (count + 1) * m, 0]
    return [warm_values(first, cones), warm_starts(further, m, cones)]
