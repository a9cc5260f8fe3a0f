"""Forces of loops: within ranges, in the cost, shared by redundant constraints, measured.

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
from numpy.testing import assert_allclose, assert_array_equal
from support.mechanisms_of_control import closed
from support.refusals import refused

import mbcasadi as mb
from mbcasadi import linalg, models
from mbcasadi.codegen import export_c
from mbcasadi.control import (
    ForceFeedback,
    InverseDynamicsQP,
    LoadSharing,
    LoopForceLimits,
    LoopForceWeights,
    PostureTask,
)
from mbcasadi.control.inverse_dynamics.shared_loads import undetermined
from mbcasadi.description import Contact
from mbcasadi.description.status import Status
from mbcasadi.errors import ProblemError, UnknownNameError


@pytest.fixture(scope="module", params=MECHANISMS)
def mechanism(request):
    build, joints = MECHANISMS[request.param]
    return build(), joints


@pytest.mark.every(3)
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
        assert_array_equal(law.solve(q, v).determined, expected)
        assert not np.all(expected)


@pytest.mark.parametrize("kind", ["free", "least"])
@pytest.mark.every(2)
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
        assert_allclose(second.lam, expected, rtol=0, atol=1e-7 * scale)
        assert_allclose(A.T @ second.lam, A.T @ first.lam, rtol=0, atol=1e-9 * scale)
        expected = expected + project @ [3.0, 0.0, -2.0, 0.0, 0.0, 0.0]
        assert_allclose(third.lam, expected, rtol=0, atol=1e-7 * scale)
        assert_allclose(third.a, first.a, rtol=0, atol=1e-9 * np.abs(first.a).max())


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
            assert_array_equal(solution.determined, np.linalg.norm(null_space(A.T), axis=1) < 1e-6)
    assert verdicts == {True, False}


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
    assert_allclose(order, [upright, [0.0, 0.0, 0.0]], atol=1e-4)
    assert_allclose(least, [[0.5, 0.0, 0.0]] * 2, atol=1e-4)
    free = LoadSharing("free", rows="all")
    assert_allclose(forces(sharing=free), least, atol=1e-4)
    spared = forces(0.2 * weight, sharing=free)
    assert_allclose(spared, [[0.2, 0.0, 0.0], [0.8, 0.0, 0.0]], atol=1e-4)


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
        assert_allclose(pull, solution.lam[0] * place, rtol=0, atol=1e-8)
        assert solution.lam[0] <= 1e-7
        assert solution.determined[0]
        if free.lam[0] > 1e-3:
            assert solution.lam[0] == pytest.approx(0.0, abs=1e-7)
            held += 1
        else:
            assert_allclose(solution.p, free.p, rtol=0, atol=1e-6)
    assert 3 <= held <= 22


def test_a_loop_that_is_off_has_no_force_and_no_range():
    mechanism = mb.read_mjcf(models.path("planar_3rrr")), ("x", "y", "phi")
    limits = np.array([[1.0, 1.5], [-9.0, 9.0], [-9.0, 9.0]] * 3)  # pulls with 1 N at least
    law = law_of(mechanism, limits)
    q, v = mechanism[0].tree.q0, np.zeros(9)
    assert law.solve(q, v).lam[3] >= 1.0 - 1e-6
    off = law.solve(q, v, mask=[1, 0, 1])
    assert off.solved
    assert_array_equal(off.lam[3:6], 0.0)


def test_wrong_limits_and_ways_to_share_are_refused():
    mechanism = mb.read_mjcf(models.path("four_bar")), ("crank",)

    def law(limits=None, **sharing):
        given = None if limits is None else LoopForceLimits(limits)
        return law_of(mechanism, loop_force_limits=given, sharing=LoadSharing(**sharing))

    refused(UnknownNameError, "equality constraint 'pn'", lambda: law({"pn": (0.0, 1.0)}))
    for wrong in ((1.0, 0.0), (0.0, 1.0, 2.0), (0.0, np.nan)):
        with pytest.raises(ProblemError, match=r"expected \(lower, upper\), or 3 such"):
            law({"pin": wrong})
    refused(ProblemError, "expected positive numbers for each of pin", lambda: law(stiffness={}))
    with pytest.raises(ProblemError, match="stiffness of 'pin': 2 numbers; expected one, or 3"):
        law(stiffness={"pin": [1.0, 2.0]})
    refused(ProblemError, "contacts share", lambda: law(rows="all", preload={"pin": 1.0}))


def test_rows_of_unlike_length_leave_their_whole_null_space_undetermined():
    A = np.outer([1.0, 3e3, -3e3], [0.6, 0.8])
    basis = linalg.row_basis(ca.SX(A), pivot=False)
    spread = ca.evalf(undetermined(basis, ca.SX.ones(3, 1), np.ones(3)).spread).full()
    assert_allclose(spread, np.eye(3) - A @ np.linalg.pinv(A), atol=1e-9)


UNLIMITED = np.array([[-np.inf, np.inf]])
TRUSS = """
<mujoco><option timestep="0.001"/>
  <worldbody><body name="left"><joint name="left" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 .3 0 -.1" size=".02" mass="1" contype="0"/></body>
    <body name="right" pos=".6 0 0"><joint name="right" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 -.3 0 -.1" size=".02" mass="1" contype="0"/></body>
  </worldbody>
  <equality><connect name="pin" body1="left" body2="right" anchor=".3 0 -.1"/></equality>
  <actuator><motor joint="left" ctrlrange="-30 30"/><motor joint="right" ctrlrange="-30 30"/>
  </actuator></mujoco>
