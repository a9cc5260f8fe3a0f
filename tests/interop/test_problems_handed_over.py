"""A whole problem in the hands of others: the same cost, steps and rows, and the same optimum."""

import warnings

import casadi as ca
import numpy as np
import pytest
from interop_cases import QUIET, carts
from support.handed_over import FAKE_ALIGATOR, FAKE_CROCODDYL, acados_ocp

from mbcasadi import mpc
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.interop import (
    ocp_to_acados,
    ocp_to_aligator,
    ocp_to_crocoddyl,
    ocp_to_opti,
    ocp_to_rockit,
)
from mbcasadi.mpc.ocp.shooting import shooting
from mbcasadi.qp.rows import Bounded

N, PERIOD = 5, 0.1
X0 = np.array([0.0, 0.0, 0.4, 0.4])  # two carts coupled, at 0.4 m/s
STEP, CLOSE, EXACT = 1e-6, 1e-5, 1e-10


@pytest.fixture(scope="module")
def ocp():
    """Two carts with a coupling that opens, hard and soft rows, and bounds."""
    system = carts()
    s = mpc.stage_symbols(system)
    parts = [
        mpc.Cost(Q=[1.0, 1.0, 0.1, 0.1], R=[0.1], Q_end=[20.0, 20.0, 1.0, 1.0]),
        mpc.StageBounds(u=[[-6.0, 6.0]], v=[[-np.inf, np.inf], [-0.1, 0.6]]),
        Bounded(s.q[0], upper=0.1, linear_penalty=2.0, quadratic_penalty=3.0),
        Bounded(s.q[0] * s.u[0], -5.0, 5.0),
        Bounded(s.v[0] ** 2, upper=4.0, at_end=True),
    ]
    return mpc.optimal_control_problem(system, N, PERIOD, parts, symbols=s, name="carts")


@pytest.fixture(scope="module")
def p(ocp):
    return ocp.parameters(setpoint_q=[0.15, 0.15], mask=[[1.0]] * 3 + [[0.0]] * 3)


@pytest.fixture(scope="module")
def points(ocp):
    rng = np.random.default_rng(0)
    return rng.normal(size=(N + 1, ocp.nx)), rng.normal(size=(N, ocp.nu))


@pytest.fixture(scope="module")
def cost(ocp, p, points):
    """The cost at the random points, slacks at their least."""
    program = shooting(ocp)
    f = ca.Function("f", [program.w, program.parameters], [program.f])
    given = np.concatenate([X0, p.ravel()])
    value = float(f(program.pack(*points, p), given))
    bare = ocp.residual.map(N)(points[0][:-1].T, points[1].T, p[:-1].T)
    end = ocp.terminal(points[0][-1], p[-1])
    assert value > float(ca.sumsqr(bare) + ca.sumsqr(end)) / 2, "soft rows are violated"
    return value


@pytest.fixture(scope="module")
def optimum(ocp, p):
    found = mpc.solve_ocp(ocp, X0, p)
    assert found.status == 0
    assert np.any(found.x[:, 0] > 0.1), "a soft row is violated"
    return found


def after(ocp, points, p, k):
    return ocp.dynamics(points[0][k], points[1][k], p[k]).full().ravel()


def test_opti_has_the_cost_and_the_optimum(ocp, p, points, cost, optimum):
    made = ocp_to_opti(ocp, X0, p)
    x, u = points
    excess = np.maximum(x[:-1, 0] - 0.1, 0)
    symbols = [made.x, made.u, made.slacks, made.end_slacks, made.p]
    f = ca.Function("f", symbols, [made.opti.f])
    assert float(f(x.T, u.T, excess, [], p.T)) == pytest.approx(cost, rel=EXACT)
    made.opti.solver("ipopt", QUIET)
    solution = made.opti.solve()
    assert solution.value(made.opti.f) == pytest.approx(optimum.cost, rel=CLOSE)
    np.testing.assert_allclose(np.ravel(solution.value(made.u)), optimum.u.ravel(), atol=1e-4)


