"""Forces of loops within ranges, and loads that redundant constraints share.

The judge is `loop_force_problem.py`.
"""

import casadi as ca
import numpy as np
import pytest
from full_problem import numbers
from loop_force_problem import (
    MECHANISMS,
    agrees,
    equal_stiffness,
    judge,
    law_of,
    loads_weight,
    null_space,
    optimum,
    reference,
    states,
    twice_pinned_four_bar,
)
from mechanisms import closed

import mbcasadi as mb
from mbcasadi import linalg, models
from mbcasadi.codegen import export_c
from mbcasadi.control import (
    InverseDynamicsQP,
    LoadSharing,
    LoopForceLimits,
    PostureTask,
    SoftLimit,
)
from mbcasadi.control.inverse_dynamics.shared_loads import undetermined
from mbcasadi.description import Contact
from mbcasadi.description.status import Flag, Status
from mbcasadi.errors import ProblemError, UnknownNameError


@pytest.fixture(scope="module", params=MECHANISMS)
def mechanism(request):
    build, joints = MECHANISMS[request.param]
    return build(), joints


def test_forces_within_ranges_have_the_optimum_of_the_problem_with_all_multipliers(mechanism):
    system, rng = mechanism[0], np.random.default_rng(3)
    free = LoadSharing(stiffness=equal_stiffness(system))
    usual = law_of(mechanism, sharing=free)
    typical = np.median([np.abs(usual.solve(q, v).lam).max() for q, v in states(system, rng, 5)])
    held = infeasible = 0
    for spread in (0.6, 20.0):  # the second one asks for forces that the motors do not give
        middle, width = spread * rng.uniform(-1, 1, system.nc), rng.uniform(0.3, 1.2, system.nc)
        limits = typical * np.stack([middle - width, middle + width], axis=1)
        limits[0, 0] = -np.inf
        law = law_of(mechanism, limits, sharing=free)
        for q, v in states(system, rng, 20):
            ref, parts = reference(law, q, rng)
            solution = law.solve(q, v, ref)
            is_feasible = judge(law, q, v, limits).feasible()
            assert solution.status == (Status.SOLVED if is_feasible else Status.INFEASIBLE)
            infeasible += not is_feasible
            if is_feasible:
                agrees(solution, optimum(law, q, v, parts, limits, *loads_weight(law)))
                held += is_held(solution.lam, limits, 1e-5 * typical)
    assert held >= 3
    assert infeasible >= 3


def is_held(lam, limits, small):
    """Return whether a multiplier is at a limit, none beyond."""
    assert np.all(lam >= limits[:, 0] - small)
    assert np.all(lam <= limits[:, 1] + small)
    return bool(np.any(np.abs(lam[:, None] - limits) < small))


def test_what_is_determined_is_what_no_force_without_motion_changes(mechanism):
    system, rng = mechanism[0], np.random.default_rng(4)
    law = law_of(mechanism)
    for q, v in states(system, rng, 5):
        N = null_space(numbers(system.constraint_jacobian(q)).T)
        expected = np.linalg.norm(N, axis=1) < 1e-6
        np.testing.assert_array_equal(law.solve(q, v).determined, expected)
        assert not np.all(expected)


@pytest.mark.parametrize("kind", ["free", "least"])
def test_two_pins_share_their_load_by_stiffness_around_a_preload(kind):
    mechanism = twice_pinned_four_bar(), ("crank",)
    system, rng = mechanism[0], np.random.default_rng(5)
    stiffness = {"pin": [4.0, 1.0, 2.0], "pin_2": [1.0, 1.0, 6.0]}
    compliance = 1 / np.concatenate([stiffness["pin"], stiffness["pin_2"]])
    preload = {"pin": [3.0, 0.0, -2.0]}
    plain = law_of(mechanism)
    shared = law_of(mechanism, sharing=LoadSharing(kind, stiffness=stiffness))
    loaded = law_of(mechanism, sharing=LoadSharing(kind, stiffness=stiffness, preload=preload))
    for q, v in states(system, rng, 5):
        A = numbers(system.constraint_jacobian(q))
        N = null_space(A.T)
        first, second, third = (law.solve(q, v) for law in (plain, shared, loaded))
        project = N @ np.linalg.solve(N.T @ (compliance[:, None] * N), N.T * compliance)
        expected = first.lam - project @ first.lam
        scale = np.abs(first.lam).max()
        assert np.all(first.lam[3:] == 0.0)  # in their order
        np.testing.assert_allclose(second.lam, expected, rtol=0, atol=1e-7 * scale)
        np.testing.assert_allclose(A.T @ second.lam, A.T @ first.lam, rtol=0, atol=1e-9 * scale)
        expected = expected + project @ [3.0, 0.0, -2.0, 0.0, 0.0, 0.0]
        np.testing.assert_allclose(third.lam, expected, rtol=0, atol=1e-7 * scale)
        np.testing.assert_allclose(third.a, first.a, rtol=0, atol=1e-9 * np.abs(first.a).max())


