"""Contact forces follow a reference as far as tasks, torques and cones let them."""

from dataclasses import replace

import numpy as np
import pytest
from full_problem import column, full_problem, pose_task, solve
from mechanisms import feet, stand, system_of

from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP

FORCE = 2e-5  # relative to the largest force: two solvers, conditions up to 1e9
SAME = 1e-9  # the C and the Function, relative
WEIGHT = 1e-2  # 1/N²


@pytest.fixture(scope="module")
def law():
    trunk = FrameTask("trunk", kind="body", kp=100.0, name="base")
    options = {"force_weight": WEIGHT, "force_reference": True}
    return InverseDynamicsQP(system_of("quadruped"), [trunk], feet(), **options)


def drawn(law, rng):
    """Return q, v and a reference that asks feet to press each other sideways and unevenly."""
    q, v = stand(law.system, rng, spread=0.05, key="stand")
    ref = law.reference_at(law.system.tree.keyframes["stand"])
    pressed = 40.0 + 30.0 * rng.standard_normal((4, 1))
    ref[law.reference_slices["force"]] = np.hstack(
        [pressed, 20.0 * rng.standard_normal((4, 2))]
    ).ravel()
    return q, v, ref


@pytest.mark.parametrize("mask", [(1, 1, 1, 1), (1, 0, 0, 1), (0, 0, 0, 0)])
def test_the_forces_are_those_of_the_full_problem(law, mask):
    rng, system, moved = np.random.default_rng(3), law.system, 0.0
    for _ in range(8):
        q, v, ref = drawn(law, rng)
        part = {name: ref[place] for name, place in law.reference_slices.items()}
        pose = [part[f"base.{x}"] for x in ("position", "velocity", "acceleration", "quaternion")]
        pose += [part["base.angular_velocity"], part["base.angular_acceleration"]]
        task = pose_task(system, "trunk", "body", q, v, pose, 100.0, 1.0)
        full = full_problem(
            system, q, v, [task], feet(), system.limits.ctrl, mask, weights=law.force_weights
        )
        f_ref = part["force"][np.repeat(mask, 3) > 0]
        answer = solve(replace(full, force_weight=WEIGHT, force_reference=f_ref))
        got = law.solve(q, v, ref, mask=mask)
        assert got.solved, got.explain()
        on = np.array(mask, bool)
        scale = max(1.0, np.abs(answer.force).max(initial=0.0))
        np.testing.assert_allclose(got.contact_forces[on], answer.force, atol=FORCE * scale)
        assert np.all(got.contact_forces[~on] == 0.0)
        plain = solve(replace(full, force_weight=WEIGHT))
        moved += np.abs(plain.force - answer.force).max(initial=0.0)
    assert moved > 50.0 or not any(mask)


def test_feet_that_press_each_other_do_so_as_they_are_told(law):
    """Such forces move nothing: only the small weight on torques stands against them."""
    q = law.system.tree.keyframes["stand"]
    trunk = FrameTask("trunk", kind="body", kp=100.0, name="base")
    still = InverseDynamicsQP(law.system, [trunk], feet()).solve(q, np.zeros(18)).contact_forces
    arms = [column(law.system.frame(name).pose(q)[0]) for name in law.mask_names]
    press = np.zeros((4, 3))
    press[0, 1:] = 10.0 * (arms[3] - arms[0])[:2]  # one diagonal, pulled together
    press[3] = -press[0]
    ref = law.reference_at(q)
    ref[law.reference_slices["force"]] = (still + press).ravel()
    got = law.solve(q, np.zeros(18), ref)
    assert np.abs(press).max() > 3.0
    assert np.abs(got.contact_forces - still - press).max() < 0.05 * np.abs(press).max()
    assert np.abs(got.a).max() < 0.05


def test_the_c_equals_the_function(law, tmp_path):
    program = export_c(law, tmp_path / "c").load(flags=("-O0",))
    rng = np.random.default_rng(4)
    for mask in ((1, 1, 1, 1), (0, 1, 1, 0)):
        q, v, ref = drawn(law, rng)
        one = column(law.function(q, v, ref, mask, law.z0)[0])
        other = column(program(q, v, ref, mask, law.z0)[0])
        np.testing.assert_allclose(other, one, atol=SAME * np.abs(one).max())
