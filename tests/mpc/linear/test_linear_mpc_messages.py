"""Bad input of linear MPC, and answers that must give way somewhere: each in words."""

import numpy as np
import pytest
from support.linear_mpc_cases import HORIZON, MODEL, PERIOD, SPEED, controller_of

import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control.regulators import equilibrium, linearize
from mbcasadi.mpc import (
    LinearModel,
    LinearOptions,
    Output,
    deviation_output,
    linear_mpc,
    lti_mpc,
    offset_free_lti,
)
from mbcasadi.system import read_mjcf

WALL = Output("place", [[1.0, 0.0]], [[0.0]], [-9.0], [0.3], 50.0)
WEIGHTS = [2.0, 0.1], 0.3


def bounded(**options):
    return controller_of(**{"u_bounds": [[-1.0, 1.0]]} | options)


def test_an_unreachable_reference_is_reported_with_its_row_amount_and_samples():
    """The price of the wall is too low for a reference far behind it: the plan breaks in."""
    mpc = bounded(outputs=[WALL])
    ref = mpc.reference(x=[200.0, 0.0])
    given = (np.array([0.1, 0.5]), ref, mpc.controller.z0)
    assert float(mpc.function(*given)[2]) == 0
    (actual,) = mpc.violations(*given)
    x = np.array(mpc.controller.prediction(*given)[0])[0]
    beyond = {k: x[k] - 0.3 for k in range(1, HORIZON + 1) if x[k] > 0.3}
    assert actual.samples == tuple(beyond)
    np.testing.assert_allclose(actual.excess, list(beyond.values()), atol=1e-9)
    assert actual.above
    assert actual.soft
    first, last = min(beyond), max(beyond)
    worst = max(actual.excess)
    words = f"'place' is above 0.3 by up to {worst:.3g}, at samples {first} to {last}"
    assert actual.in_words == words
    assert (
        mpc.violations(np.array([0.1, 0.0]), mpc.reference(x=[0.2, 0.0]), mpc.controller.z0) == ()
    )


def test_rows_that_contradict_each_other_are_reported_with_their_least_violation():
    """From a speed of 2 with |u| <= 1 no plan is below 0.6 before the last samples."""
    mpc = bounded(outputs=[SPEED])
    given = (np.array([0.0, 1.2]), np.zeros(3), mpc.controller.z0)
    assert float(mpc.function(*given)[2]) == 2
    (actual,) = mpc.violations(*given)
    x, expected = np.array(given[0]), []
    for k in range(1, HORIZON + 1):  # full brake, the least of each speed
        x = MODEL.A @ x + MODEL.B @ [-1.0] + MODEL.drift
        expected += [(k, x[1] - 0.6)] if x[1] > 0.6 else []
    assert actual.samples == tuple(k for k, _ in expected)
    np.testing.assert_allclose(actual.excess, [over for _, over in expected], atol=1e-7)
    assert actual.in_words.endswith("no plan keeps all hard rows")
    assert not actual.soft


def test_offset_free_and_sparse_laws_tell_too():
    sparse = bounded(outputs=[SPEED], form="sparse")
    given = (np.array([0.0, 1.2]), np.zeros(3), sparse.controller.z0)
    (actual,) = sparse.violations(*given)
    assert actual.row == "speed"
    free = offset_free_lti(
        MODEL,
        LinearOptions(HORIZON, *WEIGHTS, outputs=[SPEED], u_bounds=[[-1.0, 1.0]]),
        [[1.0, 0.0]],
    )
    z = np.array(free.controller.z0)
    estimate = [name for signal in free.controller.inputs for name in signal.components]
    first = [name.startswith("estimate.x") for name in estimate[-z.size :]].index(True)
    z[first : first + 2] = [0.0, 1.2]  # the estimate agrees with the measurement
    (other,) = free.violations(np.array([0.0, 1.2]), np.zeros(3), z)
    assert other.row == "speed"
    np.testing.assert_allclose(other.excess[0], actual.excess[0], atol=0.05)


@pytest.fixture(scope="module")
def four_bar():
    system = read_mjcf(models.path("four_bar"))
    held = equilibrium(system)
    return linearize(system, held)


def test_a_mechanism_tells_its_rows_by_name(four_bar):
    fast = deviation_output(four_bar, "crank_speed", np.eye(6)[3], -0.3, 0.3, linear_penalty=0.1)
    mpc = linear_mpc(four_bar, LinearOptions(20, np.repeat([10.0, 0.01], 3), 1.0, outputs=[fast]))
    ref = mpc.reference(setpoint_q=four_bar.q, setpoint_u=four_bar.u)
    q, v = four_bar.state([0.5, 0.0])
    (actual,) = mpc.violations(q, v, ref, mpc.controller.z0)
    assert actual.in_words.startswith("'crank_speed' is below -0.3 by up to ")
    assert actual.samples[0] == 1


def test_a_measurement_that_is_no_number_gives_the_safe_output(four_bar):
    mpc = linear_mpc(
        four_bar,
        LinearOptions(10, np.repeat([10.0, 0.01], 3), 1.0, u_bounds=[[-0.5, 0.5]], delay=1),
    )
    ref = mpc.reference(setpoint_q=four_bar.q, setpoint_u=four_bar.u)
    for where in range(2):
        state = [np.array(four_bar.q), np.zeros(3)]
        state[where][0] = np.nan
        u, z, status, *_ = mpc.function(*state, ref, mpc.controller.z0)
        assert float(status) == 3
        np.testing.assert_allclose(np.array(u).ravel(), four_bar.u, rtol=1e-5)  # it holds there
        assert np.all(np.isfinite(np.array(z)))
    broken = np.full(mpc.controller.z0.size, np.nan)
    u, z, status, *_ = mpc.function(four_bar.q, np.zeros(3), ref, broken)
    assert float(status) == 3
    assert np.all(np.isfinite(np.array(z)))


