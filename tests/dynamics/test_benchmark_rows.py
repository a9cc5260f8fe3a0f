"""The benchmark of the formulations returns what `python -m bench` prints; no time is judged."""

import numpy as np
import pytest
from dynamics_states import the_case

from bench import formulation_cases, formulation_table, formulations

COLUMNS = {"model", "quantity", "ours", "peer", "peer_time", "ratio"}
TWO = {name: formulation_cases.VARIANTS[name] for name in ("lagrange", "null_space")}
LABELS = ["four_bar, nv 3, nc 3", "matrices, n 3, m 2"]


@pytest.fixture(scope="module")
def quick_run():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formulations, "MODELS", ("four_bar",))
        patch.setattr(formulations, "SIZES", ((3, 2),))
        patch.setattr(formulations, "VARIANTS", TWO)
        patch.setattr(formulations, "FLAGS", ("-O0",))
        yield formulations.run(quick=True)


@pytest.mark.long
def test_quick_run_has_a_row_for_each_function_of_each_problem(quick_run):
    seen = [(row["model"], row["quantity"]) for row in quick_run["rows"]]
    on_mechanism = [*TWO, "derivatives", "inverse"]
    expected = [(LABELS[0], name) for name in on_mechanism] + [(LABELS[1], name) for name in TWO]
    assert seen == expected
    for row in quick_run["rows"]:
        assert set(row) == COLUMNS
        assert row["ours"] > 0
        np.testing.assert_allclose(row["ratio"], row["ours"] / row["peer_time"])


def test_operations_and_lines_of_c_are_given_for_each_row(quick_run):
    names = {f"{row['model']}: {row['quantity']}" for row in quick_run["rows"]}
    assert set(quick_run["operations"]) == set(quick_run["lines"]) == names
    for name in names:
        assert 10 < quick_run["operations"][name] < 10_000
        assert quick_run["lines"][name] > quick_run["operations"][name] / 2


def test_the_table_holds_every_figure(quick_run):
    settings = {key: value for key, value in quick_run.items() if key != "rows"}
    found = {"rows": quick_run["rows"], "settings": {"formulations": settings}}
    text = formulation_table.tables(found)
    assert text.count("| `null_space` |") == 4
    assert text.count("MuJoCo mj_forward") == 1
    for size in quick_run["lines"].values():
        assert f"{size:,}" in text
    assert "nan" not in text


def test_standing_models_hold_every_foot_to_the_ground():
    for name, rows in (("quadruped on four feet", 12), ("humanoid on two soles", 12)):
        spec = formulation_cases.MECHANISMS[name].spec()
        assert formulations.read_mjcf(spec).nc == rows


def test_all_formulations_are_timed():
    timed = {formulation for formulation, _ in formulation_cases.VARIANTS.values()}
    assert timed == set(formulation_cases.FORMULATIONS)


def test_derivatives_of_eighteen_dof_are_far_smaller_than_those_through_the_solve():
    build = formulation_cases.functions(the_case("quadruped").system, [])["derivatives"]
    through_the_solve = 122_000  # operations of a differentiated forward dynamics at 18 dof
    assert formulations.count_written_out(build()) < through_the_solve / 3
