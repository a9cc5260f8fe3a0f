"""Linear models on the manifold: against differences of our own motion, and their laws."""

import numpy as np
import pytest
from linear_mechanisms import field, state_of, system_of

import mbcasadi as mb
from mbcasadi.control.regulators import linearize
from mbcasadi.dynamics import Treatment

MECHANISMS = [
    "four_bar",
    "cart_pole",
    "planar_3rrr",
    "standing_quadruped",
    "spinning",
    "disc",
    "driven_pendulum",
]
STEP = 1e-4
DIFFERENCES = 1e-7  # relative; the differences below are of sixth order


def derivative(function, size):
    """Return the Jacobian at zero by central differences of sixth order."""
    columns = []
    for j in range(size):
        unit = np.eye(size)[j] * STEP
        ends = {k: function(k * unit) - function(-k * unit) for k in (1, 2, 3)}
        columns.append((45 * ends[1] - 9 * ends[2] + ends[3]) / (60 * STEP))
    return np.array(columns).T.reshape(-1, size)


CASES = [(name, moving) for name in MECHANISMS for moving in (True, False)]
CASES.remove(("driven_pendulum", False))  # a driven mechanism is never at rest


@pytest.mark.parametrize(("name", "moving"), CASES)
def test_the_linear_model_is_the_derivative_of_our_own_motion(name, moving):
    system = system_of(name)
    q, v, u, t = state_of(name, moving)
    linear = linearize(system, q, v, u, t=t)
    dynamics = mb.forward_dynamics(system, "lagrange", treatment=Treatment(rank_tol=1e-7))
    zero = np.zeros(linear.nx)
    scale = 1 + np.abs(linear.dfdx).max()
    dfdx = derivative(lambda x: field(system, dynamics, linear, x, u), linear.nx)
    assert np.abs(linear.dfdx - dfdx).max() < DIFFERENCES * scale
    dfdu = derivative(lambda du: field(system, dynamics, linear, zero, u + du), system.nu)
    assert np.abs(linear.dfdu - dfdu).max(initial=0) < DIFFERENCES * scale
    drift = field(system, dynamics, linear, zero, u)
    np.testing.assert_allclose(linear.drift, drift, atol=1e-8 * (1 + np.abs(drift).max()))
