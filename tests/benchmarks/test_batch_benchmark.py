"""The benchmark of batches times ours beside MuJoCo and CasADi, and refuses other numbers."""

import numpy as np
import pytest

from mbcasadi import models
from mbcasadi.benchmarks import batch, robots
from mbcasadi.dynamics import forward_dynamics
from mbcasadi.errors import SolverError
from mbcasadi.system import read_mjcf


def empty():
    return {"rows": [], "lanes": {}, "compile_seconds": {}}


def test_dynamics_have_rows_beside_every_peer():
    results = empty()
    batch.add_dynamics(results, models.path("quadruped"), 32, 1)
    for row in results["rows"]:
        assert set(row) == {"model", "quantity", "ours", "peer", "peer_time", "ratio"}
        assert 0 < row["ours"] < 1e-2
        assert row["ratio"] == row["ours"] / row["peer_time"]
    peers = {row["peer"] for row in results["rows"]}
    expected = {
        "casadi map, 1 thread",
        "casadi map, compiled, 1 thread",
        "mujoco.rollout, 1 thread",
    }
    assert expected <= peers
    assert set(results["lanes"]) == {f"quadruped, nv 18: {real}" for real in ("double", "float")}


def test_steps_have_rows_beside_both_integrators():
    results = empty()
    batch.add_steps(results, models.path("slider_crank"), 1)
    assert len(results["rows"]) == 6
    assert all(0 < row["ours"] < 1e-2 for row in results["rows"])


def test_robots_of_others_come_from_the_folder_that_is_named(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(batch, "add_dynamics", lambda _, path, *__: seen.append(path.name))
    monkeypatch.setattr(batch, "add_steps", lambda *_: None)
    monkeypatch.setenv(robots.FOLDER, str(tmp_path))
    (tmp_path / robots.GO2).touch()
    batch.run(quick=True)
    assert seen == ["quadruped.xml", "humanoid.xml", robots.GO2]


def test_other_accelerations_are_not_timed():
    system = read_mjcf(models.path("quadruped"))
    function, values = forward_dynamics(system), batch.states(system, 8)
    wrong = {"a": np.zeros((8, system.nv))}
    with pytest.raises(SolverError, match="other accelerations"):
        batch.require_agreement(function, {("double", 1): lambda: wrong}, values)
