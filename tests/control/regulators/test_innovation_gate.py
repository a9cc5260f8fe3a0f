"""The gate of an estimator: against a second statement of it, and in the loop of LQG."""

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.lqr_problems import at_rest, weights
from support.refusals import refused

import mbcasadi.errors as err
from mbcasadi.control.regulators import Gate, discretize, encoders, lqr_gain
from mbcasadi.control.regulators.innovation_gate import innovation_gate
from mbcasadi.description.status import OUTPUTS, Flag, Status
from mbcasadi.estimation import kalman, lqg

NAME, PERIOD, NOISE, FORCES = "pendulum_on_four_bar", 2e-3, 1e-3, 4.0
TURN = 2 * np.pi
WRONG_FROM = 20


def filter_of(**options):
    linear = at_rest(NAME)
    W = np.r_[np.zeros(4), np.full(4, FORCES**2)]
    measured = encoders(linear.system, ["crank", "pendulum"])
    return kalman(linear, measured, W, NOISE**2, period=PERIOD, **options)


def run(estimator, added, ticks=60, noise=NOISE):
    """Return flags, status, u and |x̂ - x| of LQG on a linear plant; `added(k)` is the sensor's."""
    linear = at_rest(NAME)
    law = lqg(estimator, lqr_gain(linear, *weights(linear), period=PERIOD).K)
    step, x, z = discretize(linear, PERIOD), np.array([0.005, -0.004, 0.0, 0.0]), law.controller.z0
    rows, rng = [], np.random.default_rng(3)
    for k in range(ticks):
        q, v = linear.state(x)
        q = q + noise * rng.standard_normal(4)
        q[[0, 2]] += added(k)
        values = (np.array(part).ravel() for part in law.function(q, v, [], z))
        out = dict(zip(OUTPUTS, values, strict=True))
        rows.append((int(out["flags"][0]), int(out["status"][0]), float(out["u"][0])))
        x = step.dfdx @ x + step.dfdu @ (out["u"] - linear.u)
        z = out["z_next"]
        rows[-1] += (float(np.linalg.norm(z[:4] - x)),)
    return [np.array(column) for column in zip(*rows, strict=True)]


def wrong(*ticks):
    return lambda k: np.array([TURN, 0.0]) if k in ticks else np.zeros(2)


def test_one_wild_sample_moves_u_by_less_than_one_percent_of_what_it_does_without_a_gate():
    moved = {}
    for case, gate in (("with", Gate()), ("without", None)):
        estimator = filter_of(gate=gate)
        calm, shaken = (run(estimator, wrong(*ticks), noise=0.0) for ticks in ((), (WRONG_FROM,)))
        moved[case] = np.abs(shaken[2] - calm[2]).max()
        flagged = np.flatnonzero(shaken[0] & Flag.GATED).tolist()
        assert flagged == ([WRONG_FROM] if gate else [])
    assert moved["without"] > 0.1
    assert moved["with"] < 0.01 * moved["without"]


def test_no_good_sample_is_rejected():
    flags, status, *_ = run(filter_of(), wrong(), ticks=500)
    assert not np.any(flags & Flag.GATED)
    assert np.all(status <= Status.SATURATED)


def test_an_encoder_that_stays_a_turn_wrong_is_told_and_then_believed_unless_it_is_too_large():
    always = range(WRONG_FROM, 200)
    flags, status, *_ = run(filter_of(), wrong(*always))
    late = slice(WRONG_FROM + 1, WRONG_FROM + 3)
    rejected = np.flatnonzero(flags & Flag.GATED)[:3]
    assert rejected[:2].tolist() == [WRONG_FROM, WRONG_FROM + 1]
    assert rejected[2] > WRONG_FROM + Gate().accept_after + 4  # the third is a step of the plant
    assert np.all(status[late] == Status.UNATTAINABLE)
    gate = Gate(largest_step=100.0)
    flags, status, *_ = run(filter_of(gate=gate), wrong(*always))
    assert np.all(status[WRONG_FROM + gate.fail_after - 1 :] == Status.BAD_INPUT)
    assert np.all(flags[WRONG_FROM:] & Flag.GATED)


