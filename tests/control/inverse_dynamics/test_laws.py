"""What must hold for every controller and every state."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.mechanisms_of_control import (
    FEET,
    SOLES,
    admissible,
    closed,
    feet,
    quadruped_controller,
    stand,
    system_of,
)

import mbcasadi as mb
from mbcasadi.contacts.friction_cone import contact_axes, pyramid_rows
from mbcasadi.contacts.groups import point_map
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact

SAME = 1e-6  # relative; two routes through the same QP, condition up to 1e9


def numbers(value):
    return np.array(value, dtype=float)


@pytest.mark.parametrize("sides", [3, 4, 5, 8, 16])
def test_the_pyramid_stands_inside_the_cone_and_touches_it(sides):
    rng = np.random.default_rng(sides)
    D = np.array(pyramid_rows(0.6, sides))
    forces = rng.standard_normal((20000, 3)) * [1, 0.5, 0.5]
    inside = np.all(forces @ D.T <= 0, axis=1)
    assert inside.sum() > 100
    assert np.all(np.hypot(forces[inside, 1], forces[inside, 2]) <= 0.6 * forces[inside, 0] + 1e-12)
    corner = np.array([1.0, 0.6 * np.cos(np.pi / sides), 0.6 * np.sin(np.pi / sides)])
    assert np.max(D @ corner) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("normal", [(0, 0, 1), (0, 0, -2), (1, 0, 0), (0.9, 0.1, -0.3), (0, 1, 0)])
def test_contact_axes_are_a_right_handed_frame_on_the_normal(normal):
    axes = contact_axes(np.array(normal, float))
    assert_allclose(axes @ axes.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(axes) == pytest.approx(1.0)
    assert_allclose(axes[0], np.array(normal) / np.linalg.norm(normal))


@pytest.mark.parametrize(
    "arms",
    [
        np.zeros((2, 3)),
        np.array([[0.1, 0, 0], [-0.1, 0, 0]]),
        np.array([[0.1, 0.2, -0.1], [-0.1, -0.2, 0.1]]),
        np.random.default_rng(0).standard_normal((4, 3)),
    ],
)
def test_the_constant_point_map_is_split_into_independent_columns_and_its_null_space(arms):
    E_C, C, Z = point_map(arms)
    skews = [np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) for x, y, z in arms]
    E = np.vstack([np.hstack([np.eye(3), -skew]) for skew in skews])
    assert_allclose(E_C @ C, E, atol=1e-12)
    assert E_C.shape[1] == np.linalg.matrix_rank(E)
    assert_allclose(Z.T @ E, 0, atol=1e-12)
    assert_allclose(Z.T @ Z, np.eye(Z.shape[1]), atol=1e-12)


def test_the_repr_of_a_solution_is_one_line():
    law = quadruped_controller()
    home = law.system.tree.keyframes["stand"]
    solution = law.solve(home, [0.0] * law.system.nv, law.reference_at(home))
    shown = repr(solution)
    assert shown.startswith("InverseDynamicsSolution(solved, u=[")
    assert "\n" not in shown
    assert len(shown) < 250
    m, n = solution.problem.A_qp.shape
    assert repr(solution.problem) == f"CondensedQP({n} unknowns, {m} rows)"


def test_a_loop_that_is_switched_off_is_open():
    system = system_of("four_bar")
    controller = InverseDynamicsQP(system, [PostureTask(("crank",), kp=100.0)])
    assert controller.mask_names == ("pin",)
    q, v = closed(system, system.tree.q0), np.zeros(3)
    held, open_ = (controller.solve(q, v, mask=[flag]) for flag in (1, 0))
    A, M = np.array(system.constraint_jacobian(q)), np.array(system.mass_matrix(q))
    assert_allclose(A @ held.a, 0, atol=1e-9)
    assert np.abs(A @ open_.a).max() > 1.0
    assert_array_equal(open_.lam, 0.0)
    force = numbers(system.actuation(q)) @ open_.u - numbers(system.bias_force(q, v)).ravel()
    assert_allclose(open_.a, np.linalg.solve(M, force), atol=1e-9)


def test_every_torque_and_every_contact_force_respects_its_limits():
    law, rng = quadruped(force_limits=np.tile([-9.0, 9.0], (12, 1))), np.random.default_rng(3)
    touched = 0
    for q, v, ref in standing(law, 3, 60, 0.1):
        ref[law.reference_slices["base.acceleration"]] = 3 * rng.standard_normal(3)
        solution = law.solve(q, v, ref)
        assert np.all(np.abs(solution.u) <= 9.0)
        if solution.solved:
            touched += np.any(np.abs(solution.u) > 9.0 - 1e-9)
            n, t1, t2 = solution.contact_forces.T
            assert np.all(np.hypot(t1, t2) <= 0.7 * n + 1e-4)  # N, a 1e-6 part of the weight
    assert touched > 12


def test_scaling_the_weights_of_everything_changes_nothing():
    one = quadruped_controller()
    scaled = [replace(task, weight=1e3 * task.weight) for task in one.tasks]
    other = InverseDynamicsQP(one.system, scaled, feet())
    for q, v, _ in standing(one, 4, 10):
        first, second = one.solve(q, v), other.solve(q, v)
        assert first.solved
        assert second.solved
        assert_allclose(first.u, second.u, atol=SAME * np.abs(first.u).max())


def test_a_torque_reference_is_followed_where_the_tasks_leave_freedom():
    law, plain = (quadruped(torque_reference=told, torque_weight=1e-5) for told in (True, False))
    q, v = law.system.tree.keyframes["stand"], np.zeros(18)
    still = plain.solve(q, v)
    # torques that only press the feet together: a projection, for a null basis belongs to LAPACK
    T, some = still.problem.T, np.cos(np.arange(12.0))
    idle = some - np.linalg.pinv(T, 1e-9) @ (T @ some)
    idle /= np.linalg.norm(idle)
    assert np.linalg.norm(T @ idle) < 1e-9
    wanted = still.u + 0.5 * idle
    pulled = law.solve(q, v, law.reference_at(q, {"torque": wanted})).u
    assert np.linalg.norm(still.u - wanted) > 0.4
    share = law.force_weights.actuators / np.mean(law.force_weights.actuators)
    assert abs((share * idle) @ (pulled - wanted)) < 1e-6  # N m, in the cost's metric


def test_a_weight_on_contact_forces_lowers_them():
    laws, v = (quadruped_controller(), quadruped(force_weight=0.1)), np.zeros(18)
    light, heavy = (law.solve(law.system.tree.keyframes["stand"], v) for law in laws)
    assert heavy.solved
    assert np.linalg.norm(heavy.contact_forces) < np.linalg.norm(light.contact_forces)


def test_stabilisation_pulls_a_loop_together_and_damping_stops_a_foot():
    system = system_of("four_bar")
    controller = InverseDynamicsQP(system, [PostureTask(("crank",))], stabilisation=20.0)
    q, v = system.tree.q0 + np.array([0.0, 1e-3, 0.0]), np.array([0.3, 0.1, -0.2])
    a = controller.solve(q, v).a
    phi, psi = numbers(system.constraint(q)).ravel(), numbers(system.loop_rate(q, v)).ravel()
    shut = closed(system, q)  # the rows are those of the closed state, the feedback's is measured
    A = numbers(system.constraint_jacobian(shut))
    c = numbers(system.constraint_bias(shut, admissible(A, v))).ravel()
    assert_allclose(A @ a + c + 40.0 * psi + 400.0 * phi, 0, atol=1e-9)
    law = quadruped(contact_damping=7.0)
    q, v, _ = next(standing(law, 0, 1))
    frame = law.system.frame("FL")
    J, c = np.array(frame.jacobian(q))[:3], np.array(frame.bias(q, v)).ravel()[:3]
    assert_allclose(J @ law.solve(q, v).a + c + 7.0 * J @ v, 0, atol=1e-8)


def test_internal_forces_widen_what_a_sole_can_do():
    free, bound = humanoid(), humanoid(internal_forces="none")
    assert (free.stages.nw, bound.stages.nw) == (12, 0)
    q = free.system.tree.keyframes["stand"]
    J = np.vstack([np.array(free.system.frame(n).jacobian(q))[:3] for n in SOLES])
    v, ref = admissible(J, np.ones(29)), free.reference_at(q)
    ref[free.reference_slices["pelvis.acceleration"]] = [2.0, 0.5, 0.0]
    one, other = free.solve(q, v, ref), bound.solve(q, v, ref)
    costs = [0.5 * s.p @ s.problem.H[:23, :23] @ s.p + s.problem.g[:23] @ s.p for s in (one, other)]
    assert one.solved
    assert other.status in (0, 2)
    assert other.status == 2 or costs[0] <= costs[1] + 1e-6 * abs(costs[1])


def test_the_condensed_qp_as_data_reproduces_the_answer():
    controller = quadruped_controller()
    q, v = stand(controller.system, np.random.default_rng(9), spread=0.05, key="stand")
    solution, qp = controller.solve(q, v), controller.problem(q, v)
    assert_allclose(qp.T @ solution.p + qp.t, solution.a, atol=1e-10)
    assert len(qp.row_names) == len(qp.lba) == 28
    assert_allclose(qp.H, qp.H.T, atol=1e-9 * np.abs(qp.H).max())
    assert np.linalg.eigvalsh(qp.H)[0] >= 0.9 * 1e-4  # the regularisation
    free = np.linalg.solve(qp.H, -qp.g)
    value = qp.A_qp @ free
    if np.all((value > qp.lba) & (value < qp.uba)):
        assert_allclose(solution.p, free, atol=SAME * np.abs(free).max())


def test_contacts_on_frames_of_one_welded_body_are_one_grip():
    law = quadruped([*feet(("FL",)), Contact("FL_calf", kind="body", sides=4)])
    assert len(law.contact_groups) == 1
    assert law.contact_groups[0].members == (0, 1)


LOCKED = """
<mujoco><option gravity="0 0 0"/>
  <worldbody><body name="left"><joint name="left" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 -.1" size=".02" mass="1"/></body>
    <body name="right" pos=".6 0 0"><joint name="right" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 -.3 0 -.1" size=".02" mass="1"/></body>
    <body name="cart" pos="1 0 0"><joint name="cart" type="slide"/><geom size=".1"/></body>
  </worldbody>
  <equality><connect name="pin" body1="left" body2="right" anchor=".3 0 -.1"/></equality>
  <actuator><motor joint="left" ctrlrange="-30 30"/><motor joint="right"/><motor joint="cart"/>
  </actuator></mujoco>
