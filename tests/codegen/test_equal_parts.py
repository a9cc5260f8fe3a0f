"""Equal parts of scalar functions become one loop that computes the same."""

import json
import os
import re
import shutil

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import mjcf, model, models
from mbcasadi.codegen.compiled_function import compiled_function, function_c
from mbcasadi.codegen.compiler import compile_c

ROUNDING = 1e-13
"""Of sums of a hundred products, by their largest entry."""

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-parameter")
LEGS = 4
JOINTS = 3


def loops_of(function):
    """Return (parts, operations) of each loop over equal parts."""
    found = re.findall(r"/\* (\d+) equal parts of (\d+) operations", function_c(function))
    return [(int(parts), int(operations)) for parts, operations in found]


def statements(function):
    return function_c(function).count("num x")


def assert_same(function, arguments, tolerance=ROUNDING):
    """Compare the compiled C with CasADi's evaluation, output by output."""
    expected, found = function.call(arguments), compiled_function(function).call(arguments)
    for k, (a, b) in enumerate(zip(found, expected, strict=True)):
        a, b = a.full(), b.full()
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b), err_msg=function.name_out(k))
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=1e-300)
        np.testing.assert_allclose(
            a, b, rtol=0, atol=tolerance * scale, err_msg=function.name_out(k)
        )


def chain(angles, rates, base, lengths, side):
    """Return position and velocity of the tip of a limb; `side` mirrors it."""
    R, p, w, v = ca.SX.eye(3), base[:3] * base[3], base[4:7], ca.SX.zeros(3, 1)
    for k in range(JOINTS):
        c, s = ca.cos(angles[k]), ca.sin(angles[k])
        turn = [[1, 0, 0], [0, c, -s], [0, s, c]] if k == 0 else [[c, 0, s], [0, 1, 0], [-s, 0, c]]
        R = R @ ca.vertcat(*(ca.horzcat(*row) for row in turn))
        offset = R @ ca.DM([lengths[k], side * 0.1 * lengths[k], -0.2])
        w = w + R[:, 0 if k == 0 else 1] * rates[k]
        p, v = p + offset, v + ca.cross(w, offset)
    return p, v


def walker(order, lengths, sides):
    """Return f(q, v, base) of a body with limbs; limb k has the coordinates `order[k]`."""
    q, rates = ca.SX.sym("q", JOINTS * LEGS), ca.SX.sym("v", JOINTS * LEGS)
    base = ca.SX.sym("base", 7)
    tips = [
        chain(q[list(at)], rates[list(at)], base, length, side)
        for at, length, side in zip(order, lengths, sides, strict=True)
    ]
    positions, velocities = (ca.vertcat(*column) for column in zip(*tips, strict=True))
    spread = sum(ca.dot(p, v) for p, v in tips)
    outputs = [positions, velocities, spread, ca.jacobian(positions, q)]
    names = ["positions", "velocities", "spread", "J"]
    return ca.Function("walker", [q, rates, base], outputs, ["q", "v", "base"], names)


IN_ORDER = np.arange(JOINTS * LEGS).reshape(LEGS, JOINTS).tolist()
SHUFFLED = np.random.default_rng(5).permutation(JOINTS * LEGS).reshape(LEGS, JOINTS).tolist()
EQUAL = [[0.1, 0.3, 0.4]] * LEGS
OTHER = [[0.1, 0.3, 0.4], [0.11, 0.31, 0.4], [0.2, 0.3, 0.45], [0.1, 0.35, 0.5]]
WALKERS = {
    "equal": (IN_ORDER, EQUAL, [1] * LEGS),
    "other constants": (IN_ORDER, OTHER, [1] * LEGS),
    "mirrored": (IN_ORDER, EQUAL, [1, -1, 1, -1]),
    "mirrored, other constants": (IN_ORDER, OTHER, [1, -1, -1, 1]),
    "coordinates in another order": (SHUFFLED, OTHER, [1, -1, 1, -1]),
}


def wild_inputs(function, rng):
    return [ca.DM(rng.normal(size=function.size_in(k)) * 10) for k in range(function.n_in())]


@pytest.mark.parametrize("kind", WALKERS)
def test_limbs_of_one_design_are_one_loop(kind):
    function = walker(*WALKERS[kind])
    assert max(loops_of(function))[0] == LEGS
    assert statements(function) < 0.5 * function.n_instructions()
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert_same(function, wild_inputs(function, rng))


