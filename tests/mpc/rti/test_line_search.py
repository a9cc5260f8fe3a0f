"""The length of a step: the rule beside one in NumPy, what full steps do not reach, its C."""

import casadi as ca
import numpy as np
import pytest
from support.linear_mpc_cases import row_values
from support.mpc_mechanisms import sliding_mass

import mbcasadi.errors as err
from mbcasadi import mpc
from mbcasadi.codegen import export_c
from mbcasadi.mpc.rti.line_search import LineSearch, Slope
from mbcasadi.mpc.rti.memory import Guess
from mbcasadi.qp.rows import Bounded
from mbcasadi.system import from_lagrangian

HALVINGS = 6
STATE = (0.1, 0.0)
STEPS = {"explicit": mpc.StepOptions(), "semi-implicit": mpc.SemiImplicitStep()}
FASTEST = 3.0  # rad/s, hard
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


@pytest.fixture(scope="module")
def ocp():
    """Return a problem with a target far away, and hard limits of its speed."""
    return reaching(8.0, "semi-implicit", v=[[-FASTEST, FASTEST]])


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
@pytest.mark.every(3)
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
    """Return residuals, then values, bounds and prices of rows, at all samples.

    The row of the speed says nothing of the first one, which is given.
    """
    p = ocp.parameters()
    rows = [
        (*row_values((ocp.residual(*at), ocp.path(*at))), ocp.path_bounds, ocp.path_penalties)
        for at in zip(x, u, p, strict=False)
    ]
    rows[0] = (rows[0][0], np.clip(rows[0][1], *ocp.path_bounds.T), *rows[0][2:])
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


def worth(ocp, plan, prices, largest):
    """Return the merit of a plan, and the share of gaps: no hard row is violated here."""
    ends = [ocp.dynamics(*each) for each in zip(*plan, ocp.parameters(), strict=False)]
    apart = [after - np.array(end).ravel() for after, end in zip(plan[0][1:], ends, strict=True)]
    beyond = np.fmax(np.abs(plan[0][1:, 1]) - FASTEST, 0).sum()
    priced = 1.1 * (np.sum(np.abs(prices.T * apart)) + largest * beyond)
    return cost(ocp, *plan) + priced, priced


def length_of(ocp, start, step, x0, slope):
    """Return α by the rule of the module, from the problem's own Functions."""
    rate, prices, largest = slope
    first = np.vstack([x0, start[0][1:]]), start[1]
    begins, priced = worth(ocp, first, prices, largest)
    slacks = sum(paid(g, *of) for _, g, *of in rows_of(ocp, *first))
    fall = min(rate - slacks - priced, 0) / 10
    for alpha in 0.5 ** np.arange(HALVINGS):
        x, u = (a + alpha * b for a, b in zip(start, step, strict=True))
        x[0] = x0
        if worth(ocp, (x, u), prices, largest)[0] <= begins + alpha * fall:
            return alpha
    return 0.5**HALVINGS


def test_the_length_of_a_step_is_that_of_the_rule(ocp):
    rng, lengths = np.random.default_rng(3), []
    x = ca.MX.sym("x", 2), ca.MX.sym("d", 2)
    search = LineSearch(ocp, ca.Function("moved", [*x], [x[0] + x[1]]), HALVINGS)
    N, shapes = ocp.horizon, ((2, 13), (1, 12), (2, 13), (1, 12), (2, 1), (1, 1), (2, 12), (1, 1))
    X, U, dX, dU, x0, rate, prices, largest = given = [ca.MX.sym("s", *shape) for shape in shapes]
    none = ca.MX(0, 1)
    guess = Guess(X, U, *[none] * 6, ca.MX(ca.DM(ocp.parameters().T)), none)
    alpha = search.length(guess, (dX, dU), x0, Slope(rate, prices, largest))
    length = ca.Function("length", given, [alpha])
    for _ in range(60):
        size = rng.choice([0.02, 0.3, 2.0])
        start, step = (
            (size * rng.standard_normal((N + 1, 2)), size * rng.standard_normal((N, 1)))
            for _ in range(2)
        )
        state, slope = start[0][0] + step[0][0], (0.0, rng.exponential(size=(2, N)), 1.0)
        slope = (cost(ocp, *start) * rng.uniform(-1, 0.5), *slope[1:])
        found = length(*(part.T for part in (*start, *step)), state, *slope)
        lengths.append(length_of(ocp, start, step, state, slope))
        assert float(found) == lengths[-1]
    assert len({*lengths}) >= 5


@pytest.mark.parametrize("solver", ["daqp", "stagewise"])
@pytest.mark.every(2)
def test_the_c_takes_the_same_steps(solver, tmp_path):
    ocp = reaching(8.0, "semi-implicit")
    law = mpc.real_time_iteration(ocp, shift=False, line_search=HALVINGS, solver=solver)
    in_c, rng = export_c(law, tmp_path / "c").load(), np.random.default_rng(3)
    for _ in range(10):
        x0 = rng.uniform(-1, 1, 2)
        size = rng.choice([0.02, 0.3, 2.0])
        x, u = x0 + size * rng.standard_normal((13, 2)), size * rng.standard_normal((12, 1))
        z = law.z_from(mpc.initial_guess(ocp, x, u))
        found, same = (row_values(f(*x0, law.reference(), z)) for f in (law.function, in_c))
        assert found[2] == same[2] == 0
        np.testing.assert_allclose(same[1], found[1], atol=1e-5)
        np.testing.assert_allclose(law.trajectory(same[1])[0][0], x0, atol=1e-12)


@pytest.mark.parametrize("solver", ["daqp", "stagewise"])
def test_quadratic_problems_are_solved_by_whole_steps_from_any_state(solver):
    system = sliding_mass()
    at = mpc.stage_symbols(system)
    rows = [Bounded(at.v, -1.0, 1.0, linear_penalty=30.0, quadratic_penalty=5.0)]
    rows.append(Bounded(at.u + at.q, -2.0, 3.0))
    cost = mpc.Cost(Q=[5.0, 0.1], R=[1e-2], Q_end=[5.0, 1.0])
    ocp = mpc.optimal_control_problem(system, 12, 0.1, [cost, *rows], symbols=at)
    full, searched = (
        mpc.real_time_iteration(ocp, shift=False, line_search=n, solver=solver)
        for n in (0, HALVINGS)
    )
    for place, speed in ((0.5, 0.0), (0.0, 5.0), (-0.3, -4.0)):  # at rest, beyond the soft limit
        plans = []
        for law in (full, searched):
            z = law.controller.z0
            for moved in (0.0, 0.01):  # afar, then beside the solution
                _, z, status, *_ = row_values(
                    law.function(place + moved, speed, law.reference(), z)
                )
                assert status == 0
            plans.append(z)
        np.testing.assert_allclose(plans[1], plans[0], atol=1e-6)


def test_a_number_of_halvings_is_a_whole_number():
    ocp = reaching(2.0, "explicit")
    for wrong in (-1, 1.5):
        with pytest.raises(err.ProblemError, match="line_search"):
            mpc.real_time_iteration(ocp, line_search=wrong)
