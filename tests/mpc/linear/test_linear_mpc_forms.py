"""Condensed, sparse and explicit linear MPC are one problem, redundant rows included."""

from dataclasses import replace

import numpy as np
import pytest
from support import linear_mpc_cases as cases
from support.peer_qp import condensed_solution

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import mpc
from mbcasadi.control.regulators import descriptor_form
from mbcasadi.mpc.linear.form import multipliers_of

ONE_SOLUTION = 1e-8
DIFFERENCE = 1e-6  # step of differences


@pytest.mark.parametrize("case", [case for case in cases.CASES if case != "ended"])
@pytest.mark.every(3)
def test_states_as_unknowns_change_nothing(case):
    dense = cases.controller_of(case)
    sparse = cases.controller_of(case, form="sparse")
    rng = np.random.default_rng(0)
    rows, past = len(dense.condensed.names), sparse.problem.past_controls
    memory = sparse.controller.z0[past:]
    solved = infeasible = 0
    for _ in range(60):
        x0 = np.array([1.5, 0.7]) * rng.standard_normal(2)
        ref = 0.5 * rng.standard_normal(dense.function.numel_in("ref"))
        last = np.append(rng.uniform(-0.5, 0.5, past), memory)
        z = np.append(np.zeros(rows), last)
        u, z_next, status, *_ = cases.row_values(dense.function(x0, ref, z))
        other = cases.row_values(sparse.function(x0, ref, last))
        assert (status >= 2) == (other[2] >= 2), f"{case}: {status}, {other[2]}"
        np.testing.assert_allclose(other[0], u, atol=ONE_SOLUTION)
        np.testing.assert_allclose(other[1], z_next[rows:], atol=ONE_SOLUTION)
        plans = [f.controller.prediction for f in (dense, sparse)]
        actual = [np.array(f(x0, ref, part)[0]) for f, part in zip(plans, (z, last), strict=True)]
        np.testing.assert_allclose(actual[1], actual[0], atol=1e3 * ONE_SOLUTION)
        solved, infeasible = solved + (status == 0), infeasible + (status == 2)
    assert solved > 20
    assert (infeasible > 1) == (case in ("bounded", "blocks"))


@pytest.mark.parametrize("form", ["condensed", "sparse"])
def test_an_integrator_of_one_state_has_the_gain_of_the_golden_section(form):
    one = mpc.LinearModel.of([[1.0]], [[1.0]], 0.1)
    for options in ({}, {"delay": 1}, {"terminal_set": True, "u_bounds": [[-1.0, 1.0]]}):
        u = mpc.lti_mpc(one, mpc.LinearOptions(3, 1.0, 1.0, form=form, **options)).solve([0.5]).u
        np.testing.assert_allclose(u, -0.5 * (np.sqrt(5.0) - 1) / 2, atol=ONE_SOLUTION)


@pytest.mark.parametrize("share", [1e-5, 1e-11])
def test_a_small_price_of_a_violation_is_taken_as_it_is_and_costs_no_digits(share):
    weights = {"Q": [200.0, 10.0], "R": 30.0}
    price = share * np.abs(cases.controller_of(**weights, u_bounds=[[-1.0, 1.0]]).condensed.H).max()
    soft = replace(cases.SOFT, linear_penalty=0.0, quadratic_penalty=price)
    answers = {}
    for form in ("condensed", "sparse"):
        law = cases.controller_of(**weights, form=form, outputs=[soft])
        problem = law.condensed if form == "condensed" else law.sparse
        np.testing.assert_allclose(np.diag(np.array(problem.H))[-cases.HORIZON :], price)
        answers[form] = law.solve([3.0, -2.0])
        assert answers[form].status == 0
    np.testing.assert_allclose(answers["condensed"].u, answers["sparse"].u, rtol=ONE_SOLUTION)
    assert max(answers["condensed"].residuals().values()) < 1e-12


