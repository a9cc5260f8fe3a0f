"""The kernel benchmark measures the same quantities in every program, and names absent peers."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from bench import kernel_peers, kernels, robots
from mbcasadi import models

CHEAP = ("-O0",)
ROUNDS = kernels.Rounds(warm=2, evicted=1, turns=1)


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "FLAGS", CHEAP)
        case = kernels.Case(models.path("quadruped"), ("FL", "RR"))
        return kernels.Problem.of(case, tmp_path_factory.mktemp("work"))


@pytest.mark.parametrize("name", ["M", "h", "J", "J_dot_v"])
def test_a_peer_that_computes_something_else_is_not_compared(problem, tmp_path, name):
    peer = kernel_peers.build_mujoco(tmp_path, CHEAP)
    numbers = {key: values.copy() for key, values in problem.numbers.items()}
    numbers[name][-1] += 1e-6 * np.abs(numbers[name]).max()
    wrong = dataclasses.replace(problem, numbers=numbers)
    rows = kernels._rows(wrong, ROUNDS, [peer])
    assert all("computes other numbers" in row["peer"] for row in rows)
    assert all(row["ratio"] is None for row in rows)


def test_robots_of_a_folder_are_timed_where_they_are(tmp_path, monkeypatch):
    monkeypatch.delenv(robots.FOLDER, raising=False)
    own = len(kernels.default_cases())
    (tmp_path / f"{kernels.ROBOTS[1]}.xml").write_text("<mujoco/>")
    monkeypatch.setenv(robots.FOLDER, str(tmp_path))
    assert [case.path.parent for case in kernels.default_cases()[own:]] == [tmp_path]


def test_pinocchio_reads_all_masses_of_moving_bodies(problem, tmp_path):
    path, _ = kernel_peers.pinocchio_input(problem.model, tmp_path)
    tree = problem.model.tree
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    masses = [float(line.split()[19]) for line in lines[1 : 1 + len(tree.joints)]]
    assert int(lines[0]) == len(tree.joints)
    assert np.sum(masses) == pytest.approx(sum(body.mass for body in tree.bodies))
