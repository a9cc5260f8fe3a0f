"""Skew-symmetry, spectrum, oblique projections and constraint forces of A16."""

import casadi as ca
import numpy as np
import pytest
from formulation_problems import (
    CASES,
    admissible_state,
    euler_parameters,
    moving,
    null_columns,
    problem,
    projector,
    semidefinite_problem,
)
from support.compiled import compiled

from mbcasadi.errors import ProblemError
from mbcasadi.formulation.projection_rates import path_rate, projector_rate, turning_rate
from mbcasadi.formulation.virtual_mass import constraint_mass, mean_mass, virtual_mass
from mbcasadi.formulation.virtual_mass_model import (
    actuator_map,
    constraint_coriolis,
    force_projection,
    largest_eigenvalue,
    mass_condition,
    mass_interval,
    mean_mass_rate,
    normal_force,
    projected_force,
)
from mbcasadi.linalg import complete_factor
from mbcasadi.linalg import projector as linalg_projector

TOL = 1e-11  # matrices of condition below 1e3
RANK = 2


@pytest.fixture(scope="module")
def mechanism():
    return moving(np.random.default_rng(80), 4, 6, RANK)


@pytest.fixture(scope="module")
def model(mechanism):
    """Return (q, v) → the matrices of [A16, eq. 8] with a constant and with the mean mass."""
    M, C, A, v = mechanism.M, mechanism.C, mechanism.A, mechanism.v
    Adot = mechanism.rate(A)
    factor = complete_factor(A)
    P = linalg_projector(A)
    Lambda = path_rate(factor.pinv_times(ca.SX.eye(4)), Adot)
    mu = mean_mass(M, P, RANK)
    mu_rate = mean_mass_rate(M, C + C.T, P, projector_rate(P, Lambda), RANK)
    fixed = constraint_mass(M, P, 0.7)
    mean = constraint_mass(M, P, mu)
    outputs = {
        "M": M,
        "C": C,
        "P": P,
        "Lambda": Lambda,
        "Omega": turning_rate(Lambda),
        "Mdot": mechanism.rate(M),
        "fixed": fixed,
        "fixed_rate": mechanism.rate(fixed),
        "fixed_C": constraint_coriolis(M, C, P, Lambda, 0.7),
        "mean": mean,
        "mean_rate": mechanism.rate(mean),
        "mean_C": constraint_coriolis(M, C, P, Lambda, mu, mu_rate),
        "mean_C_printed": constraint_coriolis(M, C, P, Lambda, mu),
        "a": virtual_mass(M, C @ v, ca.DM(range(6)), A, Adot @ v).a,
    }
    inputs = [mechanism.q, v]
    return ca.Function("model", inputs, list(outputs.values()), ["q", "v"], list(outputs))


def numbers(function, q, v):
    return {key: value.full() for key, value in function(q=q, v=v).items()}


def skew_gap(rate, C):
    X = rate - 2 * C
    return float(np.abs(X + X.T).max() / np.abs(X).max())


def test_rate_of_the_constraint_mass_less_twice_its_coriolis_matrix_is_skew(model):
    """[A16, Theorem 1 ii, eq. 10], at any velocity; with a mass that moves by the added term."""
    rng = np.random.default_rng(81)
    now = numbers(model, rng.standard_normal(6), rng.standard_normal(6))
    assert skew_gap(now["Mdot"], now["C"]) < 1e-13
    assert np.abs(now["fixed_rate"]).max() > 0.1
    assert skew_gap(now["fixed_rate"], now["fixed_C"]) < 1e-12
    assert skew_gap(now["mean_rate"], now["mean_C"]) < 1e-12
    assert skew_gap(now["mean_rate"], now["mean_C_printed"]) > 1e-3


def test_the_same_law_holds_with_a_rate_from_finite_differences(model):
    rng = np.random.default_rng(82)
    q, v, step = rng.standard_normal(6), rng.standard_normal(6), 1e-5
    now = numbers(model, q, v)
    ahead, behind = (numbers(model, q + s * step * v, v)["fixed"] for s in (1, -1))
    # the quotient carries errors of step² and 1e-15 / step, both 1e-10
    assert skew_gap((ahead - behind) / (2 * step), now["fixed_C"]) < 1e-8


