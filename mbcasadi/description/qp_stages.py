"""A controller that solves one QP, split where the solver is called, and constants of both."""

from dataclasses import dataclass
from enum import IntEnum

import casadi as ca

from mbcasadi.description.stagewise_qp import StagewiseQP
from mbcasadi.short_text import summarised

UNBOUNDED = 1e30
"""Stands for infinity: `0 · inf` is NaN in masks and complementarity."""

C_PRIMAL_TOLERANCE = 1e-11
"""Distance by which the generated C lets a row of unit length be violated, relative to the scale of
the problem, where no step makes it smaller; as a rule it is below `ROUNDING`. It is the tolerance
of DAQP, which meets 1e-12 on degenerate problems and cycles on some of them at 1e-13."""

PLUGIN_PRIMAL_TOLERANCE = 1e-10
"""The same for CasADi's plugin."""

LEAST_DISTANCE = 1e-100
"""A row nearer to x = 0 than this holds there."""

SMALL_DISTANCE = 1e-3
"""Where all rows are nearer than this to x = 0, the unit of x is as small as they are; else at
least 1."""

REFINED = 1e-12
"""Where an active row of unit length misses its bound by more than this, relative to the scale of
the problem, a second method solves again: nearly parallel active rows cost DAQP its digits."""

ROUNDING = 1e-14
"""Our dual active-set method stops where no row of unit length is violated by more, relative to the
scale of the problem: what nearly parallel rows miss is many times as much in x."""

DEPENDENT = 1e-11
"""A row of unit length that differs by less from a sum of active rows depends on them."""

INDEPENDENT = 1e-6
"""A row of a warm start that differs by less from a sum of those before is left out: where it is
active, it enters again."""

ZERO_ROW = 1e-14
"""Rows shorter than this times the longest count as zero: their contact is off."""

ZERO_BOUND = 1e-9
"""A zero row contradicts bounds beyond this."""

RAY_ROUNDING = 1e-12
"""Entries of a proof below this times the largest are rounding errors."""

PROOF_RADIUS = 1e8
"""Distance from zero, relative to the scale of the problem, within which a proof of infeasibility
holds."""

PROOF_ROUNDING = 1e-12
"""Relative rounding error of the sum in such a proof."""

CONE_ROWS = 3
"""Rows of a quadratic cone: `|(s_1, s_2)| <= s_0` of the rows' values less their lower bounds."""

NEWTON_PASSES = 100
"""Times that Newton's method turns the tangent planes of cones; then planes are only added."""

NEWTON_STEPS = 20
"""Steps of Newton's method with the same active rows."""

NEWTON_LAST = 1e-6
"""A step shorter than this, relative to the scale of the problem, is the last one: it converges
quadratically."""

NEWTON_STEP = 1e-11
"""A Newton step shorter than this, relative to the scale of the problem, changes nothing."""

NEWTON_GAIN = 1e-12
"""Newton's method from a dual cost that is larger by less, relative, has stalled."""

NEWTON_STALLS = 3
"""Times that it may stall, one after the other; then planes are added until the cost grows."""

LEAST_COSINE = 0.7
"""Newton's method ends before it turns a plane farther than this."""

LEAST_FORCE = 1e-30
"""A smaller force of a cone, over its distance from the apex, has no curvature."""

LEAST_RADIUS = 0.1
"""Newton's method starts at a distance from a cone's axis of at least this times that of x."""

LEAST_COST = 0.9
"""Newton's method is taken back where it leaves less than this of the dual cost."""

ON_CONE, APEX = 1, -1
"""The first entry of a cone's active set where its surface or its apex is active; then come the
cosine and sine of the direction there."""


class SolverFlag(IntEnum):
    """What the solver of a QP claims.

    `OPTIMAL` is checked by residuals. `INFEASIBLE` comes with a proof: one row that cannot be met,
    or Farkas' lemma. `STOPPED` is everything else: a cycle, the limit of iterations, input that is
    not finite, infeasibility without a proof.
    """

    OPTIMAL = 1
    STOPPED = 0
    INFEASIBLE = -1


