"""Problems over a horizon at random: the C's recursions against the QP in all its unknowns."""

import casadi as ca
import numpy as np
import pytest
import quadprog
from scipy.optimize import linprog

from mbcasadi.codegen import export_c, stagewise_c
from mbcasadi.description import Controller, LeastDistanceStages, Signal
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.description.stagewise_qp import StagewiseQP, StagewiseRows
from mbcasadi.description.status import Status
from mbcasadi.qp.kkt_residuals import judge
from mbcasadi.qp.solver import controller_fun
from mbcasadi.qp.stagewise import end_blocks, interval_blocks, judged

N, PROBLEMS = 6, 60
HARD = np.inf
SAME = 1e-7  # beside 1e-6, to which the residuals are judged


def problem_of(na, nb, nu, rotations, bounded=False, further=0):
    """Return sizes of a problem: five rows in an interval, two of them soft, two at the end.

    Where `bounded`, the first two are bounds of the first control and of the last one. `further`
    rows of F are of what only costs and rows depend on.
    """
    nx, nz, nf = na + nb, nu + na + nb, nb + further
    pattern = np.ones((5, nz + nf))
    if bounded:
        pattern[:2], pattern[0, 0], pattern[1, nu - 1] = 0.0, 1.0, 1.0
    pattern = ca.sparsify(ca.DM(pattern)).sparsity()
    full = ca.Sparsity.dense
    prices = np.array([[HARD, HARD]] * 3 + [[0.4, 2.0], [0.0, 5.0]])
    at_end = np.array([[HARD, HARD], [1.0, 3.0]])
    return StagewiseQP(
        horizon=N, nu=nu, na=na, nb=nb, F=full(nf, nz), H=ca.Sparsity.upper(nz + nf),
        H_end=ca.Sparsity.upper(nx),
        inside=StagewiseRows(pattern, prices, np.ones(5), np.ones((5, 2), bool), (4,)),
        at_end=StagewiseRows(full(2, nx), at_end, np.ones(2), np.ones((2, 2), bool)),
        rotations=rotations, step=0.1, units=np.ones(nz),
    )  # fmt: skip


KINDS = {
    "states alone": problem_of(0, 3, 2, ()),
    "positions and rates": problem_of(4, 4, 3, ()),
    "rotations, further rates": problem_of(8, 9, 2, (1, 5)),
    "rotations, multipliers": problem_of(5, 5, 3, (2,), further=3),
    "one state": problem_of(0, 1, 1, ()),
    "bounded controls": problem_of(2, 2, 2, (), bounded=True),
}


def data_of(problem, rng, tight):
    """Return data whose hard rows hold at a point with the motion, and the first state."""
    nz, nx, nu, na, nb = problem.nz, problem.nx, problem.nu, problem.na, problem.nb
    ny, nf = problem.ny, problem.nf
    x = first = rng.standard_normal(nx)
    columns = []
    for k in range(N):
        J = rng.standard_normal((nz, ny))
        H = J.T @ J * 0.1 + np.diag([0.3] * nu + [0.0] * (nx + nf))
        turns = [np.eye(3) + 0.3 * rng.standard_normal((3, 3)) for _ in problem.rotations]
        rates = [problem.step * (np.eye(3) + 0.3 * rng.standard_normal((3, 3))) for _ in turns]
        part = {
            "F": np.hstack([rng.standard_normal((nf, nu)), 0.4 * rng.standard_normal((nf, nx))]),
            "Phi": np.array([turn.ravel() for turn in turns]),
            "Gamma": np.array([rate.ravel() for rate in rates]),
            "d_a": rng.standard_normal(na), "d_b": 0.3 * rng.standard_normal(nb),
            "H": H[np.tril_indices(ny)], "g": rng.standard_normal(nz),
        }  # fmt: skip
        F, part["F"] = part["F"], part["F"].ravel(order="F")
        G = rng.standard_normal((5, ny))
        G[2, nu:], G[4, :nu], G[4, nz:] = 0.0, 0.0, 0.0
        held = ca.DM(problem.inside.G, 1).full() > 0
        G *= held
        z = np.r_[0.3 * rng.standard_normal(nu), x]
        y = np.r_[z, F @ z]
        lower, upper = G @ y - tight * rng.random(5), G @ y + tight * rng.random(5)
        lower[3] += 2.0  # the soft one gives way
        upper[3] += 2.0
        if k == 0:
            lower[4], upper[4] = -UNBOUNDED, UNBOUNDED
        part |= {"G": G[held], "lower": lower, "upper": upper}
        column = np.concatenate([np.ravel(part[name]) for name in problem.column])
        columns.append(column)
        block = [m.full() for m in numbers(problem, column)]
        x = block[0] @ z + block[1].ravel()
    J, G = rng.standard_normal((nx, nx)), rng.standard_normal((2, nx))
    end = [
        (J.T @ J)[np.tril_indices(nx)], rng.standard_normal(nx), G.ravel(),
        G @ x - tight * rng.random(2), G @ x + tight * rng.random(2),
    ]  # fmt: skip
    return np.concatenate([*columns, *end]), first


