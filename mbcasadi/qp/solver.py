"""The controller as one Function: build, solve by a CasADi plugin, finish."""

from functools import lru_cache
from typing import NamedTuple

import casadi as ca

from mbcasadi.description import LeastDistanceStages
from mbcasadi.description.qp_stages import (
    REFINED,
    UNBOUNDED,
    ZERO_ROW,
    SolverFlag,
)
from mbcasadi.qp.cone_solver import cone_solver
from mbcasadi.qp.dual_active_set import KEPT, dual_active_set_fun
from mbcasadi.qp.infeasibility import proves_infeasible
from mbcasadi.qp.plugins import DENSE_SOLVERS
from mbcasadi.qp.scaled_problem import ScaledProblem, contradicts, scaled_problem
from mbcasadi.qp.stagewise import solve_stagewise

STATIONARY = 1e-6
"""Relative size of `x + A_qpᵀ lam_a`, and of a violation, up to which DAQP claims an optimum."""

VIOLATED = 1e-9
"""Share of a row's terms by which DAQP may violate it; beyond, the second method solves."""


def controller_fun(name: str, stages: LeastDistanceStages, solver: str) -> ca.Function:
    """Return (inputs) → (u, z_next, status, flags, residual): all phases of a tick."""
    inputs = _inputs(stages)
    solution = (
        _solve(stages, solver, inputs) if stages.horizon is None else _over_horizon(stages, inputs)
    )
    outputs, names = _outputs(stages, inputs, solution), stages.finish.name_out()
    absent = [1.0 if each == "mask" else 0.0 for each in stages.inputs]  # all on
    return ca.Function(name, inputs, outputs, list(stages.inputs), names, {"default_in": absent})


def solution_fun(
    stages: LeastDistanceStages, solver: str, point: ca.Function | None = None
) -> ca.Function:
    """Return (inputs) → (outputs of the tick, x) of `controller_fun` and `candidate_fun`."""
    inputs = _inputs(stages)
    solution = _solve(stages, solver, inputs)
    outputs = [*_outputs(stages, inputs, solution), _point(solution, point)]
    return ca.Function(
        "solution", inputs, outputs, list(stages.inputs), [*stages.finish.name_out(), "x"]
    )


def _outputs(stages: LeastDistanceStages, inputs: list[ca.MX], found: "_Solution") -> list[ca.MX]:
    """Return the outputs of a tick with this result of the solver."""
    extra = [] if stages.prepare is None else [found.prepared]
    passed = [found.passed] if stages.between else []
    answer = [found.carry, *passed, found.x, found.lam_a, found.active, found.flag]
    outputs: list[ca.MX] = stages.finish.call([*inputs, *extra, *answer])
    return outputs


def candidate_fun(
    stages: LeastDistanceStages, solver: str, point: ca.Function | None = None
) -> ca.Function:
    """Return (inputs) → (x), the solver's result before it is checked.

    Args:
        stages: of the controller.
        solver: plugin of CasADi.
        point: (carry, passed, x) → (x) in other coordinates; none by default.
    """
    inputs = _inputs(stages)
    x = _point(_solve(stages, solver, inputs), point)
    return ca.Function("candidate", inputs, [x], list(stages.inputs), ["x"])


def _point(found: "_Solution", point: ca.Function | None) -> ca.MX:
    """Return x in the coordinates of `point`."""
    return found.x if point is None else ca.MX(point(found.carry, found.passed, found.x))


class _Solution(NamedTuple):
    x: ca.MX
    lam_a: ca.MX
    flag: ca.MX
    carry: ca.MX
    prepared: ca.MX
    active: ca.MX
    passed: ca.MX


def _over_horizon(stages: LeastDistanceStages, inputs: list[ca.MX]) -> "_Solution":
    """Return the result of a problem over a horizon."""
    problem, prepare, build = stages.horizon, stages.prepare, stages.build
    assert problem is not None
    assert prepare is not None
    by_name = dict(zip(stages.inputs, inputs, strict=True))
    prepared = prepare.call([by_name[name] for name in prepare.name_in()])[0]
    x_first, carry = build.call([*inputs, prepared])
    data = prepared[prepared.numel() - problem.size :]
    x, lam, flag = solve_stagewise(problem, data, x_first)
    return _Solution(x, lam, flag, carry, prepared, ca.sign(lam), ca.MX(0, 1))


def _inputs(stages: LeastDistanceStages) -> list[ca.MX]:
    return [ca.MX.sym(name, pattern) for name, pattern in stages.inputs.items()]


def _solve(stages: LeastDistanceStages, solver: str, inputs: list[ca.MX]) -> _Solution:
    """Return the solver's result of the last problem, and what the stages pass on to `finish`."""
    problem = stages.problem().call(inputs, True, False)
    A_qp, lba, uba, active, carry, prepared, passed = problem
    x, lam, active, flag = _solve_problem(stages, solver, A_qp, lba, uba, active)
    for function, rows in zip(stages.between, stages.between_rows, strict=True):
        lba, uba, active, passed = function.call([carry, passed, x, lam, active, flag])
        A_qp = A_qp if rows is None else rows.call([carry, passed])[0]
        x, lam, active, flag = _solve_problem(stages, solver, A_qp, lba, uba, active)
    return _Solution(x, lam, flag, carry, prepared, active, passed)


