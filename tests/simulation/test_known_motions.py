"""Motion against closed forms, invariants and the order of the integrator."""

import casadi as ca
import numpy as np
import pytest
from scipy.special import ellipj, ellipk
from simulation_mechanisms import GRAVITY, ball_top, free_top, knife_edge, particle
from support.corpora import ROOT

import mbcasadi as mb
from mbcasadi.simulation import EquationOptions, IntegrationOptions, dormand_prince
from mbcasadi.simulation.manifold import Manifold
from mbcasadi.simulation.right_hand_side import RightHandSide

TIGHT = {"rtol": 1e-11, "atol": 1e-13}
DRIFTING = IntegrationOptions(project="none")
MOTION_TOL = 1e-8  # m and rad, over seconds at rtol 1e-11


def test_a_heavy_particle_on_a_circle_swings_as_the_elliptic_functions_say():
    system = particle(2, heavy=True, phi=lambda q, *_: ca.sumsqr(q) - 1)
    start = 2.5  # rad from the lowest point, at rest
    trajectory = mb.simulate(
        system, [np.sin(start), -np.cos(start)], [0, 0], 5.0, times=np.linspace(0, 5, 40), **TIGHT
    )
    m = np.sin(start / 2) ** 2
    sn = ellipj(ellipk(m) + np.sqrt(GRAVITY) * trajectory.t, m)[0]
    angle = 2 * np.arcsin(np.sqrt(m) * sn)
    np.testing.assert_allclose(trajectory.q[:, 0], np.sin(angle), atol=MOTION_TOL)
    np.testing.assert_allclose(trajectory.q[:, 1], -np.cos(angle), atol=MOTION_TOL)
    # the string's force, m (v²/r + g cos): f_c = lam ∂phi/∂q with |∂phi/∂q| = 2
    tension = np.sum(trajectory.v**2, axis=1) + GRAVITY * np.cos(angle)
    np.testing.assert_allclose(-2 * trajectory.lam[:, 0], tension, atol=1e-6)
    np.testing.assert_allclose(-trajectory.f_c, tension[:, None] * trajectory.q, atol=1e-6)


def test_a_velocity_row_that_repeats_a_position_row_does_not_hinder_newton():
    circle = {"heavy": True, "phi": lambda q, *_: ca.sumsqr(q) - 1}
    start = ([0.6, -0.8], [0, 0], 1.0)
    twice = particle(2, **circle, A=lambda q, *_: 2 * q.T)
    run, alone = mb.simulate(twice, *start), mb.simulate(particle(2, **circle), *start)
    assert set(run.rank) == {1}
    assert run.steps == alone.steps
    assert run.drift.max() < 1e-14  # counted twice, each Newton step would close half of the gap
    np.testing.assert_allclose(run.q[-1], alone.q[-1], atol=1e-9)


def test_a_skate_on_an_incline_draws_its_cycloid():
    """Rows for velocities only: `x = g/(2 w²) sin² wt`, `y = g/(2 w²) (wt - sin wt cos wt)`."""
    g, w = 4.0, 2.0
    trajectory = mb.simulate(knife_edge(g), [0, 0, 0], [0, 0, w], 5.0, **TIGHT)
    turn = w * trajectory.t
    x = g / (2 * w**2) * np.sin(turn) ** 2
    y = g / (2 * w**2) * (turn - np.sin(turn) * np.cos(turn))
    np.testing.assert_allclose(trajectory.q, np.column_stack([x, y, turn]), atol=MOTION_TOL)
    assert trajectory.drift_velocity.max() < 1e-14
    assert np.ptp(trajectory.energy) < MOTION_TOL


def test_a_row_nonlinear_in_the_velocity_keeps_the_speed():
    """A particle forced to constant speed s in gravity turns by `sin(angle) = -tanh(g t / s)`."""
    s = 3.0
    system = particle(2, heavy=True, psi=lambda _, v, __: ca.sumsqr(v) - s**2)
    trajectory = mb.simulate(system, [0, 0], [s + 0.2, 0], 0.5, **TIGHT)
    np.testing.assert_allclose(trajectory.v[0], [s, 0], atol=1e-12)  # the start is made admissible
    angle = np.arctan2(trajectory.v[:, 1], trajectory.v[:, 0])
    expected = -np.arcsin(np.tanh(GRAVITY / s * trajectory.t))
    np.testing.assert_allclose(angle, expected, atol=MOTION_TOL)
    assert trajectory.drift_velocity.max() < 1e-13


def test_a_bead_on_a_turning_rod_flies_outwards():
    """Rheonomic: the rod turns at w, `r = r0 cosh wt`; the start gets the rod's velocity."""
    w, r0 = 1.5, 0.4
    system = particle(
        2, timed=True, phi=lambda q, _, t: q[1] * ca.cos(w * t) - q[0] * ca.sin(w * t)
    )
    trajectory = mb.simulate(system, [r0, 0], [0, 0], 2.0, **TIGHT)
    np.testing.assert_allclose(trajectory.v[0], [0, w * r0], atol=1e-12)
    r, turn = r0 * np.cosh(w * trajectory.t), w * trajectory.t
    expected = np.column_stack([r * np.cos(turn), r * np.sin(turn)])
    np.testing.assert_allclose(trajectory.q, expected, atol=MOTION_TOL)
    assert trajectory.drift.max() < 1e-12


