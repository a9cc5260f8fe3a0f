"""The condensed QP against the full problem in (a, p, lam, f), solved by another method."""

import numpy as np
import pytest
from full_problem import column, full_problem, numbers, pose_task, posture, solve
from mechanisms import (
    FEET,
    SOLES,
    admissible,
    closed,
    feet,
    quadruped_controller,
    stand,
    system_of,
)

from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.description.status import Status

# Two solvers, condition numbers of the Hessian up to 1e9: rounding 1e-16 times its root, twice.
FORCE = 2e-5  # N, N m, relative to the largest force
ACCELERATION = 5e-7  # relative to the largest acceleration


def compare(solution, answer, limit=1.0):
    """Assert that both agree, or that both call the problem infeasible."""
    assert answer.feasible == (solution.status == 0), solution.explain()
    if not answer.feasible:
        assert solution.status == 2, solution.explain()
        return False
    scale = max(limit, np.abs(answer.p).max())
    np.testing.assert_allclose(
        solution.a, answer.a, atol=ACCELERATION * max(1, np.abs(answer.a).max())
    )
    np.testing.assert_allclose(solution.p, answer.p, atol=FORCE * scale)
    return True


def quadruped_tasks(system, controller, q, v, ref):
    part = {name: ref[place] for name, place in controller.reference_slices.items()}
    pose = [part[f"base.{x}"] for x in ("position", "velocity", "acceleration", "quaternion")]
    pose += [part["base.angular_velocity"], part["base.angular_acceleration"]]
    joints = [part[f"posture.{x}"] for x in "qva"]
    return [
        pose_task(system, "trunk", "body", q, v, pose, 100.0, 100.0),
        posture(system, q, v, joints, range(6, 18), range(7, 19), 50.0, 1.0),
    ]


@pytest.mark.parametrize(
    "mask", [(1, 1, 1, 1), (0, 1, 1, 1), (1, 0, 0, 1), (0, 0, 1, 0), (0, 0, 0, 0)]
)
def test_the_quadruped_gets_the_optimum_of_the_full_problem_with_every_set_of_feet(mask):
    rng = np.random.default_rng(11)
    controller = quadruped_controller()
    system = controller.system
    solved = 0
    for _ in range(15):
        q, v = stand(system, rng, key="stand")
        ref = controller.reference_at(system.tree.keyframes["stand"])
        ref[controller.reference_slices["base.acceleration"]] = rng.standard_normal(3)
        full = full_problem(
            system, q, v, quadruped_tasks(system, controller, q, v, ref), feet(),
            system.limits.ctrl, mask, weights=controller.force_weights,
        )  # fmt: skip
        solution, answer = controller.solve(q, v, ref, mask=mask), solve(full)
        if compare(solution, answer):
            solved += 1
            forces = solution.contact_forces[np.array(mask, bool)]
            scale = max(1.0, np.abs(answer.force).max(initial=0.0))
            np.testing.assert_allclose(forces, answer.force, atol=FORCE * scale)
            assert np.all(solution.contact_forces[~np.array(mask, bool)] == 0.0)
    assert solved >= 10


def test_straight_knees_get_the_optimum_of_the_full_problem():
    rng = np.random.default_rng(5)
    controller = quadruped_controller()
    system = controller.system
    for _ in range(10):
        q, v = stand(system, rng, key="stand")
        q[[9, 12]] = 0.0  # both front legs fully stretched: their rows lose rank
        v[[6, 7, 8, 9, 10, 11]] = 0.0
        rows = numbers(system.frame("FL").jacobian(q))[:3, 6:9]
        assert np.linalg.svd(rows)[1][-1] < 1e-12
        ref = controller.reference_at(q)
        tasks = quadruped_tasks(system, controller, q, v, ref)
        full = full_problem(
            system, q, v, tasks, feet(), system.limits.ctrl, weights=controller.force_weights
        )
        compare(controller.solve(q, v, ref), solve(full))


def test_a_repeated_contact_shares_its_load_and_changes_nothing_else():
    rng = np.random.default_rng(8)
    once = quadruped_controller()
    system = once.system
    tasks = [
        FrameTask("trunk", kind="body", kp=100.0, weight=100.0, name="base"),
        PostureTask(kp=50.0, weight=1.0),
    ]
    twice = InverseDynamicsQP(system, tasks, [*feet(), feet()[0]])
    assert twice.mask_names == (*FEET, "FL_2")
    for _ in range(5):
        q, v = stand(system, rng, spread=0.05, key="stand")
        ref = once.reference_at(system.tree.keyframes["stand"])
        one, two = once.solve(q, v, ref), twice.solve(q, v, ref)
        assert one.solved
        assert two.solved, two.explain()
        np.testing.assert_allclose(two.u, one.u, atol=FORCE * np.abs(one.u).max())
        both = two.contact_forces[0] + two.contact_forces[4]
        np.testing.assert_allclose(both, one.contact_forces[0], atol=FORCE * 100)


