"""Bad input of linear MPC, and answers that must give way somewhere: each in words."""

from dataclasses import replace

import numpy as np
import pytest
from support import linear_mpc_cases as cases

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import mpc

WALL = mpc.Output("place", [[1.0, 0.0]], [[0.0]], [-9.0], [0.3], 50.0)
FOUR_BAR = cases.at_rest("four_bar")


def bounded(**options):
    return cases.controller_of(**{"u_bounds": [[-1.0, 1.0]]} | options)


def test_an_unreachable_reference_is_reported_with_its_row_amount_and_samples():
    """The price of the wall is too low for a reference far behind it: the plan breaks in."""
    law = bounded(outputs=[WALL])
    ref = law.reference(x=[200.0, 0.0])
    given = (np.array([0.1, 0.5]), ref, law.controller.z0)
    assert float(law.function(*given)[2]) == 0
    (actual,) = law.violations(*given)
    x = np.array(law.controller.prediction(*given)[0])[0]
    beyond = {k: x[k] - 0.3 for k in range(1, cases.HORIZON + 1) if x[k] > 0.3}
    assert actual.samples == tuple(beyond)
    np.testing.assert_allclose(actual.excess, list(beyond.values()), atol=1e-9)
    assert actual.above
    assert actual.soft
    first, last = min(beyond), max(beyond)
    worst = max(actual.excess)
    words = f"'place' is above 0.3 by up to {worst:.3g}, at samples {first} to {last}"
    assert actual.in_words == words
    near = np.array([0.1, 0.0]), law.reference(x=[0.2, 0.0]), law.controller.z0
    assert law.violations(*near) == ()


def test_rows_that_contradict_each_other_are_reported_with_their_least_violation():
    """From a speed of 2 with |u| <= 1 no plan is below 0.6 before the last samples."""
    law = bounded(outputs=[cases.SPEED])
    given = (np.array([0.0, 1.2]), np.zeros(3), law.controller.z0)
    assert float(law.function(*given)[2]) == 2
    (actual,) = law.violations(*given)
    x, expected = np.array(given[0]), []
    for k in range(1, cases.HORIZON + 1):  # full brake, the least of each speed
        x = cases.advance(x, -1.0)
        expected += [(k, x[1] - 0.6)] if x[1] > 0.6 else []
    assert actual.samples == tuple(k for k, _ in expected)
    np.testing.assert_allclose(actual.excess, [over for _, over in expected], atol=1e-7)
    assert actual.in_words.endswith("no plan keeps all hard rows")
    assert not actual.soft


def test_offset_free_and_sparse_laws_tell_too():
    sparse = bounded(outputs=[cases.SPEED], form="sparse")
    given = (np.array([0.0, 1.2]), np.zeros(3), sparse.controller.z0)
    (actual,) = sparse.violations(*given)
    assert actual.row == "speed"
    free = mpc.offset_free_lti(cases.MODEL, cases.options_of("bounded"), [[1.0, 0.0]])
    z = np.array(free.controller.z0)
    estimate = [name for signal in free.controller.inputs for name in signal.components]
    first = [name.startswith("estimate.x") for name in estimate[-z.size :]].index(True)
    z[first : first + 2] = [0.0, 1.2]  # the estimate agrees with the measurement
    (other,) = free.violations(np.array([0.0, 1.2]), np.zeros(3), z)
    assert other.row == "speed"
    np.testing.assert_allclose(other.excess[0], actual.excess[0], atol=0.05)


def test_a_mechanism_tells_its_rows_by_name():
    fast = mpc.deviation_output(
        FOUR_BAR, "crank_speed", np.eye(6)[3], -0.3, 0.3, linear_penalty=0.1
    )
    law = cases.mechanism_mpc(FOUR_BAR, 20, outputs=[fast])
    ref = cases.held(law, FOUR_BAR)
    q, v = FOUR_BAR.state([0.5, 0.0])
    (actual,) = law.violations(q, v, ref, law.controller.z0)
    assert actual.in_words.startswith("'crank_speed' is below -0.3 by up to ")
    assert actual.samples[0] == 1


def test_a_schedule_fills_the_preview_and_a_longer_one_is_refused():
    law = bounded(preview=True)
    rows = np.arange(2.0 * cases.HORIZON).reshape(cases.HORIZON, 2)
    np.testing.assert_array_equal(law.reference(x=rows, u=[9.0]), [*rows.ravel(), 9.0])
    np.testing.assert_array_equal(law.reference(x=[1.0, 2.0])[:4], [1.0, 2.0, 1.0, 2.0])
    with pytest.raises(err.ProblemError, match="has 10 samples, the horizon 8"):
        law.reference(x=np.zeros((cases.HORIZON + 2, 2)))
    with pytest.raises(err.ProblemError, match="preview=True"):
        bounded().reference(x=rows)
    moving = cases.mechanism_mpc(FOUR_BAR, 4, preview=True)
    ref = moving.reference(q=np.tile(FOUR_BAR.q, (4, 1)), v=np.zeros(3), setpoint_u=FOUR_BAR.u)
    u = moving.function(FOUR_BAR.q, np.zeros(3), ref, moving.controller.z0)[0]
    np.testing.assert_allclose(np.array(u).ravel(), FOUR_BAR.u, atol=1e-9)