def test_rockit_finds_the_same_optimum(ocp, p, optimum):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rockit = pytest.importorskip("rockit", reason="rockit is not installed here")
    made = ocp_to_rockit(ocp, X0, p)
    made.ocp.method(rockit.MultipleShooting(N=N))
    made.ocp.solver("ipopt", QUIET)
    solution = made.ocp.solve()
    _, u = solution.sample(made.u, grid="control")
    np.testing.assert_allclose(np.ravel(u)[:N], optimum.u.ravel(), atol=1e-4)
    assert solution.value(made.ocp.objective) == pytest.approx(optimum.cost, rel=CLOSE)


def test_acados_has_the_cost_the_steps_and_the_rows(ocp, p, points, cost):
    made = ocp_to_acados(ocp, X0, p, ocp=acados_ocp())
    model, rows, of_cost = made.model, made.constraints, made.cost
    x, u = points
    total = 0.0
    for k in range(N + 1):
        end = "_0" if k == 0 else "_e" if k == N else ""
        given = [x[k], u[min(k, N - 1)], p[k]]
        outputs = [getattr(model, f"{kind}{end}") for kind in ("cost_y_expr", "con_h_expr")]
        f = ca.Function("f", [model.x, model.u, model.p], [*outputs, model.disc_dyn_expr])
        y, h, x_next = (each.full().ravel() for each in f(*given))
        scale = 1.0 if k == N else made.solver_options.tf / made.solver_options.N_horizon
        value = (y - getattr(of_cost, f"yref{end}")) @ getattr(of_cost, f"W{end}") @ y / 2
        low, high = getattr(rows, f"lh{end}"), getattr(rows, f"uh{end}")
        if k < N:
            np.testing.assert_allclose(x_next, after(ocp, points, p, k), atol=EXACT)
            soft = getattr(rows, f"idxsh{end}")
            for side, excess in (("u", h - high), ("l", low - h)):
                e = np.maximum(excess[soft], 0)
                z, Z = (getattr(of_cost, f"{name}{side}{end}") for name in "zZ")
                value += z @ e + Z @ e**2 / 2
        total += scale * value
    assert total == pytest.approx(cost, rel=EXACT)
    assert list(rows.x0) == list(X0)
    assert (list(rows.idxbx), list(rows.lbx), list(rows.ubx)) == ([3], [-0.1], [0.6])
    assert (list(rows.lbu), list(rows.ubu)) == ([-6.0], [6.0])
    assert list(rows.uh_e) == [4.0]


def differences(function, x):
    """Return the derivatives of a function by central differences."""
    columns = [function(x + d) - function(x - d) for d in STEP * np.eye(x.size)]
    return np.array(columns).T / (2 * STEP)


def check_stage(value, slopes, x, u):
    """Compare gradients (g_x, g_u) with differences of a value; `value(x, u)`."""
    for place, slope in enumerate(slopes):
        given = [x, u]

        def moved(y, given=given, place=place):
            return np.atleast_1d(value(*given[:place], y, *given[place + 1 :]))

        expected = differences(moved, given[place])
        np.testing.assert_allclose(np.atleast_2d(slope), np.atleast_2d(expected), atol=CLOSE)


def run_action(model, x, u):
    data = model.createData()
    model.calc(data, x, u)
    model.calcDiff(data, x, u)
    return data


def test_crocoddyl_has_the_cost_the_steps_and_their_derivatives(ocp, p, points, cost):
    made = ocp_to_crocoddyl(ocp, X0, p, crocoddyl=FAKE_CROCODDYL)
    x, u = points
    total = 0.0
    for k, model in enumerate([*made.runningModels, made.terminalModel]):
        ends = k == N
        control = u[min(k, N - 1)]
        data = run_action(model, x[k], control)
        total += data.cost
        check_stage(lambda *z, m=model: run_action(m, *z).cost, (data.Lx, data.Lu), x[k], control)
        check_stage(lambda *z, m=model: run_action(m, *z).Lx, (data.Lxx, data.Lxu), x[k], control)
        check_stage(lambda *z, m=model: run_action(m, *z).g, (data.Gx, data.Gu), x[k], control)
        if not ends:
            np.testing.assert_allclose(data.xnext, after(ocp, points, p, k), atol=EXACT)
            f = (data.Fx, data.Fu)
            check_stage(lambda *z, m=model: run_action(m, *z).xnext, f, x[k], control)
            assert (list(model.u_lb), list(model.u_ub)) == ([-6.0], [6.0])
        assert model.ng_end == (2 if ends else 0)
    assert total == pytest.approx(cost, rel=EXACT)
    assert 0.6 not in made.runningModels[0].g_ub, "the given state has no bounds"
    assert list(made.runningModels[1].g_ub)[::2] == [5.0, 0.6]


