"""Strict levels equal levels solved in sequence by another method."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from level_sequence import differences, task_numbers
from mechanisms import closed, feet, stand, system_of

from mbcasadi.codegen import export_c
from mbcasadi.control import ComTask, FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description.status import Status
from mbcasadi.system import read_mjcf

ROW = 1e-8  # of each row, over its usual length and the size of the acceleration; C has 3e-10
IN_PYTHON = 1e-6  # the plugin ends at 1e-10, which saturated motors magnify: 6e-8 was seen
WEAK = 0.05  # levels with a weaker direction than this are near a change of rank

AXES = ((0, 0, 1), (0, 1, 0), (0, 0, 1), (0, -1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1))
LINKS = (0.36, 0.2, 0.22, 0.2, 0.2, 0.1, 0.08)
MASSES = (5.8, 6.4, 2.7, 2.7, 1.8, 1.7, 0.4)


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


def quadruped(names, levels, **options):
    tasks = {
        "com": ComTask(kp=100.0),
        "base": FrameTask("trunk", kind="body", orientation="", name="base"),
        "turn": FrameTask("trunk", kind="body", position="", name="turn"),
        "posture": PostureTask(kp=50.0),
    }
    chosen = [tasks[name] for name in names]
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
def test_three_levels_of_a_quadruped_equal_levels_in_sequence(first):
    rng = np.random.default_rng(21)
    law = quadruped([first, "turn", "posture"], [[first], ["turn"], ["posture"]])
    system, solved, bound = law.system, 0, 0
    for k in range(40):
        q, v = stand(system, rng, spread=0.1, speed=0.5, key="stand")
        mask = rng.random(4) < 0.85
        ref = disturbed(law, system.tree.keyframes["stand"], rng, 10.0 if k % 3 else 1.0)
        solution = law.solve(q, v, ref, mask=mask)
        sequence, found = differences(law, solution, q, v, ref, contacts=feet(), mask=mask)
        if not sequence.feasible:
            assert solution.status == Status.INFEASIBLE
            continue
        assert solution.status == Status.SOLVED, solution.explain()
        if min(sequence.weakest) > WEAK:
            assert max(found) <= IN_PYTHON, (k, found)
            solved += 1
            bound += bool(np.linalg.norm(sequence.residuals[0]) > 1e-6)
    assert solved >= 25
    assert bound >= 3  # there the limits keep the first level from its goal


@pytest.mark.parametrize(
    "levels",
    [
        [["place"], ["axis"], ["elbow"], ["posture"]],
        [["place", "axis"], ["elbow"], ["posture"]],
        [["posture"], ["place"], ["axis", "elbow"]],
    ],
)
def test_levels_of_an_arm_equal_levels_in_sequence(levels, tmp_path):
    rng = np.random.default_rng(4)
    law = InverseDynamicsQP(arm(), ARM, levels=levels)
    in_c = len(levels) == len(ARM)
    compiled = export_c(law, tmp_path / "law").load() if in_c else None
    solved = 0
    for k in range(50):
        q, v = rng.uniform(-1.5, 1.5, 7), 0.5 * rng.standard_normal(7)
        ref = disturbed(law, q, rng, 200.0 if k % 2 else 2.0)
        solution = law.solve(q, v, ref)
        assert solution.status == Status.SOLVED, solution.explain()
        if compiled is not None:
            solution = of_c(law, compiled, solution, q, v, ref, np.zeros(0))
        sequence, found = differences(law, solution, q, v, ref)
        if min(sequence.weakest) > WEAK:
            assert max(found) <= (IN_PYTHON if compiled is None else ROW), (k, found)
            solved += 1
    assert solved >= 25


@pytest.mark.parametrize("name", ["planar_3rrr", "bricard", "four_bar"])
def test_levels_of_closed_loops_equal_levels_in_sequence(name):
    rng = np.random.default_rng(8)
    system = system_of(name)
    joints = [joint.name for joint in system.tree.joints if joint.kind in {"hinge", "slide"}]
    tasks = [
        PostureTask(joints=tuple(joints[:1]), name="first"),
        PostureTask(joints=tuple(joints[1:]), name="rest"),
    ]
    law = InverseDynamicsQP(system, tasks, levels=[["first"], ["rest"]])
    compared = 0
    for _ in range(15):
        q, _ = stand(system, rng, spread=0.05)
        q, v = closed(system, q), np.zeros(system.nv)
        ref = disturbed(law, q, rng, 5.0)
        solution = law.solve(q, v, ref)
        if solution.status != Status.SOLVED:
            continue
        sequence, found = differences(law, solution, q, v, ref)
        assert sequence.feasible
        if min(sequence.weakest) > WEAK:
            assert max(found) <= IN_PYTHON, found
            compared += 1
    assert compared >= 8


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