"""


@pytest.mark.parametrize("asked", [0.0, 0.1])
def test_what_cannot_move_is_held_where_nothing_acts_on_it(asked):
    """Two pinned bars, in no gravity: all that is left of their acceleration is rounding."""
    law = InverseDynamicsQP(mb.read_mjcf(LOCKED), [PostureTask(["left"])])
    solution = law.solve(np.zeros(3), np.zeros(3), law.reference_at(np.zeros(3)) + asked)
    assert solution.status == 0
    assert_allclose(solution.a, 0, atol=1e-15)


def quadruped(contacts=None, **options):
    tasks = quadruped_controller().tasks
    return InverseDynamicsQP(system_of("quadruped"), tasks, contacts or feet(), **options)


@cache
def humanoid(soles=SOLES, **options):
    tasks = [FrameTask("pelvis", kind="body", weight=10.0), PostureTask(kp=50.0)]
    return InverseDynamicsQP(system_of("humanoid"), tasks, feet(soles), **options)


def standing(law, seed, count, spread=0.05, **more):
    rng, home = np.random.default_rng(seed), law.system.tree.keyframes["stand"]
    for _ in range(count):
        yield (*stand(law.system, rng, spread=spread, key="stand", **more), law.reference_at(home))


SWITCHED = {
    "a foot": (lambda: (quadruped_controller(), quadruped(feet(FEET[:3]))), (1, 1, 1, 0), 1, 0.05),
    "points of a sole": (
        lambda: (humanoid(), humanoid(tuple(SOLES[k] for k in (0, 2, 3, 4, 5)))),
        (1, 0, 1, 1, 1, 1, 0, 0), 10, 0.03,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SWITCHED)
def test_switching_contacts_off_is_the_same_as_building_without_them(name):
    build, mask, times, spread = SWITCHED[name]
    (every, fewer), solved = build(), 0
    for q, v, ref in standing(every, 1, 8, spread):
        masked, without = every.solve(q, v, ref, mask=mask), fewer.solve(q, v, ref)
        assert masked.status == without.status
        solved += masked.solved
        if masked.solved or times == 1:
            tolerance = times * SAME * np.abs(without.u).max()
            assert_allclose(masked.u, without.u, atol=tolerance)
    assert solved