@pytest.mark.parametrize(
    "mask", [(1,) * 8, (1, 1, 0, 1, 1, 1, 1, 1), (1, 0, 0, 0, 0, 1, 1, 0), (0, 0, 0, 0, 1, 1, 1, 1)]
)
def test_a_humanoid_on_two_four_point_feet_gets_the_optimum_of_the_full_problem(mask):
    rng = np.random.default_rng(21)
    system = system_of("humanoid")
    controller = humanoid_controller()
    on = np.array(mask, bool)
    solved = 0
    for _ in range(4):
        q, v = stand(system, rng, spread=0.03, speed=0.2, key="stand")
        J = np.vstack(
            [
                numbers(system.frame(n).jacobian(q))[:3]
                for n, m in zip(SOLES, mask, strict=True)
                if m
            ]
        )
        v = admissible(J, v)
        ref = controller.reference_at(system.tree.keyframes["stand"])
        part = {name: ref[place] for name, place in controller.reference_slices.items()}
        pose = [part[f"pelvis.{x}"] for x in ("position", "velocity", "acceleration", "quaternion")]
        pose += [part["pelvis.angular_velocity"], part["pelvis.angular_acceleration"]]
        joints = [part[f"posture.{x}"] for x in "qva"]
        tasks = [
            pose_task(system, "pelvis", "body", q, v, pose, 100.0, 10.0),
            posture(system, q, v, joints, range(6, 29), range(7, 30), 50.0, 1.0),
        ]
        contacts = feet(SOLES)
        full = full_problem(
            system,
            q,
            v,
            tasks,
            contacts,
            system.limits.ctrl,
            mask,
            weights=controller.force_weights,
        )
        solution, answer = controller.solve(q, v, ref, mask=mask), solve(full)
        if compare(solution, answer):
            solved += 1
            np.testing.assert_allclose(
                solution.contact_forces[on], answer.force, atol=FORCE * np.abs(answer.force).max()
            )
    assert solved >= 2


def humanoid_controller(cache=[]):  # noqa: B006  # built once for all tests of this file
    if not cache:
        tasks = [
            FrameTask("pelvis", kind="body", kp=100.0, weight=10.0, name="pelvis"),
            PostureTask(kp=50.0, weight=1.0),
        ]
        cache.append(InverseDynamicsQP(system_of("humanoid"), tasks, feet(SOLES)))
    return cache[0]


def test_the_four_bar_tracks_and_saturates_as_the_full_problem_says():
    rng = np.random.default_rng(2)
    system = system_of("four_bar")
    controller = InverseDynamicsQP(system, [PostureTask(("crank",), kp=400.0)])
    saturated = 0
    for _ in range(40):
        q = system.tree.q0.copy()
        q[0] += 0.3 * rng.standard_normal()
        q = closed(system, q)
        A = numbers(system.constraint_jacobian(q))
        assert np.linalg.matrix_rank(A, tol=1e-9) == 2
        assert A.shape[0] == 3
        v = admissible(A, 5.0 * rng.standard_normal(3))
        ref = np.array([q[0] + 0.3 * rng.standard_normal(), 0.0, 0.0])
        task = posture(system, q, v, (ref[:1], ref[1:2], ref[2:]), [0], [0], 400.0, 1.0)
        full = full_problem(
            system, q, v, [task], [], system.limits.ctrl, weights=controller.force_weights
        )
        solution = controller.solve(q, v, ref)
        compare(solution, solve(full))
        saturated += abs(abs(solution.u[0]) - 1.5) < 1e-9
    assert 5 < saturated < 35


@pytest.mark.parametrize("model", ["arm_gripper", "cooperating_arms", "five_bar", "spatial_loop"])
def test_mechanisms_with_loops_get_the_optimum_of_the_full_problem(model):
    rng = np.random.default_rng(4)
    system = system_of(model)
    joints = [joint.name for joint in system.tree.joints]
    controller = InverseDynamicsQP(system, [PostureTask(kp=50.0)])
    for _ in range(10):
        q = closed(system, stand(system, rng, spread=0.02)[0])
        v = admissible(numbers(system.constraint_jacobian(q)), rng.standard_normal(system.nv))
        ref = controller.reference_at(q + 0.1 * rng.standard_normal(system.nq))
        parts = [ref[controller.reference_slices[f"posture.{x}"]] for x in "qva"]
        every = range(len(joints))
        task = posture(system, q, v, parts, every, every, 50.0, 1.0)
        compare(
            controller.solve(q, v, ref),
            solve(
                full_problem(
                    system, q, v, [task], [], system.limits.ctrl, weights=controller.force_weights
                )
            ),
        )


