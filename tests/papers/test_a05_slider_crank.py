"""The slider-crank of A05: its printed matrices, and its motion through singular poses."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import DOP853, quad
from support.examples import example, results

import mbcasadi as mb
from mbcasadi.formulation.projection import parameterized_constraint_inertia

CRANK = example(4)
GRAVITY = 9.81  # m/s²
EVERY_STAGE, EVERY_STEP = "q, v at every stage", "q, v after each step"
CLASSICAL = "classical Lagrange"
COLLAPSED = 1e-9  # s; where all is well the steps are 2e-3 s and longer
ENERGY = 1e-7  # relative: rtol 1e-10 in each of some 1000 steps
APART = 1e-6  # rad: that energy over the 60 rad of ten seconds, rounded down
NEXT_TO_IT = 0.05  # s; a usual step before the singular pose where a run ends


@pytest.fixture(scope="module")
def system():
    return CRANK["slider_crank"].system()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return results(CRANK, tmp_path_factory.mktemp("figure"))


def on_the_branch(crank, speed):
    return np.array([crank, -2 * crank]), np.array([speed, -2 * speed])


def test_inertia_bias_and_row_are_the_printed_ones(system):
    """(68), (69) with m = l = 1; the inertia is that of point masses at the links' ends."""
    rng = np.random.default_rng(5)
    for _ in range(5):
        (q1, q2), (v1, v2) = q, v = rng.uniform(-3, 3, 2), rng.uniform(-3, 3, 2)
        c1, c2, s2, c12 = np.cos(q1), np.cos(q2), np.sin(q2), np.cos(q1 + q2)
        M = [[3 + 2 * c2, 1 + c2], [1 + c2, 1]]
        h = [-s2 * (v2**2 + 2 * v1 * v2) + GRAVITY * (c12 + 2 * c1), s2 * v1**2 + GRAVITY * c12]
        np.testing.assert_allclose(system.mass_matrix(q), M, atol=1e-14)
        np.testing.assert_allclose(np.array(system.bias_force(q, v)).ravel(), h, atol=1e-12)
        np.testing.assert_allclose(system.constraint_jacobian(q), [[c1 + c12, c12]], atol=1e-14)


def test_projector_and_inertia_are_the_printed_ones_with_the_branches_exchanged(system):
    """(70), (71): the matrices of fifths hold where the row does not vanish, and are `M''_c`."""
    for crank in (0.3, 1.2, 2.0, 4.0):
        q, _ = on_the_branch(crank, 1.0)
        A, M, c2 = system.constraint_jacobian(q), system.mass_matrix(q), np.cos(q[1])
        P = mb.linalg.projector(A)
        inertia = parameterized_constraint_inertia(M, P, 1.0)
        np.testing.assert_allclose(P, [[0.2, -0.4], [-0.4, 0.8]], atol=1e-13)
        np.testing.assert_allclose(inertia, [[1, (1 + c2) / 5], [0, (3 - 2 * c2) / 5]], atol=1e-13)
    singular, _ = on_the_branch(np.pi / 2, 1.0)
    A, M = system.constraint_jacobian(singular), system.mass_matrix(singular)
    P = mb.linalg.projector(A)
    np.testing.assert_allclose(P, np.eye(2), atol=0)
    np.testing.assert_allclose(parameterized_constraint_inertia(M, P, 1.0), M, atol=1e-15)


def test_only_odd_multiples_of_a_right_angle_are_singular(system):
    """(65) corrected."""
    for n in range(-4, 5):
        A = system.constraint_jacobian(on_the_branch(n * np.pi / 2, 1.0)[0])
        assert float(mb.linalg.rank(A)) == (n % 2 == 0)


def test_the_motion_passes_every_singular_pose_and_keeps_energy_step_and_branch(runs):
    run = runs[EVERY_STAGE]
    crank = run["q"][:, 0]
    passed = np.count_nonzero(np.diff(np.sign(np.cos(crank))))
    assert passed == 23
    assert run["t"][-1] == 10.0
    assert run["error"].max() < ENERGY
    assert run["drift"].max() < 1e-10
    assert np.diff(run["t"])[1:-1].min() > 1e-3  # s, where the longest are 0.04
    np.testing.assert_allclose(run["q"][:, 1], -2 * crank, atol=1e-10)
    assert run["apart"].max() < APART


def test_the_time_to_turn_is_the_quadrature_of_the_energy_integral(runs):
    """`t = ∫ dq1 / w` with `½ (1 + 4 s²) w² + g s = E`, between the run's first and last crank."""
    run = runs[EVERY_STAGE]
    begin, end = run["q"][0, 0], run["q"][-1, 0]
    whole = 0.5 * (1 + 4 * np.sin(begin) ** 2) * CRANK["SPEED"] ** 2 + GRAVITY * np.sin(begin)

    def slowness(crank):
        return np.sqrt((1 + 4 * np.sin(crank) ** 2) / (2 * (whole - GRAVITY * np.sin(crank))))

    turns = np.r_[np.arange(begin, end, np.pi), end]
    time = sum(quad(slowness, a, b, epsabs=1e-13)[0] for a, b in pairwise(turns))
    assert time == pytest.approx(10.0, abs=APART / CRANK["SPEED"])


def test_after_each_step_q_and_v_hold_too_where_the_branch_is_a_straight_line(runs):
    """Until a step ends next to a singular pose: rounding lets one run in twenty do so."""
    run = runs[EVERY_STEP]
    ended = run["t"][-1] == CRANK["DURATION"]
    well = run["t"] <= run["t"][-1] - (0.0 if ended else NEXT_TO_IT)
    assert ended or np.abs(np.cos(run["q"][-1, 0])) < 1e-3
    assert run["error"][well].max() < ENERGY
    assert run["apart"][well].max() < APART


def test_the_classical_multipliers_leave_the_branch_at_a_singular_pose(runs):
    run = runs[CLASSICAL]
    assert run["drift"].max() < 1e-6  # the constraint holds: it is the other branch
    assert run["apart"].max() > 1.0
    away = np.abs(run["q"][:, 1] + 2 * run["q"][:, 0])
    assert away.max() > 1.0
    assert np.diff(run["t"])[1:-1].min() < 1e-5


def as_printed(system):
    """Times of the steps with q corrected after each by (39), not v  [A05, section 6]; last q.

    It ends with the first step shorter than `COLLAPSED`: which one is a matter of rounding errors.
    """
    dynamics, speed = mb.forward_dynamics(system), CRANK["SPEED"]

    def rate(_, x):
        return np.r_[x[2:], np.array(dynamics(x[:2], x[2:], 0)[0]).ravel()]

    start = np.r_[CRANK["START"], speed, -2 * speed]
    solver = DOP853(rate, 0.0, start, CRANK["SHORT"], rtol=1e-10, atol=1e-12)
    times, step = [0.0], np.inf
    while solver.status == "running" and step > COLLAPSED and solver.step() is None:
        q = solver.y[:2]
        A, phi = np.array(system.constraint_jacobian(q)), np.array(system.constraint(q))
        solver.y = np.r_[q - (np.linalg.pinv(A) @ phi).ravel(), solver.y[2:]]
        solver.f = rate(solver.t, solver.y)
        step = solver.t - times[-1]
        times.append(solver.t)
    return np.array(times), solver.y[:2]


def test_the_correction_that_the_paper_prints_collapses_the_step_at_a_singular_pose(system):
    t, q = as_printed(system)
    assert np.diff(t).min() < 100 * COLLAPSED
    assert t[-1] < CRANK["SHORT"]
    assert np.abs(np.cos(q[0])) < 1e-3
