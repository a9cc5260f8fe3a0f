"""What must hold for every controller and every state."""

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
QUADRUPED_TASKS = (
    FrameTask("trunk", kind="body", kp=100.0, weight=100.0, name="base"),
    PostureTask(kp=50.0, weight=1.0),
)


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


def test_switching_a_foot_off_is_the_same_as_building_without_it():
    rng = np.random.default_rng(1)
    system = system_of("quadruped")
    four = quadruped_controller()
    three = InverseDynamicsQP(system, QUADRUPED_TASKS, feet(FEET[:3]))
    for _ in range(20):
        q, v = stand(system, rng, spread=0.05, key="stand")
        ref = four.reference_at(system.tree.keyframes["stand"])
        masked, without = four.solve(q, v, ref, mask=[1, 1, 1, 0]), three.solve(q, v, ref)
        assert masked.status == without.status
        assert_allclose(masked.u, without.u, atol=SAME * np.abs(without.u).max())


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


def test_switching_points_of_a_sole_off_is_the_same_as_building_without_them():
    rng = np.random.default_rng(2)
    system = system_of("humanoid")
    tasks = [FrameTask("pelvis", kind="body", weight=10.0), PostureTask(kp=50.0)]
    mask = np.array([1, 0, 1, 1, 1, 1, 0, 0])
    on = [name for name, flag in zip(SOLES, mask, strict=True) if flag]
    eight = InverseDynamicsQP(system, tasks, feet(SOLES))
    fewer = InverseDynamicsQP(system, tasks, feet(on))
    for _ in range(5):
        q, v = stand(system, rng, spread=0.03, key="stand")
        ref = eight.reference_at(system.tree.keyframes["stand"])
        masked, without = eight.solve(q, v, ref, mask=mask), fewer.solve(q, v, ref)
        assert masked.status == without.status
        if masked.solved:
            scale = SAME * np.abs(without.u).max()
            assert_allclose(masked.u, without.u, atol=10 * scale)


def test_a_loop_that_is_switched_off_is_open():
    system = system_of("four_bar")
    controller = InverseDynamicsQP(system, [PostureTask(("crank",), kp=100.0)])
    assert controller.mask_names == ("pin",)
    q = closed(system, system.tree.q0)
    held, open_ = (controller.solve(q, np.zeros(3), mask=[flag]) for flag in (1, 0))
    A = np.array(system.constraint_jacobian(q))
    assert_allclose(A @ held.a, 0, atol=1e-9)
    assert np.abs(A @ open_.a).max() > 1.0
    assert_array_equal(open_.lam, 0.0)
    free = np.linalg.solve(
        np.array(system.mass_matrix(q)),
        np.array(system.actuation(q)) @ open_.u
        - np.array(system.bias_force(q, np.zeros(3))).ravel(),
    )
    assert_allclose(open_.a, free, atol=1e-9)


def test_every_torque_and_every_contact_force_respects_its_limits():
    rng = np.random.default_rng(3)
    system = system_of("quadruped")
    limits = np.tile([-9.0, 9.0], (12, 1))
    controller = InverseDynamicsQP(system, QUADRUPED_TASKS, feet(), force_limits=limits)
    touched = 0
    for _ in range(100):
        q, v = stand(system, rng, key="stand")
        ref = controller.reference_at(system.tree.keyframes["stand"])
        ref[controller.reference_slices["base.acceleration"]] = 3 * rng.standard_normal(3)
        solution = controller.solve(q, v, ref)
        assert np.all(np.abs(solution.u) <= 9.0)
        if solution.solved:
            touched += np.any(np.abs(solution.u) > 9.0 - 1e-9)
            n, t1, t2 = solution.contact_forces.T
            assert np.all(np.hypot(t1, t2) <= 0.7 * n + 1e-4)  # N, a 1e-6 part of the weight
    assert touched > 20


def test_scaling_the_weights_of_everything_changes_nothing():
    rng = np.random.default_rng(4)
    system = system_of("quadruped")
    scaled = [
        FrameTask("trunk", kind="body", kp=100.0, weight=1e5, name="base"),
        PostureTask(kp=50.0, weight=1e3),
    ]
    one = quadruped_controller()
    other = InverseDynamicsQP(system, scaled, feet())
    for _ in range(10):
        q, v = stand(system, rng, spread=0.05, key="stand")
        first, second = one.solve(q, v), other.solve(q, v)
        assert first.solved
        assert second.solved
        assert_allclose(first.u, second.u, atol=SAME * np.abs(first.u).max())


