"""Quadratic friction cones of the controller: between pyramids, switched, tuned, and in C."""

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.mechanisms_of_control import stand, system_of

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description.status import Status
from mbcasadi.errors import ExportError

FEET = ("FL", "FR", "RL", "RR")
SAME = 1e-5  # of u, relative: what only the weight of torques, 1e-7, determines
AS_IPOPT = 1e-4  # of a, relative
MANY = 64  # sides: 0.1 % of the friction between inner and outer pyramid


def law_of(cone, *, friction=0.5, sides=8, **options):
    limits = {key: options.pop(key) for key in ("min_force", "max_force") if key in options}
    contacts = [mb.Contact(f, friction=friction, sides=sides, cone=cone, **limits) for f in FEET]
    tasks = [FrameTask("trunk", kind="body", weight=100.0, name="base"), PostureTask(kp=50.0)]
    return InverseDynamicsQP(system_of("quadruped"), tasks, contacts, name="law", **options)


def state(law, rng, speed=0.5, push=8.0):
    """Return q, v and a reference that asks for more than friction gives."""
    system = law.system
    q, v = stand(system, rng, spread=0.1, speed=speed, key="stand")
    ref = law.reference_at(system.tree.keyframes["stand"])
    ref[law.reference_slices["base.acceleration"]] = push * rng.standard_normal(3)
    return q, v, ref


def cost(solution):
    problem = solution.problem
    y = np.linalg.lstsq(problem.T, solution.a - problem.t, rcond=None)[0]
    y = np.concatenate([solution.p, np.zeros(len(problem.g) - len(y))])
    return 0.5 * y @ problem.H @ y + problem.g @ y


@pytest.mark.long
def test_the_optimum_lies_between_those_of_inner_and_outer_pyramids():
    rng = np.random.default_rng(4)
    laws = {cone: law_of(cone, sides=MANY) for cone in ("inner", "quadratic", "outer")}
    gaps = []
    for _ in range(8):
        q, v, ref = state(laws["inner"], rng)
        answers = {cone: law.solve(q, v, ref) for cone, law in laws.items()}
        assert all(each.solved for each in answers.values())
        inner, exact, outer = (cost(answers[cone]) for cone in laws)
        slack = 1e-9 * abs(exact)
        assert outer - slack <= exact <= inner + slack
        gaps.append((inner - outer) / abs(exact))
        f = answers["quadratic"].contact_forces
        assert np.all(np.hypot(f[:, 1], f[:, 2]) <= 0.5 * f[:, 0] + 1e-7 * np.abs(f).max())
    assert 1e-6 < max(gaps) < 1e-2


def test_a_contact_that_is_off_has_no_force_and_friction_may_be_tuned():
    rng = np.random.default_rng(5)
    tuned = law_of("quadratic", tunable=("friction", "normals", "forces"))
    slippery = law_of("quadratic", friction=0.2, min_force=0.0, max_force=1e9)
    for _ in range(10):
        q, v, ref = state(tuned, rng)
        mask = np.array([1.0, 1.0, 0.0, 1.0])
        tuning = {f"{foot}.friction": 0.2 for foot in FEET}
        ours, theirs = (
            tuned.solve(q, v, ref, mask=mask, tuning=tuning),
            slippery.solve(q, v, ref, mask=mask),
        )
        assert ours.status == theirs.status
        assert not np.any(ours.contact_forces[2])
        assert_allclose(ours.u, theirs.u, atol=SAME * np.abs(theirs.u).max())


def test_explain_names_cones_that_exclude_each_other():
    law = law_of("quadratic", friction=0.02)
    rng = np.random.default_rng(6)
    texts = []
    for _ in range(40):
        q, v, ref = state(law, rng, speed=15.0)
        answer = law.solve(q, v, ref)
        if answer.status == Status.INFEASIBLE:
            texts.append(answer.explain())
            assert "these rows have to be violated" in texts[-1]
    assert texts
    assert any("friction cone, normal" in text for text in texts)


def test_ipopt_finds_the_optimum_of_the_problem_as_a_nonlinear_program():
    rng, law = np.random.default_rng(9), law_of("quadratic", max_force=90.0)
    problem = law.nlp()
    quiet = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-10}}
    solver = ca.nlpsol("instant", "ipopt", problem.nlp, quiet)
    at_limit = 0
    for _ in range(6):
        q, v, ref = state(law, rng, push=4.0)
        exact = law.solve(q, v, ref)
        p = problem.parameters(q=q, v=v, ref=ref, mask=np.ones(4))["p"]
        found = solver(p=p, lbg=problem.lbg, ubg=problem.ubg)
        force, a, contact = (np.array(out).ravel() for out in problem.answer(found["x"], p))
        assert np.abs(a - exact.a).max() <= AS_IPOPT * np.abs(exact.a).max()
        contact = contact.reshape(-1, 3)
        assert_allclose(contact, exact.contact_forces, atol=1e-2 * np.abs(contact).max())
        assert force.shape == (12,)
        at_limit += np.sum(np.hypot(contact[:, 1], contact[:, 2]) > 0.499 * contact[:, 0])
    assert at_limit >= 6


def on_one_foot(cone):
    foot = [mb.Contact("left_foot", cone=cone)]
    return InverseDynamicsQP(system_of("planar_biped"), [PostureTask()], foot, name="law")


def test_daqp_is_refused_for_quadratic_cones(tmp_path):
    with pytest.raises(ExportError, match=r'1 quadratic cone.*solver="mbcasadi"'):
        export_c(on_one_foot("quadratic"), tmp_path / "law", solver="daqp")


def test_pyramids_have_no_cone_in_their_c(tmp_path):
    for cone in ("outer", "quadratic"):
        export_c(on_one_foot(cone), tmp_path / cone)
        text = (tmp_path / cone / "law.c").read_text()
        assert ("LDP_CONES" in text) == (cone == "quadratic")