def test_a_slider_crank_at_its_singular_pose_is_within_the_ranges_of_its_pin():
    system = mb.read_mjcf(models.path("slider_crank"))
    mechanism = system, ("crank",)
    q = closed(system, np.array([np.pi / 2, 0.0, np.pi / 2]))
    A = numbers(system.constraint_jacobian(q))
    assert np.linalg.matrix_rank(A, 1e-9) == 1
    rng, verdicts = np.random.default_rng(6), set()
    for bound in (0.5, 2.0, 8.0, 50.0):
        limits = np.array([[bound, 1.5 * bound], [-1.0, 1.0], [-np.inf, np.inf]])
        law = law_of(mechanism, limits)
        for _ in range(4):
            v = np.zeros(3)  # where it moves, it has to stay on one of two branches
            ref, _ = reference(law, q, rng)
            solution = law.solve(q, v, ref)
            expected = judge(law, q, v, limits).feasible()
            assert solution.status == (Status.SOLVED if expected else Status.INFEASIBLE)
            verdicts.add(expected)
            np.testing.assert_array_equal(
                solution.determined, np.linalg.norm(null_space(A.T), axis=1) < 1e-6
            )
    assert verdicts == {True, False}


def test_the_exported_law_holds_the_ranges_and_gives_way_where_they_are_soft(tmp_path):
    mechanism = twice_pinned_four_bar(), ("crank",)
    limits = np.array([[-0.6, 0.3], [-1.0, 1.0], [-np.inf, 0.4]] * 2)
    law = law_of(mechanism, limits, soft=[SoftLimit("loop forces")], name="pins")
    exported = export_c(law, tmp_path / "pins").load()
    rng, seen = np.random.default_rng(7), set()
    for q, v in states(mechanism[0], rng, 40):
        ref, _ = reference(law, q, rng)
        ours, theirs = (
            [np.array(out).ravel() for out in call(q, v, ref, np.ones(2), law.z0)]
            for call in (law.function, exported)
        )
        for index in (2, 3, 5):
            np.testing.assert_array_equal(ours[index], theirs[index])
        np.testing.assert_allclose(theirs[0], ours[0], rtol=0, atol=1e-7 * np.abs(ours[0]).max())
        atol = 1e-6 * np.abs(ours[6]).max() + 1e-9
        np.testing.assert_allclose(theirs[6], ours[6], rtol=0, atol=atol)
        seen.add((int(ours[2][0]), Flag.RELAXED in Flag(int(ours[3][0]))))
    assert seen == {(Status.SOLVED, False), (Status.SOLVED, True)}


LIFT = """<mujoco><worldbody><body name="base">
    <joint name="lift" type="slide" axis="0 0 1"/><geom size=".1" mass="3"/>
    <site name="left" pos="-.3 0 0"/>
    <body name="wheel" pos=".3 0 0"><joint name="wheel" axis="0 1 0"/><geom size=".05" mass="1"/>
      <site name="right"/></body></body></worldbody>
    <actuator><motor joint="lift" ctrllimited="true" ctrlrange="-.001 .001"/><motor joint="wheel"/>
    </actuator></mujoco>"""


def test_contacts_of_two_bodies_share_the_load_and_one_takes_more_where_the_other_may_not():
    """The axle of a wheel stands as the base does: their vertical rows are one."""
    lift, weight = mb.read_mjcf(LIFT), 4.0 * 9.81  # its motor gives 1e-3 N

    def forces(most=None, **options):
        contacts = [Contact("left", max_force=most), Contact("right", max_force=500.0)]
        law = InverseDynamicsQP(lift, [PostureTask()], contacts, **options)
        solution = law.solve([0.0, 0.0], [0.0, 0.0])
        assert solution.solved
        assert np.abs(solution.p).max() < 1e-4 * weight
        return solution.contact_forces / weight

    upright = [1.0, 0.0, 0.0]
    order, least = forces(), forces(sharing=LoadSharing("least", rows="all"))
    np.testing.assert_allclose(order, [upright, [0.0, 0.0, 0.0]], atol=1e-4)
    np.testing.assert_allclose(least, [[0.5, 0.0, 0.0]] * 2, atol=1e-4)
    free = LoadSharing("free", rows="all")
    np.testing.assert_allclose(forces(sharing=free), least, atol=1e-4)
    spared = forces(0.2 * weight, sharing=free)
    np.testing.assert_allclose(spared, [[0.2, 0.0, 0.0], [0.8, 0.0, 0.0]], atol=1e-4)


