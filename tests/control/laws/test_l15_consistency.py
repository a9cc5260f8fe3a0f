"""Consistency and controllability of servo rows, in words, against ranks by NumPy."""

import casadi as ca
import numpy as np
import pytest
from l15_mechanisms import bar_rows, gap_rows, masses, robots
from numpy.testing import assert_allclose
from support.refusals import refused

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control.laws import servo_report, servo_rows

arms = pytest.fixture(scope="module")(lambda: robots.system())


def test_the_bar_of_the_five_links_can_be_kept_with_three_motors_to_spare(arms):
    report = servo_report(arms, bar_rows(arms), robots.START, signals={"y": [1.5, 0, 0]})
    assert (report.rank_rows, report.rank_motion, report.rank_control) == (3, 3, 3)
    assert report.consistent
    assert report.controllable
    assert report.attainable
    assert "leave all of them free" in report.in_words
    assert "reach all 3 (34), with 3 to spare" in report.in_words
    assert "A control gives the desired acceleration now (33)." in report.in_words


def test_one_row_too_many_is_decided_by_the_loop_and_named(arms):
    """The place of joint 4 follows from the bar's: a desired motion of it contradicts the loop."""
    q, v, y = ca.SX.sym("q", 5), ca.SX.sym("v", 5), ca.SX.sym("y", 4)
    names = ("x3", "y3", "theta3", "reach")
    fourth = robots.points(q)[4]
    far = ca.sumsqr(fourth - ca.vertcat(robots.SPAN, 0))  # constant: link 5 is rigid
    rows = servo_rows(arms, q, v, phi=ca.vertcat(robots.bar_pose(q), far) - y, y=y, names=names)
    signals = {"y": [1.5, 0, 0, 1], "yddot": [0, 0.5, 0, 0.3]}
    report = servo_report(arms, rows, robots.START, signals=signals)
    assert (report.rank_rows, report.rank_motion) == (4, 3)
    assert not report.consistent
    assert not report.attainable
    assert report.controllable  # of what is left
    assert "the passive constraints decide reach, and leave 3 free" in report.in_words
    assert "The desired acceleration of reach contradicts" in report.in_words
    signals["yddot"] = [0, 0.5, 0, 0]
    assert servo_report(arms, rows, robots.START, signals=signals).consistent


def test_rows_that_repeat_each_other_are_consistent_only_if_they_ask_for_the_same(arms):
    """(27): `A A⁺ b = b`."""
    q, v, y = ca.SX.sym("q", 5), ca.SX.sym("v", 5), ca.SX.sym("y", 2)
    rows = servo_rows(arms, q, v, phi=ca.vertcat(q[2] - y[0], 2 * q[2] - y[1]), y=y)
    same = servo_report(arms, rows, robots.START, signals={"yddot": [1.0, 2.0]})
    assert (same.rank_rows, same.consistent, same.attainable) == (1, True, True)
    other = servo_report(arms, rows, robots.START, signals={"yddot": [1.0, 1.0]})
    assert not other.consistent
    assert "Servo rows: 2, independent: 1" in other.in_words
    assert_allclose(other.contradiction @ [1, 2], 0, atol=1e-12)  # least squares


def test_a_rank_of_one_is_not_enough_and_the_unreachable_row_and_joint_are_named():
    """(34) as printed asks for rank >= 1: with the gap and the place of x2 it holds, in vain."""
    springs = masses.system()
    assert servo_report(springs, gap_rows(springs), [0.0, 0.9]).controllable
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    rows = servo_rows(springs, q, v, phi=ca.vertcat(masses.gap(q), q[1]), names=("gap", "x2"))
    report = servo_report(springs, rows, [0.0, 0.9])
    assert (report.rank_motion, report.rank_control) == (2, 1)
    assert not report.controllable
    assert report.consistent  # an acceleration would do, no control gives it
    assert "reach 1 of 2" in report.in_words
    assert "No actuator accelerates x2 (34); it is a motion of q_1." in report.in_words
    assert "No control gives the desired acceleration of x2 now (33)." in report.in_words


