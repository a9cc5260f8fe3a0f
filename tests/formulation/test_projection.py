"""Three constraint inertias: their laws, the motion they give, closed forms."""

import functools

import casadi as ca
import mpmath
import numpy as np
import pytest
from formulation_problems import (
    as_function,
    euler_parameters,
    motion_shapes,
    null_columns,
    problem,
    projector,
    semidefinite_problem,
)

from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.formulation.projection import (
    INERTIAS,
    constraint_inertia,
    inertia_norm,
    parameterized_constraint_inertia,
    projection,
    symmetric_constraint_inertia,
)

OPTIONS = [{"inertia": name} for name in INERTIAS]
OPTIONS += [{"inertia": "M_c_second", "gamma": gamma} for gamma in (0.05, 300.0)]
ELIMINATION = 1e-12  # a hundred operations with two coordinates, of condition below 10


def name_of(options):
    return "_".join(str(value).replace(".", "_") for value in options.values())


def inertias(M, P):
    M_dm, P_dm = ca.DM(M), ca.DM(P)
    return {
        "M_c": constraint_inertia(M_dm, P_dm).full(),
        "M_c_prime": symmetric_constraint_inertia(M_dm, P_dm).full(),
        "M_c_second": parameterized_constraint_inertia(M_dm, P_dm, inertia_norm(M_dm)).full(),
    }


@functools.cache
def motion(m, n, **options):
    return as_function(functools.partial(projection, **options), ca.SX, motion_shapes(m, n))


def test_constraint_inertia_is_positive_definite_exactly_where_the_inertia_is():
    """[A05, Theorem 2]: the added part is skew, so the quadratic forms are the same."""
    rng = np.random.default_rng(42)
    for M in (problem(rng, 1, 5, 1)["M"], np.diag([1.0, -2.0, 3.0, 0.5, 1.0])):
        P = projector(rng.standard_normal((2, 5)))
        M_c = inertias(M, P)["M_c"]
        np.testing.assert_allclose(M_c + M_c.T, 2 * M, atol=1e-13 * np.abs(M).max())
        assert np.abs(M_c - M_c.T).max() > 0.1


def test_symmetric_inertia_is_symmetric_and_no_worse_conditioned_than_the_inertia():
    """[A05, eq. 28, Prop. 1]: two blocks of M, so its eigenvalues lie between those of M."""
    rng = np.random.default_rng(43)
    for r in (0, 2, 5):
        p = problem(rng, 6, 5, r)
        P = projector(p["A"])
        Q = np.eye(5) - P
        found = inertias(p["M"], P)["M_c_prime"]
        np.testing.assert_allclose(found, P @ p["M"] @ P + Q @ p["M"] @ Q, atol=1e-12)
        np.testing.assert_allclose(found, found.T, atol=1e-12)
        low, high = np.linalg.eigvalsh(p["M"])[[0, -1]]
        values = np.linalg.eigvalsh(found)
        assert low * (1 - 1e-12) <= values[0] <= values[-1] <= high * (1 + 1e-12)


def test_parameterized_inertia_is_invertible_for_any_gamma_and_definite_on_null_only():
    """[A05, Prop. 2 corrected], with the determinant that the two blocks give."""
    rng = np.random.default_rng(44)
    for build in (problem, semidefinite_problem):
        p = build(rng, 5, 6, 3)
        P, Z = projector(p["A"]), null_columns(p["A"])
        for gamma in 10.0 ** np.arange(-3, 4):
            M_c = parameterized_constraint_inertia(ca.DM(p["M"]), ca.DM(P), gamma).full()
            expected = gamma**3 * np.linalg.det(Z.T @ p["M"] @ Z)
            np.testing.assert_allclose(np.linalg.det(M_c), expected, rtol=1e-8)


def test_an_invertible_inertia_is_not_enough_for_the_parameterized_one():
    """`diag(1, -1)` is invertible, yet zero on null([1, -1])."""
    P = projector(np.array([[1.0, -1.0]]))
    M_c = parameterized_constraint_inertia(ca.DM(np.diag([1.0, -1.0])), ca.DM(P), 1.0).full()
    assert abs(np.linalg.det(M_c)) < 1e-14  # of entries of about 1: some roundings


