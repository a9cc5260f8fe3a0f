"""The slider-crank with equal links, driven through the poses where its Jacobian vanishes."""

import functools
import re

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from simulation_mechanisms import classical, crank_motion, crank_rate, particle, slider_crank
from support.corpora import ROOT

import mbcasadi as mb
from mbcasadi.dynamics.formulations import FORMULATIONS
from mbcasadi.errors import MotionError, SimulationError
from mbcasadi.simulation import IntegrationOptions, SampledLaw

ANGLE, DURATION = 0.3, 10.0
TIGHT = {"rtol": 1e-10, "atol": 1e-12}
TIGHTEST = {"rtol": 1e-12, "atol": 1e-14}

ENERGY_TOL = 1e-7  # relative: rtol 1e-10 in each of some 1000 steps
DRIFT_TOL = 1e-10
MOTION_TOL = 1e-6  # rad, against the equation of the crank alone: that energy over up to 90 rad
# Over 3 s at rtol 1e-12, up to 350 steps, rounding decides: rows as short as x = 1e-3 turn 1e-16
# into 1e-16 / x² (`simulation.manifold.DOUBT`) at some stages of up to five poses. Up to 6e-10 and
# 4e-9 rad are measured, differently with each BLAS.
TIGHTEST_ENERGY_TOL = 5e-9
TIGHTEST_MOTION_TOL = 5e-8


@functools.cache
def mechanism() -> mb.System:
    return slider_crank()


def run(speed: float, duration: float = DURATION, **options) -> mb.Trajectory:
    start = [ANGLE, -ANGLE], [speed, -speed]
    return mb.simulate(mechanism(), *start, duration, **(TIGHT | options))


def energy_error(trajectory: mb.Trajectory) -> float:
    return np.abs(trajectory.energy / trajectory.energy[0] - 1).max()


def angle_error(trajectory: mb.Trajectory, speed: float) -> float:
    reference = crank_motion(ANGLE, speed, DURATION)
    return np.abs(trajectory.q[:, 0] - reference(trajectory.t)[0]).max()


@functools.cache
def first_crossing(speed: float) -> float:
    """Return when the crank first stands across the rail, s."""
    return brentq(lambda t: crank_motion(ANGLE, speed, 1.0)(t)[0] - np.pi / 2, 0.1, 0.9)


@pytest.mark.parametrize("speed", [3.0, 5.0, 9.0])
@pytest.mark.every(3)
def test_the_crank_turns_through_singular_poses_as_its_own_equation_says(speed):
    trajectory = run(speed)
    assert np.sum(np.diff(np.sign(np.cos(trajectory.q[:, 0]))) != 0) >= 3  # singular poses
    assert energy_error(trajectory) < ENERGY_TOL
    assert trajectory.drift.max() < DRIFT_TOL
    assert trajectory.drift_velocity.max() < DRIFT_TOL
    assert angle_error(trajectory, speed) < MOTION_TOL
    assert np.diff(trajectory.t).min() > 1e-3 * np.diff(trajectory.t).max()  # no collapse


def test_it_takes_no_more_steps_than_the_equation_of_the_crank():
    alone = solve_ivp(crank_rate, [0, DURATION], [ANGLE, 5.0], method="DOP853", **TIGHT)
    assert run(5.0).steps < 1.05 * (len(alone.t) - 1)


@pytest.mark.parametrize("formulation", sorted(FORMULATIONS))
@pytest.mark.every(3)
def test_every_formulation_passes(formulation):
    trajectory = run(5.0, 3.0, formulation=formulation)
    assert energy_error(trajectory) < ENERGY_TOL
    assert angle_error(trajectory, 5.0) < MOTION_TOL


def test_a_stop_or_a_sample_at_the_very_pose_does_no_harm():
    """Ticks of a controller end a step there; next to it, directions are made of rounding."""
    crossing = first_crossing(5.0)
    for offset in (0.0, 1e-13, 1e-9, 1e-7, 1e-5, 1e-3):
        idle = SampledLaw(lambda *_: [], crossing + offset)
        ticked = run(5.0, 1.0, controller=idle)
        assert energy_error(ticked) < ENERGY_TOL, offset
        assert angle_error(ticked, 5.0) < MOTION_TOL, offset
    sampled = run(5.0, 1.0, times=[0.0, crossing, 1.0])
    assert sampled.rank.tolist() == [1, 0, 1]
    speed = crank_motion(ANGLE, 5.0, 1.0)(crossing)[1]
    np.testing.assert_allclose(sampled.v[1], [speed, -speed], rtol=1e-9)
    np.testing.assert_allclose(sampled.a[1], [0, 0], atol=1e-6)  # by symmetry, on the branch


def test_acceleration_and_force_at_the_very_pose_are_those_of_the_branch():
    """Along (1, -1) the inertia is 5 there; `f_c = M a - f` has no part along it."""
    start = [np.pi / 2, -np.pi / 2], [5.0, -5.0], 0.1
    run_from = mb.simulate(mechanism(), *start, force=lambda *_: [3.0, 1.0], **TIGHT)
    assert run_from.rank[0] == 0
    np.testing.assert_allclose(run_from.a[0], [0.4, -0.4], atol=1e-7)
    np.testing.assert_allclose(run_from.f_c[0], [-1.8, -1.8], atol=1e-7)