def moved_bounds(problem, data, rng, by):
    """Move the bounds of a hard row of some interval."""
    k, row = rng.integers(N), rng.integers(3)
    shift = by * rng.standard_normal()
    for side in ("lower", "upper"):
        data[k * problem.column_size + problem.column[side].start + row] += shift


FUNCTIONS = {}  # of problems by their id: they are those of KINDS


def numbers(problem, column, blocks_of=interval_blocks):
    key, size = (id(problem), blocks_of), len(column)
    if key not in FUNCTIONS:
        symbol = ca.MX.sym("column", size)
        blocks = [ca.densify(block) for block in blocks_of(problem, symbol)]
        FUNCTIONS[key] = ca.Function("blocks", [symbol], blocks)
    return FUNCTIONS[key](column)


def condensed(problem, data, first):
    """Return z of all intervals as (S, e) of the controls, the cost, and (G, low, high) of rows."""
    nx, nu = problem.nx, problem.nu
    S, e, x_S, x_e = [], [], np.zeros((nx, N * nu)), first.copy()  # z = S u + e
    blocks = [
        [m.full() for m in numbers(problem, data[k * problem.column_size :][: problem.column_size])]
        for k in range(N)
    ]
    for k, (A, d, *_) in enumerate(blocks):
        own = np.zeros((nu, N * nu))
        own[:, k * nu : (k + 1) * nu] = np.eye(nu)
        S.append(np.vstack([own, x_S]))
        e.append(np.r_[np.zeros(nu), x_e])
        x_S, x_e = A @ S[-1], A @ e[-1] + d.ravel()
    last = [m.full() for m in numbers(problem, data, end_blocks)]
    S.append(x_S), e.append(x_e), blocks.append(last)
    H = sum(s.T @ b[2] @ s for s, b in zip(S, blocks, strict=True))
    g = sum(s.T @ (b[2] @ o + b[3].ravel()) for s, o, b in zip(S, e, blocks, strict=True))
    rows = [
        (b[4] @ s, b[5].ravel() - b[4] @ o, b[6].ravel() - b[4] @ o)
        for s, o, b in zip(S, e, blocks, strict=True)
    ]
    return S[:-1], e[:-1], H, g, *(np.concatenate(part) for part in zip(*rows, strict=True))


def prices_of(problem):
    return np.vstack([np.tile(problem.inside.prices, (N, 1)), problem.at_end.prices])


def solve_whole(problem, data, first):
    """Return z of all intervals, by quadprog, from the columns as they are written above."""
    S, e, H, g, G, low, high = condensed(problem, data, first)
    prices = prices_of(problem)
    soft = np.flatnonzero(np.isfinite(prices[:, 0]))
    n, s = N * problem.nu, soft.size
    whole = np.block([[H, np.zeros((n, s))], [np.zeros((s, n)), np.diag(prices[soft, 1])]])
    slope = np.r_[g, prices[soft, 0]]
    E = np.eye(len(G))[:, soft]
    C = np.vstack([np.hstack([G, E]), np.hstack([-G, E]), np.hstack([np.zeros((s, n)), np.eye(s)])])
    b = np.r_[low, -high, np.zeros(s)]
    kept = b > -UNBOUNDED / 2
    u = quadprog.solve_qp(whole, -slope, C[kept].T, b[kept])[0][:n]
    return np.concatenate([s @ u + o for s, o in zip(S, e, strict=True)])


