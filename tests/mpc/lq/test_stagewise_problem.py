"""A stagewise problem by its recursion, against the same with its states as unknowns."""

import casadi as ca
import numpy as np
import pytest
import quadprog

from mbcasadi.mpc.lq.horizon import Candidate, End, Horizon, Phase
from mbcasadi.mpc.lq.interval import BoundedValues, Interval, recursion
from mbcasadi.mpc.lq.rows import HorizonRows, StageRows
from mbcasadi.mpc.lq.sparse import SparseStage, balanced_units, solve_sparse, sparse_qp
from mbcasadi.mpc.ocp.constraints import row_set

NX, STATES = 3, (1,)
PHASES = {"one": ((4, 2),), "two sizes": ((3, 2), (2, 1))}  # intervals, and controls of each
SAME = 1e-8
HARD = (np.inf, np.inf)


def interval_of(rng, nu):
    """Return an interval with two values, one of them soft, and what it bounds."""
    root = rng.standard_normal((NX + nu, NX + nu))
    H = root.T @ root + np.eye(NX + nu)
    blocks = {"A": np.eye(NX) + 0.2 * rng.standard_normal((NX, NX)), "Q": H[:NX, :NX]}
    blocks |= {"B": rng.standard_normal((2, nu)), "E": rng.standard_normal((NX, 2))}
    blocks |= {"S": H[:NX, NX:], "R": H[NX:, NX:], "d": 0.1 * rng.standard_normal(NX)}
    blocks |= {"q": rng.standard_normal(NX), "r": rng.standard_normal(nu)}
    blocks |= {"G_x": rng.standard_normal((2, NX)), "G_u": rng.standard_normal((2, nu))}
    blocks["g"] = 0.1 * rng.standard_normal(2)
    limits = np.array([*([-0.5, 0.5],) * nu, [-1.0, 0.6], [-0.4, 0.4], [-0.3, 0.3]])
    prices = np.array([*(HARD,) * (nu + 1), (0.5, 2.0), (0.0, 8.0)])
    return blocks, BoundedValues(controls=True, states=STATES, rows=row_set(limits, prices))


def end_of(rng):
    root, g = rng.standard_normal((NX, NX)), rng.standard_normal((1, NX))
    limits, price = np.array([[-0.2, 0.2]]), np.array([[1.0, 3.0]])
    return root.T @ root, rng.standard_normal(NX), g, row_set(limits, price)


def both(case, in_loops=True):
    """Return the horizon with its columns and end, and the stages of the sparse form."""
    rng = np.random.default_rng(3)
    sizes = [count * nu for count, nu in PHASES[case]]
    phases, rows, stages = [], [], []
    for i, (count, nu) in enumerate(PHASES[case]):
        blocks, bounded = interval_of(rng, nu)
        numbers = {key: ca.DM(part) for key, part in blocks.items()}

        def make(kind, numbers=numbers):
            return Interval((kind.sym("d", NX),), **{k: kind(part) for k, part in numbers.items()})

        columns = (sum(sizes[:i]), count, sum(sizes[i + 1 :])) if in_loops else None
        phases.append(Phase(count, nu, bounded, recursion(make, bounded, columns)))
        labels = (*(f"u{j}" for j in range(nu)), "x1", "priced", "sprung")
        rows.append(StageRows(count, bounded.rows, labels))
        stages += [SparseStage(Interval((), **numbers), bounded)] * count
    P, p, G, of_end = end_of(rng)
    horizon = Horizon(
        NX, tuple(phases), HorizonRows(sum(sizes), (*rows, StageRows(1, of_end, ("end",))))
    )
    end = End(ca.MX(ca.DM(np.c_[P, p])), ca.MX(ca.DM(np.c_[G, [0.0]])))
    none = ca.DM(NX, 0)
    last = Interval(
        (), A=ca.DM.eye(NX), B=none, d=ca.DM(NX, 1), Q=ca.DM(P), S=none, R=ca.DM(0, 0),
        q=ca.DM(p), r=ca.DM(0, 1), G_x=ca.DM(G), G_u=ca.DM(1, 0), g=ca.DM(1, 1),
    )  # fmt: skip
    stages.append(SparseStage(last, BoundedValues(controls=False, states=(), rows=of_end)))
    return horizon, [(ca.MX.zeros(NX, count),) for count, _ in PHASES[case]], end, stages


