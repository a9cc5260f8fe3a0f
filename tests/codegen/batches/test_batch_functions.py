"""Batches of whole Functions: random ones, nested ones, solvers and branches, steps."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.codegen import BatchBuild

AGREEMENT = 1e-12
STATES = 37


def random_function(seed, kind=ca.SX, size=40):
    """A Function of random operations, each on values that came before; all stay near 1."""
    rng = np.random.default_rng(seed)
    x, y = kind.sym("x", 3), kind.sym("y", 2)
    values = [*ca.vertsplit(x), *ca.vertsplit(y)]
    unary = [ca.sin, ca.cos, ca.atan, ca.tanh, ca.fabs, ca.floor, ca.sign, ca.logic_not]
    unary += [lambda a: ca.exp(-a * a), lambda a: ca.sqrt(a * a), lambda a: ca.log(1 + a * a)]
    unary += [lambda a: ca.tan(a / 8), lambda a: ca.asin(ca.sin(a) / 2), lambda a: 1 / (2 + a * a)]
    binary = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, ca.fmin, ca.fmax]
    binary += [ca.atan2, lambda a, b: ca.if_else(a < b, a, b * b), lambda a, b: (a <= b) + 0 * a]
    binary += [lambda a, b: ca.logic_and(a < 0, b > 0), lambda a, b: a / (1 + b * b)]
    for _ in range(size):
        a, b = (values[k] for k in rng.integers(len(values), size=2))
        if rng.random() < 0.4:
            new = unary[rng.integers(len(unary))](a)
        else:
            new = binary[rng.integers(len(binary))](a, b)
        values.append(new / (1 + new * new) if rng.random() < 0.2 else new)
    chosen = [values[-1 - k] for k in range(4)]
    outputs = [ca.vertcat(*chosen), ca.vertcat(chosen[0] * x[0], sum(values[-8:]))]
    return ca.Function(f"random_{seed}", [x, y], outputs, ["x", "y"], ["first", "second"])


def nested_function(seed):
    """Calls of a random Function inside matrix expressions, constants and sparse factors."""
    inner, rng = random_function(seed), np.random.default_rng(seed)
    x, y = ca.MX.sym("x", 3), ca.MX.sym("y", 2)
    C = ca.DM(rng.normal(size=(3, 4)))
    low = ca.MX(ca.DM(ca.Sparsity.lower(3), rng.uniform(1, 2, 6)))
    a, b = inner(x, y)
    c, _ = inner(C @ a / 4, b / 4)
    d = ca.solve(low, x) + low.T @ x + ca.bilin(ca.MX(ca.DM.eye(3)), x, x)
    many = inner.map(2)(ca.horzcat(x, d / 8), ca.horzcat(y, y))[0]
    outputs = [
        ca.vertcat(a, c, d),
        ca.horzcat(many, ca.fmin(a, c)).T,
        ca.vertcat(ca.norm_2(a), ca.norm_1(a), ca.norm_inf(c), ca.dot(a, c), ca.sum1(many[:, 1])),
        ca.diag(d) + ca.MX(ca.Sparsity.lower(3)),
    ]
    return ca.Function("nested", [x, y], outputs, ["x", "y"], ["u", "W", "n", "D"])


def assert_as_casadi(function, batch, values, tolerance=AGREEMENT):
    """Compare with CasADi's own evaluation, state by state."""
    given = batch(*values)
    for k in range(len(values[0])):
        expected = function.call([ca.DM(v[k]) for v in values])
        for name, value in zip(function.name_out(), expected, strict=True):
            value = np.array(ca.densify(value))
            actual = given[name][k].reshape(value.shape)
            scale = 1 + np.max(np.abs(value), initial=0.0)
            assert np.allclose(actual, value, rtol=0, atol=tolerance * scale, equal_nan=True), (
                name,
                k,
            )


def inputs(function, seed=1, count=STATES):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(count, *function.size_in(i))) for i in range(function.n_in())]


def squeezed(values):
    return [v[..., 0] if v.shape[-1] == 1 else v for v in values]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.every(3)
def test_random_functions_are_evaluated_as_by_casadi(seed):
    function = random_function(seed, size=60)
    batch = mb.batch(function)
    assert batch.lanes > 1
    assert_as_casadi(function, batch, squeezed(inputs(function)))


@pytest.mark.parametrize("seed", range(10, 14))
@pytest.mark.every(4)
def test_nested_functions_and_matrix_expressions_stay_in_lanes(seed):
    function = nested_function(seed)
    batch = mb.batch(function)
    assert not batch.scalar_functions
    assert_as_casadi(function, batch, squeezed(inputs(function)))


@pytest.mark.parametrize("seed", range(20, 23))
@pytest.mark.every(3)
def test_matrix_forms_of_random_functions_stay_in_lanes(seed):
    function = random_function(seed, kind=ca.MX, size=30)
    batch = mb.batch(function)
    assert not batch.scalar_functions
    assert_as_casadi(function, batch, squeezed(inputs(function)))


def branching():
    x, y = ca.MX.sym("x", 3), ca.MX.sym("y", 2)
    inner = random_function(3)
    chosen = ca.if_else(x[0] > 0, inner(x, y)[0], inner(-x, 2 * y)[0] + 1, True)
    return ca.Function("branching", [x, y], [chosen, x + chosen[0]], ["x", "y"], ["a", "b"])