def test_default_gamma_makes_the_symmetric_part_definite_and_keeps_elimination_from_growing():
    """`γ > ‖M‖/4` suffices for the first, `‖S T⁻¹ S‖ <= ‖M‖/2` holds for the default."""
    rng = np.random.default_rng(45)
    smallest = []
    for stiffness in 10.0 ** np.arange(0, 9, 2):
        p = semidefinite_problem(rng, 3, 6, 3)
        M = p["M"] + stiffness * np.outer(x := rng.standard_normal(6), x)
        P, size = projector(p["A"]), np.linalg.norm(M, 2)
        norm = float(inertia_norm(ca.DM(M)))
        assert size <= norm <= np.sqrt(6) * size
        for gamma in (0.2501 * size, norm):
            M_c = parameterized_constraint_inertia(ca.DM(M), ca.DM(P), gamma).full()
            T, S = (M_c + M_c.T) / 2, (M_c - M_c.T) / 2
            smallest.append(np.linalg.eigvalsh(T)[0])
        assert np.linalg.norm(S @ np.linalg.solve(T, S), 2) <= 0.5 * size * (1 + 1e-6)
    assert min(smallest) > 0
    small = parameterized_constraint_inertia(ca.DM(M), ca.DM(P), 1e-3 * size).full()
    assert np.linalg.eigvalsh(small + small.T)[0] < 0  # so the bound says something


def test_kinetic_energy_of_a_motion_is_the_same_in_every_inertia():
    """[A05, Remark 3]."""
    rng = np.random.default_rng(46)
    p = problem(rng, 4, 6, 2)
    P = projector(p["A"])
    v = P @ rng.standard_normal(6)
    for name, M_c in inertias(p["M"], P).items():
        np.testing.assert_allclose(v @ M_c @ v, v @ p["M"] @ v, rtol=1e-12, err_msg=name)


def test_without_constraints_all_inertias_are_the_inertia_itself():
    M = problem(np.random.default_rng(47), 1, 4, 1)["M"]
    for name, M_c in inertias(M, np.eye(4)).items():
        np.testing.assert_allclose(M_c, M, rtol=1e-13, err_msg=name)


def test_the_symmetric_inertia_takes_one_product_more_than_the_others():
    """[A05, section 5.1.3] counts products of matrices; here two for `M'_c`, one for the rest."""
    n = 12
    M, P, gamma = ca.SX.sym("M", n, n), ca.SX.sym("P", n, n), ca.SX.sym("gamma")
    built = [
        constraint_inertia(M, P),
        parameterized_constraint_inertia(M, P, gamma),
        symmetric_constraint_inertia(M, P),
    ]
    counts = [ca.Function("f", [M, P, gamma], [x]).n_instructions() for x in built]
    product, elementwise = 2 * n**3, 8 * n**2  # in and out are counted too
    for count, products in zip(counts, (1, 1, 2), strict=True):
        assert abs(count - products * product) < elementwise


def test_two_inertias_are_singular_for_a_rigid_body_in_euler_parameters():
    body = euler_parameters(np.random.default_rng(49))
    singular = inertias(body.problem["M"], projector(body.problem["A"]))
    for name in ("M_c", "M_c_prime"):
        assert np.linalg.cond(singular[name]) > 1e14
    assert np.linalg.cond(singular["M_c_second"]) < 100


def exact_motion(M, h, f, A, c):
    """Return a from the Lagrange equations in 40 digits; A has full row rank."""
    m, n = A.shape
    K = np.block([[M, -A.T], [A, np.zeros((m, m))]])
    with mpmath.workdps(40):
        x = mpmath.lu_solve(mpmath.matrix(K), mpmath.matrix(np.concatenate([f - h, -c])))
        return np.array(list(x)[:n], dtype=float)


