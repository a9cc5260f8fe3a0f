"""What a batch takes and gives: shapes, strides, types, any number of states, threads."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.codegen import BatchBuild
from mbcasadi.errors import ProblemError, ShapeError, UnknownNameError


def ports_function():
    """A matrix, a column and a scalar in; a matrix with zeros, a column and a scalar out."""
    M, x, s = ca.SX.sym("M", 2, 3), ca.SX.sym("x", 3), ca.SX.sym("s")
    triangle = ca.SX(ca.Sparsity.lower(3), ca.vertcat(x, 2 * x))
    outputs = [triangle, M @ x + s, ca.dot(x, x) * s]
    return ca.Function("ports", [M, x, s], outputs, ["M", "x", "s"], ["L", "y", "d"])


@pytest.fixture(scope="module")
def batch():
    return mb.batch(ports_function(), threads=2)


@pytest.fixture(scope="module")
def scalar():
    return mb.batch(ports_function(), threads=1, build=BatchBuild(lanes=False))


def data(count, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 2, 3)), rng.normal(size=(count, 3)), rng.normal(size=count)


def by_numpy(M, x, s):
    rows, columns = np.array([0, 1, 2, 1, 2, 2]), np.array([0, 0, 0, 1, 1, 2])
    L = np.zeros((len(x), 3, 3))
    L[:, rows, columns] = np.hstack([x, 2 * x])
    return {
        "L": L,
        "y": np.einsum("nij,nj->ni", M, x) + s[:, None],
        "d": (np.einsum("ni,ni->n", x, x) * s)[:, None],
    }


def assert_same(actual, expected):
    assert list(actual) == list(expected)
    for name, value in expected.items():
        assert actual[name].shape == value.shape, name
        assert np.allclose(actual[name], value, rtol=1e-13, atol=1e-13), name


def test_any_number_of_states_is_evaluated(batch, scalar):
    lanes = batch.lanes
    assert lanes > 1
    assert scalar.lanes == 1
    for count in {0, 1, 2, lanes - 1, lanes, lanes + 1, 2 * lanes, 5 * lanes + 3, 1001}:
        values = data(count)
        assert_same(batch(*values), by_numpy(*values))
        assert_same(scalar(*values), by_numpy(*values))


def test_a_value_without_states_holds_for_all(batch):
    M, x, s = data(11)
    same = [np.broadcast_to(part[:1], part.shape) for part in (M, x, s)]
    assert_same(batch(M[0], x, s), by_numpy(same[0], x, s))
    assert_same(batch(M, x[0], s=s[0]), by_numpy(M, same[1], same[2]))
    assert_same(batch(M=M[0], x=x[0], s=float(s[0])), by_numpy(M[:1], x[:1], s[:1]))


def test_arrays_may_have_any_strides(batch):
    M, x, s = data(23)
    turned = np.asfortranarray(M)
    wide = np.zeros((23, 7))
    wide[:, ::-2][:, :3] = x
    reverse = s[::-1].copy()[::-1]
    out = {"y": np.zeros((46, 4))[::2, 1:3], "L": np.zeros((3, 23, 3)).transpose(1, 2, 0)}
    given = batch(turned, wide[:, ::-2][:, :3], reverse, out=out)
    assert_same(given, by_numpy(M, x, s))
    assert given["y"] is out["y"]
    assert given["L"] is out["L"]


def test_integers_lists_and_single_precision_are_taken(batch):
    M, x, s = data(3)
    whole = np.arange(9).reshape(3, 3)
    assert_same(batch(M, whole, s), by_numpy(M, whole.astype(float), s))
    assert_same(batch(M.tolist(), x, s), by_numpy(M, x, s))
    short = x.astype(np.float32)
    assert_same(batch(M, short, s), by_numpy(M, short.astype(float), s))


def test_float_takes_and_gives_single_precision():
    batch = mb.batch(ports_function(), real="float", threads=1)
    values = data(37)
    given = batch(*values)
    again = batch(*[part.astype(np.float32) for part in values])
    for name, expected in by_numpy(*values).items():
        assert given[name].dtype == np.float32
        assert np.allclose(given[name], expected, rtol=1e-5, atol=1e-5)
        assert np.array_equal(given[name], again[name])


def test_nan_stays_in_its_state(batch):
    M, x, s = data(41)
    clean = by_numpy(M, x, s)
    x[[0, 7, 40], 1] = np.nan, np.inf, np.nan
    given = batch(M, x, s)
    others = np.setdiff1d(np.arange(41), [0, 7, 40])
    for name, expected in clean.items():
        assert np.allclose(given[name][others], expected[others], rtol=1e-13, atol=1e-13)
    assert np.isnan(given["d"][[0, 40]]).all()


def test_threads_change_no_bit(batch):
    single = mb.batch(ports_function(), threads=1)
    many = mb.batch(ports_function(), threads=5)
    values = data(3001)
    expected = single(*values)
    for other in (batch, many):
        for name, array in other(*values).items():
            assert array.tobytes() == expected[name].tobytes()


def test_an_output_may_replace_its_input(batch):
    x = ca.SX.sym("x", 3)
    halve = mb.batch(ca.Function("halve", [x], [x / 2], ["x"], ["y"]))
    values = np.arange(33.0).reshape(11, 3)
    expected = values / 2
    assert halve(values, out={"y": values})["y"] is values
    assert np.array_equal(values, expected)


WRONG_INPUTS = {
    "rows": (lambda M, x, s: (M, x[:, :2], s), r"x has shape \(5, 2\), expected \(n, 3\)"),
    "counts": (lambda M, x, s: (M[:4], x, s), "expected one number of states"),
    "text": (lambda M, x, s: (M, str(x.ndim), s), "x is '2'; expected numbers"),
    "complex": (lambda M, x, s: (M, x * 1j, s), "complex"),
    "matrix": (lambda M, x, s: (M.reshape(5, 6), x, s), r"expected \(n, 2, 3\)"),
}


@pytest.mark.parametrize("case", WRONG_INPUTS)
def test_an_input_that_does_not_fit_is_refused(batch, case):
    change, message = WRONG_INPUTS[case]
    with pytest.raises(ShapeError, match=message):
        batch(*change(*data(5)))


def test_outputs_of_another_shape_type_or_place_are_refused(batch):
    M, x, s = data(5)
    for array in (np.zeros((5, 3)), np.zeros((5, 2), np.float32), [[0.0, 0.0]] * 5, None):
        if array is not None:
            with pytest.raises(ShapeError, match=r"out\['y'\] has"):
                batch(M, x, s, out={"y": array})
    locked = np.zeros((5, 2))
    locked.flags.writeable = False
    with pytest.raises(ShapeError, match="cannot be written"):
        batch(M, x, s, out={"y": locked})
    with pytest.raises(ShapeError, match="overlaps the input 'x'"):
        batch(M, x, s, out={"y": x[:, 1:]})
    both = np.zeros((5, 4))
    with pytest.raises(ShapeError, match="overlaps out"):
        batch(M, x, s, out={"y": both[:, :2], "d": both[:, 1:2]})


def test_missing_unknown_and_double_names_are_refused(batch):
    M, x, s = data(2)
    with pytest.raises(ProblemError, match="misses the inputs s"):
        batch(M, x)
    with pytest.raises(ProblemError, match="x twice"):
        batch(M, x, s, x=x)
    with pytest.raises(ProblemError, match="got 4 inputs"):
        batch(M, x, s, s)
    with pytest.raises(UnknownNameError, match="unknown input 'w'"):
        batch(M, x, s, w=s)
    with pytest.raises(UnknownNameError, match="unknown output 'w'"):
        batch(M, x, s, out={"w": s})
    with pytest.raises(ProblemError, match="fed back"):
        batch(M, x, s, steps=3)
    with pytest.raises(ProblemError, match="steps = 0"):
        batch(M, x, s, steps=0)


def test_options_that_do_not_fit_are_refused():
    function = ports_function()
    for threads in (0, -1, 1.5):
        with pytest.raises(ProblemError):
            mb.batch(function, threads=threads)
    with pytest.raises(ProblemError, match="expected the same entries"):
        mb.batch(function, feedback={"y": "x"})
    with pytest.raises(UnknownNameError):
        mb.batch(function, feedback={"z": "x"})