def test_joints_and_motors_are_called_by_the_models_names():
    masses_mjcf = mb.read_mjcf(models.path("two_mass_spring"))
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    rows = servo_rows(masses_mjcf, q, v, phi=q[1] - 1, names=("place",))
    text = servo_report(masses_mjcf, rows, [0.0, 0.9]).in_words
    assert "They do not depend on F." in text
    assert "it is a motion of x2" in text


def test_the_grasp_decides_whether_motors_reach_the_bar():
    arms = mb.read_mjcf(models.path("two_arm_carry"), switchable=True)
    q, v = ca.SX.sym("q", 9), ca.SX.sym("v", 9)
    rows = servo_rows(arms, q, v, phi=q[6:], names=("x", "z", "angle"))
    expected = {(1, 0, 0): (0, 0), (0, 0, 0): (3, 0), (0, 1, 1): (3, 3), (0, 1, 0): (3, 3)}
    for mask, (free, reached) in expected.items():
        on = np.repeat(mask, 6)
        report = servo_report(arms, rows, arms.tree.q0, rows=on)
        assert (report.rank_motion, report.rank_control) == (free, reached), mask
    stand = servo_report(arms, rows, arms.tree.q0, rows=np.repeat((1, 0, 0), 6))
    assert not stand.controllable
    assert "no control is of use" in stand.in_words


def test_wrong_sizes_are_refused(arms):
    with pytest.raises(err.ShapeError, match="yddot"):
        servo_report(arms, bar_rows(arms), robots.START, signals={"yddot": [1.0]})
    refused(err.ShapeError, "q", lambda: servo_report(arms, bar_rows(arms), [0.0]))


def crank_without_a_use(units=1.0):
    """A mass on a tilted rail that is pushed across it alone, lengths in `1 / units` m."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    along, across = np.array([0.6, 0.8]), np.array([0.8, -0.6])
    system = mb.from_equations(
        q,
        v,
        M=np.diag([0.7, 0.7]) / units**2,
        h=[0, 0.7 * 9.81 / units],
        B=across[:, None] * 0.3 / units,
        phi=ca.dot(across, q),
    )
    rows = servo_rows(system, q, v, phi=ca.dot(along, q) / units - 1, names=("place",))
    return system, rows


@pytest.mark.parametrize("units", [1.0, 1e3, 1e-3])
def test_where_no_control_does_anything_no_row_is_attainable(units):
    """The response is rounding, some 1e-17: its rank must not be judged by itself."""
    system, rows = crank_without_a_use(units)
    report = servo_report(system, rows, [0.0, 0.0])
    assert (report.rank_rows, report.rank_motion, report.rank_control) == (1, 1, 0)
    assert not report.attainable
    assert not report.controllable
    assert report.consistent
    assert_allclose(report.out_of_reach, [0.8 * 9.81], rtol=1e-12)  # of gravity
    assert "They do not depend on u0." in report.in_words
    assert "No control gives the desired acceleration of place now (33)." in report.in_words


@pytest.mark.parametrize("units", [1.0, 1e4, 1e-4])
def test_the_report_is_the_same_in_all_units(units):
    """Two masses of very unequal units: both places are driven, whatever the unit of the first."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    M, S = np.array([[2.0, 0.4], [0.4, 0.5]]), np.diag([1 / units, 1.0])
    system = mb.from_equations(q, v, M=S @ M @ S, h=[0, 0], B=S @ [[1.0, 0], [0, 1.0]])
    rows = servo_rows(system, q, v, phi=ca.vertcat(q[0] / units - 1, q[1]), names=("a", "b"))
    report = servo_report(system, rows, [0.0, 0.0])
    assert (report.rank_rows, report.rank_motion, report.rank_control) == (2, 2, 2)
    assert report.attainable
    assert report.controllable


def test_a_motion_that_forces_do_not_determine_is_refused():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    system = mb.from_equations(q, v, M=np.diag([1.0, 0]), h=[0, 0], B=np.eye(2))
    with pytest.raises(err.ProblemError, match="not positive definite on the free motions at q"):
        servo_report(system, servo_rows(system, q, v, phi=q[1]), [0.0, 0.0])
