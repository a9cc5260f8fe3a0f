"""Acceleration across constraints, force channels, decoupling, multipliers  [A05]."""

import casadi as ca
import numpy as np
import pytest
from formulation_problems import (
    admissible_state,
    as_function,
    motion_shapes,
    moving,
    null_columns,
    problem,
    projector,
)

from mbcasadi.formulation.projection import (
    constraint_inertia,
    projection,
    symmetric_constraint_inertia,
)
from mbcasadi.formulation.projection_forces import (
    channel_force,
    coupling,
    decoupling,
    force_split,
    multipliers,
    normal_acceleration,
)
from mbcasadi.formulation.projection_rates import path_rate, projector_rate, turning_rate
from mbcasadi.linalg import pinv
from mbcasadi.linalg import projector as linalg_projector

TOL = 1e-11  # matrices of condition below 1e3


def moving_terms(mechanism):
    """Return (q, v) → what the two ways to `Ṗ v` need."""
    Adot = mechanism.rate(mechanism.A)
    P, A_pinv = linalg_projector(mechanism.A), pinv(mechanism.A)
    Lambda = path_rate(A_pinv, Adot)
    outputs = {
        "P": P,
        "Pdot_derivative": mechanism.rate(P),
        "Pdot": projector_rate(P, Lambda),
        "Lambda": Lambda,
        "Omega": turning_rate(Lambda),
        "normal": normal_acceleration(A_pinv, Adot @ mechanism.v),
    }
    inputs = [mechanism.q, mechanism.v]
    return ca.Function("terms", inputs, list(outputs.values()), ["q", "v"], list(outputs))


@pytest.fixture(scope="module")
def mechanism():
    return moving(np.random.default_rng(60), 4, 6, 2)


@pytest.fixture(scope="module")
def rates(mechanism):
    return moving_terms(mechanism)


def test_the_rate_of_the_projector_is_its_derivative(rates):
    """[A05, eq. 14], [A16, eq. 4, 5, 34]; symmetric, and without a block on null(A)."""
    rng = np.random.default_rng(61)
    q, v = rng.standard_normal(6), rng.standard_normal(6)
    now = {key: value.full() for key, value in rates(q=q, v=v).items()}
    assert np.abs(now["Pdot"]).max() > 0.1
    np.testing.assert_allclose(now["Pdot"], now["Pdot_derivative"], atol=TOL)
    step = 1e-6
    ahead, behind = (rates(q=q + s * step * v, v=v)["P"].full() for s in (1, -1))
    # the quotient carries errors of step² and 1e-16 / step
    np.testing.assert_allclose((ahead - behind) / (2 * step), now["Pdot"], atol=1e-8)
    np.testing.assert_allclose(now["P"] @ now["Lambda"], 0, atol=TOL)
    np.testing.assert_allclose(now["P"] @ now["Pdot"] @ now["P"], 0, atol=TOL)
    np.testing.assert_allclose(now["Omega"], -now["Omega"].T, atol=0)


def test_the_rate_of_the_projector_is_that_of_a_moving_null_columns(mechanism, rates):
    """`Ṗ = S + Sᵀ` with `S = V̇2 V2ᵀ`, here with V2 kept along `Ṽ2ᵀ V̇2 = 0`  [A05, eq. 14]."""
    q, v = admissible_state(np.random.default_rng(62), mechanism)
    jacobian, step = ca.Function("A", [mechanism.q], [mechanism.A]), 1e-6
    Z = null_columns(jacobian(q).full())
    nearby = []
    for s in (1, -1):
        B = projector(jacobian(q + s * step * v).full()) @ Z  # the basis that turns least
        U, _, Wt = np.linalg.svd(B, full_matrices=False)
        nearby.append(U @ Wt)
    S = (nearby[0] - nearby[1]) / (2 * step) @ Z.T
    np.testing.assert_allclose(S + S.T, rates(q=q, v=v)["Pdot"], atol=1e-8)  # errors of step²


def test_both_ways_to_the_acceleration_across_agree_on_the_manifold(mechanism, rates):
    """`Ṗ v = -A⁺ Ȧ v`, and `Ω v` is the same  [A05, eq. 13, 16 corrected]."""
    q, v = admissible_state(np.random.default_rng(63), mechanism)
    now = {key: value.full() for key, value in rates(q=q, v=v).items()}
    normal = now["normal"].ravel()
    assert np.linalg.norm(normal) > 0.1
    np.testing.assert_allclose(now["Pdot"] @ v, normal, atol=TOL)
    np.testing.assert_allclose(now["Omega"] @ v, normal, atol=TOL)
    np.testing.assert_allclose(now["P"] @ normal, 0, atol=TOL)


def test_off_the_manifold_they_differ_by_what_the_drift_does(rates):
    rng = np.random.default_rng(64)
    q, v = rng.standard_normal(6), rng.standard_normal(6)
    now = {key: value.full() for key, value in rates(q=q, v=v).items()}
    P, Lambda = now["P"], now["Lambda"]
    gap = now["Pdot"] @ v - now["normal"].ravel()
    assert np.linalg.norm(gap) > 0.1
    drift = v - P @ v
    np.testing.assert_allclose(gap, (P @ Lambda.T - Lambda) @ drift, atol=TOL)


