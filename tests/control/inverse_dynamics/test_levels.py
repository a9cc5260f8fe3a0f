"""Strict levels: equal to levels solved in sequence by another method, singular poses, checks."""

from dataclasses import replace
from functools import cache

import mujoco
import numpy as np
import pytest
from level_sequence import differences, task_numbers
from numpy.testing import assert_allclose
from support.mechanisms_of_control import closed, feet, stand, system_of
from support.refusals import refused

from mbcasadi.codegen import export_c
from mbcasadi.control import ComTask, FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description.status import Status
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.system import read_mjcf

ROW = 1e-8  # of each row, over its usual length and the size of the acceleration; C has 3e-10
IN_PYTHON = 1e-6  # the plugin ends at 1e-10, which saturated motors magnify: 6e-8 was seen
WEAK = 0.05  # levels with a weaker direction than this are near a change of rank
AXES = ((0, 0, 1), (0, 1, 0), (0, 0, 1), (0, -1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1))
LINKS = (0.36, 0.2, 0.22, 0.2, 0.2, 0.1, 0.08)
MASSES = (5.8, 6.4, 2.7, 2.7, 1.8, 1.7, 0.4)


@cache
def arm(torque=80.0):
    """Return a 7-axis arm with motors, of the size of an industrial one."""
    spec = mujoco.MjSpec()
    body = spec.worldbody
    for i, (axis, link, mass) in enumerate(zip(AXES, LINKS, MASSES, strict=True)):
        body = body.add_body(name=f"link{i}", pos=(0, 0, LINKS[i - 1] if i else 0.1))
        body.add_joint(name=f"joint{i}", axis=axis)
        body.mass, body.ipos, body.explicitinertial = mass, (0, 0.02, link / 2), 1
        body.inertia = np.array([0.05, 0.05, 0.02]) * mass * link / 0.2
        motor = spec.add_actuator(name=f"motor{i}", target=f"joint{i}")
        motor.trntype, motor.ctrllimited = mujoco.mjtTrn.mjTRN_JOINT, True
        motor.ctrlrange = (-torque, torque)
    body.add_site(name="hand", pos=(0, 0, 0.1))
    return read_mjcf(spec)


ARM = (
    FrameTask("hand", orientation="", name="place"),
    FrameTask("hand", position="", orientation="xy", name="axis"),
    FrameTask("link3", kind="body", position="z", orientation="", name="elbow"),
    PostureTask(kp=50.0),
)


@cache
def quadruped(first="com", **options):
    """Return the law of three levels, its base or its mass before its turn and its posture."""
    tasks = {
        "com": ComTask(kp=100.0),
        "base": FrameTask("trunk", kind="body", orientation="", name="base"),
        "turn": FrameTask("trunk", kind="body", position="", name="turn"),
        "posture": PostureTask(kp=50.0),
    }
    names = (first, "turn", "posture")
    chosen, levels = [tasks[name] for name in names], [[name] for name in names]
    return InverseDynamicsQP(system_of("quadruped"), chosen, feet(), levels=levels, **options)


def disturbed(law, q, rng, size):
    """Return the reference that holds q, with accelerations of this size."""
    ref = law.reference_at(q)
    for name, place in law.reference_slices.items():
        if name.rpartition(".")[2] in {"acceleration", "angular_acceleration", "a"}:
            ref[place] += size * rng.standard_normal(place.stop - place.start)
    return ref


def of_c(law, compiled, solution, q, v, ref, mask):
    """Return a solution with the actuator forces of the exported C; motors have unit gains."""
    out = compiled(q=q, v=v, ref=ref, mask=mask, z=law.z0)
    assert float(out["status"]) == solution.status
    u = np.array(out["u"]).ravel()
    return replace(solution, p=u, a=solution.problem.T @ u + solution.problem.t)


@pytest.mark.parametrize("first", ["com", "base"])
@pytest.mark.every(2)
def test_three_levels_of_a_quadruped_equal_levels_in_sequence(first):
    rng, law = np.random.default_rng(21), quadruped(first)

    def states():
        for k in range(30):
            q, v = stand(law.system, rng, spread=0.1, speed=0.5, key="stand")
            mask, size = rng.random(4) < 0.85, 10.0 if k % 3 else 1.0
            yield q, v, disturbed(law, law.system.tree.keyframes["stand"], rng, size), mask

    count, bound = judged(law, states())
    assert count >= 19
    assert bound >= 3  # there the limits keep the first level from its goal


@pytest.mark.parametrize(
    "levels",
    [
        [["place"], ["axis"], ["elbow"], ["posture"]],
        [["place", "axis"], ["elbow"], ["posture"]],
        [["posture"], ["place"], ["axis", "elbow"]],
    ],
)
@pytest.mark.every(3)
def test_levels_of_an_arm_equal_levels_in_sequence(levels, tmp_path, is_thorough):
    rng, law = np.random.default_rng(4), InverseDynamicsQP(arm(), ARM, levels=levels)
    in_c = len(levels) == len(ARM) and is_thorough
    compiled = export_c(law, tmp_path / "law").load() if in_c else None

    def states():
        for k in range(40):
            q, v = rng.uniform(-1.5, 1.5, 7), 0.5 * rng.standard_normal(7)
            yield q, v, disturbed(law, q, rng, 200.0 if k % 2 else 2.0), np.zeros(0)

    assert judged(law, states(), compiled=compiled)[0] >= 20


