"""python-control's designs on our linear systems, and its controllers as our laws."""

import sys
from types import SimpleNamespace

import control
import numpy as np
import pytest
from support.lqr_problems import at_rest, states_near, weights

import mbcasadi as mb
from mbcasadi.control import LawOptions
from mbcasadi.control.regulators import (
    discretize,
    encoders,
    feedback,
    feedback_from_ss,
    lqr_gain,
)
from mbcasadi.control.regulators.lqr import manifold_weights
from mbcasadi.errors import MissingExtraError, ProblemError, ShapeError
from mbcasadi.system.coordinates import rate_names

SAME = 1e-8  # relative difference of gains that should be one
LOOP, FREE = "pendulum_on_four_bar", "quadrotor"
PERIOD = 0.004  # s


@pytest.fixture(scope="module")
def hover():
    system = mb.read_mjcf(mb.models.path(FREE))
    return mb.linearize(system, mb.equilibrium(system))


@pytest.fixture
def linear(request, hover):
    return hover if request.param == FREE else at_rest(request.param)


def cost(linear):
    if linear.system.name == LOOP:
        return weights(linear)
    nv = linear.system.nv
    return np.r_[np.full(nv, 10.0), np.full(nv, 1.0)], np.ones(linear.nu)


both = pytest.mark.parametrize("linear", [LOOP, FREE], indirect=True)


@both
def test_the_gain_of_python_control_is_ours(linear):
    Q, R = cost(linear)
    on_x = manifold_weights(linear, Q, R)
    theirs = np.asarray(control.lqr(linear.to_ss(), on_x.Q, on_x.R)[0])
    ours = lqr_gain(linear, Q, R).K
    np.testing.assert_allclose(theirs, ours, atol=SAME * np.abs(ours).max())
    sampled = discretize(linear, PERIOD).to_ss()
    assert sampled.dt == PERIOD
    np.testing.assert_allclose(sampled.A, control.c2d(linear.to_ss(), PERIOD).A, atol=1e-10)


@both
def test_states_are_named_by_the_coordinates_that_they_move(linear):
    """Moving x along one state moves the coordinate of its name the most."""
    matrices, names = linear.matrices(), rate_names(linear.system)
    assert len(set(matrices.states)) == linear.nx
    rows = [names.index(name[3:-1]) for name in matrices.states[: linear.n_q]]
    moved = np.abs(linear.Z_q / linear.system.scales.coordinates[:, None])[rows]
    assert np.all(moved.argmax(axis=0) == np.arange(linear.n_q))
    assert linear.to_ss().input_labels == [f"u[{name}]" for name in linear.system.actuator_names]


def test_outputs_are_those_of_a_function():
    linear = at_rest(LOOP)
    output = encoders(linear.system, ["crank", "pendulum"], ["pendulum"])
    ss = linear.to_ss(output)
    assert ss.output_labels == ["y[0]", "y[1]", "y[2]"]
    x = np.array([1e-6, -2e-6, 3e-6, 1e-6])
    moved = (
        np.array(output(*linear.state(x))).ravel() - np.array(output(linear.q, linear.v)).ravel()
    )
    np.testing.assert_allclose(ss.C @ x, moved, atol=1e-10)


@both
def test_a_static_controller_is_the_feedback_of_its_gain(linear):
    Q, R = cost(linear)
    options = LawOptions(period=PERIOD)
    K = lqr_gain(linear, Q, R, period=PERIOD).K
    other = feedback_from_ss(linear, control.ss([], [], [], -K), options=options)
    ours = feedback(linear, K, options=options)
    for q, v in zip(*(x.T for x in states_near(linear, 3)), strict=True):
        u = [np.array(law.function(q, v, [], [])[0]).ravel() for law in (other, ours)]
        assert np.abs(u[1] - linear.u).max() > 1e-3
        np.testing.assert_allclose(*u, atol=1e-12)


