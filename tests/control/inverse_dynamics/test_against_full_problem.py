"""The condensed QP against the full problem in (a, p, lam, f), solved by another method."""

from functools import cache

import numpy as np
import pytest
from full_problem import FORCE, column, compare, judged, numbers
from numpy.testing import assert_allclose
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

from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.description.status import Status

WEIGHT = 1e-2  # 1/N², of contact forces


def law_of(model, *tasks, contacts=(), **options):
    return InverseDynamicsQP(system_of(model), tasks, contacts, **options)


def on_legs(contacts, **options):
    trunk = FrameTask("trunk", kind="body", weight=100.0, name="base")
    return law_of("quadruped", trunk, PostureTask(kp=50.0), contacts=contacts, **options)


def standing(law, rng, count, **around):
    for _ in range(count):
        q, v = stand(law.system, rng, key="stand", **around)
        yield q, v, law.reference_at(law.system.tree.keyframes["stand"])


@pytest.mark.parametrize(
    "mask", [(1, 1, 1, 1), (0, 1, 1, 1), (1, 0, 0, 1), (0, 0, 1, 0), (0, 0, 0, 0)]
)
def test_the_quadruped_gets_the_optimum_with_every_set_of_feet(mask):
    rng, law, solved = np.random.default_rng(11), quadruped_controller(), 0
    for q, v, ref in standing(law, rng, 10):
        ref[law.reference_slices["base.acceleration"]] = rng.standard_normal(3)
        solution = law.solve(q, v, ref, mask=mask)
        solved += compare(solution, judged(law, q, v, ref, mask), mask)
    assert solved >= 7


def test_straight_knees_get_the_optimum():
    rng, law = np.random.default_rng(5), quadruped_controller()
    for q, v, _ in standing(law, rng, 10):
        q[[9, 12]] = 0.0  # both front legs fully stretched: their rows lose rank
        v[[6, 7, 8, 9, 10, 11]] = 0.0
        rows = numbers(law.system.frame("FL").jacobian(q))[:3, 6:9]
        assert np.linalg.svd(rows)[1][-1] < 1e-12
        ref = law.reference_at(q)
        compare(law.solve(q, v, ref), judged(law, q, v, ref))


def test_a_repeated_contact_shares_its_load_and_changes_nothing_else():
    rng, once = np.random.default_rng(8), quadruped_controller()
    twice = InverseDynamicsQP(once.system, once.tasks, [*feet(), feet()[0]])
    assert twice.mask_names == (*FEET, "FL_2")
    for q, v, ref in standing(once, rng, 5, spread=0.05):
        one, two = once.solve(q, v, ref), twice.solve(q, v, ref)
        assert one.solved
        assert two.solved, two.explain()
        assert_allclose(two.u, one.u, atol=FORCE * np.abs(one.u).max())
        both = two.contact_forces[0] + two.contact_forces[4]
        assert_allclose(both, one.contact_forces[0], atol=FORCE * 100)


@cache
def humanoid():
    pelvis = FrameTask("pelvis", kind="body", kp=100.0, weight=10.0, name="pelvis")
    return law_of("humanoid", pelvis, PostureTask(kp=50.0), contacts=feet(SOLES))


@pytest.mark.parametrize(
    "mask", [(1,) * 8, (1, 1, 0, 1, 1, 1, 1, 1), (1, 0, 0, 0, 0, 1, 1, 0), (0, 0, 0, 0, 1, 1, 1, 1)]
)
@pytest.mark.every(2)
def test_a_humanoid_on_two_four_point_feet_gets_the_optimum(mask):
    rng, law, solved = np.random.default_rng(21), humanoid(), 0
    on = [name for name, flag in zip(SOLES, mask, strict=True) if flag]
    for q, v, ref in standing(law, rng, 3, spread=0.03, speed=0.2):
        v = admissible(np.vstack([numbers(law.system.frame(n).jacobian(q))[:3] for n in on]), v)
        solved += compare(law.solve(q, v, ref, mask=mask), judged(law, q, v, ref, mask), mask)
    assert solved >= 2


def test_the_four_bar_tracks_and_saturates_as_the_full_problem_says():
    rng, law, saturated = (
        np.random.default_rng(2),
        law_of("four_bar", PostureTask(("crank",), kp=400.0)),
        0,
    )
    for _ in range(40):
        q = closed(law.system, law.system.tree.q0 + np.array([0.3 * rng.standard_normal(), 0, 0]))
        A = numbers(law.system.constraint_jacobian(q))
        assert (np.linalg.matrix_rank(A, tol=1e-9), len(A)) == (2, 3)
        v = admissible(A, 5.0 * rng.standard_normal(3))
        ref = np.array([q[0] + 0.3 * rng.standard_normal(), 0.0, 0.0])
        solution = law.solve(q, v, ref)
        compare(solution, judged(law, q, v, ref))
        saturated += abs(abs(solution.u[0]) - 1.5) < 1e-9
    assert 5 < saturated < 35


@pytest.mark.parametrize("model", ["arm_gripper", "cooperating_arms", "five_bar", "spatial_loop"])
@pytest.mark.every(2)
def test_mechanisms_with_loops_get_the_optimum(model):
    rng, law = np.random.default_rng(4), law_of(model, PostureTask(kp=50.0))
    system = law.system
    for _ in range(8):
        q = closed(system, stand(system, rng, spread=0.02)[0])
        v = admissible(numbers(system.constraint_jacobian(q)), rng.standard_normal(system.nv))
        ref = law.reference_at(q + 0.1 * rng.standard_normal(system.nq))
        compare(law.solve(q, v, ref), judged(law, q, v, ref))