def _solve_problem(
    stages: LeastDistanceStages, solver: str, A_qp: ca.MX, lba: ca.MX, uba: ca.MX, active: ca.MX
) -> list[ca.MX]:
    """Return x, lam_a, the active set and the `SolverFlag` of one problem."""
    if stages.cones:
        found: list[ca.MX] = cone_solver(stages.m, stages.n, stages.cones).call(
            [A_qp, lba, uba, active]
        )
        return found
    pattern, is_passed_on = tuple(A_qp.sparsity().compress()), bool(stages.between)
    x, lam, flag = _problem_fun(solver, pattern, is_passed_on).call([A_qp, lba, uba])
    return [x, lam, ca.sign(lam), flag]


@lru_cache(maxsize=KEPT)
def _problem_fun(solver: str, pattern: tuple[int, ...], is_passed_on: bool) -> ca.Function:
    """Return (A_qp, lba, uba) → (x, lam_a, flag) for rows with this pattern, compressed.

    A plugin's success flag does not exist inside an MX graph. DAQP returns `x + A_qpᵀ lam_a = 0`
    and x inside the bounds where it claims an optimum, and elsewhere not: without this x and lam_a
    are zero, as in the exported C. Where it finds the rows infeasible, `lam_a` of rows of unit
    length is the proof. qrqp always counts as claiming an optimum, unless the second method
    proves that there is none. A problem that a plugin would refuse by an exception is not
    passed to it. What is passed on violates no row by more than `REFINED`: the next problem could
    not mend it. With quadratic cones there is one method, `cone_program.py`.
    """
    A_qp = ca.MX.sym("A_qp", ca.Sparsity.compressed(pattern))
    (m, n), bounds = A_qp.shape, ("lba", "uba")
    symbols = (A_qp, *(ca.MX.sym(name, m) for name in bounds))
    problem = scaled_problem(*symbols)
    conic = _conic_fun(solver, n, m, problem.A.sparsity())
    x, lam = conic(*problem[:3])
    if not m:
        return ca.Function("solve", [*symbols], [problem.unit * x, lam, problem.posed])
    if solver == "daqp":
        x, lam, claim = _certain(problem, x, lam, is_passed_on)
        optimal = ca.logic_and(problem.posed, claim == SolverFlag.OPTIMAL)
        proven = ca.logic_and(problem.posed, claim == SolverFlag.INFEASIBLE)
        x, lam = ca.if_else(optimal, x, 0), ca.if_else(optimal, lam, 0)
    else:
        proven = _proven_where(ca.logic_not(_is_optimum(problem, x, lam)), problem)
        optimal = ca.logic_and(problem.posed, ca.logic_not(proven))
    impossible = ca.logic_or(contradicts(*symbols), proven)
    without = ca.if_else(impossible, SolverFlag.INFEASIBLE, SolverFlag.STOPPED)
    flag = ca.if_else(optimal, SolverFlag.OPTIMAL, without)
    unit = problem.unit
    return ca.Function("solve", [*symbols], [unit * x, unit * problem.factor * lam, flag])


def _conic_fun(solver: str, n: int, m: int, rows: ca.Sparsity) -> ca.Function:
    """Return (A, lower, upper) → (x, lam) by a plugin."""
    pattern = {"h": ca.Sparsity.diag(n), "a": rows}
    conic = ca.conic("least_distance", solver, pattern, DENSE_SOLVERS[solver])
    A, lower, upper = ca.MX.sym("A", rows), ca.MX.sym("lower", m), ca.MX.sym("upper", m)
    solution = conic(h=ca.DM.eye(n), g=ca.DM.zeros(n), a=A, lba=lower, uba=upper)
    return ca.Function("solve", [A, lower, upper], [solution["x"], solution["lam_a"]])


def infeasible_where(doubted: ca.MX, A_qp: ca.MX | ca.DM, lba: ca.MX, uba: ca.MX) -> ca.MX:
    """Return whether a problem is doubted, and no x satisfies `lba <= A_qp x <= uba`.

    The proof is one row that cannot be met, or multipliers by Farkas' lemma (see `infeasibility`)
    of the second method, which runs only where the problem is doubted.

    Args:
        doubted: whether the proof is wanted.
        A_qp, lba, uba: (m, n), (m,), (m,) of the least-distance problem.
    """
    rows = ca.MX(A_qp)
    if not rows.shape[0]:
        return ca.MX(0)
    alone = ca.logic_and(doubted, contradicts(rows, lba, uba))
    return ca.logic_or(alone, _proven_where(doubted, scaled_problem(rows, lba, uba)))


