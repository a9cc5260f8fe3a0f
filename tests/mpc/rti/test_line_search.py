"""The length of a step: the rule beside one in NumPy, what full steps do not reach, its C."""

import casadi as ca
import numpy as np
import pytest
from support.linear_mpc_cases import row_values

import mbcasadi.errors as err
from mbcasadi import mpc
from mbcasadi.codegen import export_c
from mbcasadi.qp.rows import Bounded
from mbcasadi.system import from_lagrangian

HALVINGS = 6
STATE = (0.1, 0.0)
STEPS = {"explicit": mpc.StepOptions(), "semi-implicit": mpc.SemiImplicitStep()}
SAME_LENGTH = 1e-9  # α from the ratio of two steps of one QP
SAME_COST = 1e-6


def reaching(target, step, **bounds):
    """Return a pendulum whose tip, at 1 m, is drawn to a target beside it, m: far away for most.

    Gauss-Newton leaves the curvature of the residual out, which is as large as the target is far.
    """
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    system = from_lagrangian(
        q, v, kinetic=v**2 / 2, potential=-2 * ca.cos(q), B=[[1]], ctrl_range=[[-20, 20]]
    )
    at = mpc.stage_symbols(system)
    away = 3 * (ca.vertcat(ca.sin(at.q), -ca.cos(at.q)) - ca.DM([target, 0]))
    parts = [
        mpc.Cost(R=[0.05], residual=away, terminal=away),
        Bounded(at.v, -2, 4, linear_penalty=1, quadratic_penalty=5),
        Bounded(at.q, -1, 1.2, linear_penalty=2, quadratic_penalty=5, at_end=True),
        mpc.StageBounds(**bounds),
    ]
    return mpc.optimal_control_problem(system, 12, 0.15, parts, symbols=at, step=STEPS[step])


def repeated(law, ticks):
    """Return the plan after so many ticks at one state, and the change in the last one."""
    z, plans = law.controller.z0, []
    for _ in range(ticks):
        _, z, status, *_ = row_values(law.function(*STATE, law.reference(), z))
        assert status == 0
        plans.append(law.trajectory(z))
    return plans[-1], np.abs(plans[-1][0] - plans[-2][0]).max()


@pytest.mark.parametrize(("target", "step"), [(2.0, "explicit"), (8.0, "semi-implicit")])
@pytest.mark.parametrize("solver", ["daqp", "stagewise"])
def test_plans_come_to_rest_where_full_steps_swing_about_the_optimum(target, step, solver):
    ocp = reaching(target, step)
    full, searched = (
        mpc.real_time_iteration(ocp, shift=False, line_search=n, solver=solver)
        for n in (0, HALVINGS)
    )
    (x, u), change = repeated(searched, 40)
    assert repeated(full, 40)[1] > 50 * change
    found = mpc.ocp_solver(ocp, "ipopt").solve(STATE, None, mpc.initial_guess(ocp, x, u))
    assert found.solved
    assert cost(ocp, x, u) == pytest.approx(found.cost, rel=SAME_COST)


def rows_of(ocp, x, u):
    """Return residuals, then values, bounds and prices of rows, at all samples."""
    p = ocp.parameters()
    rows = [
        (*row_values((ocp.residual(*at), ocp.path(*at))), ocp.path_bounds, ocp.path_penalties)
        for at in zip(x, u, p, strict=False)
    ]
    end = row_values((ocp.terminal(x[-1], p[-1]), ocp.end(x[-1], p[-1])))
    return [*rows, (*end, ocp.end_bounds, ocp.end_penalties)]


def paid(values, bounds, prices):
    """Return what violations cost."""
    beyond = np.fmax(np.fmax(values - bounds[:, 1], bounds[:, 0] - values), 0)
    return prices[:, 0] @ beyond + prices[:, 1] @ beyond**2 / 2


