"""A thousand states: no wrong answer of the C is reported as right."""

import numpy as np
import pytest
from support.mpc_mechanisms import balance, cart_pole
from support.peer_qp import solve_qp

import mbcasadi as mb
from mbcasadi import mpc

STATES = 250  # of each kind
SAME_QP = 1e-6  # rows hold to 1e-11 of multipliers that a price in km/s makes 1e3, in a flat cost


PRICES = {
    "hard": {},
    "soft": {"linear_penalty": 2.0, "quadratic_penalty": 10.0},
    "cheap": {"linear_penalty": 0.02},
    "dear": {"linear_penalty": 100.0},
    "dear, in km/s": {"linear_penalty": 3e4},
}


def iteration(kind):
    system = cart_pole(upright=True)
    s = mpc.stage_symbols(system)
    unit = 1e-3 if "km" in kind else 1.0
    speed = unit * (s.v[0] + 0.02 * s.u)
    rows = [
        mpc.Bounded(speed, -1.5 * unit, 1.5 * unit, name="speed", **PRICES[kind]),
        mpc.Bounded(s.v[1], -0.5, 0.5, at_end=True),
    ]
    given = {"path": rows, "S": 1e-3, "du_bounds": [[-8, 8]], "symbols": s}
    return mpc.real_time_iteration(balance(system=system, **given), shift=False)


def nearest(A, lower, upper):
    """Return the point of `lower <= A x <= upper` nearest to zero, None where there is none.

    Rows get unit length: the peer's tolerance is absolute.
    """
    size = np.linalg.norm(A, axis=1)
    on = size > 1e-12
    ends = (np.where(np.abs(x) < 1e29, x, np.sign(x) * np.inf)[on] for x in (lower, upper))
    rows = A[on] / size[on, None], *(end / size[on] for end in ends)
    return solve_qp(np.eye(A.shape[1]), np.zeros(A.shape[1]), rows)[0]


@pytest.mark.parametrize("kind", PRICES)
@pytest.mark.every(6)
def test_no_wrong_solution_of_a_thousand_is_called_right(kind, tmp_path):
    rti, rng = iteration(kind), np.random.default_rng(5)
    law = mb.export_c(rti, tmp_path / "c").load().map(STATES)
    x = rng.uniform([-1, -0.4, -1.5, -1.5], [1, 0.4, 1.5, 1.5], (STATES, 4)).T
    ref = np.tile(rti.ocp.parameters().ravel()[:, None], STATES)
    z = np.tile(rti.controller.z0[:, None], STATES)
    moved = sum(rti.memory.sizes[:3])
    z[:moved] += 0.05 * rng.standard_normal((moved, STATES))
    z[moved:] = rng.integers(-1, 2, z[moved:].shape)  # any active set to begin with
    _, z_next, status, *_ = law(x[:2], x[2:], ref, z)
    stages = rti.controller.stages
    actual = stages.problem().map(STATES)(x[:2], x[2:], ref, z)
    A, lower, upper, prepared = (np.array(actual[i]) for i in (0, 1, 2, 5))
    sizes, statuses = (STATES, stages.n), np.array(status).ravel()
    expected, feasible = np.zeros(sizes), np.zeros(STATES, dtype=bool)
    for i in range(STATES):
        answer = nearest(A[:, i * stages.n : (i + 1) * stages.n], lower[:, i], upper[:, i])
        feasible[i] = answer is not None
        expected[i] = 0.0 if answer is None else answer
    none = np.zeros((0, STATES))
    lam, flag = np.zeros((stages.m, STATES)), np.ones((1, STATES))
    finish = stages.finish.map(STATES)
    by_peer = finish(x[:2], x[2:], ref, z, prepared, none, expected.T, lam, lam, flag)
    plans = [np.array(one)[: sum(rti.memory.sizes[:2])] for one in (z_next, by_peer[1])]
    right = statuses == 0
    assert np.all(feasible[right])
    np.testing.assert_allclose(plans[0][:, right], plans[1][:, right], atol=SAME_QP)
    assert np.mean(right[feasible]) > 0.999
    assert set(statuses[~feasible]) <= {2, 4}
    assert 0.1 < feasible.mean() < (0.99 if kind == "hard" else 1.01)
