"""Options of a scenario check themselves; signals are constant, functions of time, or default."""

import numpy as np
import pytest

from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.validation import ScenarioOptions, Trial
from mbcasadi.validation.closed_loop import OuterLaw
from mbcasadi.validation.closed_loop.scenario import signal_value

OUTER = object.__new__(OuterLaw)  # the checks do not look into it


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timestep": 0.0}, "timestep is 0.0 s; expected a positive number"),
        ({"timestep": float("nan")}, "timestep = nan"),
        ({"seed": -1}, "seed is -1; expected a non-negative integer"),
        ({"outer": OUTER, "mask": [1.0]}, "give mask or outer, not both"),
    ],
)
def test_contradicting_options_are_refused(options, message):
    with pytest.raises(ProblemError, match=message):
        ScenarioOptions(**options)


def test_a_reference_beside_an_outer_law_and_a_negative_delay_are_refused():
    with pytest.raises(ProblemError, match="give reference or outer, not both"):
        Trial(1.0, reference=[0.0], scenario=ScenarioOptions(outer=OUTER))
    with pytest.raises(ProblemError, match="delay = -1; expected a whole number"):
        Trial(1.0, delay=-1)


def test_a_signal_is_a_vector_a_function_or_its_default():
    np.testing.assert_array_equal(signal_value("ref", [1.0, 2.0], 0.3, 2), [1, 2])
    np.testing.assert_array_equal(signal_value("ref", lambda t: [t, 2 * t], 0.3, 2), [0.3, 0.6])
    np.testing.assert_array_equal(signal_value("mask", None, 0.3, 2, 1.0), [1, 1])
    assert signal_value("ref", None, 0.3, 0).size == 0
    with pytest.raises(ShapeError, match=r"ref has shape \(3,\), expected \(2,\)"):
        signal_value("ref", np.zeros(3), 0.3, 2)