@pytest.mark.parametrize("graded", [False, True])
def test_the_error_of_the_motion_is_bounded_by_the_condition_of_the_inertia(graded):
    """Light and heavy joints in one mechanism; `M_c`, which adds to M, gains from the order."""
    rng = np.random.default_rng(52)
    errors = {name_of(options): [] for options in OPTIONS}
    for decades in (0, 4, 8):
        sizes = np.logspace(0, -decades / 2, 6)[rng.permutation(6)]
        X = rng.standard_normal((6, 6))
        turned = np.linalg.qr(X)[0] * sizes
        M = turned @ turned.T
        if graded:
            M = sizes[:, None] * (X @ X.T + np.eye(6)) * sizes
        p = problem(rng, 3, 6, 3) | {"M": (M + M.T) / 2}
        exact = exact_motion(**p)
        for options in OPTIONS:
            found = motion(3, 6, **options)(**p)["a"].full().ravel()
            error = np.abs(found - exact).max() / np.abs(exact).max()
            bound = max(np.linalg.cond(M), 300 / 0.05)  # the given γ condition M''_c as well
            errors[name_of(options)].append(error / (bound * np.finfo(float).eps))
    assert max(max(found) for found in errors.values()) < 10


def test_a_particle_on_a_circle_is_bent_onto_it():
    """`m a = f∥ - m ‖v‖²/ρ ε⊥` and `f_c = -f⊥ - m ‖v‖²/ρ ε⊥`  [A05, section 5.4 corrected]."""
    mass, rho, angle, speed = 1.7, 0.8, 0.6, 2.3
    normal, tangent = (
        np.array([np.cos(angle), np.sin(angle)]),
        np.array([-np.sin(angle), np.cos(angle)]),
    )
    force = np.array([0.4, -1.1])
    bend = mass * speed**2 / rho * normal
    p = {"M": mass * np.eye(2), "h": np.zeros(2), "f": force, "A": normal[None, :]}
    p["c"] = np.array([speed**2 / rho])  # Ȧ v = vᵀ v / ρ
    for options in OPTIONS:
        found = motion(1, 2, **options)(**p)
        expected = tangent * (tangent @ force) - bend
        np.testing.assert_allclose(mass * found["a"].full().ravel(), expected, rtol=ELIMINATION)
        expected = -normal * (normal @ force) - bend
        np.testing.assert_allclose(found["f_c"].full().ravel(), expected, rtol=ELIMINATION)


def test_slider_crank_has_the_published_inertia_away_from_its_singular_pose():
    """[A05, eq. 70-71 corrected: the matrix is `M''_c`, and belongs to `|c1| >= ε/(l√5)`]."""
    mass, length = 1.3, 0.7
    for q1, singular in ((0.4, False), (np.pi / 2, True)):
        c2 = np.cos(2 * np.pi - 2 * q1)
        M = mass * length**2 * np.array([[3 + 2 * c2, 1 + c2], [1 + c2, 1]])
        A = length * np.cos(q1) * np.array([[2.0, 1.0]])
        gamma = mass * length**2
        published = gamma * np.array([[1, (1 + c2) / 5], [0, (3 - 2 * c2) / 5]])
        M_c = parameterized_constraint_inertia(ca.DM(M), ca.DM(projector(A)), gamma).full()
        np.testing.assert_allclose(M_c, M if singular else published, atol=1e-12)


def test_wrong_options_are_refused_by_name():
    args = (ca.DM.eye(2), ca.DM([0, 0]), ca.DM([0, 0]), ca.DM([[1, 0]]), ca.DM([0]))
    with pytest.raises(UnknownNameError, match=r"inertia 'M_d'; valid: 'M_c', 'M_c_prime', 'M_c_s"):
        projection(*args, inertia="M_d")
    with pytest.raises(ProblemError, match=r"gamma belongs to .* found inertia='M_c'"):
        projection(*args, gamma=1.0)
    with pytest.raises(ProblemError, match=r"gamma is -1.0, expected a positive number"):
        projection(*args, inertia="M_c_second", gamma=-1.0)