def least_violation(problem, data, first):
    """Return the least t by which all hard rows must be violated, by HiGHS."""
    *_, G, low, high = condensed(problem, data, first)
    hard = np.isinf(prices_of(problem)[:, 0]) & (np.abs(low) < UNBOUNDED / 2)
    G, low, high = G[hard], low[hard], high[hard]
    by_t = -np.ones((len(G), 1))
    rows = np.vstack([np.hstack([G, by_t]), np.hstack([-G, by_t])])
    slope = np.r_[np.zeros(G.shape[1]), 1.0]
    sides = [(None, None)] * G.shape[1] + [(0, None)]
    return linprog(slope, rows, np.r_[high, -low], bounds=sides).fun


def controller_of(problem, name):
    """Return (x0, ref, z) → (u, …): u is z of all intervals, ref the data, z multipliers.

    Its flags are the costates.
    """
    x0, ref = ca.MX.sym("x0", problem.nx), ca.MX.sym("ref", problem.size)
    z, prepared = ca.MX.sym("z", problem.m), ca.MX.sym("prepared", 1 + problem.size)
    given = [x0, ref, z]
    known = [ca.vertcat(1, ref), z]
    prepare = ca.Function("prepare", [ref, z], known, ["ref", "z"], ["prepared", "lam0"])
    names, empty = ["x0", "ref", "z", "prepared"], ca.MX(0, 1)
    outs = ["x_first", "carry"]
    build = ca.Function("build", [*given, prepared], [x0, empty], names, outs)
    carry, x = ca.MX.sym("carry", 0), ca.MX.sym("x", problem.n)
    lam, active, flag = (
        ca.MX.sym(k, n) for k, n in (("lam_a", problem.m), ("active", problem.m), ("flag", 1))
    )
    answer = judged(problem, prepared[1:], x0, x, lam)
    status = judge(answer.residual, flag=flag, valid=ca.MX(1), tolerance=1e-6)
    outputs = [x, lam, status, ca.vec(answer.costates), answer.residual]
    of_finish = [*given, prepared, carry, x, lam, active, flag]
    labels = [*names, "carry", "x", "lam_a", "active", "flag"]
    called = ["u", "z_next", "status", "flags", "residual"]
    finish = ca.Function("finish", of_finish, outputs, labels, called)
    stages = LeastDistanceStages(build, finish, prepare, horizon=problem)
    function = controller_fun(name, stages, "daqp")
    sizes = {key: function.numel_in(key) for key in ("x0", "ref", "z")}
    sizes |= {key: function.numel_out(key) for key in called}
    signals = {
        key: Signal(key, tuple(f"{key}{i}" for i in range(n)), ("",) * n)
        for key, n in sizes.items()
    }
    u = np.full(problem.n, np.inf)
    return Controller(
        name=name, function=function, inputs=tuple(signals[k] for k in ("x0", "ref", "z")),
        outputs=tuple(signals[k] for k in called), u_min=-u, u_max=u, z0=np.zeros(problem.m),
        period=0.1, stages=stages,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["rotations, multipliers", "rotations, further rates"])
@pytest.mark.long
def test_responses_of_changed_rows_give_what_new_factors_give(kind, tmp_path, monkeypatch):
    problem, rng = KINDS[kind], np.random.default_rng(3)
    controller = controller_of(problem, "drawn")
    by_responses = export_c(controller, tmp_path / "c").load()
    monkeypatch.setattr(stagewise_c, "RANK", 1)
    by_factors = export_c(controller, tmp_path / "factors").load()
    for _ in range(PROBLEMS):
        data, first = data_of(problem, rng, tight=0.1)
        start = rng.standard_normal(problem.m)  # of rows that are far from the active ones
        z, lam, status, *_ = by_responses(first, data, start)
        z_new, lam_new, status_new, *_ = by_factors(first, data, start)
        assert int(status) == int(status_new) == 0
        for pair in ((z, z_new), (lam, lam_new)):
            found, expected = (part.full() for part in pair)
            size = max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(found, expected, atol=SAME * size)