def observer(linear, output):
    """Return the discrete regulator on a stationary filter, from y to u, by python-control."""
    plant = discretize(linear, PERIOD).to_ss(output)
    K = control.dlqr(plant, 100 * np.eye(linear.nx), np.eye(linear.nu))[0]
    ny = plant.noutputs
    W = PERIOD * np.repeat([1e-6, 1.0], 2)  # forces disturb, positions hardly
    L = control.dlqe(plant.A, np.eye(4), plant.C, np.diag(W), 1e-6 * np.eye(ny))[0]
    A = plant.A - plant.B @ K - L @ plant.C
    return control.ss(A, L, -K, np.zeros((linear.nu, ny)), PERIOD)


def test_a_controller_with_states_answers_as_in_python_control():
    linear = at_rest(LOOP)
    output = encoders(linear.system, ["crank", "pendulum"])
    controller = observer(linear, output)
    law = feedback_from_ss(linear, controller, output=output, options=LawOptions(period=PERIOD))
    motion = [linear.state(1e-3 * np.sin([k, 2 * k, 3 * k, k])) for k in range(6)]
    start = np.array(output(linear.q, linear.v)).ravel()
    y = np.array([np.array(output(*state)).ravel() - start for state in motion]).T
    response = control.forced_response(controller, PERIOD * np.arange(6), y)
    z = law.z0
    for k, state in enumerate(motion):
        solution = law.solve(*state, z=z)
        z = solution.z_next
        np.testing.assert_allclose(solution.u - linear.u, response.outputs[:, k], atol=1e-10)
    assert np.abs(response.outputs).max() > 1e-3


@pytest.mark.parametrize("linear", [LOOP, FREE], indirect=True)
def test_designs_of_python_control_hold_the_mechanism_in_mujoco(linear):
    """In C, beside their equilibrium: the loop by two encoders, the drone by its whole state."""
    name, options = linear.system.name, LawOptions(period=PERIOD)
    if name == LOOP:
        output = encoders(linear.system, ["crank", "pendulum"])
        law = feedback_from_ss(linear, observer(linear, output), output=output, options=options)
        x0 = np.array([4e-3, -6e-3, 0, 0])  # rad; the motor gives 4 N m
    else:
        on_x = manifold_weights(linear, *cost(linear))
        K = control.dlqr(discretize(linear, PERIOD).to_ss(), on_x.Q, on_x.R)[0]
        law = feedback_from_ss(linear, control.ss([], [], [], -K), options=options)
        x0 = np.r_[0.1, -0.2, 0.1, 0.1, -0.1, 0.2, np.zeros(6)]
    q0 = mb.assemble(linear.system, linear.state(x0)[0])
    run = mb.validate(law, mb.models.path(name), 4.0, q0=q0, fast=True).runs[0].recording
    away = [np.linalg.norm(linear.coordinates(run.q[k], run.v[k])) for k in (0, -1)]
    assert away[0] > 5e-3
    assert away[1] < 0.1 * away[0]


def test_what_does_not_fit_is_refused_in_words(monkeypatch):
    linear = at_rest(LOOP)
    K = np.ones((1, 4))
    with pytest.raises(ShapeError, match=r"D has shape \(1, 3\), expected \(1, 4\)"):
        feedback_from_ss(linear, control.ss([], [], [], K[:, :3]))
    moving = control.ss([[0.5]], K, [[1.0]], 0 * K)
    with pytest.raises(ProblemError, match=r"control\.c2d\(controller, 0\.001\)"):
        feedback_from_ss(linear, moving)
    moving.dt = 0.01
    with pytest.raises(ProblemError, match=r"LawOptions\(period=0\.01\)"):
        feedback_from_ss(linear, moving)
    with pytest.raises(ProblemError, match="no A; expected"):
        feedback_from_ss(linear, SimpleNamespace())
    system = linear.system
    falling = mb.linearize(system, linear.q, None, linear.u + 0.1)
    with pytest.raises(ProblemError, match="does not rest"):
        falling.to_ss()
    monkeypatch.setitem(sys.modules, "control", None)
    with pytest.raises(MissingExtraError, match=r"mbcasadi\[control\]"):
        linear.to_ss()
