"""The benchmark of the dynamics returns what `mbcasadi bench` prints; no time is judged."""

import numpy as np
from dynamics_states import the_case

from benchmarks import formulations

COLUMNS = {"model", "quantity", "ours", "peer", "peer_time", "ratio"}


def test_quick_run_has_a_row_for_each_function_of_each_model(monkeypatch):
    monkeypatch.setattr(formulations, "MODELS", ("four_bar",))
    found = formulations.run(quick=True)
    quantities = [row["quantity"] for row in found["rows"]]
    assert quantities == ["lagrange", "projection", "derivatives", "inverse"]
    for row in found["rows"]:
        assert set(row) == COLUMNS
        np.testing.assert_allclose(row["ratio"], row["ours"] / row["peer_time"])


def test_derivatives_of_eighteen_dof_are_far_smaller_than_those_through_the_solve():
    function = formulations.functions(the_case("quadruped").system)["derivatives"]
    through_the_solve = 122_000  # operations of a differentiated forward dynamics at 18 dof
    assert formulations.written_out(function) < through_the_solve / 3
