"""The benchmark of batches times ours beside MuJoCo and CasADi, and refuses other numbers."""

import numpy as np
import pytest

import mbcasadi as mb
from bench import batch, robots
from mbcasadi import models
from mbcasadi.errors import SolverError


def test_robots_of_others_come_from_the_folder_that_is_named(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(batch, "add_dynamics", lambda _, path, *__: seen.append(path.name))
    monkeypatch.setattr(batch, "add_steps", lambda *_: None)
    monkeypatch.setenv(robots.FOLDER, str(tmp_path))
    (tmp_path / robots.GO2).touch()
    batch.run(quick=True)
    assert seen == ["quadruped.xml", "humanoid.xml", robots.GO2]


def test_other_accelerations_are_not_timed():
    system = mb.read_mjcf(models.path("quadruped"))
    function, values = mb.forward_dynamics(system), batch.states(system, 8)
    wrong = {"a": np.zeros((8, system.nv))}
    with pytest.raises(SolverError, match="other accelerations"):
        batch.require_agreement(function, {("double", 1): lambda: wrong}, values)