def test_aligator_has_the_cost_the_steps_and_the_boxes(ocp, p, points, cost):
    made = ocp_to_aligator(ocp, X0, p, aligator=FAKE_ALIGATOR)
    x, u = points
    total = 0.0
    for k, stage in enumerate(made.stages):
        data, step = stage.cost.createData(), stage.dynamics.createData()
        stage.cost.evaluate(x[k], u[k], data)
        stage.cost.computeGradients(x[k], u[k], data)
        stage.cost.computeHessians(x[k], u[k], data)
        stage.dynamics.forward(x[k], u[k], step)
        stage.dynamics.dForward(x[k], u[k], step)
        total += data.value
        np.testing.assert_allclose(step.xnext, after(ocp, points, p, k), atol=EXACT)
        assert all(np.all(np.isfinite(each)) for each in (*vars(data).values(), step.Jx, step.Ju))
        np.testing.assert_array_equal(data.Lux, data.Lxu.T)
        (rows, box), (_, controls) = stage.constraints
        values = rows.createData()
        rows.evaluate(x[k], u[k], values)
        rows.computeJacobians(x[k], u[k], values)
        assert values.value[0] == pytest.approx(x[k][0] * u[k][0])
        assert list(values.Jx[0]) == pytest.approx([u[k][0], 0, 0, 0])
        assert (box[0][0], box[1][0]) == (-5.0, 5.0)
        assert (k > 0) == (0.6 in box[1]), "the given state has no bounds"
        assert [list(side) for side in controls] == [[-6.0], [6.0]]
    data, nothing = made.term_cost.createData(), u[0]
    made.term_cost.evaluate(x[N], nothing, data)
    made.term_cost.computeGradients(x[N], nothing, data)
    assert not np.any(data.Lu)
    assert total + data.value == pytest.approx(cost, rel=EXACT)
    ((end, box),) = made.ends
    values = end.createData()
    end.evaluate(x[N], nothing, values)
    assert list(values.value) == pytest.approx([x[N][2] ** 2, x[N][3]])
    assert list(box[1]) == [4.0, 0.6]


def test_crocoddyl_itself_finds_the_optimum_without_limits(ocp, p):
    crocoddyl = pytest.importorskip("crocoddyl", reason="crocoddyl is not installed here")
    free = mpc.optimal_control_problem(
        carts(), N, PERIOD, [mpc.Cost(Q=[1.0] * 4, R=[0.1], Q_end=[20.0] * 4)]
    )
    solver = crocoddyl.SolverFDDP(ocp_to_crocoddyl(free, X0))
    assert solver.solve([], [], 50)
    expected = mpc.solve_ocp(free, X0)
    assert solver.cost == pytest.approx(expected.cost, rel=CLOSE)
    np.testing.assert_allclose(np.ravel(list(solver.us)), expected.u.ravel(), atol=1e-4)


def test_what_does_not_fit_is_refused(ocp):
    with pytest.raises(ShapeError, match=r"p has shape \(2, 3\), expected"):
        ocp_to_opti(ocp, X0, np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="x0"):
        ocp_to_acados(ocp, X0[:2], ocp=acados_ocp())
    s = mpc.stage_symbols(carts())
    parts = [mpc.Cost(Q=[1.0] * 4), Bounded(s.q[0], upper=1.0, linear_penalty=1.0, at_end=True)]
    soft = mpc.optimal_control_problem(carts(), N, PERIOD, parts, symbols=s)
    with pytest.raises(ProblemError, match="1 soft rows at the end, where rockit has no slacks"):
        ocp_to_rockit(soft, X0)
