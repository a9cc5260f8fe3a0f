"""The two-mass spring of L15: eq. 47, its linear drift, and the stabilised law, in closed form."""

import numpy as np
import pytest
from scipy.integrate import cumulative_simpson
from support.examples import example, results

import mbcasadi as mb
from mbcasadi import models

SERVO = example(8)
M1, M2, STIFFNESS, LENGTH = 1.0, 2.0, 50.0, 0.5  # kg, kg, N/m, m
GAP, RATE, GAIN = 0.005, 0.02, 5.0  # m, m/s, 1/s
INTEGRATION = 6e-8  # m: the relative 1e-9 of a step, at 60 m


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return results(SERVO, tmp_path_factory.mktemp("figure"))


def test_the_law_is_the_printed_one():
    """(47) for any state; (39) with m2 in its corner."""
    law = SERVO["servo_force"](SERVO["masses"].system(), 0.0, 0.0)
    rng = np.random.default_rng(47)
    for _ in range(5):
        q, v = rng.standard_normal(2), rng.standard_normal(2)
        printed = -(1 + M1 / M2) * STIFFNESS * (q[1] - q[0] - LENGTH)
        np.testing.assert_allclose(np.array(law(0, q, v)).ravel(), [printed, 0.0], rtol=1e-13)


def test_the_mjcf_masses_get_the_same_force():
    from_file = mb.read_mjcf(models.path("two_mass_spring"))
    system = SERVO["masses"].system()
    rng = np.random.default_rng(48)
    q, v = rng.standard_normal(2), rng.standard_normal(2)
    spring = np.array(from_file.passive_force(q, v)).ravel()
    a_0 = np.linalg.solve(np.array(from_file.mass_matrix(q)), spring)
    G = np.linalg.solve(np.array(from_file.mass_matrix(q)), np.array(from_file.actuation(q)))
    u = (a_0[0] - a_0[1]) / (G[1] - G[0])
    law = SERVO["servo_force"](system, 0.0, 0.0)
    assert float(law(0, q, v)[0]) == pytest.approx(u.item(), rel=1e-12)


def test_the_printed_law_keeps_the_errors_rate_and_never_restores_the_gap(found):
    run = found["eq. 47"]
    np.testing.assert_allclose(run["error"], GAP + RATE * run["t"], atol=INTEGRATION)


def test_stabilised_the_error_is_that_of_a_critically_damped_spring(found):
    run = found["stabilised"]
    t = run["t"]
    expected = (GAP + (RATE + GAIN * GAP) * t) * np.exp(-GAIN * t)
    np.testing.assert_allclose(run["error"], expected, atol=INTEGRATION)
    assert abs(run["error"][-1]) < 1e-6 < run["error"][0]


def test_the_masses_run_away_with_the_pull_of_the_spring(found):
    """`m2 a2 = -k (l + error)`: nothing in the servo constraint holds their place."""
    for run in found.values():
        t = run["t"]
        a2 = -STIFFNESS * (LENGTH + run["error"]) / M2
        v2 = RATE + cumulative_simpson(a2, x=t, initial=0)
        x2 = 2 * LENGTH + GAP + cumulative_simpson(v2, x=t, initial=0)
        np.testing.assert_allclose(run["q"][:, 1], x2, atol=1e-6)
        assert run["q"][-1, 0] < -50.0
