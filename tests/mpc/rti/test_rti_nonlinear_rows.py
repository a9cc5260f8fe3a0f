"""Nonlinear rows, hard and soft: ticks at one state end at the whole problem's optimum; the C."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from support.mpc_mechanisms import cart_pole
from support.problems import problem

import mbcasadi.errors as err
from mbcasadi.codegen import export_c
from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.mpc.ocp.make_problem import optimal_control_problem
from mbcasadi.mpc.ocp.solution import initial_guess
from mbcasadi.mpc.ocp.solver import solve_ocp
from mbcasadi.mpc.ocp.stage import stage_symbols
from mbcasadi.mpc.ocp.stage_bounds import StageBounds
from mbcasadi.mpc.rti.controller import real_time_iteration
from mbcasadi.mpc.rti.linearise import linearised
from mbcasadi.qp.rows import Bounded

SAME_OPTIMUM = 1e-5
SAME_C = 1e-8
UPRIGHT = np.array([0, np.pi, 0, 0])
N = 40


def swing_up(price=20.0, **given):
    """Return a swing-up whose bob keeps clear of a wall, at a price for power above 12 W."""
    system = cart_pole()
    s = stage_symbols(system)
    bob = s.q[0] + 0.5 * ca.sin(s.q[1])
    rows = [
        Bounded(bob, -0.75, 0.75, name="wall"),
        Bounded(s.u * s.v[0], upper=12.0, linear_penalty=price, name="power"),
    ]
    lean = Bounded(s.q[1], 3.1, 3.2, quadratic_penalty=1e3, name="lean")
    return problem(
        system,
        N,
        0.05,
        Q=[0.1, 1, 0.01, 0.01],
        R=0.05,
        Q_end=[200, 200, 20, 20],
        symbols=s,
        path=rows,
        end=[Bounded(s.q[0], 0.01, 0.01, name="place"), lean],
        **given,
    )


def setpoint_of(ocp):
    return ocp.parameters(setpoint_q=UPRIGHT[:2])


def tick(law, x, ref, z):
    return [np.array(out).ravel() for out in law(x[:2], x[2:], ref, z)]


@pytest.fixture(scope="module")
def hanging():
    """Return the problem and its optimum from rest below."""
    ocp = swing_up()
    straight = initial_guess(ocp, np.linspace(np.zeros(4), UPRIGHT, N + 1), np.zeros((N, 1)))
    best = solve_ocp(ocp, np.zeros(4), setpoint_of(ocp), straight)
    assert best.solved, best.in_words
    return ocp, best


@pytest.mark.parametrize("price", [0.004, 20.0])
def test_ticks_at_one_state_end_at_the_optimum_with_nonlinear_rows_active(hanging, price):
    ocp, x0 = swing_up(price), np.array([0.02, 0.05, 0.0, 0.0])
    begin = solve_ocp(ocp, np.zeros(4), setpoint_of(ocp), hanging[1])
    best = solve_ocp(ocp, x0, setpoint_of(ocp), begin)
    assert best.solved, best.in_words
    rti = real_time_iteration(ocp, begin, shift=False)
    z, ref, misses = rti.controller.z0, setpoint_of(ocp).ravel(), []
    for _ in range(120):
        _, z, status, *_ = tick(rti.function, x0, ref, z)
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


def test_the_c_equals_the_function_with_rows_rates_and_delay(hanging, tmp_path):
    ocp = swing_up(S=0.01, du_bounds=[[-6, 6]])
    best = hanging[1]
    guess = replace(best, x=np.hstack([best.x, np.vstack([[0.0], best.u])]))
    rti = real_time_iteration(ocp, guess, delay=1, name="rowed")
    law = export_c(rti, tmp_path / "c").load(flags=("-O0",))
    rng, x, z, ref = (
        np.random.default_rng(0),
        np.zeros(4),
        rti.controller.z0,
        setpoint_of(ocp).ravel(),
    )
    kept, statuses = ocp.nx * (N + 1) + N + 1, []
    for _ in range(30):
        one, other = tick(rti.function, x, ref, z), tick(law, x, ref, z)
        np.testing.assert_allclose(other[0], one[0], atol=SAME_C)
        np.testing.assert_allclose(other[1][:kept], one[1][:kept], atol=SAME_C)
        assert one[2] == other[2]
        statuses.append(int(one[2][0]))
        z, pending = other[1], rti.memory.split(ca.DM(z)).pending[0, 0]
        x = ocp.dynamics(np.append(x, 0), pending, setpoint_of(ocp)[0]).full().ravel()[:4]
        x += 1e-3 * rng.standard_normal(4)
    assert statuses.count(0) > 25


@pytest.mark.parametrize(
    ("start", "price", "expected"), [(0.4, 0.0, 2), (0.4, 1.0, 0), (0.31, 0.0, 0)]
)
def test_hard_rows_out_of_reach_give_the_plan(hanging, start, price, expected):
    """Nothing mends the first sample, and it does not count; the next one may be out of reach."""
    plan, system = hanging[1], cart_pole()
    s = stage_symbols(system)
    row = Bounded(s.q[0] + 0.2 * s.v[0], -0.3, 0.3, linear_penalty=price, name="lane")
    ocp = optimal_control_problem(system, N, 0.05, [Cost(Q=1.0, R=0.05), row], symbols=s)
    rti = real_time_iteration(ocp)
    x0, begin = (
        np.array([start, 0.1, 0.0, 0.0]),
        rti.z_from(plan) if expected else rti.controller.z0,
    )
    u, z, status, _, residual = tick(rti.function, x0, ocp.parameters().ravel(), begin)
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
        assert not solve_ocp(ocp, x0).solved


def test_a_row_without_sense_is_refused():
    system = cart_pole()
    s = stage_symbols(system)
    for given, message in (
        ({"linear_penalty": -1.0}, r"path\[0\]: linear_penalty = -1.0; expected a finite number"),
        ({"quadratic_penalty": np.nan}, "quadratic_penalty = nan"),
        ({"lower": 2.0, "upper": 1.0, "name": "gate"}, r"gate\[0\] is 2.0 to 1.0: empty"),
        ({"lower": np.nan}, r"path\[0\] has shape \(1, 2\), expected \(1, 2\), without NaN"),
    ):

        def problem(given=given):
            row = Bounded(s.q[0], **({"upper": 1.0} | given))
            return optimal_control_problem(system, N, 0.05, [Cost(R=1.0), row], symbols=s)

        with pytest.raises(err.MbcasadiError, match=message):
            problem()
    with pytest.raises(err.ProblemError, match=r"du\[0\] is 1.0 to -1.0: empty"):
        optimal_control_problem(system, N, 0.05, [Cost(R=1.0), StageBounds(du=[[1, -1]])])
    with pytest.raises(err.ProblemError, match="S has the eigenvalue -1"):
        optimal_control_problem(system, N, 0.05, [Cost(R=1.0, S=-1.0)])


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