@pytest.mark.parametrize("name", ["planar_3rrr", "bricard", "four_bar"])
@pytest.mark.every(3)
def test_levels_of_closed_loops_equal_levels_in_sequence(name):
    rng, system = np.random.default_rng(8), system_of(name)
    joints = [joint.name for joint in system.tree.joints if joint.kind in {"hinge", "slide"}]
    parts = {"first": joints[:1], "rest": joints[1:]}
    tasks = [PostureTask(joints=tuple(own), name=name) for name, own in parts.items()]
    law = InverseDynamicsQP(system, tasks, levels=[["first"], ["rest"]])

    def states():
        for _ in range(15):
            q = closed(system, stand(system, rng, spread=0.05)[0])
            yield q, np.zeros(system.nv), disturbed(law, q, rng, 5.0), np.ones(len(law.mask_names))

    assert judged(law, states(), may_fail=True)[0] >= 8


def test_a_level_gives_up_nothing_for_a_later_one_where_weights_do():
    rng = np.random.default_rng(2)
    strict = InverseDynamicsQP(arm(), ARM, levels=[["place"], ["axis"], ["elbow", "posture"]])
    weighted = InverseDynamicsQP(arm(), ARM)
    q, v = rng.uniform(-1, 1, 7), np.zeros(7)
    ref = disturbed(strict, q, rng, 2.0)
    with_levels, without = (law.solve(q, v, ref) for law in (strict, weighted))
    assert with_levels.levels["place"] < 1e-9
    J, rhs, _ = task_numbers(weighted, q, v, ref)["place"]
    assert np.linalg.norm(J @ without.a - rhs) > 0.1


SAME = 1e-6  # relative: two solvers, each exact to 1e-9 at the levels and less in the last one


@pytest.mark.long
def test_the_exported_levels_are_those_in_sequence_and_of_the_function_from_any_state(tmp_path):
    rng = np.random.default_rng(3)
    law = quadruped()
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
        assert_allclose(u, solution.u, atol=SAME * (1 + np.abs(solution.u).max()))
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
@pytest.mark.every(2)
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
        out = law.function(q=q, v=np.zeros(7), ref=ref, z=law.z0)
        assert int(out["status"]) in {Status.SOLVED, Status.SUBOPTIMAL}
        commands.append(out["u"].full().ravel() * scales.actuators)
    size = np.linalg.norm(commands, axis=1)
    rest = np.linalg.norm(law.solve(q, np.zeros(7), law.reference_at(q)).u * scales.actuators)
    # an error moves a direction by no more than itself over the damping, in every level
    errors = 20.0 * np.sqrt(7) / scales.reach.min()
    assert size.max() <= rest + 3 * errors / damping
    assert size.max() < 1e3
    steps = np.linalg.norm(np.diff(commands, axis=0), axis=1)
    assert steps.max() <= 0.5 * size.max()


def test_a_wrong_solution_of_any_level_is_rejected():
    law = quadruped()
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
    assert_allclose(np.array(outputs[-1]).ravel(), list(solution.levels.values()))


def test_the_force_weight_is_a_level_behind_the_tasks():
    law = quadruped(force_weight=1e-3)
    without = quadruped()
    q = np.array(law.system.tree.keyframes["stand"])
    mine, other = (each.solve(q, np.zeros(18)) for each in (law, without))
    assert mine.status == Status.SOLVED
    assert list(mine.levels)[-1] == "forces"
    assert_allclose(mine.a, other.a, atol=1e-6)
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
    refused(error, text, lambda: InverseDynamicsQP(arm(), tasks, levels=levels))


def test_a_damping_of_the_usual_strength_is_refused():
    with pytest.raises(ProblemError, match="less than 1"):
        InverseDynamicsQP(arm(), [PostureTask()], levels=[["posture"]], level_damping=1.0)


def judged(law, states, *, compiled=None, may_fail=False):
    """Return how many states were judged, and how many limits keep from the first level's goal.

    Args:
        states: of q, v, ref and mask.
        compiled: the exported C, whose actuator forces are judged in place of the Function's.
        may_fail: whether the problem of a state may have no solution that is called one.
    """
    count = bound = 0
    for q, v, ref, mask in states:
        solution = law.solve(q, v, ref, mask=mask)
        if may_fail and solution.status != Status.SOLVED:
            continue
        judge = solution if compiled is None else of_c(law, compiled, solution, q, v, ref, mask)
        sequence, found = differences(law, judge, q, v, ref, contacts=law.contacts, mask=mask)
        assert solution.status == (Status.SOLVED if sequence.feasible else Status.INFEASIBLE)
        if sequence.feasible and min(sequence.weakest) > WEAK:
            assert max(found) <= (IN_PYTHON if compiled is None else ROW), found
            count += 1
            bound += bool(np.linalg.norm(sequence.residuals[0]) > 1e-6)
    return count, bound