def test_a_rope_that_is_a_users_row_only_pulls():
    """A mass of 2 kg on a rope of 1.5 m: m (a - g) = u + lam (x, z), lam <= 0 pulls inwards."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    system = mb.from_lagrangian(
        q,
        v,
        kinetic=ca.sumsqr(v),
        potential=2 * 9.81 * q[1],
        B=np.eye(2),
        phi=(ca.sumsqr(q) - 1.5**2) / 2,
        ctrl_range=[[-40.0, 40.0]] * 2,
        name="rope",
    )
    name = system.constraint_names[0]
    task = PostureTask(kp=1e-6)
    rope = InverseDynamicsQP(
        system, [task], loop_force_limits=LoopForceLimits({name: (-np.inf, 0.0)})
    )
    rod, held = InverseDynamicsQP(system, [task]), 0
    for angle in np.linspace(0.2, 6.2, 25):
        place = 1.5 * np.array([np.sin(angle), -np.cos(angle)])
        speed = 2.0 * np.array([np.cos(angle), np.sin(angle)])
        ref = np.concatenate([place, speed, [0.0, -4.0]])
        solution, free = rope.solve(place, speed, ref), rod.solve(place, speed, ref)
        assert solution.solved
        pull = 2.0 * solution.a + [0.0, 2 * 9.81] - solution.p  # lam (x, z)
        np.testing.assert_allclose(pull, solution.lam[0] * place, rtol=0, atol=1e-8)
        assert solution.lam[0] <= 1e-7
        assert solution.determined[0]
        if free.lam[0] > 1e-3:
            assert solution.lam[0] == pytest.approx(0.0, abs=1e-7)
            held += 1
        else:
            np.testing.assert_allclose(solution.p, free.p, rtol=0, atol=1e-6)
    assert 3 <= held <= 22


def test_a_loop_that_is_off_has_no_force_and_no_range():
    mechanism = mb.read_mjcf(models.path("planar_3rrr")), ("x", "y", "phi")
    limits = np.array([[1.0, 1.5], [-9.0, 9.0], [-9.0, 9.0]] * 3)  # pulls with 1 N at least
    law = law_of(mechanism, limits)
    q, v = mechanism[0].tree.q0, np.zeros(9)
    assert law.solve(q, v).lam[3] >= 1.0 - 1e-6
    off = law.solve(q, v, mask=[1, 0, 1])
    assert off.solved
    np.testing.assert_array_equal(off.lam[3:6], 0.0)


def test_wrong_limits_and_ways_to_share_are_refused():
    mechanism = mb.read_mjcf(models.path("four_bar")), ("crank",)

    def law(limits=None, **sharing):
        given = None if limits is None else LoopForceLimits(limits)
        return law_of(mechanism, loop_force_limits=given, sharing=LoadSharing(**sharing))

    with pytest.raises(UnknownNameError, match="equality constraint 'pn'"):
        law({"pn": (0.0, 1.0)})
    for wrong in ((1.0, 0.0), (0.0, 1.0, 2.0), (0.0, np.nan)):
        with pytest.raises(ProblemError, match=r"expected \(lower, upper\), or 3 such"):
            law({"pin": wrong})
    with pytest.raises(ProblemError, match="expected positive numbers for each of pin"):
        law(stiffness={})
    with pytest.raises(ProblemError, match="stiffness of 'pin': 2 numbers; expected one, or 3"):
        law(stiffness={"pin": [1.0, 2.0]})
    with pytest.raises(ProblemError, match="contacts share"):
        law(rows="all", preload={"pin": 1.0})


def test_rows_of_unlike_length_leave_their_whole_null_space_undetermined():
    A = np.outer([1.0, 3e3, -3e3], [0.6, 0.8])
    basis = linalg.row_basis(ca.SX(A), pivot=False)
    spread = ca.evalf(undetermined(basis, ca.SX.ones(3, 1), np.ones(3)).spread).full()
    np.testing.assert_allclose(spread, np.eye(3) - A @ np.linalg.pinv(A), atol=1e-9)
