"""The benchmark of constrained forward dynamics returns its rows; no time is judged."""

import numpy as np

from bench import dynamics, dynamics_cases, robots
from mbcasadi.system import read_mjcf


def test_states_are_closed_and_move_along_the_constraints():
    system = read_mjcf(dynamics_cases.CASES[0].spec())
    for state in dynamics.closed_states(system):
        q, v, _ = np.split(state, [system.nq, system.nq + system.nv])
        assert np.abs(system.constraint(q).full()).max() < 1e-9
        assert np.abs(system.loop_rate(q, v).full()).max() < 1e-9


def test_robots_of_others_are_taken_from_the_folder_that_is_named(monkeypatch, tmp_path):
    monkeypatch.delenv(robots.FOLDER, raising=False)
    others = [case for case in dynamics_cases.CASES if not case.own]
    assert [case.path for case in others] == [None] * len(others)
    monkeypatch.setenv(robots.FOLDER, str(tmp_path))
    file = tmp_path / others[0].file
    file.touch()
    assert [case.path for case in others] == [file] + [None] * (len(others) - 1)