WRONG = {
    "empty horizon": ({"horizon": 0}, err.ProblemError, "horizon = .*whole number"),
    "blocks": ({"blocks": [3, 3]}, err.ProblemError, "add up to the horizon"),
    "name": ({"name": "two words"}, err.ProblemError, "C identifier"),
    "form": ({"form": "dense"}, err.ProblemError, "'condensed', 'sparse', 'multipliers'"),
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
}


@pytest.mark.parametrize("case", WRONG)
def test_numbers_that_make_no_sense_are_refused(case):
    options, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        cases.controller_of(**options)


@pytest.mark.parametrize("period", [0.0, -0.1, np.nan, np.inf])
def test_a_sample_time_that_makes_no_sense_is_refused(period):
    with pytest.raises(err.ProblemError, match="period"):
        mpc.LinearModel.of(cases.MODEL.A, cases.MODEL.B, period)
    with pytest.raises(err.MbcasadiError):
        mpc.linear_mpc(FOUR_BAR, mpc.LinearOptions(10, np.ones(6), 1.0, period=period))


def test_limits_that_cannot_hold_the_equilibrium_are_refused():
    with pytest.raises(err.ProblemError, match=r"is held by .* outside u_bounds 0 to 0.5"):
        mpc.linear_mpc(FOUR_BAR, mpc.LinearOptions(10, np.ones(6), 1.0, u_bounds=[[0.0, 0.5]]))


def test_a_mode_that_no_control_reaches_is_named():
    lost = mpc.LinearModel.of([[1.1, 0.0], [0.0, 0.9]], [[0.0], [1.0]], cases.PERIOD)
    with pytest.raises(err.ProblemError, match=r"out of reach: 1\.1 per sample"):
        mpc.lti_mpc(lost, mpc.LinearOptions(cases.HORIZON, [1.0, 1.0], 1.0))


def test_a_mechanism_names_the_joints_of_the_mode_that_no_control_reaches():
    system = mb.read_mjcf(UNDRIVEN)
    linear = mb.linearize(system, [0.0, 0.0], None, [0.0])
    with pytest.raises(err.ProblemError, match=r"not stabilisable.*pole moves"):
        mpc.linear_mpc(linear, mpc.LinearOptions(cases.HORIZON, np.ones(4), 1.0))


UNDRIVEN = """<mujoco model="apart"><worldbody>
  <body><joint name="pole" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.5"
    mass="1"/></body>
  <body pos="1 0 0"><joint name="wheel" axis="0 1 0" damping="0.1"/><geom size="0.1"
    mass="1"/></body></worldbody>
  <actuator><motor joint="wheel" name="motor"/></actuator></mujoco>"""


# Poles from 4 to 2e5 1/s: an angle of 0.02 rad is an acceleration of 1e4 rad/s².
ARM = """<mujoco model="servo_arm"><worldbody><body><joint name="upper" axis="0 1 0"/>
  <inertial pos="0 0 0.3" mass="3" diaginertia="0.1 0.1 0.01"/>
  <body pos="0 0 0.6"><joint name="wrist" axis="0 1 0"/>
  <inertial pos="0 0 0.03" mass="0.3" diaginertia="1e-3 1e-3 1e-3"/></body></body></worldbody>
  <actuator><position joint="upper" kp="2000" kv="200"/>
  <position joint="wrist" kp="2000" kv="200"/></actuator></mujoco>"""


def test_large_accelerations_hide_no_error_of_the_controls():
    linear = mb.linearize(mb.read_mjcf(ARM), np.zeros(2), None, np.zeros(2))
    assert np.abs(np.linalg.eigvals(linear.dfdx)).max() > 1e5
    forms = ("condensed", "multipliers")
    laws = [cases.mechanism_mpc(linear, 15, [1, 1], Q=(10, 0.1), form=form) for form in forms]
    refs = [cases.held(law, linear) for law in laws]
    rng, moved = np.random.default_rng(0), 0.0
    for _ in range(5):
        q, v = 0.02 * rng.standard_normal((2, 2))
        u, other = (
            law.function(q, v, ref, law.controller.z0) for law, ref in zip(laws, refs, strict=True)
        )
        assert float(u[2]) == float(other[2]) == 0
        np.testing.assert_allclose(other[0].full(), u[0].full(), atol=1e-8)
        w = laws[1].unknowns(q, v, refs[1], laws[1].controller.z0).full()
        moved = max(moved, np.abs(w).max())
    assert moved > 1e4


def test_what_counts_as_rest_is_one_thing_for_all_forms():
    """Of a stiff mechanism an equilibrium is found to rounding of its forces, not to 1e-8 m/s²."""
    linear = mb.linearize(mb.read_mjcf(ARM), np.zeros(2), None, np.zeros(2))
    nearly = replace(linear, drift=np.full(linear.nx, 1e-7))
    for form in ("condensed", "sparse", "multipliers"):
        cases.mechanism_mpc(nearly, 3, [1, 1], Q=(10, 0.1), form=form)