def solving():
    x, y = ca.MX.sym("x", 3), ca.MX.sym("y", 2)
    A = ca.diag(x) + ca.DM([[4, 1, 0], [1, 4, 1], [0, 1, 4]])
    outputs = [ca.solve(A, ca.vertcat(y, 1), "qr"), ca.det(A), ca.mmax(x), ca.logsumexp(x)]
    return ca.Function("solving", [x, y], outputs, ["x", "y"], ["s", "d", "m", "l"])


def calling_both():
    """Parts without a form in lanes, called from one that has it."""
    x, y = ca.MX.sym("x", 3), ca.MX.sym("y", 2)
    first, second = branching(), solving()
    a, b = first(x, y)
    s, d, _, _ = second(b, y)
    return ca.Function("both", [x, y], [a + ca.sin(d), s * x], ["x", "y"], ["a", "s"])


@pytest.mark.parametrize("make", [branching, solving, calling_both])
def test_branches_and_solvers_run_in_each_lane_apart(make):
    function = make()
    batch = mb.batch(function)
    assert batch.lanes > 1
    assert batch.scalar_functions
    assert_as_casadi(function, batch, squeezed(inputs(function)))
    scalar = mb.batch(function, build=BatchBuild(lanes=False))
    assert_as_casadi(function, scalar, squeezed(inputs(function)))


@pytest.mark.parametrize("model", ["four_bar", "quadruped", "planar_3rrr"])
@pytest.mark.every(3)
def test_the_dynamics_of_mechanisms_are_evaluated_as_by_casadi(model):
    system = mb.read_mjcf(models.path(model))
    function = mb.forward_dynamics(system)
    batch = mb.batch(function, build=BatchBuild(flags=("-O0", "-march=native")))
    assert not batch.scalar_functions
    rng = np.random.default_rng(2)
    q = np.array(system.tree.q0) + 0.2 * rng.normal(size=(STATES, system.nq))
    v, f = rng.normal(size=(2, STATES, system.nv))
    assert_as_casadi(function, batch, [q, v, f], tolerance=1e-10)


def test_steps_feed_outputs_back():
    x, u = ca.SX.sym("x", 2), ca.SX.sym("u")
    turn = ca.vertcat(x[0] + 0.1 * x[1], x[1] - 0.1 * ca.sin(x[0]) + 0.1 * u)
    function = ca.Function("turn", [x, u], [turn, x[0] + 0], ["x", "u"], ["x_next", "angle"])
    batch = mb.batch(function, feedback={"x_next": "x"})
    rng = np.random.default_rng(0)
    start, force = rng.normal(size=(STATES, 2)), rng.normal(size=STATES)
    state = start.copy()
    for _ in range(50):
        angle = state[:, 0].copy()
        rate = state[:, 1] - 0.1 * np.sin(state[:, 0]) + 0.1 * force
        state = np.column_stack([state[:, 0] + 0.1 * state[:, 1], rate])
    given = batch(start, force, steps=50)
    assert np.allclose(given["x_next"], state, rtol=0, atol=AGREEMENT)
    assert np.allclose(given["angle"][:, 0], angle, rtol=0, atol=AGREEMENT)


@pytest.mark.parametrize("name", ["all", "lanes", "transpose", "casadi_f0", "part", "wide_sin"])
@pytest.mark.every(3)
def test_a_function_may_have_the_name_of_one_in_the_c(name):
    x = ca.SX.sym("x")
    batch = mb.batch(ca.Function(name, [x], [ca.sin(x)], ["x"], ["y"]), threads=1)
    assert np.allclose(batch(np.arange(3.0))["y"][:, 0], np.sin(np.arange(3.0)), rtol=1e-15)


def test_a_folder_keeps_the_library(tmp_path):
    function = random_function(1)
    first = mb.batch(function, build=BatchBuild(folder=tmp_path))
    again = mb.batch(function, build=BatchBuild(folder=tmp_path))
    assert first.build.seconds > 0
    assert again.build.seconds == 0
    assert (tmp_path / "random_1.c").exists()
    assert (tmp_path / "random_1_lanes.c").exists()


def test_a_compiler_without_vectors_gets_the_scalar_path(tmp_path):
    """A compiler that stops at the extension, as one that does not know it."""
    compiler = tmp_path / "plain_cc"
    refuse = (
        'for word in "$@"; do case $word in *.c) grep -q vector_size $word && exit 1; esac; done'
    )
    compiler.write_text(f'#!/bin/sh\n{refuse}\nexec cc "$@"\n')
    compiler.chmod(0o755)
    function = random_function(4)
    batch = mb.batch(function, build=BatchBuild(cc=str(compiler)))
    assert batch.lanes == 1
    assert_as_casadi(function, batch, squeezed(inputs(function)))


@pytest.mark.parametrize("width", [16, 32])
def test_every_width_of_vectors_gives_the_same_bits(width):
    function = random_function(2, size=80)
    values = squeezed(inputs(function))
    widest = mb.batch(function)(*values)
    other = mb.batch(
        function, build=BatchBuild(flags=("-O1", "-march=native", f"-DLANE_BYTES={width}"))
    )
    assert other.lanes == width // 8
    for name, array in other(*values).items():
        assert array.tobytes() == widest[name].tobytes(), name