def motion_of(p):
    m, n = p["A"].shape
    out = as_function(projection, ca.SX, motion_shapes(m, n))(**p)
    return {key: value.full().ravel() for key, value in out.items()}


def test_potent_force_moves_and_impotent_force_only_loads_the_constraint():
    """[A05, eq. 5-7, 25, Remark 2]; f∥ is the smallest force for its motion [A05, eq. 48]."""
    rng = np.random.default_rng(65)
    p = problem(rng, 5, 6, 3)
    split = force_split(ca.DM(p["f"]), ca.DM(projector(p["A"])))
    potent, impotent = (part.full().ravel() for part in split)
    assert min(np.linalg.norm(potent), np.linalg.norm(impotent)) > 0.1
    np.testing.assert_allclose(potent @ impotent, 0, atol=TOL)
    np.testing.assert_allclose(p["f"] @ p["f"], potent @ potent + impotent @ impotent, rtol=1e-13)
    whole, alone = motion_of(p), motion_of(p | {"f": potent})
    np.testing.assert_allclose(alone["a"], whole["a"], atol=TOL)
    np.testing.assert_allclose(alone["f_c"] - whole["f_c"], impotent, atol=TOL)


@pytest.mark.parametrize("rank", [0, 2, 4])
def test_the_two_channels_give_the_constraint_force_of_the_motion(rank):
    """[A05, eq. 32], on drifted states too."""
    rng = np.random.default_rng(66)
    p = problem(rng, 4, 6, rank)
    A_pinv = np.linalg.pinv(p["A"], 1e-9)
    normal = normal_acceleration(ca.DM(A_pinv), ca.DM(p["c"]))
    arguments = [ca.DM(x) for x in (p["M"], p["h"], p["f"], projector(p["A"]))]
    found = channel_force(*arguments, normal).full().ravel()
    np.testing.assert_allclose(found, motion_of(p)["f_c"], atol=1e-10)


def test_coupling_is_the_ratio_of_the_inertias_seen_across():
    rng = np.random.default_rng(67)
    p = problem(rng, 3, 6, 3)
    P = projector(p["A"])
    M_c = constraint_inertia(ca.DM(p["M"]), ca.DM(P)).full()
    expected = (np.eye(6) - P) @ p["M"] @ np.linalg.inv(M_c)
    found = coupling(ca.DM(p["M"]), ca.DM(P)).full()
    np.testing.assert_allclose(found, expected, atol=TOL)
    on_null = (np.eye(6) - P) @ p["M"] @ np.linalg.pinv(P @ p["M"] @ P, 1e-9)
    np.testing.assert_allclose(found @ P, on_null, atol=TOL)


def test_motion_and_force_decouple_exactly_where_the_null_space_is_invariant():
    """[A05, Prop. 3, eq. 76]: then `P M = M P` and the inertias are M itself."""
    rng = np.random.default_rng(68)
    p = problem(rng, 4, 6, 2)
    P = projector(p["A"])
    Q = np.eye(6) - P
    aligned = P @ p["M"] @ P + Q @ p["M"] @ Q
    size = np.abs(aligned).max()
    apart, mixed = (decoupling(ca.DM(M), ca.DM(P)) for M in (aligned, p["M"]))
    assert float(apart) < 1e-14
    assert 0.01 < float(mixed) <= np.sqrt(0.5)
    couplings = [coupling(ca.DM(M), ca.DM(P)).full() @ P for M in (aligned, p["M"])]
    assert np.abs(couplings[0]).max() < 1e-12
    assert np.abs(couplings[1]).max() > 0.01
    for build in (constraint_inertia, symmetric_constraint_inertia):
        M_c = build(ca.DM(aligned), ca.DM(P)).full()
        np.testing.assert_allclose(M_c, aligned, atol=1e-13 * size)
    # a force along the constraint leaves the constraint force alone
    moved = p | {"f": p["f"] + P @ rng.standard_normal(6)}
    for M, same in ((aligned, True), (p["M"], False)):
        before, after = motion_of(p | {"M": M})["f_c"], motion_of(moved | {"M": M})["f_c"]
        assert np.allclose(before, after, atol=1e-11) == same


def test_multipliers_are_unique_exactly_with_full_row_rank():
    """[A05, Remark 4]."""
    rng = np.random.default_rng(69)
    full = rng.standard_normal((3, 6))
    repeated = np.vstack([full, full[0] - 2 * full[1]])
    vanishing = np.vstack([full, np.zeros(6)])
    for A, unique in ((full, 1), (repeated, 0), (vanishing, 0), (full[:0], 1)):
        f_c = A.T @ rng.standard_normal(len(A))
        for kind in (ca.SX, ca.MX):
            A_sym, f_sym = kind.sym("A", *A.shape), kind.sym("f_c", 6)
            f = ca.Function("multipliers", [A_sym, f_sym], list(multipliers(A_sym, f_sym)))
            lam, flag, undetermined = (x.full() for x in f(A, f_c))
            assert flag == unique
            assert np.trace(undetermined) == pytest.approx(len(A) - np.linalg.matrix_rank(A))
            other = lam.ravel() + undetermined @ rng.standard_normal(len(A))
            np.testing.assert_allclose(A.T @ other, f_c, atol=TOL)
            assert np.linalg.norm(lam) <= np.linalg.norm(other) + 1e-12
