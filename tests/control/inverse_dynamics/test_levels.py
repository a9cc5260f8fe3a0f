"""Strict levels: the exported C, singular poses, the check of each level, options."""

from dataclasses import replace

import numpy as np
import pytest
from level_sequence import differences
from mechanisms import feet, stand
from test_levels_in_sequence import ARM, ROW, WEAK, arm, disturbed, quadruped

from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description.status import Status
from mbcasadi.errors import ProblemError, UnknownNameError

SAME = 1e-6  # relative: two solvers, each exact to 1e-9 at the levels and less in the last one
LEVELS = [["com"], ["turn"], ["posture"]]


def test_the_exported_levels_are_those_in_sequence_and_of_the_function_from_any_state(tmp_path):
    rng = np.random.default_rng(3)
    law = quadruped(["com", "turn", "posture"], LEVELS, name="law")
    exported = export_c(law, tmp_path / "law").load()
    system, seen = law.system, set()
    judged = 0
    for k in range(28):
        q, v = stand(system, rng, spread=0.1, speed=0.5, key="stand")
        v *= 20.0 if k % 7 == 0 else 1.0
        v[k % 18] = np.nan if k % 13 == 5 else v[k % 18]
        ref = disturbed(law, system.tree.keyframes["stand"], rng, 5.0)
        mask = (rng.random(4) < 0.9) * 1.0
        active = rng.choice([-1.0, 0.0, 1.0], law.problems * len(law.row_names))
        z = np.concatenate([active, law.z0[active.size :]])
        solution = law.solve(q, v, ref, mask=mask)
        out = exported(q=q, v=v, ref=ref, mask=mask, z=z)
        u = np.array(out["u"]).ravel()
        assert solution.status == float(out["status"])
        np.testing.assert_allclose(u, solution.u, atol=SAME * (1 + np.abs(solution.u).max()))
        seen.add(solution.status)
        if solution.status == Status.SOLVED and k % 7:
            of_c = replace(solution, p=u, a=solution.problem.T @ u + solution.problem.t)
            sequence, found = differences(law, of_c, q, v, ref, contacts=feet(), mask=mask)
            if min(sequence.weakest) > WEAK:
                assert max(found) <= ROW, (k, found)
                judged += 1
    assert judged >= 10
    assert {Status.SOLVED, Status.BAD_INPUT} <= seen


@pytest.mark.parametrize("damping", [1e-2, 5e-2])
def test_u_is_bounded_and_continuous_through_a_singular_pose(damping):
    far = np.tile([-1e5, 1e5], (7, 1))
    law = InverseDynamicsQP(
        arm(), ARM, levels=[["place"], ["axis", "elbow"], ["posture"]],
        level_damping=damping, ctrl_limits=far, force_limits=far,
    )  # fmt: skip
    q = np.array([0.3, 0.0, 0.2, 0.0, 0.1, 0.0, 0.2])  # straight up: nothing moves it along z
    ref = law.reference_at(q)
    ref[law.reference_slices["place.acceleration"]] = [1.0, -2.0, 1.0]
    scales, commands = law.stages.scales, []
    for angle in np.linspace(-0.3, 0.3, 301):
        q[[1, 3, 5]] = angle * np.array([1.0, -1.0, 0.5])
        ref[law.reference_slices["place.position"]] = law.reference_at(q)[
            law.reference_slices["place.position"]
        ]
        solution = law.solve(q, np.zeros(7), ref)
        assert solution.status in {Status.SOLVED, Status.SUBOPTIMAL}
        commands.append(solution.u * scales.actuators)
    size = np.linalg.norm(commands, axis=1)
    rest = np.linalg.norm(law.solve(q, np.zeros(7), law.reference_at(q)).u * scales.actuators)
    # an error moves a direction by no more than itself over the damping, in every level
    errors = 20.0 * np.sqrt(7) / scales.reach.min()
    assert size.max() <= rest + 3 * errors / damping
    assert size.max() < 1e3
    steps = np.linalg.norm(np.diff(commands, axis=0), axis=1)
    assert steps.max() <= 0.5 * size.max()


def test_a_wrong_solution_of_any_level_is_rejected():
    law = quadruped(["com", "turn", "posture"], LEVELS)
    q = np.array(law.system.tree.keyframes["stand"])
    stages, mask = law.stages.qp, np.ones(4)
    inputs = (q, np.zeros(18), disturbed(law, q, np.random.default_rng(0), 1.0), mask, law.z0)
    for wrong in (None, 2, 5, len(stages.between)):
        *_, carry, passed = stages.build(*inputs)
        for k, function in enumerate(stages.between):
            x = np.full(stages.n, 0.1 if k == wrong else 0.0)
            passed = function(carry, passed, x, *np.zeros((2, stages.m)), 1)[-1]
        x = np.full(stages.n, 0.1 if wrong == len(stages.between) else 0.0)
        outputs = stages.finish(*inputs, carry, passed, x, *np.zeros((2, stages.m)), 1)
        solved = int(outputs[2]) == Status.SOLVED
        assert solved == (wrong is None)


def test_the_errors_of_the_levels_are_reported():
    law = InverseDynamicsQP(arm(), ARM, levels=[["place"], ["axis", "elbow"], ["posture"]])
    q = np.linspace(-0.5, 0.5, 7)
    ref = disturbed(law, q, np.random.default_rng(1), 1.0)
    solution = law.solve(q, np.zeros(7), ref)
    assert list(solution.levels) == ["place", "axis + elbow", "posture"]
    desired = ref[law.reference_slices["posture.a"]]  # at rest at the reference
    assert solution.levels["posture"] == pytest.approx(np.linalg.norm(solution.a - desired))
    outputs = law.function(q, np.zeros(7), ref, [], law.z0)
    np.testing.assert_allclose(np.array(outputs[-1]).ravel(), list(solution.levels.values()))


def test_the_force_weight_is_a_level_behind_the_tasks():
    law = quadruped(["com", "turn", "posture"], LEVELS, force_weight=1e-3)
    without = quadruped(["com", "turn", "posture"], LEVELS)
    q = np.array(law.system.tree.keyframes["stand"])
    mine, other = (each.solve(q, np.zeros(18)) for each in (law, without))
    assert mine.status == Status.SOLVED
    assert list(mine.levels)[-1] == "forces"
    np.testing.assert_allclose(mine.a, other.a, atol=1e-6)
    assert np.linalg.norm(mine.contact_forces) < np.linalg.norm(other.contact_forces) + 1e-6


@pytest.mark.parametrize(
    ("levels", "error", "text"),
    [
        ([["a"]], ProblemError, "each task once"),
        ([["a"], ["a", "b"]], ProblemError, "each task once"),
        ([["a", "b"], []], ProblemError, "not empty"),
        ([["a"], ["b"], ["c"]], UnknownNameError, "c"),
    ],
)
def test_levels_that_make_no_sense_are_refused(levels, error, text):
    tasks = [FrameTask("hand", name="a"), PostureTask(name="b")]
    with pytest.raises(error, match=text):
        InverseDynamicsQP(arm(), tasks, levels=levels)


def test_a_damping_of_the_usual_strength_is_refused():
    with pytest.raises(ProblemError, match="less than 1"):
        InverseDynamicsQP(arm(), [PostureTask()], levels=[["posture"]], level_damping=1.0)
