"""What a real-time iteration says where its solver gives up, though there is an answer."""

import casadi as ca
import numpy as np
import pytest
from support.mpc_mechanisms import cart_pole
from support.problems import problem

from mbcasadi.description.qp_stages import SolverFlag
from mbcasadi.mpc.ocp.stage import stage_symbols
from mbcasadi.mpc.rti.controller import real_time_iteration
from mbcasadi.qp.rows import Bounded

FAILED, INFEASIBLE = 4, 2


def row_of_speed(place, **price):
    s = stage_symbols(cart_pole())
    return {"symbols": s, place: [Bounded(s.v[0], -1, 1, **price)]}


ROWS = {
    "controls alone": ({}, FAILED),
    "soft path": (row_of_speed("path", linear_penalty=1.0), FAILED),
    "soft end": (row_of_speed("end", quadratic_penalty=1.0), FAILED),
    "hard path": (row_of_speed("path"), INFEASIBLE),
    "hard end": (row_of_speed("end"), INFEASIBLE),
    "states": ({"v_bounds": [[-1, 1], [-1, 1]]}, INFEASIBLE),
}


@pytest.mark.parametrize("kind", ROWS)
def test_only_hard_rows_beyond_controls_can_be_infeasible(kind):
    """A claim that there is no answer is a failure where one always exists. The guess goes."""
    given, expected = ROWS[kind]
    ocp = problem(cart_pole(), 8, 0.04, Q=1.0, R=0.05, **given)
    rti, wild = real_time_iteration(ocp, shift=False), np.random.default_rng(0)
    z, stages = rti.controller.z0.copy(), rti.controller.stages
    kept = slice(sum(rti.memory.sizes[:2]))
    z[kept] += 5.0 * wild.standard_normal(z[kept].size)
    known = (np.array([0.1, 0.2]), np.zeros(2), ocp.parameters().ravel(), z)
    prepared = stages.prepare(*known[2:])[0]
    none = ca.DM.zeros(stages.m)
    answer = (ca.DM.zeros(0), 1e4 * np.ones(stages.n), none, none, SolverFlag.INFEASIBLE)
    _, z_next, status, _, residual = stages.finish(*known, prepared, *answer)
    assert float(residual[0]) > 1e-3
    assert int(status) == expected
    X, U = rti.trajectory(np.array(z_next))
    np.testing.assert_array_equal(X, np.tile([0.1, 0.2, 0, 0], (9, 1)))  # held where it is
    np.testing.assert_array_equal(U, np.zeros((8, 1)))
    names = rti.controller.inputs[3].components
    rows = [i for i, name in enumerate(names) if name.startswith("active.")]
    for begun in (rti.controller.z0, np.array(z_next).ravel()):
        held = [names[i] for i in rows if begun[i]]
        assert held == [names[i] for i in rows if "slack" in names[i]]  # no slack
    assert bool(held) == (kind == "soft path")  # the other soft row has slacks of either sign