"""


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.every(3)
def test_forces_in_the_cost_have_the_optimum_of_the_problem_with_all_multipliers(name):
    build, joints = MECHANISMS[name]
    system, rng = build(), np.random.default_rng(8)
    names = [equality.name for equality in system.equalities]
    weights = rng.uniform(0.0, 2.0, system.nc) * (rng.uniform(size=system.nc) < 0.7)
    weights[0] = 1.0
    by_name = dict(zip(names, weights.reshape(len(names), -1), strict=True))
    preload = rng.standard_normal(system.nc)
    loads = dict(zip(names, preload.reshape(len(names), -1), strict=True))
    law = law_of(
        (system, joints),
        sharing=LoadSharing(stiffness=equal_stiffness(system), preload=loads),
        loop_force_weights=LoopForceWeights(by_name),
        force_reference=True,
        torque_weight=1e-3,
        internal_force_weight=1e-3,
    )
    plain = law_of((system, joints))
    own, moved = law.reference_slices["loop_force"], 0.0
    for q, v in states(system, rng, 10):
        ref, parts = reference(plain, q, rng)
        wanted = np.zeros(system.nc)
        wanted[weights > 0] = rng.standard_normal(np.sum(weights > 0))
        whole = np.zeros(law.nref)
        whole[: ref.size], whole[own] = ref, wanted[weights > 0]
        solution = law.solve(q, v, whole)
        assert solution.status == 0
        limits = np.repeat(UNLIMITED, system.nc, axis=0)
        cost = *loads_weight(law), (weights, wanted), preload
        agrees(solution, optimum(law, q, v, parts, limits, *cost))
        moved = max(moved, np.abs(solution.lam - law.solve(q, v, whole * 0.9).lam).max())
    assert moved > 1e-3


def tensioned(feedback=None, **options):
    """Return the law of two pinned bars, which cannot move: their motors load the pin."""
    return InverseDynamicsQP(
        mb.read_mjcf(TRUSS),
        [PostureTask(["left"])],
        loop_force_weights=LoopForceWeights({"pin": [1.0, 0.0, 1.0]}),
        force_reference=True,
        force_feedback=feedback,
        delay=1,
        name="tensioned",
        **options,
    )


FEEDBACK = ForceFeedback(limit=20.0, gain=20.0)
ASKED = np.array([25.0, -4.0])


def asked(law):
    ref = law.reference_at(np.zeros(2))
    ref[law.reference_slices["loop_force"]] = ASKED
    return ref


@pytest.mark.parametrize(("feedback", "off"), [(FEEDBACK, 0.05), (None, 0.5)])
@pytest.mark.every(2)
def test_a_pin_carries_what_is_asked_for_in_mujoco(feedback, off):
    law = tensioned(feedback)
    ref = asked(law)
    report = mb.validate(
        law, TRUSS, 1.0, reference=ref, q0=np.zeros(2), delay=1, perturb={"mass": 0.5}
    )
    recording = report.runs[0].recording
    assert np.all(recording.status == 0)
    error = np.abs(recording.f_measured[-1] - ASKED).max()
    assert error < off if feedback else error > off


def test_the_generated_c_is_the_function(tmp_path):
    law = tensioned(FEEDBACK)
    names = law.controller.inputs[2].name, law.controller.inputs[2].components
    assert names == ("f_measured", ("pin.x", "pin.z"))
    compiled = export_c(law, tmp_path / "law").load()
    rng, ours, theirs = np.random.default_rng(9), law.z0, law.z0
    for mask in [1.0] * 20 + [0.0] * 3:
        given = {"q": np.zeros(2), "v": 0.01 * rng.standard_normal(2), "mask": [mask]}
        given |= {"f_measured": ASKED + rng.standard_normal(2), "ref": asked(law)}
        first, second = law.function(**given, z=ours), compiled(**given, z=theirs)
        ours, theirs = first["z_next"], second["z_next"]
        assert float(first["status"]) == float(second["status"]) == 0
        for name in ("u", "z_next"):
            assert_allclose(second[name], first[name], rtol=1e-7, atol=1e-7)
    places = [name.startswith("force_integral") for name in law.controller.inputs[-1].components]
    assert np.all(np.array(ours).ravel()[places] == 0)  # the pin is off


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"pn": 1.0}, "equality constraint 'pn'"),
        ({"pin": [1.0, 2.0]}, "or 3 of them"),
        ({"pin": -1.0}, "not negative"),
        ({"pin": 0.0}, "one that is positive"),
    ],
)
def test_weights_that_fit_no_loop_are_refused(weights, words):
    with pytest.raises((ProblemError, UnknownNameError), match=words):
        InverseDynamicsQP(
            mb.read_mjcf(TRUSS),
            [PostureTask(["left"])],
            loop_force_weights=LoopForceWeights(weights),
        )


def test_loop_forces_are_a_level_behind_the_tasks():
    law, weighted = tensioned(levels=[["posture"]]), tensioned()
    ours, theirs = (each.solve(np.zeros(2), np.zeros(2), asked(each)) for each in (law, weighted))
    assert ours.status == theirs.status == Status.SOLVED
    assert list(ours.levels) == ["posture", "forces"]
    assert ours.levels["forces"] <= 1e-8 * np.linalg.norm(ASKED)
    assert_allclose(ours.u, theirs.u, rtol=1e-4)  # torques have no weight before the last level