def numbers(*expressions):
    return [np.array(ca.evalf(ca.densify(ca.MX(part)))) for part in expressions]


def least_distance(A, lower, upper):
    """Return x and multipliers of `min ½ |x|²`, in the signs of a QP's `lam_a`."""
    C = np.vstack([A, -A]).T
    solution = quadprog.solve_qp(np.eye(A.shape[1]), np.zeros(A.shape[1]), C, np.r_[lower, -upper])
    below, above = np.split(solution[4], 2)
    return solution[0], above - below


def solve_by_recursion(problem, x_0):
    horizon, columns, end, _ = problem
    rows, gains = horizon.rows, horizon.gains(end.cost, columns)
    still = horizon.motion(x_0, ca.MX.zeros(rows.nw), columns, gains)
    lower, upper = rows.limits(rows.rows(horizon.values(still, columns, end.rows)))
    A, lower, upper = numbers(horizon.matrix(columns, gains, end.rows), lower, upper)
    x, lam = least_distance(A, lower.ravel(), upper.ravel())

    def residual(x, lam):
        motion = horizon.motion(x_0, ca.DM(x[: rows.nw]), columns, gains)
        values, e = horizon.values(motion, columns, end.rows), rows.slacks(ca.DM(x[rows.nw :]))
        found = Candidate(motion, values, e, ca.MX(ca.DM(lam)))
        return numbers(horizon.residuals(found, columns, end)[0])[0].ravel()

    motion = horizon.motion(x_0, ca.DM(x[: rows.nw]), columns, gains)
    controls = np.concatenate([part.T.ravel() for part in numbers(*motion.U)])
    return controls, numbers(motion.X)[0], (x, lam), residual


@pytest.mark.parametrize("case", PHASES)
def test_recursion_and_states_as_unknowns_are_one_problem(case):
    problem = both(case)
    active = 0
    for seed in range(10):
        x_0 = ca.MX(ca.DM(np.random.default_rng(seed).standard_normal(NX)))
        qp = sparse_qp(x_0, problem[3])
        units = balanced_units(qp, []) if seed % 2 else None
        w, residual = (part.ravel() for part in numbers(*solve_sparse(qp, "proxqp", units)))
        if residual[0] > SAME:
            continue  # hard bounds of a state that no control holds
        u, X, (x, lam), check = solve_by_recursion(problem, x_0)
        np.testing.assert_allclose(u, np.concatenate([w[part] for part in qp.controls]), atol=1e-6)
        np.testing.assert_allclose(
            X[:, 1:].T.ravel(), np.r_[tuple(w[s] for s in qp.states)], atol=1e-6
        )
        assert check(x, lam).max() < SAME
        assert check(x + 1e-3, lam)[1] > 1e-5
        assert check(x, lam * 1.01 + 1e-3)[1:].min() > 1e-6
        active += np.count_nonzero(lam)
    assert active > 20


def test_blocks_and_loops_give_the_same_rows():
    derived = []
    for in_loops in (True, False):
        horizon, columns, end, _ = both("one", in_loops)
        gains = horizon.gains(end.cost, columns)
        derived.append(numbers(*gains, horizon.matrix(columns, gains, end.rows)))
    for loops, blocks in zip(*derived, strict=True):
        np.testing.assert_allclose(blocks, loops, atol=1e-12)


def test_an_active_set_is_shifted_row_by_row_inside_its_stage():
    rows = both("two sizes")[0].rows
    shifted = dict(zip(rows.names, [rows.names[i] for i in rows.later], strict=True))
    assert shifted["u0[1]"] == "u0[2]"
    assert shifted["u0[2]"] == "u0[2]"  # the next interval has other controls
    assert shifted["u0[3]"] == "u0[4]"
    assert shifted["priced.upper[0]"] == "priced.upper[1]"
    assert shifted["slack.priced[3]"] == "slack.priced[4]"
    assert shifted["end.lower[5]"] == "end.lower[5]"
