"""The benchmark of MPC times solutions that its peers confirm, with bounds that hold."""

import numpy as np
import pytest

from mbcasadi.benchmarks import mpc

CHEAP = ("-O0",)
EXACT = 1e-9  # of active-set peers


def test_every_row_names_its_peer_and_the_exact_ones_agree(monkeypatch):
    monkeypatch.setattr(mpc, "FLAGS", CHEAP)
    monkeypatch.setattr(mpc, "HORIZONS", (6,))
    results = mpc.run(quick=True)
    assert set(results["unsolved"].values()) == {0}
    assert len(results["unsolved"]) == 5
    assert min(results["active"].values()) > 0.05
    assert all(results["active"][model] < 0.9 for model in results["active"] if "double" in model)
    compared = 0
    for row in results["rows"]:
        assert row["ours"] > 0.0
        if row["peer_time"] is None:
            assert row["peer"] == "-" or "absent" in row["peer"]
            continue
        assert row["ratio"] == pytest.approx(row["ours"] / row["peer_time"])
        if "quadprog" in row["peer"] or "DAQP" in row["peer"]:
            assert row["miss"] < EXACT
            compared += 1
    assert compared >= 3 * 4  # problems; cold and warm, all ticks and those with an active bound
    whole = [row for row in results["rows"] if "whole problem" in row["quantity"]]
    assert all(row["unsolved"] == 0 for row in whole)
    solved = [row for row in whole if row["peer_time"] and "iteration" not in row["peer"]]
    assert max(row["miss"] for row in solved) < 1e-4  # of 12 N: one optimum
    named = {row["quantity"] for row in results["rows"] if "cart-pole" in row["model"]}
    assert {"whole tick", "preparation", "preparation, p99", "feedback", "feedback, p99"} <= named
    assert mpc.table(results).count("\n") == 2 + len(results["rows"])


def test_bounds_of_control_and_speed_hold_somewhere_in_the_closed_loop():
    law = mpc.double_integrator(6, box=True)
    record, u, z = mpc.closed_loop(law, law.function, mpc.QUICK_TICKS)
    assert np.abs(u).max() == pytest.approx(1.0, abs=1e-9)
    assert np.abs(record["x0"][:, 1]).max() == pytest.approx(0.8, abs=1e-6)
    active = mpc.active_sets(law.controller, z)
    assert active.shape == (mpc.QUICK_TICKS, law.controller.stages.m)
    assert 0.05 < np.mean(np.any(active != 0, axis=1)) < 0.9
