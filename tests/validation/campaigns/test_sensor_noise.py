"""A campaign whose cases have more or less noise in the sensors of their estimator."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from mbcasadi.cli.app import app
from mbcasadi.errors import ProblemError
from mbcasadi.validation import cases, sampled_cases
from mbcasadi.validation.closed_loop.sensing import squared_error

FILE = """
type = "lqr"
equilibrium = { q = [0.0, 0.0, 0.0] }
Q = { position = 100.0 }

[validation]
duration = 0.1
rigid = true
fast = true
criteria = { "estimate.nees" = 3.0 }
"""
SENSED = """
[estimation]
type = "manifold"
force_noise = 0.02
options = { position = 0.01 }

[[estimation.sensor]]
name = "crank"
kind = "position"
noise = 1e-3
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(FILE + SENSED)
    return path


def campaign_of(spec, *more):
    arguments = ("campaign", "four_bar", "-c", spec, "--runs", 8, "--jobs", 1, *more)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.long
def test_noise_decides_how_wrong_an_estimate_is_and_when_its_covariance_is(spec):
    ranged = ("--range", "sensor_noise=0:8", "--seed", 2)
    found = json.loads(campaign_of(spec, *ranged, "--json").stdout)
    noise = np.array([case["sensor_noise"] for case in found["cases"]])
    rate, nees = (
        np.array([case["metrics"][name] for case in found["cases"]])
        for name in ("estimate.rate", "estimate.nees")
    )
    order = np.argsort(noise)
    assert np.corrcoef(noise, rate)[0, 1] > 0.9
    assert nees[order[-1]] > 3.0 > nees[order[0]], "seven times the noise that it expects"
    assert [case["passed"] for case in found["cases"]] == (nees <= 3.0).tolist()
    number = int(order[-1])
    alone = json.loads(campaign_of(spec, *ranged, "--case", number, "--json").stdout)["runs"][0]
    assert alone["metrics"]["estimate.rate"]["value"] == rate[number]


def test_noise_of_no_sensors_is_refused(tmp_path):
    plain = tmp_path / "plain.toml"
    plain.write_text(FILE.replace("criteria", "# criteria"))
    result = campaign_of(plain, "--range", "sensor_noise=0.5:2")
    assert result.exit_code == 2
    assert "the cases scale the noise of sensors" in result.stderr
    for make in (lambda: cases([0], sensor_noises=[-1.0]), lambda: sampled_cases({}, 2)):
        with pytest.raises(ProblemError):
            make()


def test_a_squared_error_is_one_in_the_mean_also_where_loops_leave_no_direction():
    rng = np.random.default_rng(0)
    J = rng.normal(size=(5, 3)) * [1.0, 1e-3, 10.0]
    J[2] = 0
    P = J @ J.T
    values = [squared_error(J @ rng.normal(size=3), np.sqrt(np.diag(P)), P) for _ in range(2000)]
    assert np.mean(values) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 3 / 2000))
