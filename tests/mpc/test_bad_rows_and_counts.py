"""Mistyped arguments of MPC are refused: rows of another size, NaN, halves of steps."""

import numpy as np
import pytest

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.mpc import (
    LinearModel,
    Output,
    StepOptions,
    deviation_output,
    linear_mpc,
    lti_mpc,
    optimal_control_problem,
    stage_symbols,
)

MODEL = LinearModel.of([[1.0, 0.1], [0.0, 1.0]], [[0.0], [0.1]], 0.1)


@pytest.fixture(scope="module")
def linear():
    system = mb.read_mjcf(models.path("four_bar"))
    held = mb.equilibrium(system)
    return mb.linearize(system, held)


@pytest.mark.parametrize("row", [np.eye(3)[0], np.nan * np.eye(6)[0], np.full(6, np.inf)])
@pytest.mark.parametrize("form", ["condensed", "multipliers"])
def test_a_row_of_another_size_or_without_numbers_is_refused(linear, row, form):
    wrong = deviation_output(linear, "lean", row, -1.0, 1.0)
    with pytest.raises(err.ShapeError, match=r"output 'lean' has C .*\(ny, 6\).*finite"):
        linear_mpc(linear, 5, np.ones(6), 1.0, outputs=[wrong], form=form)


@pytest.mark.parametrize("C", [[[np.nan, 0.0]], [1.0, 0.0], 1.0])
def test_rows_of_a_plain_model_are_matrices_of_numbers(C):
    wrong = Output("speed", C, [[0.0]], [-1.0], [1.0])
    with pytest.raises(err.ShapeError, match="output 'speed' has C"):
        lti_mpc(MODEL, 5, [1.0, 1.0], 1.0, outputs=[wrong])


def test_a_penalty_that_is_no_number_is_refused():
    wrong = Output("speed", [[0.0, 1.0]], [[0.0]], [-1.0], [1.0], 1.0, np.nan)
    with pytest.raises(err.ProblemError, match="output 'speed' has a negative penalty"):
        lti_mpc(MODEL, 5, [1.0, 1.0], 1.0, outputs=[wrong])


def test_an_unknown_form_is_refused_with_the_valid_ones(linear):
    with pytest.raises(err.ProblemError, match="'condensed', 'sparse', 'multipliers'"):
        linear_mpc(linear, 5, np.ones(6), 1.0, form="dense")


@pytest.mark.parametrize("wrong", [{"substeps": 1.5}, {"newton": 0.5}])
def test_steps_are_counted_in_whole_numbers(wrong):
    with pytest.raises(err.ProblemError, match="expected whole numbers"):
        StepOptions(**wrong)


def test_one_row_in_place_of_a_list_is_refused(linear):
    row = deviation_output(linear, "lean", np.eye(6)[0], -1.0, 1.0)
    with pytest.raises(err.ShapeError, match="outputs is a Output; expected a list of Output"):
        linear_mpc(linear, 5, np.ones(6), 1.0, outputs=row)
    own = stage_symbols(linear.system)
    with pytest.raises(err.ShapeError, match=r"path holds a SX; expected a list of Bounded"):
        optimal_control_problem(linear.system, 5, 0.01, Q=np.ones(6), path=[own.q])


def test_a_mistyped_option_of_a_formulation_is_refused_with_the_valid_ones():
    message = "unknown option of formulation 'projection' 'gama'; valid: .*'gamma'"
    with pytest.raises(err.UnknownNameError, match=message):
        StepOptions(formulation_options={"gama": 1.0})


def test_a_system_in_place_of_its_linear_model_is_refused(linear):
    with pytest.raises(err.ProblemError, match="linear is a System; expected what"):
        linear_mpc(linear.system, 5, np.ones(6), 1.0)
