"""Parts of a real-time iteration written out or as loops, and how large one function gets."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi import models
from mbcasadi.codegen.count import largest_body
from mbcasadi.mpc import (
    Bounded,
    initial_guess,
    optimal_control_problem,
    real_time_iteration,
    stage_symbols,
)
from mbcasadi.mpc.lq import interval
from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.mpc.ocp.stage_bounds import StageBounds
from mbcasadi.system import from_lagrangian, read_mjcf

LARGEST_FUNCTION = 100_000  # operations


def two_link_arm():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    kinetic = ca.sumsqr(v) + v[0] * v[1] * ca.cos(q[0] - q[1])
    potential = 10 * ca.sin(q[0]) + 5 * ca.sin(q[1])
    return from_lagrangian(q, v, kinetic=kinetic, potential=potential, B=np.eye(2))


@pytest.mark.parametrize("limit", [0, 100])
def test_loops_and_written_out_parts_are_the_same_maps(monkeypatch, limit):
    system = two_link_arm()
    s = stage_symbols(system)
    ocp = optimal_control_problem(
        system,
        3,
        0.05,
        [
            Cost(Q=np.ones(4), R=[0.1, 0.2], Q_end=np.ones(4)),
            Bounded(ca.sin(s.q[0]) + s.u[1], -1, 1),
            StageBounds(u=[[-3, 3], [-3, 3]], v=[[-2, 2], [-2, 2]]),
        ],
        symbols=s,
    )
    written = real_time_iteration(ocp).prepare
    monkeypatch.setattr(interval, "UNROLLED", limit)
    loops = real_time_iteration(ocp).prepare
    assert largest_body(loops) < largest_body(written)
    rng = np.random.default_rng(4)
    given = [rng.standard_normal(written.size_in(i)) for i in range(written.n_in())]
    for actual, expected in zip(loops.call(given), written.call(given), strict=True):
        size = max(1, np.abs(expected.full()).max())
        np.testing.assert_allclose(actual.full(), expected.full(), atol=1e-12 * size)


@pytest.mark.parametrize("name", ["planar_biped", "quadruped"])
def test_no_function_of_a_legged_robot_is_beyond_the_limit(name):
    system = read_mjcf(models.path(name))
    weights, start = np.ones(2 * system.nv), np.r_[system.tree.q0, np.zeros(system.nv)]
    ocp = optimal_control_problem(system, 20, 0.02, [Cost(Q=weights, R=np.ones(system.nu))])
    guess = initial_guess(ocp, np.tile(start, (21, 1)), np.zeros((20, system.nu)))
    rti = real_time_iteration(ocp, guess)
    made = (rti.prepare, rti.controller.stages.build, rti.controller.stages.finish)
    assert max(largest_body(function) for function in made) < LARGEST_FUNCTION