def test_a_torque_reference_is_followed_where_the_tasks_leave_freedom():
    system = system_of("quadruped")
    controller = InverseDynamicsQP(
        system, QUADRUPED_TASKS, feet(), torque_reference=True, torque_weight=1e-5
    )
    plain = InverseDynamicsQP(system, QUADRUPED_TASKS, feet(), torque_weight=1e-5)
    q = system.tree.keyframes["stand"]
    still = plain.solve(q, np.zeros(18))
    # torques that only press the feet together: a projection, for a null basis belongs to LAPACK
    T = still.problem.T
    idle = np.cos(np.arange(12.0)) - np.linalg.pinv(T, 1e-9) @ (T @ np.cos(np.arange(12.0)))
    idle /= np.linalg.norm(idle)
    assert np.linalg.norm(still.problem.T @ idle) < 1e-9
    wanted = still.u + 0.5 * idle
    ref = controller.reference_at(q)
    ref[controller.reference_slices["torque"]] = wanted
    pulled = controller.solve(q, np.zeros(18), ref).u
    assert np.linalg.norm(still.u - wanted) > 0.4
    share = controller.force_weights.actuators / np.mean(controller.force_weights.actuators)
    assert abs((share * idle) @ (pulled - wanted)) < 1e-6  # N m, in the cost's metric


def test_a_weight_on_contact_forces_lowers_them():
    system = system_of("quadruped")
    q = system.tree.keyframes["stand"]
    light = quadruped_controller().solve(q, np.zeros(18))
    heavy = InverseDynamicsQP(system, QUADRUPED_TASKS, feet(), force_weight=0.1).solve(
        q, np.zeros(18)
    )
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
    system = system_of("quadruped")
    controller = InverseDynamicsQP(system, QUADRUPED_TASKS, feet(), contact_damping=7.0)
    q, v = stand(system, np.random.default_rng(0), spread=0.05, key="stand")
    a = controller.solve(q, v).a
    frame = system.frame("FL")
    J, c = np.array(frame.jacobian(q))[:3], np.array(frame.bias(q, v)).ravel()[:3]
    assert_allclose(J @ a + c + 7.0 * J @ v, 0, atol=1e-8)


def test_internal_forces_widen_what_a_sole_can_do():
    system = system_of("humanoid")
    tasks = [FrameTask("pelvis", kind="body", weight=10.0), PostureTask(kp=50.0)]
    free = InverseDynamicsQP(system, tasks, feet(SOLES))
    bound = InverseDynamicsQP(system, tasks, feet(SOLES), internal_forces="none")
    assert free.stages.nw == 12
    assert bound.stages.nw == 0
    q = system.tree.keyframes["stand"]
    v = admissible(
        np.vstack([np.array(system.frame(n).jacobian(q))[:3] for n in SOLES]), np.ones(29)
    )
    ref = free.reference_at(q)
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
    contacts = [*feet(("FL",)), Contact("FL_calf", kind="body", sides=4)]
    controller = InverseDynamicsQP(system_of("quadruped"), QUADRUPED_TASKS, contacts)
    assert len(controller.contact_groups) == 1
    assert controller.contact_groups[0].members == (0, 1)


LOCKED = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="left"><joint name="left" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 -.1" size=".02" mass="1"/></body>
    <body name="right" pos=".6 0 0"><joint name="right" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 -.3 0 -.1" size=".02" mass="1"/></body>
    <body name="cart" pos="1 0 0"><joint name="cart" type="slide"/><geom size=".1"/></body>
  </worldbody>
  <equality><connect name="pin" body1="left" body2="right" anchor=".3 0 -.1"/></equality>
  <actuator><motor joint="left" ctrlrange="-30 30"/><motor joint="right"/><motor joint="cart"/>
  </actuator>
</mujoco>
"""


@pytest.mark.parametrize("asked", [0.0, 0.1])
def test_what_cannot_move_is_held_where_nothing_acts_on_it(asked):
    """Two pinned bars, in no gravity: all that is left of their acceleration is rounding."""
    law = InverseDynamicsQP(mb.read_mjcf(LOCKED), [PostureTask(["left"])])
    solution = law.solve(np.zeros(3), np.zeros(3), law.reference_at(np.zeros(3)) + asked)
    assert solution.status == 0
    assert_allclose(solution.a, 0, atol=1e-15)
