"""Noise from logs: published Allan deviations, likelihoods against joint densities, fits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import mbcasadi as mb
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.estimation import (
    FilterOptions,
    LoggedInputs,
    Measured,
    allan_deviation,
    estimate_log,
    fit_noise,
    inertial_noise,
    manifold_filter,
)

DT, TICKS = 0.01, 400
DENSITY, NOISE = 0.7, np.array([2e-3, 0.05])  # N/√Hz; m, m/s


def test_the_published_allan_deviations_of_a_thousand_numbers():
    """NIST Special Publication 1065 (Riley 2008), table 32: overlapping, τ = 1 and 10."""
    numbers = [1234567890]
    for _ in range(999):
        numbers.append(16807 * numbers[-1] % 2147483647)
    found = allan_deviation(np.array(numbers) / 2147483647, 1.0)
    at = dict(zip(found.tau.tolist(), found.deviation.tolist(), strict=True))
    assert_allclose([at[1.0], at[10.0]], [2.922319e-01, 9.159953e-02], rtol=2e-7)


def test_white_noise_and_the_walk_of_a_bias_are_found():
    """Over 2,000 s; relative deviations of N and K by the means of τ that show them."""
    rng, period, n = np.random.default_rng(3), 0.01, 200_000
    N, K = np.array([5e-5, 2e-4]), np.array([1e-5, 1e-5])
    white = N / np.sqrt(period) * rng.standard_normal((n, 2))
    bias = np.cumsum(K * np.sqrt(period) * rng.standard_normal((n, 2)), axis=0)
    for axis in range(2):
        found = inertial_noise(0.3 + white[:, axis] + bias[:, axis], period)
        assert found.density == pytest.approx(N[axis], rel=0.03)
        assert found.walk == pytest.approx(K[axis], rel=0.5)
    both = inertial_noise(white + bias, period)
    assert both.density == pytest.approx(N.max(), rel=0.03)


@pytest.mark.parametrize(
    ("samples", "error", "text"),
    [
        (np.zeros((4, 4, 4)), ShapeError, "shape"),
        (np.ones(19), ShapeError, "n >= 20"),
        (np.r_[np.ones(30), np.nan], ShapeError, "finite"),
        (np.ones(100), ProblemError, "do not change"),
    ],
)
def test_what_has_no_allan_deviation_is_an_error(samples, error, text):
    with pytest.raises(error, match=text):
        inertial_noise(samples, 0.01)


def two_masses(density=DENSITY, position=NOISE[0], rate=NOISE[1], share=None, likelihood=True):
    system = mb.read_mjcf(mb.models.path("two_mass_spring"))
    sensors = [Measured("x1", position, kind="position"), Measured("x2", rate, kind="rate")]
    return manifold_filter(
        system,
        sensors,
        force_noise=density,
        options=FilterOptions(false_alarm=share),
        period=DT,
        likelihood=likelihood,
    )


def motion():
    """F, G, H of two masses and a spring over a tick, the force in its middle."""
    m, K = np.array([1.0, 2.0]), 50 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    eye, zero = np.eye(2), np.zeros((2, 2))
    half = np.block([[eye, DT / 2 * eye], [zero, eye]])
    kick = np.block([[eye, zero], [-DT * K / m[:, None], eye]])
    H = np.array([[1.0, 0, 0, 0], [0, 0, 0, 1.0]])
    return half @ kick @ half, half @ np.vstack([zero, np.diag(DT / m)]), H


REST = np.array([0, 0.5, 0, 0])


@pytest.fixture(scope="module")
def drawn():
    """A log of two masses that white forces move, with the noise that the filter expects."""
    F, G, H = motion()
    rng, x = np.random.default_rng(7), np.zeros(4)
    y = np.zeros((TICKS, 2))
    for k in range(TICKS):
        x = F @ x + G @ (DENSITY / np.sqrt(DT) * rng.standard_normal(2))
        y[k] = H @ (REST + x) + NOISE * rng.standard_normal(2)
    inputs = {"y": y, "valid": np.ones((TICKS, 2)), "u": np.zeros((TICKS, 1))}
    return LoggedInputs(DT * np.arange(1, TICKS + 1), inputs | {"dt": np.full((TICKS, 1), DT)})


def test_the_likelihood_is_the_joint_density_of_all_samples(drawn):
    """All samples are one Gaussian vector, whose covariance is stacked from the motion."""
    n = 40
    F, G, H = motion()
    filter_ = two_masses()
    L0 = filter_.z0[4:20].reshape(4, 4, order="F")
    P, Q = L0 @ L0.T, G @ G.T * DENSITY**2 / DT
    powers = [np.eye(4)]
    covariance = np.zeros((2 * n, 2 * n))
    for _ in range(n):
        powers.append(F @ powers[-1])
    at = P
    for i in range(n):
        at = F @ at @ F.T + Q
        for j in range(i, n):
            block = H @ powers[j - i] @ at @ H.T
            covariance[2 * j : 2 * j + 2, 2 * i : 2 * i + 2] = block
            covariance[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = block.T
    covariance += np.diag(np.tile(NOISE**2, n))
    some = LoggedInputs(drawn.t[:n], {k: x[:n] for k, x in drawn.inputs.items()})
    said = estimate_log(filter_, some).likelihood.sum()
    y = (some.inputs["y"] - H @ REST).ravel()
    assert said == pytest.approx(multivariate_normal.logpdf(y, cov=covariance), abs=1e-6)


def test_a_rejected_sample_counts_as_if_at_its_gate_and_a_missing_one_not_at_all(drawn):
    filter_ = two_masses(share=1e-3)
    y = drawn.inputs["y"].copy()
    some = {k: x[:200] for k, x in drawn.inputs.items()}
    changed = {}
    for name, bad in (("far", 10.0), ("farther", 1e3), ("missing", np.nan)):
        wrong = y[:200].copy()
        wrong[-1, 0] = bad
        changed[name] = estimate_log(filter_, LoggedInputs(drawn.t[:200], some | {"y": wrong}))
    last = {name: said.likelihood[-1] for name, said in changed.items()}
    assert last["far"] == last["farther"]
    assert np.isfinite(last["missing"])
    assert last["missing"] != last["far"]


@pytest.mark.long
def test_the_noise_of_a_log_is_found_within_what_it_says(drawn):
    found = fit_noise(
        lambda force, encoder: two_masses(force, encoder), drawn, {"force": 0.2, "encoder": 1e-2}
    )
    truth = {"force": DENSITY, "encoder": NOISE[0]}
    for name, value in truth.items():
        deviation = found.deviation[name]
        assert 0 < deviation < 0.3
        assert abs(np.log(found.numbers[name] / value)) < 4 * deviation, name
    at_truth = estimate_log(two_masses(), drawn).likelihood.sum()
    assert found.likelihood[0] < at_truth <= found.likelihood[1] + 0.1
    assert found.estimator.name == "manifold_filter"


def test_a_number_that_a_log_says_nothing_about_has_no_deviation(drawn):
    few = LoggedInputs(drawn.t[:100], {k: x[:100] for k, x in drawn.inputs.items()})

    def make(force, other):
        assert other > 0
        return two_masses(force)

    found = fit_noise(make, few, {"force": 0.5, "other": 1.0})
    assert np.isfinite(found.deviation["force"])
    assert found.deviation["other"] == np.inf


@pytest.mark.parametrize(
    ("start", "options", "text"),
    [
        ({}, {}, "start is empty"),
        ({"density": -1.0}, {}, "density"),
        ({"density": 1.0}, {"likelihood": False}, "expected likelihood=True"),
    ],
)
def test_what_cannot_be_fitted_is_an_error(drawn, start, options, text):
    with pytest.raises(ProblemError, match=text):
        fit_noise(lambda density: two_masses(density, **options), drawn, start)