def test_a_sensor_that_agrees_with_nothing_is_bad_input_and_its_return_is_recognised():
    rng, last = np.random.default_rng(5), WRONG_FROM + 20
    noise = 10 * rng.standard_normal((100, 2))
    flags, status, _, error = run(
        filter_of(), lambda k: noise[k] if WRONG_FROM <= k < last else np.zeros(2), ticks=120
    )
    assert np.all(status[WRONG_FROM + 5 : last] == Status.BAD_INPUT)
    assert np.all(flags[WRONG_FROM:last] & Flag.GATED)
    assert np.all(status[last + 10 :] <= Status.SATURATED)
    assert error[-1] < 4 * np.sqrt(np.trace(filter_of().gains.before))


def test_a_turn_of_an_angle_that_wraps_is_no_error():
    always = range(WRONG_FROM, 200)
    calm = run(filter_of(wrap=[0]), wrong())
    shaken = run(filter_of(wrap=[0]), wrong(*always))
    assert_allclose(shaken[2], calm[2], atol=1e-9)
    assert_array_equal(shaken[1], calm[1])


def reference(gate, S, innovations):
    """Return which samples are used, doubted and failed, as states of a machine."""
    limit = np.sqrt(-2 * np.log(gate.false_alarm))  # χ² with two numbers is exponential
    state, left, outside, agreed, last, rows = "start", gate.fail_after, 0, 0, np.zeros(2), []

    def size(e):
        return np.sqrt(e @ np.linalg.solve(S, e))

    for e in innovations:
        if size(e) <= limit:
            state, outside, agreed, last = "inside", 0, 0, np.zeros(2)
            rows.append((True, False, False))
            continue
        if state in ("start", "stepped"):
            rows.append((True, state == "stepped", False))
            left -= 1
            state, outside, agreed = (state, 0, 0) if left else ("inside", 0, 0)
        else:
            outside += 1
            same = size(e - last) <= limit + size(last) / 2
            agreed = agreed + 1 if same else 1
            if agreed >= gate.accept_after and size(e) <= gate.largest_step:
                state, left = "stepped", gate.fail_after
                rows.append((True, True, False))
            else:
                doubted = outside >= 2 or agreed >= gate.accept_after
                rows.append((False, doubted, outside >= gate.fail_after))
        last = e
    return np.array(rows).T


@pytest.mark.parametrize("gate", [Gate(), Gate(1e-3, 2, 4, largest_step=12.0), Gate(0.1, 1, 1)])
def test_decisions_are_those_of_a_second_statement(gate):
    rng = np.random.default_rng(0)
    root = rng.standard_normal((2, 2)) + 2 * np.eye(2)
    S = root @ root.T
    made = innovation_gate(gate, S)
    base = np.repeat(rng.standard_normal((100, 2)) * rng.choice([0.3, 4, 30], (100, 1)), 4, axis=0)
    innovations = (base + 0.3 * rng.standard_normal((400, 2))) @ root.T
    memory, rows = made.start, []
    for e in innovations:
        decision = made.decide(ca.DM(e), ca.DM(memory))
        rows.append([bool(x) for x in (decision.used, decision.doubted, decision.failed)])
        memory = np.array(decision.memory).ravel()
    expected = reference(gate, S, innovations)
    assert_array_equal(np.array(rows).T, expected)
    assert expected[0].any()
    assert expected[1].any()


@pytest.mark.parametrize("options", [
    {"false_alarm": 0.0}, {"false_alarm": 1.0}, {"accept_after": 0}, {"accept_after": 7},
    {"accept_after": 1.5}, {"largest_step": 0.0}, {"largest_step": np.nan},
])  # fmt: skip
def test_a_gate_without_sense_is_refused(options):
    refused(err.ProblemError, next(iter(options)), lambda: Gate(**options))


@pytest.mark.parametrize("wrap", [[2], [-1], [0, 0], ["crank"], 0.5])
def test_a_row_that_does_not_exist_cannot_wrap(wrap):
    with pytest.raises(err.ProblemError, match=r"wrap .*(0 to 1|a list of whole numbers)"):
        filter_of(wrap=wrap)
