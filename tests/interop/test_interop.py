"""What other packages are handed is our motion: by value, by closure, by documented interface."""

import importlib
import sys
from types import SimpleNamespace

import casadi as ca
import interop_cases as cases
import numpy as np
import pytest
from interop_cases import PERIOD, QUIET, runge_kutta
from support.interop_stand_ins import FakeDoMpc, FakeOcp, as_function

import mbcasadi.errors as err
from mbcasadi.description import Baumgarte
from mbcasadi.interop import (
    continuous_dynamics,
    to_acados_model,
    to_do_mpc_model,
    to_opti,
    to_rockit,
)
from mbcasadi.mpc import DynamicsOptions, StepOptions, discrete_dynamics
from mbcasadi.simulation import simulate
from mbcasadi.system import read_mjcf

TUMBLING = """<mujoco><worldbody><body><joint type="free"/>
<geom type="box" size=".1 .2 .3" mass="2"/><body pos=".3 0 0">
<joint type="ball" damping=".1"/><geom type="box" pos=".2 0 0" size=".2 .05 .02" mass="1"/>
</body></body></worldbody></mujoco>"""
WITH_STATES = """<mujoco><worldbody><body><joint name="a"/><geom size=".1"/></body></worldbody>
<actuator><general joint="a" dyntype="filter" dynprm="0.1"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def four_bar():
    return cases.four_bar()


@pytest.fixture(scope="module")
def moving(four_bar):
    return cases.moving(four_bar)


@pytest.fixture(scope="module")
def rails():
    return cases.rails()


@pytest.fixture(scope="module")
def carts():
    return cases.carts()


def test_a_step_along_the_equation_is_our_own_and_opens_loops_by_the_error_of_the_method(
    four_bar, moving
):
    x, u = moving
    f = continuous_dynamics(four_bar)
    misses, gaps = [], []
    for h in (PERIOD / 2, PERIOD / 4):
        actual = runge_kutta(lambda x: f(x, u, []).full().ravel(), x, h)
        ours = discrete_dynamics(four_bar, h, StepOptions(newton=0))(x, u, []).full().ravel()
        np.testing.assert_allclose(actual, ours, atol=1e-13)
        closed = discrete_dynamics(four_bar, h)(x, u, []).full().ravel()
        misses.append(np.abs(actual - closed).max())
        gaps.append(np.abs(four_bar.constraint(actual[:4]).full()).max())
    assert misses[1] > 1e-9  # above rounding
    for errors in (misses, gaps):
        assert np.log2(errors[0] / errors[1]) == pytest.approx(5.0, abs=0.3)  # order 4, one step


def test_stabilisation_pulls_the_equation_back_to_closed_loops(four_bar, moving):
    x = moving[0] + np.concatenate([1e-4 * np.ones(4), np.zeros(4)])
    gaps = {}
    for name, rates in (("plain", None), ("pulled", Baumgarte(50.0, 50.0))):
        f, now = continuous_dynamics(four_bar, DynamicsOptions(baumgarte=rates)), x
        for _ in range(200):
            now = runge_kutta(lambda x, f=f: f(x, 0, []).full().ravel(), now, PERIOD / 5)
        gaps[name] = np.abs(four_bar.constraint(now[:4]).full()).max()
    assert gaps["plain"] > 1e-5
    assert gaps["pulled"] < 1e-8


def test_rates_of_quaternions_keep_their_length_and_follow_the_simulated_motion():
    system = read_mjcf(TUMBLING)
    rng = np.random.default_rng(2)
    q = system.integrate(system.tree.q0, rng.standard_normal(9)).full().ravel()
    v = rng.standard_normal(9)
    f = continuous_dynamics(system)
    x = np.concatenate([q, v])
    xdot = f(x, [], []).full().ravel()
    for at in (slice(3, 7), slice(7, 11)):
        assert np.abs(xdot[at]).max() > 0.1
        assert abs(xdot[at] @ q[at]) < 1e-14
    for _ in range(40):
        x = runge_kutta(lambda x: f(x, [], []).full().ravel(), x, 0.005)
    end = simulate(system, q, v, 0.2, times=[0.0, 0.2])
    np.testing.assert_allclose(x, np.concatenate([end.q[-1], end.v[-1]]), atol=1e-7)


def test_acados_gets_the_explicit_implicit_and_discrete_equations(four_bar, moving):
    x, u = moving
    model = to_acados_model(four_bar, period=PERIOD, model=SimpleNamespace(z=[], t=[]))
    assert model.name == "pendulum_on_four_bar"
    assert (model.x.shape, model.u.shape, model.xdot.shape) == ((8, 1), (1, 1), (8, 1))
    assert model.x.is_symbolic()
    assert (model.p, model.t, model.z) == ([], [], [])
    f = as_function(model.f_expl_expr, model.x, model.u)
    expected = continuous_dynamics(four_bar)(x, u, [])
    np.testing.assert_allclose(f(x, u), expected, atol=1e-14)
    implicit = as_function(model.f_impl_expr, model.x, model.xdot, model.u)
    np.testing.assert_allclose(implicit(x, expected, u), np.zeros((8, 1)), atol=1e-14)
    assert np.abs(implicit(x, 0, u).full()).max() > 0.1
    step = as_function(model.disc_dyn_expr, model.x, model.u)
    np.testing.assert_allclose(
        step(x, u), discrete_dynamics(four_bar, PERIOD)(x, u, []), atol=1e-14
    )


def test_acados_gets_masks_as_parameters_and_time_as_time(carts, rails):
    model = to_acados_model(carts, model=SimpleNamespace(t=[]))
    f = as_function(model.f_expl_expr, model.x, model.u, model.p)
    push = [f([0, 0, 1, 1], 2, mask).full().ravel()[2:] for mask in (0, 1)]
    np.testing.assert_allclose(push, [[2, 0], [0.5, 0.5]], atol=1e-14)
    model = to_acados_model(rails, model=SimpleNamespace())
    f = as_function(model.f_expl_expr, model.x, model.u, model.t)
    actual = f([np.sin(0.3), 1, np.cos(0.3), 2], 5, 0.3).full().ravel()
    np.testing.assert_allclose(actual, [np.cos(0.3), 2, -np.sin(0.3), 5], atol=1e-14)


def test_do_mpc_gets_states_inputs_and_right_hand_sides(four_bar, moving, carts, rails):
    x, u = moving
    model = to_do_mpc_model(four_bar, model=FakeDoMpc())
    assert model.done
    assert list(model.symbols) == [("_x", "q"), ("_x", "v"), ("_u", "u")]
    expected = continuous_dynamics(four_bar)(x, u, [])
    np.testing.assert_allclose(model.function(x[:4], x[4:], u), expected, atol=1e-14)
    model = to_do_mpc_model(carts, model=FakeDoMpc(), setup=False)
    assert not model.done
    assert ("_tvp", "mask") in model.symbols
    actual = model.function([0, 0], [1, 1], 2, 0).full().ravel()
    np.testing.assert_allclose(actual, [1, 1, 2, 0], atol=1e-14)
    model = to_do_mpc_model(rails, period=0.1, model=FakeDoMpc())
    actual = model.function([np.sin(0.3), 1], [np.cos(0.3), 2], 0, 0.3).full().ravel()
    np.testing.assert_allclose(actual, [np.sin(0.4), 1.2, np.cos(0.4), 2], atol=1e-12)


def test_rockit_gets_states_their_derivatives_masks_and_time(four_bar, moving, carts, rails):
    x, u = moving
    ocp = to_rockit(four_bar, 5, PERIOD, ocp=FakeOcp()).ocp
    expected = continuous_dynamics(four_bar)(x, u, [])
    np.testing.assert_allclose(ocp.function(x[:4], x[4:], u, 0), expected, atol=1e-14)
    given = to_rockit(carts, 5, PERIOD, ocp=FakeOcp())
    actual = given.ocp.function([0, 0], [1, 1], 2, 0, 0).full().ravel()
    np.testing.assert_allclose(actual, [1, 1, 2, 0], atol=1e-14)
    assert given.ocp.values[0][1].shape == (1, 5)
    ocp = to_rockit(rails, 5, PERIOD, ocp=FakeOcp()).ocp
    actual = ocp.function([np.sin(0.3), 1], [np.cos(0.3), 2], 5, 0.3).full().ravel()
    np.testing.assert_allclose(actual, [np.cos(0.3), 2, -np.sin(0.3), 5], atol=1e-14)


def test_opti_brakes_within_the_range_of_the_motor_on_closed_loops(four_bar, moving):
    x, u = cases.swing(four_bar, moving)
    np.testing.assert_allclose(x[:, 0], moving[0], atol=1e-12)
    assert np.abs(u).max() == pytest.approx(4.0, abs=1e-6)  # the range of the crank's motor
    again = discrete_dynamics(four_bar, PERIOD).map(10)(x[:, :-1], u, ca.DM(0, 10))
    np.testing.assert_allclose(x[:, 1:], again, atol=1e-9)
    gaps = [np.abs(four_bar.constraint(q).full()).max() for q in x[:4].T]
    assert max(gaps) < 1e-9
    assert np.sum(x[4:, -1] ** 2) < 0.9 * np.sum(x[4:, 0] ** 2)


def test_opti_gets_masks_and_times_of_each_interval(carts, rails):
    problem = to_opti(carts, 3, 0.1, [0, 0], [2, 0])
    masks = problem.opti.value(problem.p)
    np.testing.assert_array_equal(np.ravel(masks), np.ones(3))
    problem = to_opti(rails, 3, 0.1, [0, 1], [1, 2])
    problem.opti.minimize(ca.sumsqr(problem.u))
    problem.opti.solver("ipopt", QUIET)
    end = np.asarray(problem.opti.solve().value(problem.x))[:, -1]
    np.testing.assert_allclose(end, [np.sin(0.3), 1.6, np.cos(0.3), 2], atol=1e-9)


@pytest.mark.parametrize(
    ("make", "module", "hint"),
    [
        (to_acados_model, "acados_template", "acados_template is not installed: it comes with"),
        (to_do_mpc_model, "do_mpc", "do_mpc is not installed: pip install do-mpc"),
        (lambda s: to_rockit(s, 5, 0.1), "rockit", "not installed: pip install rockit-meco"),
    ],
)
def test_a_missing_neighbour_is_named_with_the_way_to_get_it(
    carts, monkeypatch, make, module, hint
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError):
        importlib.import_module(module)
    with pytest.raises(err.MissingExtraError, match=hint):
        make(carts)


def test_what_makes_no_sense_is_refused(carts, rails):
    q = [0, 0]
    with pytest.raises(err.ProblemError, match="1 activation states"):
        continuous_dynamics(read_mjcf(WITH_STATES))
    with pytest.raises(err.ProblemError, match=r"horizon = 0; expected"):
        to_opti(carts, 0, 0.1, q)
    with pytest.raises(err.ProblemError, match=r"horizon = 2.5; expected"):
        to_rockit(carts, 2.5, 0.1, ocp=FakeOcp())
    with pytest.raises(err.ProblemError, match="period = nan; expected a number"):
        to_rockit(carts, 2, np.nan, ocp=FakeOcp())
    with pytest.raises(err.ShapeError, match=r"q0 has shape \(3,\), expected \(2,\)"):
        to_opti(carts, 2, 0.1, [0, 0, 0])
    with pytest.raises(err.ProblemError, match="acados gives no time to discrete"):
        to_acados_model(rails, period=0.1, model=SimpleNamespace())
    with pytest.raises(err.ProblemError, match="give a period for a discrete model"):
        to_do_mpc_model(rails, model=FakeDoMpc())
    with pytest.raises(err.ProblemError, match="step= to a discrete one"):
        to_do_mpc_model(carts, model=FakeDoMpc(), step=StepOptions())
    with pytest.raises(err.ProblemError, match="dynamics= belongs to a continuous model"):
        to_do_mpc_model(carts, period=0.1, model=FakeDoMpc(), dynamics=DynamicsOptions())
    with pytest.raises(err.ProblemError, match="step without a period"):
        to_acados_model(carts, model=SimpleNamespace(), step=StepOptions())
    with pytest.raises(err.UnknownNameError, match="unknown formulation 'euler'"):
        DynamicsOptions(formulation="euler")