def test_projected_model_holds_on_the_motion(mechanism, model):
    """`Q a = Ṗ v` and `M̄ a + C̄ v = P (f - g)`  [A16, eq. 3, 5, 8], with both Coriolis forms."""
    q, v = admissible_state(np.random.default_rng(83), mechanism)
    now = numbers(model, q, v)
    M, C, P, Lambda, Omega = (now[key] for key in ("M", "C", "P", "Lambda", "Omega"))
    Q, a, f = np.eye(6) - P, now["a"].ravel(), np.arange(6.0)
    np.testing.assert_allclose(P @ Lambda, 0, atol=TOL)
    assert np.linalg.norm(Q @ a) > 0.1
    np.testing.assert_allclose(Q @ a, (Lambda @ P + P @ Lambda.T) @ v, atol=TOL)
    for mass in ("fixed", "mean"):
        np.testing.assert_allclose(now[mass] @ a + now[f"{mass}_C"] @ v, P @ f, atol=1e-10)
    other = P @ C + (P @ M - 0.7 * np.eye(6)) @ Omega  # [A16, section 4.1]
    np.testing.assert_allclose(other @ v, now["fixed_C"] @ v, atol=TOL)


def test_acceleration_by_quasi_coordinates(mechanism, model):
    """[A16, eq. 27 corrected in its signs], both lines; as printed it is another vector."""
    q, v = admissible_state(np.random.default_rng(84), mechanism)
    now = numbers(model, q, v)
    M, P, M_bar, turn = now["M"], now["P"], now["fixed"], now["Omega"] @ v
    left, f = np.linalg.inv(M_bar), np.arange(6.0)
    drive = f - now["C"] @ v
    S = np.eye(6) - M @ left @ P
    first = left @ P @ (drive - M @ turn) + 0.7 * left @ turn
    second = left @ P @ drive + S.T @ turn
    for found in (first, second):
        np.testing.assert_allclose(found, now["a"].ravel(), atol=1e-10)
    printed = left @ P @ (f + now["C"] @ v + M @ turn) - 0.7 * left @ turn
    assert np.linalg.norm(printed - now["a"].ravel()) > 0.1


@pytest.mark.parametrize("build", [problem, semidefinite_problem])
def test_spectrum_is_the_virtual_mass_and_the_inertias_of_the_free_motions(build):
    """[A16, eq. 12-14]: least condition for every mass inside the interval."""
    rng = np.random.default_rng(85)
    for m, n, r in CASES:
        p = build(rng, m, n, r)
        P, Z = projector(p["A"]), null_columns(p["A"])
        free = np.linalg.eigvalsh(Z.T @ p["M"] @ Z)
        M, P_dm = ca.DM(p["M"]), ca.DM(P)
        interval = mass_interval(M, P_dm, r)
        low, high = (free[0], free[-1]) if free.size else (np.trace(p["M"]) / n,) * 2
        np.testing.assert_allclose([float(x) for x in interval], [low, high], rtol=1e-9)
        conditions = []
        for mu in (0.1 * low, low, float(mean_mass(M, P_dm, r)), high, 10 * high):
            M_bar = constraint_mass(M, P_dm, mu).full()
            spectrum = np.sort(np.concatenate([np.full(r, mu), free]))
            np.testing.assert_allclose(
                np.linalg.eigvalsh(M_bar), spectrum, atol=1e-12 * spectrum[-1]
            )
            found = float(mass_condition(M, P_dm, mu))
            np.testing.assert_allclose(found, np.linalg.cond(M_bar), rtol=1e-8)
            conditions.append(found)
        if 0 < r < n:
            np.testing.assert_allclose(conditions[1:4], high / low, rtol=1e-9)
            assert min(conditions[0], conditions[4]) > 1.5 * high / low


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_largest_eigenvalue_by_repeated_squaring(kind):
    rng = np.random.default_rng(86)
    X_sym = kind.sym("X", 5, 5)
    f = ca.Function("largest", [X_sym], [largest_eigenvalue(X_sym)])
    basis = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    for values in ([1, 1, 1, 1, 1], [5, 5, 1, 0, 0], [1e-9, 2e-9, 1e-20, 0, 0], [1e9, 3, 2, 1, 0]):
        X = basis @ np.diag(np.array(values, dtype=float)) @ basis.T
        np.testing.assert_allclose(float(f(X)), max(values), rtol=1e-11)