def test_what_is_no_number_stays_in_its_limb():
    function = walker(*WALKERS["mirrored"])
    rng = np.random.default_rng(1)
    q, v, base = wild_inputs(function, rng)
    q[4] = np.nan
    assert_same(function, [q, v, base])
    positions = compiled_function(function)(q, v, base)[0].full().ravel()
    assert list(np.flatnonzero(np.isnan(positions)) // 3) == [1, 1, 1]


def limbs_of_other_signs():
    """Return limbs that begin alike and then add or subtract: a b - c d here, a b + c d there."""
    x = ca.SX.sym("x", 4, 12)
    results = []
    for k in range(4):
        a, sign = x[k, :].T, (1, -1)[k % 2]
        for step in range(6):
            product = a * ca.vertcat(a[1:], a[0])
            a = product + (sign if step > 2 else 1) * ca.vertcat(product[3:], product[:3])
            a = 0.1 * a - ca.vertcat(a[2:], a[:2]) * 0.3
        results.append(a)
    return ca.Function("signs", [x], [ca.vertcat(*results), sum(results)])


def test_sums_and_differences_that_correspond_share_a_line():
    function = limbs_of_other_signs()
    assert max(loops_of(function))[0] == 4
    text = function_c(function)
    assert re.search(r"constant\d+\[\d+ \+ i\]\*x\d+\)", text)
    assert statements(function) < 0.5 * function.n_instructions()
    rng = np.random.default_rng(2)
    for _ in range(10):
        assert_same(function, [ca.DM(rng.normal(size=(4, 12)))])


def limbs_with_choices():
    x, ok = ca.SX.sym("x", 4, 8), ca.SX.sym("ok")
    results = []
    for k in range(4):
        a = ca.if_else(ok, x[k, :].T, 0)
        for _ in range(6):
            a = a * ca.vertcat(a[1:], a[0]) + (1.1 + k) * a
        results.append(ca.if_else(ok, a, 0))
    return ca.Function("choices", [x, ok], [ca.horzcat(*results)])


@pytest.mark.parametrize("condition", [0.0, 1.0, -2.0, np.nan])
def test_a_choice_in_a_loop_drops_what_is_no_number(condition):
    function = limbs_with_choices()
    assert "_value_if(" in function_c(function)
    x = np.random.default_rng(3).normal(size=(4, 8))
    x[2, 3], x[1, 1] = np.nan, np.inf
    assert_same(function, [ca.DM(x), condition])


def test_a_function_without_equal_parts_keeps_its_text():
    x = ca.SX.sym("x", 6)
    y = x[0]
    for k in range(1, 200):
        y = (ca.sin(y) + x[k % 6]) / (1.5 + y * y) if k % 3 else y * x[k % 5] - 0.1 * k
    function = ca.Function("chain", [x], [y])
    assert loops_of(function) == []
    assert "made0" not in function_c(function)
    assert_same(function, [ca.DM(np.linspace(-1, 1, 6))])


def test_parts_that_need_each_other_are_not_in_one_loop():
    x = ca.SX.sym("x", 24)
    state, outputs = x, []
    for _ in range(8):  # each block of six takes numbers of the one before it
        blocks = [state[6 * k : 6 * k + 6] for k in range(4)]
        for k in range(1, 4):
            blocks[k] = blocks[k] * 0.5 + blocks[k - 1] * ca.vertcat(blocks[k][1:], blocks[k][0])
        state = ca.vertcat(*blocks) / (1 + state**2)
        outputs.append(state[::5])
    function = ca.Function("relay", [x], [ca.vertcat(*outputs)])
    rng = np.random.default_rng(4)
    for _ in range(5):
        assert_same(function, [ca.DM(rng.normal(size=24))])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.every(3)
def test_random_graphs_with_repeated_pieces_keep_their_values(seed):
    rng = np.random.default_rng(seed)
    x = ca.SX.sym("x", 20)
    values = [x[k] for k in range(20)]
    pieces = [rng.integers(0, 4, size=(15, 3)) for _ in range(2)]
    for _ in range(14):
        piece, local = (
            pieces[rng.integers(2)],
            [values[k] for k in rng.integers(len(values), size=4)],
        )
        for kind, a, b in piece:
            left, right = local[-1 - a], local[-1 - b]
            local.append(
                (left + right, left * right, left - right, right * float(rng.normal()))[kind]
                + (0.1 if rng.random() < 0.1 else 0)
            )
        values += [0.5 * ca.cos(y) for y in local[-3:]]
    function = ca.Function("pieces", [x], [ca.vertcat(*values[20:])])
    for _ in range(3):
        assert_same(function, [ca.DM(rng.normal(size=20))], tolerance=1e-12)


def mechanics(name):
    tree = mjcf.read(models.path(name)).tree
    q, v = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)
    outputs = [model.mass_matrix(tree, q), model.bias_force(tree, q, v)]
    return ca.Function(name, [q, v], outputs, ["q", "v"], ["M", "h"], {"cse": True})


@pytest.mark.parametrize(("name", "parts", "share"), [("quadruped", 4, 0.55), ("humanoid", 2, 0.8)])
def test_inertia_and_bias_of_robots_with_limbs(name, parts, share):
    function = mechanics(name)
    assert max(loops_of(function), key=lambda loop: loop[1])[0] == parts
    assert statements(function) < share * function.n_instructions()
    rng = np.random.default_rng(6)
    for _ in range(20):
        assert_same(function, [ca.DM(rng.normal(size=function.size_in(k))) for k in range(2)])


COMPILERS = {
    os.path.realpath(path): name for name in ("cc", "gcc", "clang") if (path := shutil.which(name))
}


@pytest.mark.parametrize("compiler", COMPILERS.values())
def test_compilers_warn_of_nothing(compiler, tmp_path):
    for function in (mechanics("quadruped"), limbs_of_other_signs(), limbs_with_choices()):
        source = tmp_path / f"{function.name()}.c"
        source.write_text(function_c(function))
        command = (compiler, *WARNINGS, "-O2", "-shared", "-fPIC", str(source), "-lm")
        compile_c(command, tmp_path / f"{function.name()}.so")


def test_the_manifest_names_the_loops(tmp_path):
    function = walker(*WALKERS["mirrored"])
    project = mb.export_c(function, tmp_path / "walker")
    manifest = json.loads((project.folder / "manifest.json").read_text())
    loops = [(loop["parts"], loop["operations"]) for loop in manifest["equal_parts"]]
    assert loops == loops_of(function)