def rotation(quat: np.ndarray) -> np.ndarray:
    w, x, y, z = quat
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def test_a_free_top_keeps_energy_angular_momentum_and_unit_quaternions():
    inertia, spin = np.diag([0.1, 0.2, 0.25]), np.array([0.3, 9.0, 0.2])  # about the middle axis
    v0 = np.array([1.0, -2.0, 0.5, *spin])
    trajectory = mb.simulate(free_top(), [0, 0, 0, 1, 0, 0, 0], v0, 10.0, **TIGHT)
    momentum = np.array(
        [rotation(q[3:]) @ inertia @ v[3:] for q, v in zip(trajectory.q, trajectory.v, strict=True)]
    )
    np.testing.assert_allclose(momentum, np.tile(inertia @ spin, (len(momentum), 1)), atol=1e-8)
    assert np.ptp(trajectory.energy) < 1e-8
    assert trajectory.v[:, 4].min() < -8.0  # it has turned over, as it must
    norms = np.linalg.norm(trajectory.q[:, 3:], axis=1)
    np.testing.assert_allclose(norms, 1.0, atol=1e-13)
    straight = trajectory.t[:, None] * v0[:3]
    np.testing.assert_allclose(trajectory.q[:, :3], straight, atol=1e-9)


@pytest.mark.parametrize("constrained", [False, True])
def test_the_order_holds_on_rotations(constrained):
    """Halving the step divides the error by 2⁸; the plain velocity as rate would give 2²."""
    system = ball_top()
    if constrained:
        q, v = ca.SX.sym("q", 4), ca.SX.sym("v", 3)
        level = 2 * (q[1] * q[3] - q[0] * q[2])  # height of the body's x axis
        system = system.with_rows(q, v, phi=level)
    errors = []
    exact = fixed_steps(system, 128)
    for count in (8, 16):
        errors.append(np.linalg.norm(fixed_steps(system, count) - exact))
    assert errors[0] > 1e-10  # above rounding
    assert np.log2(errors[0] / errors[1]) > 7.4


def fixed_steps(system: mb.System, count: int, duration: float = 3.0) -> np.ndarray:
    """Return the final (q, v) after steps of one size, each in its own coordinates."""
    manifold = Manifold(system, EquationOptions(), np.ones(system.nc))
    motion = RightHandSide(manifold, "projection", EquationOptions())
    start = np.array([0.9, 0.1, 0.3, 0.2])
    q = mb.assemble(system, start / np.linalg.norm(start))
    v = manifold.admissible(q, np.array([2.0, -3.0, 4.0]), 0.0).v
    act, h = np.zeros(0), duration / count
    for k in range(count):
        motion.base, y = q, motion.local_state(v, act)
        first_rate = motion.rate(k * h, y)
        step = dormand_prince.trial_step(motion.rate, k * h, y, first_rate, h)
        q, v, act = motion.state(k * h + h, step.y_next)
    return np.concatenate([q, v])


def test_states_between_steps_are_as_good_as_the_steps():
    system = ball_top()
    start = ([1, 0, 0, 0], [2.0, -3.0, 4.0], 1.0)
    times = np.linspace(0, 1, 37)
    coarse = mb.simulate(system, *start, times=times, rtol=1e-9, atol=1e-11)
    fine = mb.simulate(system, *start, times=times, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(coarse.t, times)
    assert coarse.steps < len(times)
    np.testing.assert_allclose(coarse.q, fine.q, atol=1e-7)
    np.testing.assert_allclose(coarse.v, fine.v, atol=1e-6)


def test_drift_is_none_with_projection_bounded_with_baumgarte_and_grows_with_neither():
    system = particle(2, heavy=True, phi=lambda q, *_: ca.sumsqr(q) - 1)
    start, loose = ([0.6, -0.8], [0, 0], 20.0), {"rtol": 1e-6, "atol": 1e-8}
    held = mb.simulate(system, *start, **loose)
    after_step = mb.simulate(system, *start, **loose, integration=IntegrationOptions("step"))
    free = mb.simulate(system, *start, **loose, integration=DRIFTING)
    rates = mb.Baumgarte(20.0, 20.0)
    pulled = mb.simulate(
        system, *start, **loose, integration=DRIFTING, equations=EquationOptions(baumgarte=rates)
    )
    for projected in (held, after_step):
        assert max(projected.drift.max(), projected.drift_velocity.max()) < 1e-14
    half = len(free.t) // 2
    assert free.drift.max() > 1e-6
    assert free.drift[half:].max() > 1.5 * free.drift[:half].max()
    assert 1e-14 < pulled.drift.max() < free.drift.max() / 5


def test_a_gap_does_not_hold_a_loop_of_repeated_rows():
    """Off the manifold the gap itself adds to the rank of an overconstrained loop."""
    system = mb.read_mjcf(ROOT / "mujoco_models" / "spatial_loop.xml")
    start, loose = (system.tree.q0, np.zeros(system.nv), 0.2), {"rtol": 1e-6, "atol": 1e-8}
    held = mb.simulate(system, *start, **loose)
    free = mb.simulate(system, *start, **loose, integration=DRIFTING)
    assert held.rank.max() < system.nc
    assert held.drift.max() < 1e-14
    assert free.drift.max() > 1e-10  # the gap is there,
    assert free.rank.max() == held.rank.max()  # and no row counts because of it
    assert free.steps < 2 * held.steps
    np.testing.assert_allclose(free.q[-1], held.q[-1], atol=1e-5)
