"""Rank, redundancy and consistency of rows, in numbers and words."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.system import from_equations, read_mjcf, redundancy


def rows(A, a0=None, n=4):
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    return from_equations(q, v, M=np.eye(n), h=np.zeros((n, 1)), A=A, a0=a0)


def test_repeated_rows_are_named_with_those_that_they_repeat():
    rng = np.random.default_rng(0)
    one, two, three = rng.standard_normal((3, 4))
    system = rows(np.array([one, two, one - 2 * two, three, 5 * two, 0 * one]))
    report = redundancy(system, np.zeros(4))
    assert (report.rows, report.rank) == (6, 3)
    assert report.repeated == {2: (0, 1), 4: (1,)}
    assert report.vanishing == (5,)
    assert report.in_words == (
        "6 rows, rank 3: row 5 vanishes here; rows 2 and 4 repeat others here"
    )
    assert report.consistent


def test_rows_that_contradict_each_other_leave_no_velocity():
    same = np.array([[1.0, 2.0, 0.0, 0.0], [2.0, 4.0, 0.0, 0.0]])
    agreeing = redundancy(rows(same, [[1.0], [2.0]]), np.zeros(4))
    assert agreeing.consistent
    contrary = redundancy(rows(same, [[1.0], [1.0]]), np.zeros(4))
    # the distance of (1, 1) from the line of (1, 2), in its larger entry: 2/5
    assert contrary.no_velocity == pytest.approx(0.4)
    assert "no velocity obeys them all" in contrary.in_words


def test_the_planar_loop_of_a_model_has_one_row_that_vanishes():
    system = read_mjcf(models.path("four_bar"))
    report = redundancy(system, system.tree.q0)
    assert (report.rows, report.rank) == (3, 2)
    assert report.in_words.startswith("3 rows, rank 2: row ")
    masked = redundancy(system, system.tree.q0, mask=[1, 0, 1])
    assert masked.off == (1,)
    assert "row 1 is switched off" in masked.in_words


def test_a_state_of_a_wrong_shape_is_refused():
    system = read_mjcf(models.path("four_bar"))
    with pytest.raises(err.ShapeError, match=r"q has shape \(2,\)"):
        redundancy(system, [0.0, 0.0])
