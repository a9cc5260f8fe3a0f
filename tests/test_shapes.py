"""Arrays that NumPy would turn into other numbers silently are refused at every entry point."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models, shapes
from mbcasadi.control.regulators import lqr
from mbcasadi.control.tasks.task import per_row
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.mpc import optimal_control_problem
from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.simulation import InitialConditions

PART_OF_IT = np.ma.masked_array([0.1, 0.2], mask=[False, True])
COMPLEX = np.array([0.1 + 1j, 0.2])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (PART_OF_IT, "q has 1 masked entries; expected a number in each"),
        (COMPLEX, "q is complex; expected real numbers"),
        (COMPLEX.real + 0j, "q is complex"),  # no guess whether an imaginary part was meant
        ([1, "two"], "q is a list; expected numbers"),
        ([[1, 2], [3]], "q is .*; expected numbers"),
        (ca.SX.sym("x", 2), "q is .*; expected numbers"),
        ({"a": 1}, "q is .*; expected numbers"),
    ],
)
def test_what_is_no_array_of_real_numbers_is_refused(value, words):
    with pytest.raises(ShapeError, match=words):
        shapes.column("q", value, 2)
    with pytest.raises(ShapeError, match=words):
        shapes.weight("q", value, 2)
    with pytest.raises(ShapeError, match=words):
        shapes.bounds("q", value, 1)


@pytest.mark.parametrize(
    "value",
    [
        (0, 1),
        [0.0, 1],
        np.array([[0], [1]]),
        ca.DM([0, 1]),
        np.ma.masked_array([0.0, 1.0]),
        range(2),
    ],
)
def test_arrays_of_every_kind_without_such_entries_are_taken(value):
    np.testing.assert_array_equal(shapes.column("q", value, 2), [0.0, 1.0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_unless_they_may_be(bad):
    for take, shape in ((shapes.column, 2), (shapes.matrix, (2,))):
        with pytest.raises(ShapeError, match="q holds NaN or infinity"):
            take("q", [0.0, bad], shape)
        np.testing.assert_array_equal(take("q", [0.0, bad], shape, finite=False), [0.0, bad])


@pytest.mark.parametrize(
    ("require", "valid", "invalid"),
    [
        (shapes.require_positive, [1e-300, 1e9], [0.0, -1.0, np.inf, np.nan]),
        (shapes.require_share, [0.0, 0.999], [-1e-9, 1.0, np.nan]),
        (lambda value: shapes.require_whole(2, value=value), [2, 3.0], [1, 2.5, np.nan]),
        (lambda value: shapes.count_of_periods("value", value, 0.1), [0.1, 0.3], [0.0, 0.05, 0.15]),
        (lambda value: shapes.weight("value", value, 2), [0.0, [1, 0], np.eye(2)], [-1, [1, -1]]),
        (lambda value: shapes.weight("value", value, 2, definite=True), [1.0, [1, 2]], [0, [1, 0]]),
    ],
)
def test_numbers_are_refused_beyond_their_ends(require, valid, invalid):
    named = {shapes.require_positive, shapes.require_share}
    call = (lambda value: require(value=value)) if require in named else require
    for value in valid:
        call(value)
    for value in invalid:
        with pytest.raises(ProblemError, match="value"):
            call(value)


def test_a_weight_may_be_indefinite_and_unsymmetric_by_rounding_only():
    for share, taken in ((1e-11, True), (1e-7, False)):
        for wrong in (np.diag([1e3, -1e3 * share]), np.array([[1, share], [0, 1]])):
            if taken:
                np.testing.assert_array_equal(shapes.weight("W", wrong, 2), (wrong + wrong.T) / 2)
            else:
                with pytest.raises(ProblemError, match="W "):
                    shapes.weight("W", wrong, 2)


def test_bounds_are_infinite_by_default_and_not_empty():
    np.testing.assert_array_equal(shapes.bounds("b", None, 2), [[-np.inf, np.inf]] * 2)
    for bad in ([[1.0, 0.0]], [[np.inf, np.inf]], [[-np.inf, -np.inf]]):
        with pytest.raises(ProblemError, match=r"b\[0\] is .*: empty"):
            shapes.bounds("b", bad, 1)


@pytest.mark.parametrize("bad", [PART_OF_IT, COMPLEX])
def test_entry_points_take_no_masked_and_no_complex_arrays(bad):
    system = mb.read_mjcf(models.path("cart_pole"))
    n = system.nq
    wrong = np.ma.concatenate([bad, np.zeros(n - 2)]) if n > 2 else bad
    rest = np.zeros(n)
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    calls = (
        lambda: mb.simulate(system, wrong, rest, 0.1),
        lambda: mb.simulate(system, rest, wrong, 0.1),
        lambda: mb.simulate(system, rest, rest, 0.1, times=bad),
        lambda: mb.simulate(system, rest, rest, 0.1, force=lambda *_: wrong),
        lambda: mb.simulate(system, rest, rest, 0.1, initial=InitialConditions(act=bad)),
        lambda: mb.equilibrium(system, wrong),
        lambda: system.with_mask(wrong),
        lambda: lqr(mb.linearize(system, mb.equilibrium(system, rest)), wrong, 1.0),
        lambda: optimal_control_problem(system, 2, 0.1, [Cost(Q=wrong)]),
        lambda: per_row("task", "kp", wrong, ["a"] * n),
        lambda: mb.from_equations(q, v, M=np.eye(2), h=bad),
    )
    for call in calls:
        with pytest.raises(ShapeError, match=r"masked entries|complex"):
            call()


def test_repeated_names_get_a_count():
    assert shapes.unique(["foot", "hand", "foot", "foot"]) == ("foot", "hand", "foot_2", "foot_3")
