"""Condition (64) in numbers and words."""

import casadi as ca
import numpy as np
import pytest
from a05_mechanisms import projector, system_of
from numpy.testing import assert_allclose
from support.refusals import refused

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.control.laws import input_reach, sampled_poses, workspace_input_reach
from mbcasadi.formulation.metric import length_metric

POLE = [np.pi / 2, 0.0, np.pi / 2]  # crank upright, slider on its axis


def flat_system(A: np.ndarray, B: np.ndarray) -> mb.System:
    """Return unit masses with constant rows and actuation."""
    n = A.shape[1]
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    return mb.from_equations(q, v, M=np.eye(n), h=np.zeros(n), B=B, phi=ca.SX(A) @ q)


@pytest.mark.parametrize("seed", range(30))
def test_it_is_the_papers_condition_on_random_mechanisms(seed):
    """R((I - B) P) within R((I - B)(I - P))  [A05, eq. 58]; rows may repeat."""
    rng = np.random.default_rng(seed)
    n, rows, motors = 5, int(rng.integers(1, 4)), int(rng.integers(1, 5))
    A = rng.integers(-1, 2, (rows, n)).astype(float)
    A = np.vstack([A, 2 * A[:1]])
    select = np.eye(n)[:, rng.permutation(n)[:motors]]
    P = np.eye(n) - np.linalg.pinv(A, 1e-9) @ A
    unselected = np.eye(n) - select @ select.T
    wide, narrow = (
        np.hstack([unselected @ (np.eye(n) - P), unselected @ P]),
        unselected @ (np.eye(n) - P),
    )
    paper = np.linalg.matrix_rank(wide, 1e-9) == np.linalg.matrix_rank(narrow, 1e-9)
    report = input_reach(flat_system(A, select), np.zeros(n))
    assert report.controllable == paper
    assert report.motions.shape[1] == round(np.trace(P))
    assert_allclose(A @ report.undriven, 0, atol=1e-12)
    assert_allclose(select.T @ report.undriven, 0, atol=1e-12)


def test_both_verdicts_occur_in_the_random_mechanisms():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((2, 4))
    assert input_reach(flat_system(A, np.eye(4)[:, :2]), np.zeros(4)).controllable
    few = input_reach(flat_system(A, np.eye(4)[:, :1]), np.zeros(4))
    assert not few.controllable
    assert few.margin == 0


def test_the_singular_pose_has_a_motion_that_the_crank_does_not_drive():
    system = system_of("slider_crank")
    assert_allclose(system.constraint(POLE), 0, atol=1e-12)
    at, near = (input_reach(system, q) for q in (POLE, system.tree.q0))
    assert near.controllable
    assert "The only motion of 'slider_crank' can be driven here" in near.in_words
    assert at.in_words == (
        "1 of the 2 motions of 'slider_crank' can be driven here. Motion along slider (+0.71), "
        "rod (-0.71) cannot be: no actuator does work on it. Only the forces at this pose are "
        "meant: beside it the motion may be driven. Here one actuator more for each, on a joint "
        "named, would suffice."
    )
    assert input_reach(system_of("slider_crank_driven"), POLE).controllable
    assert_allclose(system.constraint_jacobian(POLE) @ at.undriven, 0, atol=1e-12)


def test_the_margin_is_the_force_that_a_motion_costs():
    """The least force in range(B) that moves along the weakest motion is 1 / margin as large."""
    system = system_of("planar_3rrr")
    q = system.tree.q0
    report = input_reach(system, q, metric=np.eye(system.nv))
    weakest = report.weakest / np.linalg.norm(report.weakest)
    PB = projector(system, q) @ system.actuation(q).full()
    least = np.linalg.norm(np.linalg.pinv(PB, 1e-9) @ weakest)
    assert least > 1.5
    assert_allclose(report.margin, 1 / least, rtol=1e-9)


