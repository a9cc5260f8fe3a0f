"""The flexible slider-crank in modes against quadrature, and in pieces against modes."""

import casadi as ca
import numpy as np
import pytest
from twin_states import acceleration, admissible_states
from twins import flexible_slider_crank as pieces
from twins import flexible_slider_crank_modes as modes
from twins.energies import coordinates

NODES = 24  # Gauss points; the integrand is a polynomial times products of two slow sines
LINE_DENSITY = pieces.ROD_MASS / pieces.ROD  # kg/m


def test_the_kinetic_energy_of_the_rod_is_the_integral_over_its_points():
    q, v = ca.SX.sym("q", 5), ca.SX.sym("v", 5)
    s = ca.SX.sym("s")
    deflection = q[3] * ca.sin(np.pi * s / modes.ROD) + q[4] * ca.sin(2 * np.pi * s / modes.ROD)
    point = ca.vertcat(
        modes.CRANK * ca.cos(q[0]) + s * ca.cos(q[1]) - deflection * ca.sin(q[1]),
        modes.CRANK * ca.sin(q[0]) + s * ca.sin(q[1]) + deflection * ca.cos(q[1]),
    )
    density = ca.Function("density", [q, v, s], [ca.sumsqr(ca.jtimes(point, q, v))])
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    system = modes.system()
    for q0, v0 in np.random.default_rng(0).normal(size=(4, 2, 5)):
        values = [float(density(q0, v0, modes.ROD * (1 + x) / 2)) for x in nodes]
        rod = LINE_DENSITY / 2 * modes.ROD / 2 * np.dot(weights, values)
        others = modes.CRANK_INERTIA * v0[0] ** 2 / 2 + modes.SLIDER_MASS * v0[2] ** 2 / 2
        total = v0 @ np.array(system.mass_matrix(q0)) @ v0 / 2
        assert total == pytest.approx(rod + others, rel=1e-12)


def beam_frequency(mode):
    return (mode * np.pi / modes.ROD) ** 2 * np.sqrt(modes.BENDING / LINE_DENSITY)


def test_the_modes_have_the_frequencies_of_a_beam_on_two_pins():
    frequencies = pieces.bending_frequencies(modes.system(gravity=0.0), modes.START)
    np.testing.assert_allclose(frequencies, [beam_frequency(1), beam_frequency(2)], rtol=1e-10)


def test_the_pieces_converge_to_the_beam_with_the_fourth_power_of_their_length():
    errors = []
    for n in (4, 8, 16):
        start = (0.0,) * (n + 1) + (pieces.CRANK + pieces.ROD,)
        found = pieces.bending_frequencies(pieces.system(n, gravity=0.0), start)[:2]
        errors.append(np.abs(found / [beam_frequency(1), beam_frequency(2)] - 1))
    assert (errors[0] < 1e-2).all()
    np.testing.assert_allclose(errors[1] / errors[2], 16.0, rtol=0.15)


def test_an_undeformed_rod_starts_off_like_a_rigid_one_whatever_describes_its_bending():
    """With the bending held, both reduce to the rigid slider-crank."""
    in_modes, in_pieces = modes.system(), pieces.system()
    for q, v in admissible_states(modes.system(0), modes.START[:3], 4):
        rigid = acceleration(modes.system(0), q, v, [1.0])
        bent = np.array([*q, 0.0, 0.0])
        straight = np.array([q[0], *([q[1]] * 4), q[2]])
        held = np.eye(5)[3:], np.diff(np.eye(6)[1:5], axis=0)
        rates = np.array([*v, 0.0, 0.0]), np.array([v[0], *([v[1]] * 4), v[2]])
        states = zip((in_modes, in_pieces), (bent, straight), rates, held, strict=True)
        for system, pose, rate, rows in states:
            locked = system.with_rows(*coordinates(system.nv), A=rows)
            a = acceleration(locked, pose, rate, [1.0])
            np.testing.assert_allclose(
                a[[0, 1, -1 if system is in_pieces else 2]], rigid, rtol=1e-9
            )