def _proven_where(doubted: ca.MX, problem: ScaledProblem) -> ca.MX:
    """Return whether a problem is doubted and there is a proof that its rows are infeasible."""
    s = [ca.MX.sym(f"s{i}", value.sparsity()) for i, value in enumerate(problem)]
    scaled = ScaledProblem(*s)
    _, _, flag = _dual_active_set(*scaled[:4])
    proven = ca.logic_and(scaled.posed, flag == SolverFlag.INFEASIBLE)
    tried = ca.Function("tried", s, [proven])
    spared = ca.Function("spared", s, [ca.MX(0)])
    return ca.MX(ca.Function.if_else("prove", tried, spared)(doubted, *problem))


def _gap(problem: ScaledProblem, x: ca.MX, lam: ca.MX) -> ca.MX:
    """Return (m,) by how much each active row misses its nearer bound, over its length.

    The sign of a multiplier that is nearly zero does not tell which one is active.
    """
    value = problem.A @ x
    to_upper, to_lower = problem.upper - value, problem.lower - value
    missed = ca.if_else(ca.fabs(to_upper) < ca.fabs(to_lower), to_upper, to_lower)
    return (
        ca.if_else(ca.logic_and(lam != 0, ca.fabs(missed) < UNBOUNDED), missed, 0) / problem.length
    )


def _certain(
    problem: ScaledProblem, x: ca.MX, lam: ca.MX, is_passed_on: bool
) -> tuple[ca.MX, ca.MX, ca.MX]:
    """Return x, lam and a `SolverFlag`: of a second method where DAQP stops or misses active rows.

    Also where it violates a row by more than a share of its terms, or at all if the solution is
    passed on: DAQP's tolerance is one of all rows, which is much of one far smaller than others.
    Where the second method stops too, DAQP's result is kept.
    """
    claim, missed = _claim(problem, x, lam), ca.norm_inf(_gap(problem, x, lam))
    allowed = 0 if is_passed_on else VIOLATED * (ca.fabs(problem.A) @ ca.fabs(x)) / problem.length
    missed = ca.fmax(missed, ca.mmax(_violation(problem, x) - allowed))
    doubtful = ca.logic_and(
        claim != SolverFlag.INFEASIBLE,
        ca.logic_or(claim == SolverFlag.STOPPED, missed > REFINED),
    )
    values = [*problem[:4], x, lam, claim]
    s = [ca.MX.sym(f"s{i}", value.sparsity()) for i, value in enumerate(values)]
    second = _dual_active_set(*s[:4])
    certain = second[2] != SolverFlag.STOPPED
    answer = [ca.if_else(certain, new, old) for new, old in zip(second, s[4:], strict=True)]
    again = ca.Function("again", s, answer)
    either = ca.Function.if_else("either", again, ca.Function("once", s, s[4:]))
    claimed = either(doubtful, *values)
    return claimed[0], claimed[1], claimed[2]


def _dual_active_set(
    A: ca.MX, lower: ca.MX, upper: ca.MX, length: ca.MX
) -> tuple[ca.MX, ca.MX, ca.MX]:
    """Return x, lam and the `SolverFlag` of the second method; its proof is checked too."""
    present = length > ZERO_ROW * ca.mmax(length)
    x, lam, flag = dual_active_set_fun(*A.shape)(
        ca.densify(ca.diag(present / length) @ A),
        ca.if_else(present, lower / length, -ca.inf),
        ca.if_else(present, upper / length, ca.inf),
    )
    lam = lam / length
    false = ca.logic_and(
        flag == SolverFlag.INFEASIBLE,
        ca.logic_not(proves_infeasible(A, lower, upper, lam, ca.MX(1))),
    )
    return x, lam, ca.if_else(false, SolverFlag.STOPPED, flag)


def _claim(problem: ScaledProblem, x: ca.MX, lam: ca.MX) -> ca.MX:
    """Return the `SolverFlag` of DAQP's result."""
    proven = proves_infeasible(*problem[:3], lam / problem.length, ca.MX(1))
    without = ca.if_else(proven, SolverFlag.INFEASIBLE, SolverFlag.STOPPED)
    return ca.if_else(_is_optimum(problem, x, lam), SolverFlag.OPTIMAL, without)


def _is_optimum(problem: ScaledProblem, x: ca.MX, lam: ca.MX) -> ca.MX:
    """Return whether DAQP claims an optimum; x and lam are zero where it stops early."""
    stationary = ca.norm_2(x + problem.A.T @ lam) <= STATIONARY * (1 + ca.norm_2(x))
    kept = ca.mmax(_violation(problem, x)) <= STATIONARY * (1 + ca.norm_2(x))
    return ca.logic_and(stationary, kept)


def _violation(problem: ScaledProblem, x: ca.MX) -> ca.MX:
    """Return (m,) by how much each row is violated, over its length; negative where it is not."""
    value = problem.A @ x
    return ca.fmax(value - problem.upper, problem.lower - value) / problem.length


CLAIMED = 0.5
"""A number that stands for a truth value is above this where it is true."""
