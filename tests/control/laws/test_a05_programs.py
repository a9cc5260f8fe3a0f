"""A05's laws as generated C: the same numbers, and nothing unbounded whatever comes in."""

import numpy as np
import pytest
from a05_mechanisms import closed_states, system_of
from support.rounding import assert_same_program

from mbcasadi.codegen import export_c
from mbcasadi.control.laws import (
    ForceGains,
    constraint_force_control,
    hybrid_motion_force_control,
    joint_coordinates,
    passive_joint_control,
    projected_inverse_dynamics,
)

STATES = 1000
BAD = (np.nan, np.inf, -np.inf, 1e300)


def laws():
    crank, arm = system_of("slider_crank_driven"), system_of("prr_arm")
    platform = system_of("planar_3rrr")
    return {
        "projected": projected_inverse_dynamics(crank, joint_coordinates(crank, ("crank",))),
        "passive": passive_joint_control(platform, ctrl_limits=np.tile([-300.0, 300.0], (3, 1))),
        "force": constraint_force_control(
            crank, ForceGains(0.5, 40.0), ctrl_limits=np.tile([-15.0, 15.0], (3, 1))
        ),
        "hybrid": hybrid_motion_force_control(
            arm, joint_coordinates(arm, ("tip", "q1")), ForceGains(0.5, 40.0), rows=("surface.2",)
        ),
    }


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a05")
    return {n: (law, export_c(law, folder / n).load()) for n, law in laws().items()}


def inputs(law, count):
    """Return closed states and random references, controls beyond the limits among them."""
    q, v = closed_states(law.system, count, seed=11)
    n, rng = q.shape[1], np.random.default_rng(12)
    values = {"q": q, "v": v}
    for name in law.function.name_in()[2:]:
        values[name] = 5 * rng.standard_normal((law.function.size1_in(name), n))
    return values


@pytest.mark.parametrize("name", ["projected", "passive", "force", "hybrid"])
def test_the_c_equals_the_function_on_a_thousand_states(programs, name):
    law, program = programs[name]
    values = inputs(law, STATES + 50)
    values = {key: value[:, :STATES] for key, value in values.items()}
    assert values["q"].shape[1] == STATES
    ours = assert_same_program(law.function.map(STATES), program.map(STATES), values)
    assert {0.0, 1.0} <= set(ours["status"].ravel())


@pytest.mark.parametrize("name", ["projected", "passive", "force", "hybrid"])
def test_bad_numbers_give_a_status_and_a_control_within_limits(programs, name):
    law, program = programs[name]
    values = inputs(law, 4)
    low, high = law.controller.u_min, law.controller.u_max
    for key in values:
        own = law.core.nz if key == "z" else len(values[key])  # what is remembered may be anything
        for bad in BAD if own else ():
            broken = {k: np.array(x[:, 0]) for k, x in values.items()}
            broken[key][0] = bad
            out = program(**broken)
            u = out["u"].full().ravel()
            assert float(out["status"]) == 3
            assert np.all((u >= low) & (u <= high))
            assert np.all(np.isfinite(out["z_next"].full()))


@pytest.mark.parametrize("name", ["projected", "passive", "force", "hybrid"])
def test_poses_far_off_the_loop_give_bounded_controls(programs, name):
    law, program = programs[name]
    n, rng = 200, np.random.default_rng(13)
    values = {
        key: 30 * rng.standard_normal((law.function.size1_in(key), n))
        for key in law.function.name_in()
    }
    out = program.map(n)(**values)
    u = out["u"].full()
    low, high = law.controller.u_min[:, None], law.controller.u_max[:, None]
    assert np.all((u >= low) & (u <= high))
    assert set(out["status"].full().ravel()) <= {0.0, 1.0, 2.0, 3.0, 4.0}  # 3: the loop is open