def cost(ocp, x, u):
    """Return the cost of a plan with its slacks."""
    rows = rows_of(ocp, x, u)
    return sum(np.sum(np.square(r)) / 2 + paid(g, *of) for r, g, *of in rows)


def gaps(ocp, x, u):
    """Return the sum of all gaps."""
    ends = [ocp.dynamics(*each) for each in zip(x, u, ocp.parameters(), strict=False)]
    return sum(
        np.abs(after - np.array(end).ravel()).sum() for after, end in zip(x[1:], ends, strict=False)
    )


def promised(ocp, start, step):
    """Return the derivative of the cost along a step, with what slacks cost at its end."""
    eps = 1e-6
    plus, minus = (
        rows_of(ocp, *(a + s * b for a, b in zip(start, step, strict=True))) for s in (eps, -eps)
    )
    total = 0.0
    for (r, g, *of), ahead, behind in zip(rows_of(ocp, *start), plus, minus, strict=True):
        slopes = [(a - b) / (2 * eps) for a, b in zip(ahead[:2], behind[:2], strict=True)]
        total += r @ slopes[0] + paid(g + slopes[1], *of)
    return total


def length_of(ocp, start, step, x0):
    """Return α by the rule of the module, from the problem's own Functions."""
    first = np.vstack([x0, start[0][1:]]), start[1]
    worth, apart = cost(ocp, *first), gaps(ocp, *first)
    before = sum(paid(g, *of) for _, g, *of in rows_of(ocp, *first))
    rate = promised(ocp, start, step) - before
    for alpha in 0.5 ** np.arange(HALVINGS):
        x, u = (a + alpha * b for a, b in zip(start, step, strict=True))
        x[0] = x0
        if cost(ocp, x, u) <= worth + alpha * min(rate, 0) / 10:
            return alpha
        if rate >= 0 and gaps(ocp, x, u) <= (1 - alpha / 2) * apart:
            return alpha
    return 0.5**HALVINGS


@pytest.mark.parametrize("solver", ["daqp", "stagewise"])
def test_the_length_of_a_step_is_that_of_the_rule(solver, tmp_path):
    ocp, rng, lengths = reaching(8.0, "semi-implicit"), np.random.default_rng(3), []
    full, searched = (
        mpc.real_time_iteration(ocp, shift=False, line_search=n, solver=solver)
        for n in (0, HALVINGS)
    )
    in_c = export_c(searched, tmp_path / "c").load(flags=("-O1",))
    for _ in range(25):
        x0 = rng.uniform(-1, 1, 2)
        size = rng.choice([0.02, 0.3, 2.0])
        x, u = x0 + size * rng.standard_normal((13, 2)), size * rng.standard_normal((12, 1))
        z = full.z_from(mpc.initial_guess(ocp, x, u))
        whole, part, same = (
            row_values(law(*x0, full.reference(), z))
            for law in (full.function, searched.function, in_c)
        )
        assert whole[2] == part[2] == same[2] == 0
        step = [
            after - before for after, before in zip(full.trajectory(whole[1]), (x, u), strict=True)
        ]
        x_part, u_part = searched.trajectory(part[1])
        lengths.append(length_of(ocp, (x, u), step, x0))
        np.testing.assert_allclose(u_part, u + lengths[-1] * step[1], atol=SAME_LENGTH)
        np.testing.assert_allclose(x_part[1:], x[1:] + lengths[-1] * step[0][1:], atol=SAME_LENGTH)
        np.testing.assert_allclose(x_part[0], x0, atol=1e-12)
        np.testing.assert_allclose(same[1], part[1], atol=1e-5)
    assert len({*lengths}) >= 4


def test_a_number_of_halvings_is_a_whole_number():
    ocp = reaching(2.0, "explicit")
    for wrong in (-1, 1.5):
        with pytest.raises(err.ProblemError, match="line_search"):
            mpc.real_time_iteration(ocp, line_search=wrong)
