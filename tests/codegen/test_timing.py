"""Times of single ticks: every tick counted, the state carried."""

import numpy as np
import pytest
from codegen_problems import least_distance_controller, planar_arm

import mbcasadi.codegen as codegen
from mbcasadi.errors import ShapeError, UnknownNameError


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return codegen.export_c(least_distance_controller(2, 2), tmp_path_factory.mktemp("t") / "out")


@pytest.mark.parametrize("evict", [False, True])
def test_every_tick_is_timed_and_its_status_kept(evict, project):
    lower = np.array([[1.0, 1.0], [1.0, 3.0], [1.0, 1.0]])  # the second one is infeasible
    times = project.time({"A": np.eye(2).ravel(), "lower": lower, "upper": [2, 2]}, 2, evict=evict)
    assert times.seconds.shape == (6,)
    assert np.all(times.seconds > 0)
    assert times.status.tolist() == [0, 2, 0, 0, 2, 0]
    assert times.median <= times.p99 <= times.max
    assert times.evicted is evict


def test_a_function_without_state_is_timed(tmp_path):
    project = codegen.export_c(planar_arm(), tmp_path / "out")
    times = project.time({"q": np.zeros((5, 2)), "v": [1, 2]}, repeats=3)
    assert times.seconds.shape == (15,)


def test_records_that_do_not_fit_are_refused(project):
    with pytest.raises(ShapeError, match=r"lower has shape \(3, 3\), expected \(3, 2\)"):
        project.time({"lower": np.zeros((3, 3))})
    with pytest.raises(ShapeError, match=r"upper has shape \(2, 2\), expected \(3, 2\)"):
        project.time({"lower": np.zeros((3, 2)), "upper": np.zeros((2, 2))})
    with pytest.raises(UnknownNameError, match="'A', 'lower', 'upper', 'z'"):
        project.time({"low": np.zeros((3, 2))})