@pytest.mark.parametrize("branch", [-1.0, 1.0])
def test_a_start_at_the_singular_pose_follows_the_branch_of_its_velocity(branch):
    q0, v0 = np.array([np.pi / 2, -np.pi / 2]), np.array([5.0, branch * 5.0])
    trajectory = mb.simulate(mechanism(), q0, v0, 2.0, **TIGHT)
    assert trajectory.rank[0] == 0
    # q2 = -q1, or both links turn as one: q2 = q1 - pi
    apart = trajectory.q[:, 1] - branch * trajectory.q[:, 0]
    np.testing.assert_allclose(apart, apart[0], atol=1e-9)
    assert energy_error(trajectory) < ENERGY_TOL
    nudged = mb.simulate(mechanism(), q0, v0 + np.array([0, 0.1]), 2.0, **TIGHT)
    np.testing.assert_allclose(nudged.v[0, 1], branch * nudged.v[0, 0], rtol=1e-9)


@pytest.mark.parametrize("longer", [1e-2, 1e-5, 1e-8])
def test_a_rod_that_is_a_little_longer_swings_back_however_near_the_branches_pass(longer):
    """Then no pose is singular: sin q2 = -sin q1 / (1 + longer), the rod never passes -90 deg."""
    system = slider_crank(longer=longer)
    q0 = np.array([ANGLE, -np.arcsin(np.sin(ANGLE) / (1 + longer))])
    run_back = mb.simulate(system, q0, [5.0, -5.0], 1.0, rtol=1e-8, atol=1e-10)
    angle, rod = run_back.q[-1]
    assert angle > np.pi / 2 + 1
    assert abs(rod + np.arcsin(np.sin(angle) / (1 + longer))) < 1e-7
    assert energy_error(run_back) < 1e-6


def test_a_velocity_between_the_branches_is_refused():
    with pytest.raises(SimulationError, match="singular pose and v0 lies along none"):
        mb.simulate(mechanism(), [np.pi / 2, -np.pi / 2], [5.0, 0.0], 1.0)


def test_rows_that_require_two_accelerations_a_little_apart_are_refused():
    pulled = particle(
        1, phi=lambda q, _v, t: ca.vertcat(q - t**2 / 2, q - 1.0001 * t**2 / 2), timed=True
    )
    with pytest.raises(SimulationError, match="the start has no motion"):
        mb.simulate(pulled, [0.0], [0.0], 1.0)


def test_classical_multipliers_and_integration_without_projection_leave_the_branch(monkeypatch):
    monkeypatch.setitem(FORMULATIONS, "classical", classical)
    for formulation in ("classical", "lagrange"):
        without = IntegrationOptions(project="none")
        drifting = run(5.0, 3.0, formulation=formulation, integration=without)
        assert energy_error(drifting) < 1e-5  # it looks well
        assert drifting.drift.max() < 1e-9
        assert angle_error(drifting, 5.0) > 1.0  # but it is another motion
    assert angle_error(run(5.0, 3.0), 5.0) < MOTION_TOL


def test_classical_multipliers_fail_where_a_row_is_repeated(monkeypatch):
    monkeypatch.setitem(FORMULATIONS, "classical", classical)
    repeated = slider_crank(copies=2)
    start = [ANGLE, -ANGLE], [5.0, -5.0], 1.0
    with pytest.raises(SimulationError, match="the start has no motion"):
        mb.simulate(repeated, *start, "classical", integration=IntegrationOptions("none"))
    twice = mb.simulate(repeated, *start, **TIGHT)
    np.testing.assert_allclose(twice.q[-1], run(5.0, 1.0).q[-1], rtol=1e-9)


def test_projection_after_the_step_collapses_where_projection_in_the_stages_does_not():
    """[A05, section 6] against the same at every stage, with the same integrator.

    Whether a step ends next to a singular pose is a matter of rounding: here a controller's tick
    ends one there, and most of the runs collapse.
    """
    collapses = []
    for atol in (1e-15, 5e-15):
        for offset in (-1e-6, -1e-7, 1e-8, 1e-6):
            tight = TIGHTEST | {"atol": atol}
            tick = SampledLaw(lambda *_: [], first_crossing(5.0) + offset)
            staged = run(5.0, 0.6, controller=tick, **tight)
            assert energy_error(staged) < TIGHTEST_ENERGY_TOL
            assert angle_error(staged, 5.0) < TIGHTEST_MOTION_TOL
            after_steps = IntegrationOptions(project="step", max_steps=10 * staged.steps)
            try:
                run(5.0, 0.6, controller=tick, integration=after_steps, **tight)
            except MotionError as collapse:
                collapses.append(collapse)
    assert collapses
    for collapse in collapses:
        assert re.search("max_steps|step size collapsed", str(collapse))
        assert abs(np.cos(collapse.trajectory.q[-1, 0])) < 1e-5  # at a singular pose
        assert collapse.trajectory.drift.max() < DRIFT_TOL


@pytest.mark.parametrize("speed", [3.0, 5.0])
def test_tight_tolerances_keep_the_energy_to_what_rounding_next_to_the_poses_leaves(speed):
    trajectory = run(speed, 3.0, **TIGHTEST)
    assert energy_error(trajectory) < TIGHTEST_ENERGY_TOL
    assert angle_error(trajectory, speed) < TIGHTEST_MOTION_TOL


def test_the_mjcf_twin_with_three_rows_moves_alike():
    system = mb.read_mjcf(ROOT / "mujoco_models" / "slider_crank.xml")
    q0 = [ANGLE, 2 * np.cos(ANGLE), ANGLE]
    v0 = [5.0, -10.0 * np.sin(ANGLE), 5.0]
    trajectory = mb.simulate(system, q0, v0, DURATION, **TIGHT)
    assert system.nc == 3
    assert set(trajectory.rank) == {2}
    assert energy_error(trajectory) < ENERGY_TOL
    assert trajectory.drift.max() < DRIFT_TOL
    assert angle_error(trajectory, 5.0) < MOTION_TOL  # inertias of 1e-9 are in the model
