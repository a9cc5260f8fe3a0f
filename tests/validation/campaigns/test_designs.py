"""Designs of campaigns: combinations, samples of ranges, grids, pairs for Sobol indices."""

import numpy as np
import pytest

from mbcasadi.errors import ProblemError
from mbcasadi.validation import Case, cases, sampled_cases
from mbcasadi.validation.campaigns.case import case_of_json
from mbcasadi.validation.campaigns.outcome import parameter_table

RANGES = {"mass": (-0.2, 0.2), "start_error": (0.0, 0.1), "delay": (0, 3)}


def table(plan):
    names, values = parameter_table(plan)
    return {name: values[:, i] for i, name in enumerate(names)}


def test_cases_are_all_combinations():
    plan = cases([1, 2, 3], [{}, {"mass": 0.1}], [0, 1], [0.0, 0.05], [1.0, 2.0])
    assert len(plan) == 48
    distinct = {(c.seed, tuple(c.perturb), c.delay, c.start_error, c.disturbance) for c in plan}
    assert len(distinct) == 48


@pytest.mark.parametrize("design", ["monte_carlo", "sobol", "latin_hypercube", "grid", "saltelli"])
def test_a_design_stays_in_its_ranges_and_depends_on_its_seed_alone(design):
    count = {"grid": 64, "saltelli": 80}.get(design, 60)
    plan = sampled_cases(RANGES, count, design=design, seed=4, perturb={"friction": 0.1})
    assert len(plan) == count
    for name, values in table(plan).items():
        lowest, highest = RANGES[name]
        assert values.min() >= lowest
        assert values.max() <= highest
        assert np.ptp(values) > 0.7 * (highest - lowest)
    assert all(case.perturb["friction"] == 0.1 and not case.each_body for case in plan)
    again = sampled_cases(RANGES, count, design=design, seed=4, perturb={"friction": 0.1})
    assert [case.to_json() for case in again] == [case.to_json() for case in plan]


def test_a_latin_hypercube_has_one_case_in_each_of_n_equal_parts_of_a_range():
    masses = table(sampled_cases({"mass": (0.0, 1.0 - 1e-9)}, 20, design="latin_hypercube"))["mass"]
    assert sorted(np.floor(20 * masses).astype(int)) == list(range(20))


def test_a_grid_has_all_combinations_of_its_levels():
    plan = sampled_cases({"mass": (-0.1, 0.1), "disturbance": (0.0, 2.0)}, 9, design="grid")
    points = {(round(c.perturb["mass"], 12), c.disturbance) for c in plan}
    assert points == {(m, d) for m in (-0.1, 0.0, 0.1) for d in (0.0, 1.0, 2.0)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ranges": {}, "count": 4}, "at least one range"),
        ({"ranges": {"mass": (0.2, 0.1)}, "count": 4}, "lowest, highest"),
        ({"ranges": {"mass": (0.0, np.inf)}, "count": 4}, "lowest, highest"),
        ({"ranges": RANGES, "count": 10, "design": "grid"}, "8, 27, 64"),
        ({"ranges": RANGES, "count": 15, "design": "saltelli"}, "n \\(d \\+ 2\\)"),
        ({"ranges": RANGES, "count": 10, "design": "random"}, "design"),
        ({"ranges": {"delay": (-2, 3)}, "count": 8}, "delay"),
    ],
)
def test_a_design_that_does_not_exist_is_refused(arguments, message):
    with pytest.raises(ProblemError, match=message):
        sampled_cases(**arguments)


def test_a_case_keeps_all_its_digits_as_text():
    case = Case(7, {"mass": 0.1 + 1e-16, "friction": -1 / 3}, 2, 1e-3 / 3, -0.7, each_body=False)
    assert case_of_json(case.to_json()) == case