@pytest.mark.parametrize(("bound", "size"), [(0.02, 0.02), (7.0, 1.0), (0.0, 1.0)])
def test_the_least_curvature_of_a_linear_price_is_that_of_every_mpc(bound, size):
    """ρ₂ is at least ρ₁ / (100 b), as `Bounded` says, b the bound, at most 1."""
    soft = replace(
        cases.SOFT, lower=[-bound], upper=[bound], linear_penalty=2.0, quadratic_penalty=0.0
    )
    H = cases.controller_of(outputs=[soft]).condensed.H
    np.testing.assert_allclose(np.diag(H)[-cases.HORIZON :], 2.0 / (100.0 * size))


MODELS = {"four_bar": ([[-0.5, 0.5]], 3, 2), "planar_biped": (None, 6, 4)}
LIMIT = {"four_bar": 0.1, "planar_biped": 0.01}  # m/s or rad/s of the first coordinate


def forms(linear, limits):
    nv, most = linear.system.nv, LIMIT[linear.system.name]
    fast = mpc.deviation_output(linear, "fast", np.eye(2 * nv)[nv], -most, most, linear_penalty=1e3)
    options = {"outputs": [fast], "u_bounds": limits, "period": 0.02}
    names = ("condensed", "sparse", "multipliers")
    return {form: cases.mechanism_mpc(linear, 8, 1e-2, form=form, **options) for form in names}


@pytest.fixture(scope="module", params=MODELS)
def mechanism(request):
    limits, rows, rank = MODELS[request.param]
    linear = cases.at_rest(request.param)
    A = np.array(linear.system.constraint_jacobian(linear.q))
    assert A.shape[0] == rows
    assert np.linalg.matrix_rank(A, 1e-9) == rank
    return linear, forms(linear, limits)


def test_multipliers_as_unknowns_change_nothing_though_rows_repeat(mechanism):
    linear, made = mechanism
    system = linear.system
    rng, bound = np.random.default_rng(1), 0
    for _ in range(8):
        q, v = linear.state(0.05 * rng.standard_normal(linear.nx))
        answers = {}
        for form, law in made.items():
            ref = cases.held(law, linear)
            u, _, status, *_ = cases.row_values(law.function(q, v, ref, law.controller.z0))
            assert status == 0, form
            x, _ = law.controller.prediction(q, v, ref, law.controller.z0)
            answers[form] = u, np.array(x)
        u, x = answers.pop("condensed")
        bound += np.abs(x[system.nq, 1:]).max() > 0.999 * LIMIT[system.name]
        for form, (other, motion) in answers.items():
            scale = max(1.0, np.abs(u).max())
            np.testing.assert_allclose(other, u, atol=ONE_SOLUTION * scale, err_msg=form)
            np.testing.assert_allclose(motion, x, atol=10 * ONE_SOLUTION * scale, err_msg=form)
    assert bound > 3


def test_a_soft_row_without_curvature_is_solved_as_accurately_as_a_hard_one(mechanism):
    """Against another solver of the condensed QP; a price of 1000 is far from the moves' scale."""
    linear, made = mechanism
    law, rng, bound = made["condensed"], np.random.default_rng(1), 0
    c, nx = law.condensed, linear.nx
    assert law.problem.outputs[0].quadratic_penalty == 0
    ref = cases.held(law, linear)
    for _ in range(150):
        q, v = linear.state(0.05 * rng.standard_normal(nx))
        theta = np.concatenate([linear.coordinates(q, v), np.zeros(nx + linear.nu)])
        y, _ = condensed_solution(c, theta)
        u, _, status, *_ = cases.row_values(law.function(q, v, ref, law.controller.z0))
        assert status == 0
        expected = y[: linear.nu] + linear.u
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(u, expected, atol=1e-7 * scale)
        bound += np.abs(c.C @ y + c.D @ theta - c.upper).min() < 1e-9
    assert bound > 30