def test_force_projection_is_oblique_and_the_same_for_every_mass():
    """[A16, eq. 26, 28, 30, App. C corrected: rank M̄ = n, rank P = n - r]."""
    rng = np.random.default_rng(87)
    p = problem(rng, 5, 6, 3)
    M, P = p["M"], projector(p["A"])
    Q = np.eye(6) - P
    S = force_projection(ca.DM(M), ca.DM(P), 0.4).full()
    inverse = np.linalg.inv(constraint_mass(ca.DM(M), ca.DM(P), 0.4).full())
    np.testing.assert_allclose(inverse @ P, P @ inverse, atol=TOL)
    np.testing.assert_allclose(inverse @ P, np.linalg.pinv(P @ M @ P, 1e-9), atol=TOL)
    np.testing.assert_allclose(S @ S, S, atol=TOL)
    np.testing.assert_allclose(Q @ S, S, atol=TOL)
    np.testing.assert_allclose(S @ Q, Q, atol=TOL)
    np.testing.assert_allclose(S @ M @ P, 0, atol=TOL)
    assert np.abs(S - S.T).max() > 0.1
    np.testing.assert_allclose(force_projection(ca.DM(M), ca.DM(P), 90.0).full(), S, atol=TOL)
    assert np.linalg.matrix_rank(P) == 3


@pytest.mark.parametrize("build", [problem, semidefinite_problem])
def test_oblique_projection_gives_the_constraint_force(build):
    """[A16, eq. 29, 31 corrected], drifted states included; (31) as printed is off."""
    rng = np.random.default_rng(88)
    p = build(rng, 5, 6, 3)
    P = projector(p["A"])
    args = [ca.DM(p[key]) for key in ("M", "h", "f", "A", "c")]
    f_c = virtual_mass(*args).f_c.full().ravel()
    normal = -np.linalg.pinv(p["A"], 1e-9) @ p["c"]
    S = force_projection(ca.DM(p["M"]), ca.DM(P), 2.0)
    M, h, f = ca.DM(p["M"]), ca.DM(p["h"]), ca.DM(p["f"])
    found = projected_force(S, M, h, f, ca.DM(normal)).full().ravel()
    np.testing.assert_allclose(found, f_c, atol=1e-9 * np.abs(f_c).max())
    potent, impotent = P @ p["f"], p["f"] - P @ p["f"]
    together = normal_force(S, M, h, ca.DM(potent), ca.DM(normal)).full().ravel()
    np.testing.assert_allclose(together, impotent + f_c, atol=1e-9 * np.abs(f_c).max())
    printed = S.full() @ (p["h"] - potent) + (np.eye(6) - P) @ p["M"] @ normal
    assert np.linalg.norm(printed - together) > 0.1


def test_actuator_forces_of_minimum_norm_with_redundant_actuation():
    """[A16, eq. 16, 18, 20; 19 corrected]: six actuators for three motions."""
    rng = np.random.default_rng(89)
    P = projector(rng.standard_normal((3, 6)))
    B = rng.standard_normal((6, 6))
    force_map = actuator_map(ca.DM(B), ca.DM(P), 3)
    Gamma_u, R = force_map.Gamma_u.full(), force_map.R_ob.full()
    assert force_map.complete == 1
    assert np.linalg.cond(B.T @ P @ B) > 1e12  # so the printed inverse has no meaning
    np.testing.assert_allclose(Gamma_u, np.linalg.pinv(P @ B, 1e-9), atol=1e-10)
    np.testing.assert_allclose(R @ R, R, atol=1e-10)
    np.testing.assert_allclose(P @ R, P, atol=1e-10)
    np.testing.assert_allclose(R @ P, R, atol=1e-10)
    desired = P @ rng.standard_normal(6)
    u = Gamma_u @ desired
    np.testing.assert_allclose(P @ B @ u, desired, atol=1e-10)
    other = u + null_columns(P @ B) @ rng.standard_normal(3)
    np.testing.assert_allclose(P @ B @ other, desired, atol=1e-10)
    assert np.linalg.norm(u) < np.linalg.norm(other)


def test_the_force_map_maps_along_the_constraint_forces():
    """[A16, eq. 17 and after 20, corrected]: one actuator at an angle to one free motion."""
    P, B = np.diag([0.0, 1.0]), np.array([[1.0], [1.0]])
    force_map = actuator_map(ca.DM(B), ca.DM(P), 1)
    R = force_map.R_ob.full()
    free = np.array([0.0, 1.0])
    # null(A) is not inside range(B), yet the actuator reaches every motion
    assert np.linalg.matrix_rank(np.column_stack([B, free])) == 2
    assert force_map.complete == 1
    np.testing.assert_allclose(P @ R, P, atol=1e-15)
    np.testing.assert_allclose(R @ [1.0, 0.0], 0, atol=1e-15)  # along range(Aᵀ)
    np.testing.assert_allclose(R @ free, [1.0, 1.0], atol=1e-15)  # not the vector itself
    weak = actuator_map(ca.DM(B), ca.DM.eye(2), 0)
    assert weak.complete == 0
    assert np.abs(weak.R_ob.full() - np.eye(2)).max() > 0.4


