"""Twins against what the books say of them, in closed form."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from twin_states import acceleration, admissible_states, array, null_space
from twins import (
    appell_hamel,
    chaplygin_sleigh,
    constant_speed,
    driven_pendulum,
    heavy_top,
    parallelogram,
    particle_on_circle,
    prr_arm,
    rolling_disc,
    slider_crank,
    spatial_loop,
    topology_switch,
    two_mass_spring,
)
from twins.energies import GRAVITY

import mbcasadi as mb

ROUNDING = 1e-11  # relative to values of order one to a hundred


def test_the_particle_on_a_circle_has_its_centripetal_acceleration_and_tangential_force():
    """`a = P f/m - ‖v‖²/rho n`  [A05, section 5.4, corrected]."""
    system, force = particle_on_circle.system(gravity=0.0), np.array([0.7, -1.9])
    for q, v in admissible_states(system, particle_on_circle.START, 5):
        along = np.array([-q[1], q[0]])
        expected = along * (along @ force) / particle_on_circle.MASS - (v @ v) * q
        np.testing.assert_allclose(acceleration(system, q, v, force), expected, atol=ROUNDING)


def test_the_slider_crank_has_the_papers_inertia_bias_and_jacobian():
    """A05, eq. 68 and 69, with m = l = 1."""
    system = slider_crank.system()
    for q, v in np.random.default_rng(1).normal(size=(5, 2, 2)):
        c1, c12, c2, s2 = np.cos(q[0]), np.cos(q.sum()), np.cos(q[1]), np.sin(q[1])
        M = [[3 + 2 * c2, 1 + c2], [1 + c2, 1]]
        h = [
            -s2 * (v[1] ** 2 + 2 * v[0] * v[1]) + GRAVITY * (c12 + 2 * c1),
            s2 * v[0] ** 2 + GRAVITY * c12,
        ]
        np.testing.assert_allclose(np.array(system.mass_matrix(q)), M, atol=ROUNDING)
        np.testing.assert_allclose(array(system.bias_force(q, v)), h, atol=ROUNDING)
        A = np.array(system.constraint_jacobian(q))
        np.testing.assert_allclose(A, [[c1 + c12, c12]], atol=ROUNDING)
    singular = np.array(system.constraint_jacobian([np.pi / 2, np.pi]))
    assert np.abs(singular).max() < ROUNDING


def test_the_prr_arm_has_the_papers_jacobian_and_minimal_coordinates():
    system = prr_arm.system()
    q = np.array(prr_arm.START)
    c2, c23 = np.cos(q[1]), np.cos(q[1] + q[2])
    A = np.array(system.constraint_jacobian(q))
    np.testing.assert_allclose(A, [[1.0, c23 + c2, c23]], atol=ROUNDING)
    symbol = ca.SX.sym("q", 3)
    theta = ca.Function("theta", [symbol], [prr_arm.minimal_coordinates(symbol)])
    np.testing.assert_allclose(
        array(theta(q)), [c23 + c2, q[1] + q[2] - 1.5 * np.pi], atol=ROUNDING
    )


def test_the_two_masses_swing_at_the_frequency_of_their_reduced_mass():
    system = two_mass_spring.system()
    m1, m2 = two_mass_spring.MASSES
    a = acceleration(system, [0.0, two_mass_spring.REST_LENGTH + 0.1], [0.0, 0.0], [0.0])
    squared = two_mass_spring.STIFFNESS * (m1 + m2) / (m1 * m2)
    assert a[1] - a[0] == pytest.approx(-0.1 * squared, rel=ROUNDING)


def test_the_parallelogram_swings_as_a_pendulum():
    system, p = parallelogram.system(), parallelogram
    inertia = (p.CRANK_MASS + p.BEAM_MASS) * p.CRANK**2
    moment = (1.5 * p.CRANK_MASS + p.BEAM_MASS) * GRAVITY * p.CRANK
    for q, v in admissible_states(system, p.START, 5):
        a = acceleration(system, q, v, [0.0])
        expected = -moment * np.cos(q[0]) / inertia
        np.testing.assert_allclose(a[[0, 2, 3]], expected, rtol=ROUNDING)
        assert abs(a[1]) < ROUNDING * abs(expected)


def test_the_angles_of_bricards_and_bennetts_loops_keep_their_closure():
    """cosθ + cosφ + cosθ cosφ = 0 in turn; tan(θ1/2) tan(θ2/2) = √3 with opposite angles equal."""
    loop = spatial_loop.BRICARD
    for q, _ in admissible_states(spatial_loop.system(loop), loop.start, 5):
        np.testing.assert_allclose(q, np.tile(q[:2], 3), atol=ROUNDING)
        one, two = np.cos(q[:2])
        assert one + two + one * two == pytest.approx(0, abs=ROUNDING)
        assert abs(one) > 1e-3  # it left its start
    loop = spatial_loop.BENNETT
    for q, _ in admissible_states(spatial_loop.system(loop), loop.start, 5):
        np.testing.assert_allclose(q[2:], -q[:2], atol=ROUNDING)
        assert np.prod(np.tan(q[:2] / 2)) == pytest.approx(np.sqrt(3), rel=ROUNDING)


def test_chaplygins_sleigh_obeys_its_reduced_equations():
    system, s = chaplygin_sleigh.system(), chaplygin_sleigh
    for theta, speed, turn in np.random.default_rng(2).normal(size=(5, 3)):
        heading, left = np.array([np.cos(theta), np.sin(theta)]), [-np.sin(theta), np.cos(theta)]
        v = np.array([*(speed * heading), turn])
        a = acceleration(system, [0.3, -0.2, theta], v, [0.0, 0.0])
        assert a[:2] @ heading == pytest.approx(s.OFFSET * turn**2, rel=ROUNDING)
        assert a[:2] @ left == pytest.approx(speed * turn, rel=ROUNDING)
        slowed = -s.MASS * s.OFFSET * speed * turn / (s.INERTIA + s.MASS * s.OFFSET**2)
        assert a[2] == pytest.approx(slowed, rel=ROUNDING)


def test_a_knife_edge_on_an_incline_sways_and_does_not_slide_down():
    slope, turn = 0.4, 1.7
    system = chaplygin_sleigh.system(offset=0.0, slope=slope)
    pull = GRAVITY * np.sin(slope)
    for t in (0.1, 0.9, 2.3):
        phase = turn * t
        x = pull * np.sin(phase) ** 2 / (2 * turn**2)
        y = pull * (phase - np.sin(phase) * np.cos(phase)) / (2 * turn**2)
        v = [pull * np.sin(2 * phase) / (2 * turn), pull * np.sin(phase) ** 2 / turn, turn]
        a = acceleration(system, [x, y, phase], v, [0.0, 0.0])
        expected = [pull * np.cos(2 * phase), pull * np.sin(2 * phase), 0.0]
        np.testing.assert_allclose(a, expected, atol=ROUNDING)


def test_a_disc_rolls_steadily_on_a_circle_where_its_lean_and_speed_agree():
    d, lean, turn, heading = rolling_disc, 0.35, 2.1, 0.8
    grip = d.AXIAL + d.MASS * d.RADIUS**2
    moment = d.MASS * GRAVITY * d.RADIUS * np.tan(lean) / turn
    axial = (moment - d.DIAMETRAL * turn * np.sin(lean)) / grip
    spin = axial + turn * np.sin(lean)
    forward = d.RADIUS * spin * np.array([np.cos(heading), np.sin(heading)])
    v = np.array([*forward, turn, 0.0, spin])
    a = acceleration(d.system(), [0.0, 0.0, heading, lean, 0.0], v, [])
    expected = turn * np.array([-forward[1], forward[0]])
    np.testing.assert_allclose(a, [*expected, 0.0, 0.0, 0.0], atol=1e-10)
    v[2] *= 1.1
    off = acceleration(d.system(), [0.0, 0.0, heading, lean, 0.0], v, [])
    assert abs(off[3]) > 1.0  # at another speed the disc falls or rises


def test_the_shaken_pendulum_obeys_its_minimal_equation_and_shows_its_pivots_speed():
    system, p = driven_pendulum.system(), driven_pendulum
    for t, angle, rate in np.random.default_rng(3).normal(size=(5, 3)):
        lift, phase = p.STROKE, p.FREQUENCY * t
        pivot_rate = -lift * p.FREQUENCY * np.sin(phase)
        pivot_bend = -lift * p.FREQUENCY**2 * np.cos(phase)
        out, round_ = (
            np.array([np.sin(angle), -np.cos(angle)]),
            np.array([np.cos(angle), np.sin(angle)]),
        )
        q = p.LENGTH * out + [0.0, lift * np.cos(phase)]
        v = p.LENGTH * rate * round_ + [0.0, pivot_rate]
        assert abs(array(system.constraint(q, t)).item()) < ROUNDING
        row = np.array(system.constraint_jacobian(q, t)) @ v
        assert row + array(system.constraint_velocity(q, t)) == pytest.approx(0, abs=ROUNDING)
        bend = -(GRAVITY + pivot_bend) * np.sin(angle) / p.LENGTH
        expected = p.LENGTH * (bend * round_ - rate**2 * out) + [0.0, pivot_bend]
        a = acceleration(system, q, v, [], t)
        np.testing.assert_allclose(a, expected, rtol=1e-10)


def test_appell_and_hamels_particle_falls_at_a_fixed_share_of_gravity():
    system, ratio = appell_hamel.system(), appell_hamel.RATIO
    v = np.array([*(ratio * 2.0 * np.array([np.cos(0.7), np.sin(0.7)])), -2.0])
    a = acceleration(system, [0.0, 0.0, 5.0], v, [])
    down = -GRAVITY / (1 + ratio**2)
    np.testing.assert_allclose(a, [*(down / -2.0 * v[:2]), down], rtol=ROUNDING)


def test_the_particle_of_constant_speed_feels_only_the_force_across_its_path():
    system, force = constant_speed.system(), np.array([0.4, -0.9])
    q, v = np.array([0.5, 0.2]), constant_speed.SPEED * np.array([0.6, -0.8])
    total = force - constant_speed.STIFFNESS * q
    expected = (total - (total @ v) / (v @ v) * v) / constant_speed.MASS
    np.testing.assert_allclose(acceleration(system, q, v, force), expected, rtol=ROUNDING)


# MuJoCo 3.10 diagonalises an inertia to 1e-8 of it, later versions to rounding.
SAME_TOP = 1e-6 if mujoco.__version__.startswith("3.10.") else 1e-9


def heavy_top_in_mjcf() -> mb.System:
    place, moments = (" ".join(map(str, x)) for x in (heavy_top.CENTRE, about_centre()))
    return mb.read_mjcf(f"""
    <mujoco><worldbody><body>
      <inertial pos="{place}" mass="{heavy_top.MASS}" fullinertia="{moments}"/>
      <joint type="ball"/>
    </body></worldbody></mujoco>""")


def about_centre() -> list[float]:
    """Return MuJoCo's `fullinertia` of the top, about its mass centre."""
    c = np.array(heavy_top.CENTRE)
    I = np.diag(heavy_top.INERTIA) - heavy_top.MASS * (c @ c * np.eye(3) - np.outer(c, c))  # noqa: E741
    return [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]