@pytest.mark.parametrize("crank", [np.pi / 2, -np.pi / 2])
def test_the_slider_crank_at_its_singular_pose_gets_the_full_answer_of_a_dropped_row(crank):
    system = system_of("slider_crank")
    controller = InverseDynamicsQP(system, [PostureTask(("crank",), kp=100.0)])
    q = np.array([crank, 0.0, crank])
    assert np.abs(column(system.constraint(q))).max() < 1e-12
    A = numbers(system.constraint_jacobian(q))
    assert np.linalg.matrix_rank(A, tol=1e-9) == 1
    along, across = velocities_at_the_branching(system, q, A)
    for v in (np.zeros(3), *along):
        ref = np.array([crank + 0.2, 0.0, 0.0])
        task = posture(system, q, v, (ref[:1], ref[1:2], ref[2:]), [0], [0], 100.0, 1.0)
        full = full_problem(
            system, q, v, [task], [], system.limits.ctrl, weights=controller.force_weights
        )
        compare(controller.solve(q, v, ref), solve(full))
    # along no branch the dropped row is violated, whatever the acceleration
    assert controller.solve(q, across, ref).status == Status.FAILED


def velocities_at_the_branching(system, q, A):
    """Return velocities along both branches, and one along none: A v = 0 holds for all of them."""
    plane = np.linalg.svd(A)[2][1:].T
    angles = np.linspace(0.0, np.pi, 20001)
    turned = plane @ np.vstack([np.cos(angles), np.sin(angles)])
    bias = numbers(system.constraint_bias.map(angles.size)(np.tile(q, (angles.size, 1)).T, turned))
    outside = (np.eye(len(A)) - A @ np.linalg.pinv(A, rcond=1e-9)) @ bias
    worst = outside[np.abs(outside).max(axis=1).argmax()]
    places = np.flatnonzero(np.sign(worst[:-1]) != np.sign(worst[1:]))
    along = []
    for i in places:
        share = worst[i] / (worst[i] - worst[i + 1])
        along.append(turned[:, i] + share * (turned[:, i + 1] - turned[:, i]))
    assert len(along) == 2
    return along, turned[:, np.abs(worst).argmax()]


def test_normal_force_limits_hold_and_match_the_full_problem():
    rng = np.random.default_rng(6)
    system = system_of("quadruped")
    contacts = feet(min_force=5.0, max_force=45.0)
    tasks = [FrameTask("trunk", kind="body", weight=100.0, name="base"), PostureTask(kp=50.0)]
    controller = InverseDynamicsQP(system, tasks, contacts)
    active = 0
    for _ in range(15):
        q, v = stand(system, rng, spread=0.05, speed=0.1, key="stand")
        ref = controller.reference_at(system.tree.keyframes["stand"])
        full = full_problem(
            system, q, v, quadruped_tasks(system, controller, q, v, ref), contacts,
            system.limits.ctrl, weights=controller.force_weights,
        )  # fmt: skip
        solution = controller.solve(q, v, ref)
        if compare(solution, solve(full)):
            normal = solution.contact_forces[:, 0]
            assert np.all((normal > 5.0 - 1e-4) & (normal < 45.0 + 1e-4))
            active += np.any((normal < 5.0 + 1e-4) | (normal > 45.0 - 1e-4))
    assert active > 3


def test_an_inclined_contact_uses_its_own_normal():
    system = system_of("quadruped")
    slope = [Contact(name, normal=(0.3, -0.2, 1.0), sides=6) for name in FEET]
    tasks = [FrameTask("trunk", kind="body", weight=100.0, name="base"), PostureTask(kp=50.0)]
    controller = InverseDynamicsQP(system, tasks, slope)
    q, v = stand(system, np.random.default_rng(3), spread=0.05, key="stand")
    ref = controller.reference_at(q)
    tasks_full = quadruped_tasks(system, controller, q, v, ref)
    answer = solve(
        full_problem(
            system, q, v, tasks_full, slope, system.limits.ctrl, weights=controller.force_weights
        )
    )
    solution = controller.solve(q, v, ref)
    assert compare(solution, answer)
    np.testing.assert_allclose(solution.contact_forces, answer.force, atol=FORCE * 100)
