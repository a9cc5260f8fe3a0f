"""Steps on the manifold: order, closure, derivatives, impacts, clocks, generated C."""

import casadi as ca
import numpy as np
import pytest
from support.compiled import compiled
from support.mpc_mechanisms import coupled_carts

import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.mpc.integrators.manifold_step import back_fun
from mbcasadi.mpc.integrators.step import discrete_dynamics, step_fun
from mbcasadi.mpc.integrators.step_options import StepOptions
from mbcasadi.simulation import simulate
from mbcasadi.system import from_lagrangian, read_mjcf

TUMBLING = """<mujoco><worldbody><body><joint type="free"/>
<geom type="box" size=".1 .2 .3" mass="2"/><body pos=".3 0 0">
<joint type="ball" damping=".1"/><geom type="box" pos=".2 0 0" size=".2 .05 .02" mass="1"/>
</body></body></worldbody></mujoco>"""
CLOSED = 1e-10  # two Newton steps square the gap of the method twice


@pytest.fixture(scope="module")
def four_bar():
    return read_mjcf(models.path("pendulum_on_four_bar"))


@pytest.fixture(scope="module")
def tumbling():
    system = read_mjcf(TUMBLING)
    rng = np.random.default_rng(2)
    q = system.integrate(system.tree.q0, rng.standard_normal(9)).full().ravel()
    return system, q, rng.standard_normal(9)


def simulate_steps(system, x, duration, steps, **options):
    step = discrete_dynamics(system, duration / steps, StepOptions(**options))
    for _ in range(steps):
        x = step(x, np.zeros(system.nu), []).full().ravel()
    return x


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.every(3)
def test_the_error_of_a_step_shrinks_with_its_order_for_turning_bodies_too(tumbling, order):
    system, q, v = tumbling
    end = simulate(system, q, v, 0.2, times=[0.0, 0.2])
    exact = np.concatenate([end.q[-1], end.v[-1]])
    errors = [
        np.abs(simulate_steps(system, np.concatenate([q, v]), 0.2, n, order=order) - exact).max()
        for n in (32, 64)
    ]
    assert errors[1] > 1e-11  # above rounding and the reference
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.2)


def test_substeps_are_steps(tumbling):
    system, q, v = tumbling
    x = np.concatenate([q, v])
    np.testing.assert_allclose(
        simulate_steps(system, x, 0.1, 1, substeps=2), simulate_steps(system, x, 0.1, 2), atol=1e-13
    )


def test_redundant_loops_stay_closed_along_a_step_and_open_without_newton(four_bar):
    x = np.concatenate([four_bar.tree.q0, np.zeros(4)])
    u = [1.0]
    gaps = {}
    for newton in (0, 2):
        step, now, worst = discrete_dynamics(four_bar, 0.01, StepOptions(newton=newton)), x, 0.0
        for _ in range(20):
            now = step(now, u, []).full().ravel()
            slip = four_bar.constraint_jacobian(now[:4]) @ now[4:]
            open_by = ca.norm_inf(ca.densify(four_bar.constraint(now[:4])))
            worst = max(worst, float(open_by), float(ca.norm_inf(slip)))
        gaps[newton] = worst
    assert gaps[0] > 1e-6
    assert gaps[2] < CLOSED


def test_carts_that_a_mask_couples_keep_their_momentum():
    step = step_fun(coupled_carts(), 0.1)
    free = step(q=[0, 0], v=[2, 0], u=0, mask=[0])
    np.testing.assert_allclose(free["v_next"].full().ravel(), [2, 0], atol=1e-14)
    coupled = step(q=[0, 0], v=[2, 0], u=0, mask=[1])
    np.testing.assert_allclose(coupled["v_next"].full().ravel(), [0.5, 0.5], atol=1e-14)
    np.testing.assert_allclose(coupled["q_next"].full().ravel(), [0.05, 0.05], atol=1e-14)


def test_a_row_that_moves_with_time_is_followed():
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    system = from_lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, phi=q[0] - ca.sin(t), t=t)
    step = discrete_dynamics(system, 0.1, StepOptions(substeps=2))
    x, expected = [np.sin(0.3), 1, np.cos(0.3), 2], [np.sin(0.4), 1.2, np.cos(0.4), 2.0]
    np.testing.assert_allclose(step(x, [], 0.3).full().ravel(), expected, atol=1e-12)
    drifting = discrete_dynamics(system, 0.1, StepOptions(newton=0))
    np.testing.assert_allclose(drifting(x, [], 0.3).full().ravel(), expected, atol=1e-6)


def test_the_way_back_reaches_the_manifold_from_a_drifted_state(four_bar):
    rng = np.random.default_rng(3)
    q, v = four_bar.tree.q0 + 1e-3 * rng.standard_normal(4), rng.standard_normal(4)
    assert np.abs(four_bar.constraint(q).full()).max() > 1e-5
    back = back_fun(four_bar)(q=q, v=v)
    q_next, v_next = (back[name].full().ravel() for name in ("q_next", "v_next"))
    assert np.abs(four_bar.constraint(q_next).full()).max() < CLOSED
    assert np.abs((four_bar.constraint_jacobian(q_next) @ v_next).full()).max() < CLOSED


def test_the_generated_c_takes_the_same_step(four_bar, tmp_path):
    step = discrete_dynamics(four_bar, 0.02)
    loaded = compiled(step, tmp_path)
    x = np.concatenate([four_bar.tree.q0, np.zeros(4)])
    for _ in range(5):
        actual, expected = loaded(x, [3.0], []), step(x, [3.0], [])
        np.testing.assert_allclose(actual, expected, atol=1e-13)
        x = expected.full().ravel()


@pytest.mark.parametrize(("options", "message"), [
    ({"order": 5}, "unknown order '5'; valid: '1', '2', '3', '4'"),
    ({"substeps": 0}, "substeps = 0"), ({"newton": -1}, "newton = -1"),
    ({"rank_tol": 1.0}, "rank_tol is 1.0"), ({"row_scale": -1.0}, "row_scale is -1.0"),
])  # fmt: skip
def test_a_step_that_makes_no_sense_is_refused(options, message):
    with pytest.raises(err.MbcasadiError, match=message):
        StepOptions(**options)


@pytest.mark.parametrize("period", [0.0, np.nan])
def test_a_period_that_is_not_positive_is_refused(four_bar, period):
    with pytest.raises(err.ProblemError, match=f"period = {period}; expected a (positive )?number"):
        step_fun(four_bar, period)


def test_activation_states_are_refused_by_name():
    model = """<mujoco><worldbody><body><joint name="a"/><geom size=".1"/></body></worldbody>
    <actuator><general joint="a" dyntype="filter" dynprm="0.1"/></actuator></mujoco>"""
    with pytest.raises(err.ProblemError, match="1 activation states"):
        step_fun(read_mjcf(model), 0.01)