def test_the_heavy_top_in_euler_parameters_is_the_body_on_a_ball_joint():
    """The inertia is singular, yet definite on null(A); `ω̇ = 2 G p̈`, torques in body axes."""
    top, body = heavy_top.system(), heavy_top_in_mjcf()
    symbol, torque = ca.SX.sym("p", 4), np.array([0.1, -0.2, 0.05])
    G = ca.Function("G", [symbol], [heavy_top.body_rates(symbol)])
    for p, v in admissible_states(top, heavy_top.START, 5):
        M, Gp = np.array(top.mass_matrix(p)), np.array(G(p))
        assert np.linalg.matrix_rank(M, tol=1e-9) == 3
        assert np.abs(M @ p).max() < ROUNDING
        omega = 2 * Gp @ v
        inertia, bias = np.array(body.mass_matrix(p)), array(body.bias_force(p, omega))
        expected = np.linalg.solve(inertia, torque - bias)
        a = acceleration(top, p, v, torque)
        np.testing.assert_allclose(2 * Gp @ a, expected, rtol=SAME_TOP, atol=SAME_TOP)


def test_the_pendulums_of_the_latch_meet_and_the_closure_takes_their_relative_speed():
    tree, loop = topology_switch.system(closed=False), topology_switch.system()

    def gap(_, x):
        return array(loop.constraint(x[:4]))[0]

    gap.terminal = True
    start = np.array([*topology_switch.APART, 0.0, 0.0, 0.0, 0.0])
    motion = solve_ivp(
        lambda _, x: [*x[4:], *acceleration(tree, x[:4], x[4:], [0.0, 0.0])], (0.0, 1.0), start,
        method="DOP853", rtol=1e-10, atol=1e-12, events=gap,
    )  # fmt: skip
    q, v = motion.y_events[0][0].reshape(2, 4)
    assert 0.3 < motion.t_events[0][0] < 0.6
    assert np.abs(array(loop.constraint(q))).max() < 1e-10
    A, M = np.array(loop.constraint_jacobian(q)), np.array(loop.mass_matrix(q))
    assert np.linalg.norm(A @ v) > 0.1  # m/s: the tips meet at speed
    N = null_space(A)
    after = N @ np.linalg.solve(N.T @ M @ N, N.T @ M @ v)
    assert after @ M @ after < 0.99 * (v @ M @ v)