def test_actuators_along_the_constraint_have_an_orthogonal_force_map():
    """[A16, Remark 3]."""
    rng = np.random.default_rng(90)
    P = projector(rng.standard_normal((2, 5)))
    B = P @ rng.standard_normal((5, 4))
    force_map = actuator_map(ca.DM(B), ca.DM(P), 2)
    B_pinv = np.linalg.pinv(B, 1e-9)
    np.testing.assert_allclose(force_map.Gamma_u.full(), B_pinv, atol=1e-10)
    np.testing.assert_allclose(force_map.R_ob.full(), B @ B_pinv, atol=1e-10)


def test_generated_c_of_interval_and_projections_equals_the_function(tmp_path):
    M, P, B = (ca.MX.sym(name, 6, n) for name, n in (("M", 6), ("P", 6), ("B", 4)))
    rank = ca.MX.sym("rank")
    interval = mass_interval(M, P, rank)
    outputs = [*interval, mass_condition(M, P, 2.0), force_projection(M, P, 2.0)]
    outputs += list(actuator_map(B, P, rank))
    f = ca.Function("virtual_mass_pieces", [M, P, B, rank], outputs)
    external = compiled(f, tmp_path)
    rng = np.random.default_rng(91)
    for r in (0, 2, 4):
        p = problem(rng, 4, 6, r)
        inputs = (p["M"], projector(p["A"]), rng.standard_normal((6, 4)), r)
        for expected, found in zip(f(*inputs), external(*inputs), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_constraint_mass_is_symmetric_positive_definite_at_every_rank():
    """[A16, Theorem 1 i, eq. 9], for inertias that are definite on null(A) only as well."""
    rng = np.random.default_rng(72)
    for build in (problem, semidefinite_problem):
        for m, n, r in CASES:
            p = build(rng, m, n, r)
            P, x = projector(p["A"]), rng.standard_normal(n)
            M_bar = constraint_mass(ca.DM(p["M"]), ca.DM(P), 0.3).full()
            np.testing.assert_allclose(M_bar, M_bar.T, atol=1e-13 * np.abs(M_bar).max())
            assert np.linalg.eigvalsh(M_bar)[0] > 1e-6
            along, across = P @ x, x - P @ x
            energy = along @ p["M"] @ along + 0.3 * across @ across
            np.testing.assert_allclose(x @ M_bar @ x, energy, rtol=1e-10)
            np.testing.assert_allclose(along @ M_bar @ along, along @ p["M"] @ along, rtol=1e-10)


def test_default_virtual_mass_is_the_mean_inertia_of_the_free_motions():
    rng = np.random.default_rng(73)
    M, P, rank = ca.SX.sym("M", 6, 6), ca.SX.sym("P", 6, 6), ca.SX.sym("rank")
    f = ca.Function("mean_mass", [M, P, rank], [mean_mass(M, P, rank)])
    for r in (0, 2, 5):
        p = problem(rng, 5, 6, r)
        Z = null_columns(p["A"])
        values = np.linalg.eigvalsh(Z.T @ p["M"] @ Z)
        found = float(f(p["M"], projector(p["A"]), r))
        np.testing.assert_allclose(found, values.mean(), rtol=1e-12)
        assert values[0] * (1 - 1e-12) <= found <= values[-1] * (1 + 1e-12)
    stuck = float(f(p["M"], np.zeros((6, 6)), 6))
    np.testing.assert_allclose(stuck, np.trace(p["M"]) / 6, rtol=1e-12)


def test_the_mean_mass_of_a_rigid_body_in_euler_parameters_leaves_the_ratio_of_its_inertias():
    body = euler_parameters(np.random.default_rng(75))
    P = projector(body.problem["A"])
    M, P_dm = ca.DM(body.problem["M"]), ca.DM(P)
    M_bar = constraint_mass(M, P_dm, mean_mass(M, P_dm, 1)).full()
    np.testing.assert_allclose(np.linalg.cond(M_bar), 1.1 / 0.5, rtol=1e-10)  # inertias of the body


def test_a_virtual_mass_that_is_not_positive_is_refused():
    args = (ca.DM.eye(2), ca.DM([0, 0]), ca.DM([0, 0]), ca.DM([[1, 0]]), ca.DM([0]))
    with pytest.raises(ProblemError, match=r"virtual_mass is 0, expected a positive number"):
        virtual_mass(*args, virtual_mass=0)
