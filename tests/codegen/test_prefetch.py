"""Code that a tick fetches ahead, where a user asks for it, is the same code."""

import sys

import numpy as np
import pytest
from codegen_problems import least_distance_controller, saturated_controller

from mbcasadi.codegen import export_c

FLAGS = ("-O1",)


@pytest.mark.parametrize("make", [least_distance_controller, saturated_controller])
def test_fetched_code_computes_the_same(make, tmp_path):
    controller = make(*(4, 6) if make is least_distance_controller else ())
    project = export_c(controller, tmp_path / "c", name="ahead")
    plain = project.load(flags=FLAGS)
    fetched = project.load(flags=(*FLAGS, "-DAHEAD_PREFETCH"))
    rng = np.random.default_rng(0)
    for _ in range(20):
        inputs = [rng.standard_normal(plain.size_in(i)) for i in range(plain.n_in())]
        for own, other in zip(plain.call(inputs), fetched.call(inputs), strict=True):
            assert np.array_equal(np.array(own), np.array(other))


@pytest.mark.skipif(sys.platform != "linux", reason="sections are those of ELF")
def test_the_functions_of_a_tick_lie_in_one_section(tmp_path):
    project = export_c(least_distance_controller(4, 6), tmp_path / "c", name="ahead")
    libraries = {
        asked: project.build(flags=(*FLAGS, *asked)).path.read_bytes()
        for asked in ((), ("-DAHEAD_PREFETCH",))
    }
    assert [b"ahead_code" in library for library in libraries.values()] == [False, True]