def least_cost(problem, data, first):
    """Return the cost of the solution by quadprog, with the least slacks."""
    best, total = solve_whole(problem, data, first), 0.0
    z = [*best.reshape(N, problem.nz)]
    blocks = [
        [m.full() for m in numbers(problem, data[k * problem.column_size :][: problem.column_size])]
        for k in range(N)
    ]
    z.append(blocks[-1][0] @ z[-1] + blocks[-1][1].ravel())
    blocks.append([m.full() for m in numbers(problem, data, end_blocks)])
    prices = [problem.inside.prices] * N + [problem.at_end.prices]
    for x, (_, _, H, g, G, low, high), price in zip(z, blocks, prices, strict=True):
        soft, value = np.isfinite(price[:, 0]), G @ x
        slack = np.fmax(np.fmax(value - high.ravel(), low.ravel() - value), 0)[soft]
        linear, quadratic = price[soft].T
        total += x @ H @ x / 2 + g.ravel() @ x + linear @ slack + quadratic @ slack**2 / 2
    return total


@pytest.mark.parametrize("kind", ["states alone", "positions and rates"])
@pytest.mark.every(2)
def test_costates_are_what_a_gap_costs(kind, tmp_path):
    problem, rng, step = KINDS[kind], np.random.default_rng(2), 1e-5
    controller = controller_of(problem, "drawn")
    in_c = export_c(controller, tmp_path / "c").load()
    name = "d_a" if problem.na else "d_b"  # of positions a gap moves nothing else
    for _ in range(4):
        data, first = data_of(problem, rng, tight=1.0)
        costates = np.array(in_c(first, data, np.zeros(problem.m))[3]).reshape(N, problem.nx)
        size = np.abs(costates).max()
        for k in range(N):
            place = k * problem.column_size + problem.column[name].start
            moved = np.zeros_like(data)
            moved[place] = step
            change = [least_cost(problem, data + side * moved, first) for side in (1, -1)]
            rate = (change[0] - change[1]) / (2 * step)
            assert costates[k, 0] == pytest.approx(rate, abs=1e-4 * size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.every(3)
def test_the_c_the_plugin_and_the_dense_problem_agree_cold_and_warm(kind, tmp_path):
    problem, rng = KINDS[kind], np.random.default_rng(1)
    controller = controller_of(problem, "drawn")
    in_c = export_c(controller, tmp_path / "c").load()
    for i in range(PROBLEMS):
        data, first = data_of(problem, rng, tight=(1.0, 0.1)[i % 2])
        best = solve_whole(problem, data, first)
        size = max(1.0, np.abs(best).max())
        start = np.zeros(problem.m)
        for _ in range(2):  # cold, then from the solution
            z, start, status, _, residual = in_c(first, data, start)
            assert int(status) == 0, residual
            np.testing.assert_allclose(np.array(z).ravel(), best, atol=1e-6 * size)
        if i % 10 == 0:
            z = controller.function(first, data, np.zeros(problem.m))[0]
            np.testing.assert_allclose(np.array(z).ravel(), best, atol=1e-5 * size)
    proven, contradict = 0, 0
    for i in range(PROBLEMS):  # bounds that are moved: HiGHS says which contradict each other
        data, first = data_of(problem, rng, tight=1.0)
        moved_bounds(problem, data, rng, by=(0.3, 1.0, 3.0, 10.0)[i % 4])
        worst = least_violation(problem, data, first)
        status = int(in_c(first, data, np.zeros(problem.m))[2])
        if worst > 1e-9:
            contradict += 1
            proven += status == Status.INFEASIBLE
            assert status >= Status.INFEASIBLE
        else:
            assert status == Status.SOLVED
    assert 0 < contradict < PROBLEMS
    # without bounds of controls a proof needs a multiplier that no control within 1e6 changes
    assert proven == contradict if "bounded" in kind else proven > 0