def test_a_schedule_fills_the_preview_and_a_longer_one_is_refused(four_bar):
    mpc = bounded(preview=True)
    rows = np.arange(2.0 * HORIZON).reshape(HORIZON, 2)
    np.testing.assert_array_equal(mpc.reference(x=rows, u=[9.0]), [*rows.ravel(), 9.0])
    np.testing.assert_array_equal(mpc.reference(x=[1.0, 2.0])[:4], [1.0, 2.0, 1.0, 2.0])
    with pytest.raises(err.ProblemError, match="has 10 samples, the horizon 8"):
        mpc.reference(x=np.zeros((HORIZON + 2, 2)))
    with pytest.raises(err.ProblemError, match="preview=True"):
        bounded().reference(x=rows)
    moving = linear_mpc(four_bar, LinearOptions(4, np.repeat([10.0, 0.01], 3), 1.0, preview=True))
    ref = moving.reference(q=np.tile(four_bar.q, (4, 1)), v=np.zeros(3), setpoint_u=four_bar.u)
    u = moving.function(four_bar.q, np.zeros(3), ref, moving.controller.z0)[0]
    np.testing.assert_allclose(np.array(u).ravel(), four_bar.u, atol=1e-9)


WRONG = {
    "empty horizon": ({"horizon": 0}, err.ProblemError, "horizon = .*whole number"),
    "blocks": ({"blocks": [3, 3]}, err.ProblemError, "add up to the horizon"),
    "name": ({"name": "two words"}, err.ProblemError, "C identifier"),
    "form": ({"form": "dense"}, err.ProblemError, "expected one of 'condensed', 'sparse'"),
    "solver": ({"form": "sparse", "solver": "daqp"}, err.SolverError, "for the sparse form"),
    "other solver": ({"solver": "piqp"}, err.SolverError, "expected one of 'daqp'"),
    "no horizon": ({"horizon": np.nan}, err.ProblemError, "horizon = nan"),
    "half a sample": ({"horizon": 2.5}, err.ProblemError, "horizon = .*whole number"),
    "indefinite Q": ({"Q": [[1.0, 2.0], [2.0, 1.0]]}, err.ProblemError, "Q has the eigenvalue -1"),
    "indefinite S": ({"S": -1.0}, err.ProblemError, "S has the eigenvalue"),
    "free control": ({"R": 0.0}, err.ProblemError, "all eigenvalues positive"),
    "skew Q": ({"Q": [[1.0, 2.0], [0.0, 1.0]]}, err.ProblemError, "not symmetric"),
    "empty": ({"u_bounds": [[1.0, -1.0]]}, err.ProblemError, "empty"),
    "empty rates": ({"du_bounds": [[0.2, 0.1]]}, err.ProblemError, "du_bounds.0. is 0.2 to 0.1"),
    "wrong infinity": ({"u_bounds": [[np.inf, np.inf]]}, err.ProblemError, "inf to inf: empty"),
    "NaN": ({"u_bounds": [[np.nan, 1.0]]}, err.ShapeError, "without NaN"),
    "soft price": (
        {"outputs": [Output("a", [[1.0, 0.0]], [[0.0]], [0.0], [1.0], -1.0)]},
        err.ProblemError,
        "negative penalty",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_numbers_that_make_no_sense_are_refused(case):
    options, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        controller_of(**options)


@pytest.mark.parametrize("period", [0.0, -0.1, np.nan, np.inf])
def test_a_sample_time_that_makes_no_sense_is_refused(period, four_bar):
    with pytest.raises(err.ProblemError, match="period"):
        LinearModel.of(MODEL.A, MODEL.B, period)
    with pytest.raises(err.MbcasadiError):
        linear_mpc(four_bar, LinearOptions(10, np.ones(6), 1.0, period=period))


def test_limits_that_cannot_hold_the_equilibrium_are_refused(four_bar):
    with pytest.raises(err.ProblemError, match=r"is held by .* outside u_bounds 0 to 0.5"):
        linear_mpc(four_bar, LinearOptions(10, np.ones(6), 1.0, u_bounds=[[0.0, 0.5]]))


def test_a_mode_that_no_control_reaches_is_named():
    lost = LinearModel.of([[1.1, 0.0], [0.0, 0.9]], [[0.0], [1.0]], PERIOD)
    with pytest.raises(err.ProblemError, match=r"out of reach: 1\.1 per sample"):
        lti_mpc(lost, LinearOptions(HORIZON, [1.0, 1.0], 1.0))


def test_a_mechanism_names_the_joints_of_the_mode_that_no_control_reaches():
    system = read_mjcf(UNDRIVEN)
    linear = linearize(system, [0.0, 0.0], None, [0.0])
    with pytest.raises(err.ProblemError, match=r"not stabilisable.*pole moves"):
        linear_mpc(linear, LinearOptions(HORIZON, np.ones(4), 1.0))


UNDRIVEN = """<mujoco model="apart"><worldbody>
  <body><joint name="pole" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.5"
    mass="1"/></body>
  <body pos="1 0 0"><joint name="wheel" axis="0 1 0" damping="0.1"/><geom size="0.1"
    mass="1"/></body></worldbody>
  <actuator><motor joint="wheel" name="motor"/></actuator></mujoco>"""