@summarised
@dataclass(frozen=True)
class LeastDistanceStages:
    """The stages of a controller that solves one QP: before and after the solver.

    `build` turns the controller's inputs into the least-distance problem

        min ½ xᵀx   subject to   lba <= A_qp x <= uba,

    and `finish` turns its solution into the controller's outputs. A QP with a positive
    definite Hessian `H = K Kᵀ` takes this form by `x = Kᵀ y + K⁻¹ g` (whitening).

    With `prepare` a tick has two phases: `prepare` computes everything that needs no measurement,
    and only `build`, the solver and `finish` run between measurement and control.

    With `between` a tick solves several problems of one size, each posed by what the one before
    has found: build, solve, (between, solve) for each of them, finish.

    Attributes:
        build: (inputs of the controller[, prepared]) → (A_qp, lba, uba, active0, carry[, passed]):
            (m, n), (m,), (m,); `active0` (m,) is the warm start, -1 at the lower bound, 1 at the
            upper, else 0; `carry` (any size, 1) passes numbers on to `finish`.
        finish: (inputs of the controller, [prepared,] carry, [passed,] x, lam_a, active, flag) →
            (outputs of the controller). `lam_a` (m,) are multipliers in CasADi's sign (positive at
            the upper bound); `active` (m,) is the final active set, as `active0`; `flag` is a
            `SolverFlag`. `finish` trusts none of them.
        prepare: (some inputs of the controller, in its order, none of them measured) →
            (prepared[, A_qp]), or None. `prepared` (any size, 1) is one more input of `build` and
            `finish`; where it holds NaN, `finish` returns status 3 and the safe output. An
            `A_qp` that is known before the measurement is an output of `prepare`, not of `build`.
        cones: number of quadratic cones. The last `3 cones` rows are theirs: a cone holds where the
            values s of its rows, less `lba`, have `|(s_1, s_2)| <= s_0`. Its entries of `lam_a` are
            minus a point of the cone, those of the active set are `ON_CONE`, `APEX` or 0, then
            cosine and sine of the direction.
        between: Functions (carry, passed, x, lam_a, active, flag) → (lba, uba, active0,
            passed_next), from the solution of one problem to the next one. `passed` (any size, 1)
            comes from `build` or the Function before, and goes to the next one or to `finish`;
            `carry` is that of `build`.
        between_rows: for each of them (carry, passed_next) → (A_qp) of the next problem, which are
            needed where x = 0 does not solve it. None where the rows stay: such a Function poses
            the problem around its solution, and changes nothing where that is x = 0.
        horizon: a problem over a horizon in place of a least-distance problem; None for none. Its
            data are the last entries of `prepared`, prepare gives `(prepared, lam0)`, build
            `(x_first, carry)`, and finish takes z of all intervals as `x`, multipliers as `lam_a`.
            `lam0` (m,) are those to begin with.
    """

    build: ca.Function
    finish: ca.Function
    prepare: ca.Function | None = None
    cones: int = 0
    between: tuple[ca.Function, ...] = ()
    between_rows: tuple[ca.Function | None, ...] = ()
    horizon: StagewiseQP | None = None

    @property
    def posing(self) -> ca.Function:
        """The Function that gives `A_qp`: `prepare` or `build`."""
        prepared = self.prepare is not None and "A_qp" in self.prepare.name_out()
        return self.prepare if self.prepare is not None and prepared else self.build

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return self.horizon.n if self.horizon else int(self.posing.size2_out("A_qp"))

    @property
    def m(self) -> int:
        """Number of two-sided rows."""
        return self.horizon.m if self.horizon else int(self.posing.size1_out("A_qp"))

    @property
    def inputs(self) -> dict[str, ca.Sparsity]:
        """Patterns of the controller's inputs, by name."""
        names = [name for name in self.build.name_in() if name != "prepared"]
        return {name: self.build.sparsity_in(name) for name in names}

    def problem(self) -> ca.Function:
        """Return (inputs of the controller) → (A_qp, lba, uba, active0, carry, prepared, passed).

        `prepared` has no rows where there is one phase only, `passed` where there is one problem.
        """
        inputs = {name: ca.MX.sym(name, pattern) for name, pattern in self.inputs.items()}
        results: dict[str, ca.MX] = {}
        if self.prepare is not None:
            arguments = [inputs[name] for name in self.prepare.name_in()]
            results = dict(zip(self.prepare.name_out(), self.prepare.call(arguments), strict=True))
        extra = [results["prepared"]] if results else []
        built = self.build.call([*inputs.values(), *extra])
        results |= dict(zip(self.build.name_out(), built, strict=True))
        results.setdefault("prepared", ca.MX(0, 1))
        results.setdefault("passed", ca.MX(0, 1))
        names = ["A_qp", "lba", "uba", "active0", "carry", "prepared", "passed"]
        outputs = [results[name] for name in names]
        return ca.Function("problem", list(inputs.values()), outputs, list(inputs), names)
