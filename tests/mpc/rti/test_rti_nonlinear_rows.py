"""Nonlinear rows, hard and soft: ticks at one state end at the whole problem's optimum."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from support.linear_mpc_cases import row_values
from support.mpc_mechanisms import cart_pole, swing_up

import mbcasadi.errors as err
from mbcasadi import mpc
from mbcasadi.mpc.rti.linearise import linearised
from mbcasadi.qp.rows import Bounded

SAME_OPTIMUM = 1e-5
N = 40


def with_wall(price=20.0, **given):
    """Return a swing-up whose bob keeps clear of a wall, at a price for power above 12 W."""
    system = cart_pole()
    s = mpc.stage_symbols(system)
    bob = s.q[0] + 0.5 * ca.sin(s.q[1])
    rows = [
        mpc.Bounded(bob, -0.75, 0.75, name="wall"),
        mpc.Bounded(s.u * s.v[0], upper=12.0, linear_penalty=price, name="power"),
    ]
    ends = [
        mpc.Bounded(s.q[0], 0.01, 0.01, name="place"),
        mpc.Bounded(s.q[1], 3.1, 3.2, quadratic_penalty=1e3, name="lean"),
    ]
    rows = {"path": rows, "end": ends, "symbols": s, "system": system}
    return swing_up(horizon=N, period=0.05, **rows, **given)


@pytest.fixture(scope="module")
def hanging():
    """Return the problem and its optimum from rest below."""
    ocp, p, straight = with_wall()
    best = mpc.solve_ocp(ocp, np.zeros(4), p, straight)
    assert best.solved, best.in_words
    return ocp, best


@pytest.mark.parametrize("price", [0.004, 20.0])
@pytest.mark.every(2)
def test_ticks_at_one_state_end_at_the_optimum_with_nonlinear_rows_active(hanging, price):
    (ocp, p, _), x0 = with_wall(price), np.array([0.02, 0.05, 0.0, 0.0])
    begin = mpc.solve_ocp(ocp, np.zeros(4), p, hanging[1])
    best = mpc.solve_ocp(ocp, x0, p, begin)
    assert best.solved, best.in_words
    rti = mpc.real_time_iteration(ocp, begin, shift=False)
    z, ref, misses = rti.controller.z0, p.ravel(), []
    for _ in range(120):
        _, z, status, *_ = row_values(rti.function(x0[:2], x0[2:], ref, z))
        assert status == 0
        misses.append(np.abs(rti.trajectory(z)[0] - best.x).max())
    assert misses[0] > 1e2 * SAME_OPTIMUM
    assert misses[-1] < SAME_OPTIMUM
    x, u = rti.trajectory(z)
    np.testing.assert_allclose(u, best.u, atol=100 * SAME_OPTIMUM)  # the flat direction of the cost
    bob, power = x[:N, 0] + 0.5 * np.sin(x[:N, 1]), u[:, 0] * x[:N, 2]
    assert np.abs(bob).max() == pytest.approx(0.75, abs=SAME_OPTIMUM)
    assert x[-1, 0] == pytest.approx(0.01, abs=SAME_OPTIMUM)
    said = " ".join(rti.violations(z))
    assert ("power" in said) == (price < 1)
    assert power.max() == pytest.approx(12.0, abs=1e-3) if price > 1 else power.max() > 12.2


@pytest.mark.parametrize(
    ("start", "price", "expected"), [(0.4, 0.0, 2), (0.4, 1.0, 0), (0.31, 0.0, 0)]
)
def test_hard_rows_out_of_reach_give_the_plan(hanging, start, price, expected):
    """Nothing mends the first sample, and it does not count; the next one may be out of reach."""
    plan, system = hanging[1], cart_pole()
    s = mpc.stage_symbols(system)
    row = Bounded(s.q[0] + 0.2 * s.v[0], -0.3, 0.3, linear_penalty=price, name="lane")
    ocp = mpc.optimal_control_problem(system, N, 0.05, [mpc.Cost(Q=1.0, R=0.05), row], symbols=s)
    rti = mpc.real_time_iteration(ocp)
    begin = rti.z_from(plan) if expected else rti.controller.z0
    given = [start, 0.1], [0.0, 0.0], ocp.parameters().ravel(), begin
    u, z, status, _, residual = row_values(rti.function(*given))
    assert status == expected
    assert np.all(np.isfinite(residual))
    x, controls = rti.trajectory(z)
    if expected:
        np.testing.assert_allclose(u, plan.u[0])
        np.testing.assert_array_equal(controls[:-1], plan.u[1:])
    elif not price:
        lane = x[: N - 1, 0] + 0.2 * x[: N - 1, 2]
        assert lane.max() < 0.3 + 1e-7
        assert lane[0] == pytest.approx(0.3, abs=1e-7)
        assert not mpc.solve_ocp(ocp, [start, 0.1, 0, 0]).solved


def test_a_row_without_sense_is_refused():
    system = cart_pole()
    s = mpc.stage_symbols(system)
    for given, message in (
        ({"linear_penalty": -1.0}, r"path\[0\]: linear_penalty = -1.0; expected a finite number"),
        ({"quadratic_penalty": np.nan}, "quadratic_penalty = nan"),
        ({"lower": 2.0, "upper": 1.0, "name": "gate"}, r"gate\[0\] is 2.0 to 1.0: empty"),
        ({"lower": np.nan}, r"path\[0\] has shape \(1, 2\), expected \(1, 2\), without NaN"),
    ):

        def problem(given=given):
            row = Bounded(s.q[0], **({"upper": 1.0} | given))
            return mpc.optimal_control_problem(system, N, 0.05, [mpc.Cost(R=1.0), row], symbols=s)

        with pytest.raises(err.MbcasadiError, match=message):
            problem()
    with pytest.raises(err.ProblemError, match=r"du\[0\] is 1.0 to -1.0: empty"):
        mpc.optimal_control_problem(
            system, N, 0.05, [mpc.Cost(R=1.0), mpc.StageBounds(du=[[1, -1]])]
        )
    with pytest.raises(err.ProblemError, match="S has the eigenvalue -1"):
        mpc.optimal_control_problem(system, N, 0.05, [mpc.Cost(R=1.0, S=-1.0)])


def test_an_active_set_is_handed_on_row_by_row(hanging):
    """Every row of the next tick begins as the same row of one interval later, if there is one."""
    free = replace(hanging[0], path_bounds=np.array([[-0.75, 0.75], [-20.0, 12.0]]))
    rows = linearised(free).horizon.rows
    names = rows.names
    assert len(names) == rows.m == len(set(names))
    for name, place in zip(names, rows.later, strict=True):
        row, k = name[:-1].rsplit("[", 1)
        later = f"{row}[{int(k) + 1}]"
        assert names[place] == (later if later in names else name)