@pytest.mark.parametrize("crank", [np.pi / 2, -np.pi / 2])
def test_the_slider_crank_at_its_singular_pose_gets_the_full_answer_of_a_dropped_row(crank):
    law = law_of("slider_crank", PostureTask(("crank",), kp=100.0))
    system, q, ref = law.system, np.array([crank, 0.0, crank]), np.array([crank + 0.2, 0.0, 0.0])
    assert np.abs(column(system.constraint(q))).max() < 1e-12
    A = numbers(system.constraint_jacobian(q))
    assert np.linalg.matrix_rank(A, tol=1e-9) == 1
    along, across = velocities_at_the_branching(system, q, A)
    for v in (np.zeros(3), *along):
        compare(law.solve(q, v, ref), judged(law, q, v, ref))
    # along no branch the dropped row is violated, whatever the acceleration
    assert law.solve(q, across, ref).status == Status.FAILED


def velocities_at_the_branching(system, q, A):
    """Return velocities along both branches, and one along none: A v = 0 holds for all of them."""
    plane = np.linalg.svd(A)[2][1:].T
    angles = np.linspace(0.0, np.pi, 20001)
    turned = plane @ np.vstack([np.cos(angles), np.sin(angles)])
    bias = numbers(system.constraint_bias.map(angles.size)(np.tile(q, (angles.size, 1)).T, turned))
    outside = (np.eye(len(A)) - A @ np.linalg.pinv(A, rcond=1e-9)) @ bias
    worst = outside[np.abs(outside).max(axis=1).argmax()]
    places = np.flatnonzero(np.sign(worst[:-1]) != np.sign(worst[1:]))
    shares = [worst[i] / (worst[i] - worst[i + 1]) for i in places]
    pairs = zip(places, shares, strict=True)
    along = [turned[:, i] + share * (turned[:, i + 1] - turned[:, i]) for i, share in pairs]
    assert len(along) == 2
    return along, turned[:, np.abs(worst).argmax()]


def test_normal_force_limits_hold_and_match_the_full_problem():
    law, rng, active = on_legs(feet(min_force=5.0, max_force=45.0)), np.random.default_rng(6), 0
    for q, v, ref in standing(law, rng, 15, spread=0.05, speed=0.1):
        solution = law.solve(q, v, ref)
        if compare(solution, judged(law, q, v, ref)):
            normal = solution.contact_forces[:, 0]
            assert np.all((normal > 5.0 - 1e-4) & (normal < 45.0 + 1e-4))
            active += np.any((normal < 5.0 + 1e-4) | (normal > 45.0 - 1e-4))
    assert active > 3


def test_an_inclined_contact_uses_its_own_normal():
    law = on_legs([Contact(name, normal=(0.3, -0.2, 1.0), sides=6) for name in FEET])
    q, v = stand(law.system, np.random.default_rng(3), spread=0.05, key="stand")
    ref = law.reference_at(q)
    assert compare(law.solve(q, v, ref), judged(law, q, v, ref), np.ones(4))


@cache
def told_to_press():
    trunk = FrameTask("trunk", kind="body", kp=100.0, name="base")
    told = {"force_weight": WEIGHT, "force_reference": True}
    return law_of("quadruped", trunk, contacts=feet(), **told)


@pytest.mark.parametrize("mask", [(1, 1, 1, 1), (1, 0, 0, 1), (0, 0, 0, 0)])
def test_contact_forces_follow_their_reference_as_in_the_full_problem(mask):
    """Feet are asked to press each other sideways and unevenly."""
    rng, law, moved = np.random.default_rng(3), told_to_press(), 0.0
    for q, v, ref in standing(law, rng, 8, spread=0.05):
        pressed = 40.0 + 30.0 * rng.standard_normal((4, 1))
        force = np.hstack([pressed, 20.0 * rng.standard_normal((4, 2))]).ravel()
        ref[law.reference_slices["force"]] = force
        on = {"force_weight": WEIGHT, "force_reference": force[np.repeat(mask, 3) > 0]}
        answer = judged(law, q, v, ref, mask, **on)
        assert compare(law.solve(q, v, ref, mask=mask), answer, mask)
        plain = judged(law, q, v, ref, mask, force_weight=WEIGHT)
        moved += np.abs(plain.force - answer.force).max(initial=0.0)
    assert moved > 50.0 or not any(mask)


def test_feet_that_press_each_other_do_so_as_they_are_told():
    """Such forces move nothing: only the small weight on torques stands against them."""
    law, v = told_to_press(), np.zeros(18)
    q = law.system.tree.keyframes["stand"]
    still = InverseDynamicsQP(law.system, law.tasks, feet()).solve(q, v).contact_forces
    arms = [column(law.system.frame(name).pose(q)[0]) for name in law.mask_names]
    press = np.zeros((4, 3))
    press[0, 1:] = 10.0 * (arms[3] - arms[0])[:2]  # one diagonal, pulled together
    press[3] = -press[0]
    ref = law.reference_at(q)
    ref[law.reference_slices["force"]] = (still + press).ravel()
    got = law.solve(q, v, ref)
    assert np.abs(press).max() > 3.0
    assert np.abs(got.contact_forces - still - press).max() < 0.05 * np.abs(press).max()
    assert np.abs(got.a).max() < 0.05