def test_the_multipliers_of_the_solution_are_the_forces_of_the_motion(mechanism):
    """Against differences of the dynamics: lam of the state and control at the first sample.

    Where rows repeat, a common part may be added to lam; what its change does is unique.
    """
    linear, made = mechanism
    law, system = made["multipliers"], linear.system
    q, v = linear.state(0.02 * np.ones(linear.nx))
    dq, dv = linear.to_dq @ linear.coordinates(q, v), linear.to_dv @ linear.coordinates(q, v)
    ref = cases.held(law, linear)
    w = cases.row_values([law.unknowns(q, v, ref, law.controller.z0)])[0]
    lam, du = w[law.forces[0]], w[: linear.nu]
    dynamics = mb.forward_dynamics(system)
    A = np.array(system.constraint_jacobian(linear.q))

    def acceleration(step):
        at = np.array(system.integrate(linear.q, step * dq)).ravel()
        speed = linear.v + step * dv
        u = linear.u + step * du
        f = np.array(system.actuation(at)) @ u + np.array(system.actuator_bias(at, speed)).ravel()
        a, _, reaction = cases.row_values(dynamics(at, speed, f))
        return a, reaction

    ends = [acceleration(step) for step in (DIFFERENCE, -DIFFERENCE)]
    slope = (ends[0][1] - ends[1][1]) / (2 * DIFFERENCE)
    assert np.abs(lam).max() > 1e-2
    pressing = np.linalg.pinv(A) @ slope  # the part in the range of A
    np.testing.assert_allclose(
        np.linalg.pinv(A) @ lam, pressing, atol=1e-5 * np.abs(pressing).max()
    )
    idle = np.eye(len(lam)) - A @ np.linalg.pinv(A)
    np.testing.assert_allclose(idle @ lam, 0, atol=1e-8 * np.abs(lam).max())


def test_the_explicit_rows_hold_exactly_what_the_free_coordinates_hold(mechanism):
    """One step of the multiplier form is that of the reduced system, from any state on it."""
    linear, made = mechanism
    parts, h = multipliers_of(linear, 0.02), 0.02
    model = made["condensed"].problem.model
    full = descriptor_form(linear)
    x, u = np.ones(linear.nx), np.ones(linear.nu)
    natural = parts.lift @ x
    lam = np.linalg.pinv(full.G @ full.S, 1e-9) @ -full.G @ (full.dfdx @ natural + full.dfdu @ u)
    a = parts.of_state @ natural + parts.of_u @ u + parts.of_lam @ lam
    half = len(natural) // 2
    after = natural + parts.hold @ np.concatenate([natural[half:], a])
    expected = parts.lift @ (model.A @ x + model.B @ u)
    assert np.abs(expected - natural).max() > 1e-3
    np.testing.assert_allclose(after, expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(parts.rows @ a, 0, atol=1e-9 * np.abs(a).max())
    assert h == model.period


@pytest.mark.parametrize("solver", ["piqp", "proxqp", "qrqp"])
def test_each_solver_of_the_sparse_form_finds_the_same(solver):
    sparse, dense = (
        cases.controller_of("rates", form="sparse", solver=solver),
        cases.controller_of("rates"),
    )
    z = [0.1, *sparse.controller.z0[1:]]
    u, _, status, *_ = cases.row_values(sparse.function([1.0, 0.5], np.zeros(3), z))
    z = dense.controller.z0.copy()
    z[len(dense.condensed.names)] = 0.1
    expected = cases.row_values(dense.function([1.0, 0.5], np.zeros(3), z))
    assert status == 0
    np.testing.assert_allclose(u, expected[0], atol=ONE_SOLUTION)


def test_the_sparse_form_is_not_c(tmp_path):
    sparse = cases.controller_of(form="sparse", u_bounds=[[-1.0, 1.0]])
    with pytest.raises(err.ExportError, match="cannot generate C"):
        mb.export_c(sparse, tmp_path / "c")