def test_a_metric_makes_the_margin_the_same_in_all_units_and_leaves_the_verdict():
    rng = np.random.default_rng(2)
    A, scale = rng.standard_normal((2, 4)), np.array([1000.0, 1.0, 1000.0, 1.0])
    B, turns = np.eye(4)[:, [0, 1]], scale == 1
    here, there = flat_system(A, B), flat_system(A / scale, B / scale[:, None])
    plain = [input_reach(one, np.zeros(4)).margin for one in (here, there)]
    assert abs(plain[0] - plain[1]) > 0.01
    metrics = [np.array(length_metric(turns, length)) for length in (0.5, 500.0)]
    weighted = [
        input_reach(one, np.zeros(4), metric=W).margin
        for one, W in zip((here, there), metrics, strict=True)
    ]
    assert_allclose(weighted[0], weighted[1], rtol=1e-10)


def test_a_row_that_is_off_frees_a_motion():
    system = system_of("five_bar")
    q = system.tree.q0
    opened = input_reach(system, q, mask=np.zeros(3))
    assert opened.motions.shape[1] == 4
    assert opened.undriven.shape[1] == 2
    assert "left_distal" in opened.in_words
    assert "right_distal" in opened.in_words
    assert input_reach(system, q).controllable


def test_the_workspace_report_counts_poses_and_names_the_worst():
    system = system_of("five_bar")
    poses = sampled_poses(system, 100, spread=0.8)
    gaps = system.constraint.map(len(poses))(poses.T).full()
    assert len(poses) > 80
    assert np.abs(gaps).max() < 1e-9
    assert np.ptp(poses[:, 0]) > 1
    report = workspace_input_reach(system, poses)
    assert report.share == np.mean(report.driven == report.motions)
    assert report.worst.margin == report.margins.min()
    assert f"at {np.sum(report.driven == 2)} of {len(poses)} poses" in report.in_words
    crank = system_of("slider_crank")
    with_pole = np.vstack([sampled_poses(crank, 9, spread=0.1), POLE])
    worst = workspace_input_reach(crank, with_pole)
    assert worst.share == 0.9
    assert "at 9 of 10 poses" in worst.in_words
    assert "slider (+0.71)" in worst.in_words


def test_poses_of_a_wrong_shape_are_refused():
    with pytest.raises(err.ShapeError, match=r"expected \(n, 4\)"):
        workspace_input_reach(system_of("five_bar"), np.zeros((2, 3)))
    refused(err.ShapeError, "q has shape", lambda: input_reach(system_of("five_bar"), np.zeros(3)))


def test_rows_of_velocities_are_taken_at_the_velocity_and_rows_that_move_at_their_time():
    """`v_0² = v_1²` frees nothing but one direction while it moves, and everything at rest."""
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    push = {"M": np.eye(2), "h": np.zeros(2), "B": [[1.0], [0.0]]}
    skates = mb.from_equations(q, v, **push, psi=v[0] ** 2 - v[1] ** 2)
    moving = input_reach(skates, np.zeros(2), v=[1.0, 1.0])
    assert moving.controllable
    along = moving.motions.ravel() / moving.motions[0, 0]
    assert_allclose(along, [1.0, 1.0])
    assert moving.margin == pytest.approx(np.sqrt(0.5))
    assert not input_reach(skates, np.zeros(2)).controllable  # at rest its row is zero
    turning = mb.from_equations(q, v, **push, phi=q[0] * ca.cos(t) + q[1] * ca.sin(t), t=t)
    for time in (0.0, 0.4, 1.2):
        report = input_reach(turning, np.zeros(2), t=time)
        assert report.margin == pytest.approx(np.abs(np.sin(time)), abs=1e-12)
        many = workspace_input_reach(turning, np.zeros((1, 2)), t=time)
        assert many.margins[0] == report.margin
    refused(err.ShapeError, "v has shape", lambda: input_reach(skates, np.zeros(2), v=[1.0]))
    refused(err.ProblemError, "t = nan", lambda: input_reach(turning, np.zeros(2), t=np.nan))
