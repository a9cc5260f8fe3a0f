"""Mistyped arguments of MPC are refused: rows of another size, NaN, halves of steps."""

import numpy as np
import pytest
from support.mpc_mechanisms import sliding_mass

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models, mpc
from mbcasadi.control.laws import ForceGains, LawOptions
from mbcasadi.control.laws.force_loop import require_stable
from mbcasadi.control.regulators import finite_horizon_lqr
from mbcasadi.shapes import count_of_periods
from mbcasadi.validation import Trial, cases

MODEL = mpc.LinearModel.of([[1.0, 0.1], [0.0, 1.0]], [[0.0], [0.1]], 0.1)


@pytest.fixture(scope="module")
def linear():
    system = mb.read_mjcf(models.path("four_bar"))
    held = mb.equilibrium(system)
    return mb.linearize(system, held)


@pytest.mark.parametrize("row", [np.eye(3)[0], np.nan * np.eye(6)[0], np.full(6, np.inf)])
@pytest.mark.parametrize("form", ["condensed", "multipliers"])
def test_a_row_of_another_size_or_without_numbers_is_refused(linear, row, form):
    wrong = mpc.deviation_output(linear, "lean", row, -1.0, 1.0)
    with pytest.raises(err.ShapeError, match=r"output 'lean' has C .*\(ny, 6\).*finite"):
        mpc.linear_mpc(linear, mpc.LinearOptions(5, np.ones(6), 1.0, outputs=[wrong], form=form))


@pytest.mark.parametrize("C", [[[np.nan, 0.0]], [1.0, 0.0], 1.0])
def test_rows_of_a_plain_model_are_matrices_of_numbers(C):
    wrong = mpc.Output("speed", C, [[0.0]], [-1.0], [1.0])
    with pytest.raises(err.ShapeError, match="output 'speed' has C"):
        mpc.lti_mpc(MODEL, mpc.LinearOptions(5, [1.0, 1.0], 1.0, outputs=[wrong]))


def test_a_penalty_that_is_no_number_is_refused():
    rows = ("speed", [[0.0, 1.0]], [[0.0]], [-1.0], [1.0], 1.0)
    with pytest.raises(err.ProblemError, match="quadratic_penalty = nan; expected a number"):
        mpc.Output(*rows, np.nan)
    with pytest.raises(err.ProblemError, match="output 'speed' has a negative penalty"):
        mpc.lti_mpc(MODEL, mpc.LinearOptions(5, [1.0, 1.0], 1.0, outputs=[mpc.Output(*rows, -1.0)]))


@pytest.mark.parametrize("wrong", [{"substeps": 1.5}, {"newton": 0.5}])
def test_steps_are_counted_in_whole_numbers(wrong):
    with pytest.raises(err.ProblemError, match="whole number"):
        mpc.StepOptions(**wrong)


def test_one_row_in_place_of_a_list_is_refused(linear):
    row = mpc.deviation_output(linear, "lean", np.eye(6)[0], -1.0, 1.0)
    with pytest.raises(err.ProblemError, match="outputs is a Output; expected a list of Output"):
        mpc.linear_mpc(linear, mpc.LinearOptions(5, np.ones(6), 1.0, outputs=row))
    own = mpc.stage_symbols(linear.system)
    message = "parts is a list with a SX; expected a list of .*Task or Bounded objects"
    with pytest.raises(err.ProblemError, match=message):
        mpc.optimal_control_problem(linear.system, 5, 0.01, [mpc.Cost(Q=np.ones(6)), own.q])


def test_a_mistyped_option_of_a_formulation_is_refused_with_the_valid_ones():
    message = "unknown option of formulation 'projection' 'gama'; valid: .*'gamma'"
    with pytest.raises(err.UnknownNameError, match=message):
        mpc.StepOptions(formulation="projection", formulation_options={"gama": 1.0})


def test_a_system_in_place_of_its_linear_model_is_refused(linear):
    with pytest.raises(err.ProblemError, match="linear is a System; expected a Linear"):
        mpc.linear_mpc(linear.system, mpc.LinearOptions(5, np.ones(6), 1.0))


TIMES = {
    "plain model": lambda delay: mpc.lti_mpc(
        MODEL, mpc.LinearOptions(5, [1.0, 1.0], 1.0, delay=delay)
    ),
    "offset-free": lambda delay: mpc.offset_free_lti(
        MODEL, mpc.LinearOptions(5, [1.0, 1.0], 1.0, delay=delay), [[1.0, 0.0]]
    ),
    "real-time iteration": lambda delay: mpc.real_time_iteration(
        mpc.optimal_control_problem(sliding_mass(), 3, 0.1, [mpc.Cost(R=1.0)]), delay=delay
    ),
    "scenario": lambda delay: Trial(1.0, delay=delay),
    "cases": lambda delay: cases([0], delays=[delay]),
    "force loop": lambda delay: require_stable(ForceGains(0.1, 1.0, delay=delay + 1), 1e-3),
}


@pytest.mark.parametrize("delay", [-1, 1.5, np.nan, "1"])
@pytest.mark.parametrize("kind", TIMES)
def test_a_delay_is_a_whole_number_of_ticks(kind, delay):
    if kind == "force loop" and isinstance(delay, str):
        return
    with pytest.raises(err.ProblemError, match=r"delays? .*; expected .*number"):
        TIMES[kind](delay)


@pytest.mark.parametrize("error", [-0.1, np.nan, np.inf])
def test_an_error_of_the_start_is_a_size(error):
    with pytest.raises(err.ProblemError, match=r"start_error.*(not negative|of numbers)"):
        cases([0], start_errors=[error])


@pytest.mark.parametrize(("duration", "message"), [
    (0.105, r"duration = 0\.105 s is no multiple of the period of 0\.01 s.*0\.1 s or 0\.11 s"),
    (0.004, "shorter than one period"), (0.0, "positive"), (np.nan, "positive"),
])  # fmt: skip
def test_a_duration_is_a_whole_number_of_periods(duration, message):
    with pytest.raises(err.ProblemError, match=message):
        count_of_periods("duration", duration, 0.01)


@pytest.mark.parametrize(("duration", "period", "count"), [
    (1.0, 1 / 3, 3), (0.3, 0.1, 3), (1e4, 1e-3, 10**7), (0.01, 0.01, 1),
])  # fmt: skip
def test_rounding_is_no_part_of_a_period(duration, period, count):
    assert count_of_periods("duration", duration, period) == count


def test_a_horizon_of_gains_and_a_closed_loop_count_whole_periods(linear):
    with pytest.raises(err.ProblemError, match="no multiple of the period"):
        finite_horizon_lqr(
            linear, np.ones(6), 1.0, duration=0.0105, options=LawOptions(period=1e-3)
        )
    law = finite_horizon_lqr(
        linear, np.ones(6), 1.0, duration=0.01, options=LawOptions(period=1e-3)
    )
    with pytest.raises(err.ProblemError, match="no multiple of the period"):
        mb.validate(law, models.path("four_bar"), 0.0105)
