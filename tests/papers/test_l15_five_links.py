"""The five-link robots of L15: printed matrices, published ranges, and both control laws.

The reference is NumPy on the paper's own closed forms (A2)-(A4), (63), (68), with
`np.linalg.pinv` and the symmetric root of M; nothing of it comes from the package.
"""

import numpy as np
import pytest
from support.examples import example, results

import mbcasadi as mb
from mbcasadi import models

LAW = example(7)
FIGURES = [(0.44, 10.13), (2.88, 4.90), (-8.00, -4.43), (4.63, 9.67), (-4.16, 0.46), (-5.11, 0.18)]
LEAST = [(0, 8.23), (0, 4.49), (-8.23, -4.46), (4.46, 8.23), (-4.49, 0), (-8.23, 0)]
B = np.array(LAW["robots"].B)
LAST_DIGIT = 0.00501  # half of the last printed digit; the extremes are found to 1e-5
EXACT = 1e-10  # relative, both sides well conditioned


@pytest.fixture(scope="module")
def motion(tmp_path_factory):
    t = np.linspace(0, 2 * np.pi, LAW["SAMPLES"])
    q, v = LAW["on_the_path"](t)
    return {"t": t, "q": q, "v": v} | results(LAW, tmp_path_factory.mktemp("figure"))


def printed_dynamics(q, v):
    """M and Q = -C v - G of (A2)-(A4) with unit lengths, masses and inertias."""
    later = np.arange(4, -1, -1)  # links after this one
    M, C = np.zeros((5, 5)), np.zeros((5, 5))
    for i in range(5):
        for j in range(5):
            weight = later[max(i, j)] + (0.25 if i == j else 0.5)
            M[i, j] = weight * np.cos(q[i] - q[j]) + (i == j)
            C[i, j] = weight * np.sin(q[i] - q[j]) * v[j]
    return M, -C @ v - 9.8 * (later + 0.5) * np.cos(q)


def rows(q, v, t):
    """(63) and (68): the loop's and the servo's rows and right-hand sides."""
    loop, turn = np.array([-np.sin(q), np.cos(q)]), np.array([np.cos(q), np.sin(q)])
    share = np.array([1, 1, 0.5, 0, 0])
    A_s = np.vstack([loop * share, [0, 0, 1, 0, 0]])
    b_s = np.r_[turn @ (share * v**2) + [0, np.cos(t) / 2], 0]
    return loop, turn @ v**2, A_s, b_s


def reaction(M, force, A, b):
    """(14): `M^{1/2} (A M^{-1/2})⁺ (b - A M⁻¹ Q)`."""
    values, vectors = np.linalg.eigh(M)
    root = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    return root @ np.linalg.pinv(A @ np.linalg.inv(root)) @ (b - A @ np.linalg.solve(M, force))


def printed_law(M, A_s, b_s, force):
    """(35) with s = 0, by the symmetric root as in (24)-(26); `force` is `Q + Qᶜ`."""
    values, vectors = np.linalg.eigh(M)
    inverse_root = vectors @ np.diag(values**-0.5) @ vectors.T
    C, B_bar = A_s @ inverse_root, inverse_root @ B
    return np.linalg.pinv(C @ B_bar) @ (b_s - C @ (inverse_root @ force))


def test_the_lagrangian_gives_the_matrices_that_the_paper_prints(motion):
    arms = LAW["robots"].system()
    rng = np.random.default_rng(15)
    for _ in range(5):
        q, v = rng.uniform(-3, 3, 5), rng.uniform(-3, 3, 5)
        M, Q = printed_dynamics(q, v)
        np.testing.assert_allclose(arms.mass_matrix(q), M, rtol=EXACT, atol=EXACT)
        np.testing.assert_allclose(-np.array(arms.bias_force(q, v)).ravel(), Q, rtol=EXACT)


def test_the_path_holds_loop_and_bar(motion):
    arms = LAW["robots"].system()
    servo = LAW["servo_rows"](arms)
    n = motion["t"].size
    loop = np.array(arms.constraint.map(n)(motion["q"]))
    bar = np.array(servo.residual.map(n)(motion["q"], motion["t"]))
    assert max(np.abs(loop).max(), np.abs(bar).max()) < 1e-14  # m, rad
    difference = np.gradient(motion["q"], motion["t"], axis=1, edge_order=2)
    np.testing.assert_allclose(motion["v"], difference, atol=1e-4)  # of the difference quotient


@pytest.mark.parametrize("i", range(6))
def test_the_torques_range_as_in_the_papers_figures_and_at_least_norm(motion, i):
    for key, published in (("u_figures", FIGURES), ("u_least", LEAST)):
        u = motion[key][i]
        assert u.min() == pytest.approx(published[i][0], abs=LAST_DIGIT), f"{key}{i + 1} least"
        assert u.max() == pytest.approx(published[i][1], abs=LAST_DIGIT), f"{key}{i + 1} most"


def test_the_paper_states_minus_five_and_a_half_for_u3_where_its_own_law_gives_more(motion):
    assert motion["u_figures"][2].max() > -5.5 + 1


def test_both_controls_hold_both_constraints_and_the_least_is_smaller(motion):
    assert motion["miss"].max() < 1e-12
    least, figures = (np.linalg.norm(motion[key], axis=0) for key in ("u_least", "u_figures"))
    assert (least < figures).all()
    assert (figures / least).max() > 1.04


def test_the_law_of_the_figures_is_the_printed_one_with_a_reaction_that_feels_the_control(motion):
    for k in range(0, motion["t"].size, 100):
        q, v, t = motion["q"][:, k], motion["v"][:, k], motion["t"][k]
        M, Q = printed_dynamics(q, v)
        A, b, A_s, b_s = rows(q, v, t)
        u = motion["u_figures"][:, k]
        felt = Q + reaction(M, Q + B @ u, A, b)
        np.testing.assert_allclose(printed_law(M, A_s, b_s, felt), u, atol=1e-11)


def test_the_least_control_is_the_smallest_of_all_that_hold_both(motion):
    for k in range(0, motion["t"].size, 200):
        q, v, t = motion["q"][:, k], motion["v"][:, k], motion["t"][k]
        M, Q = printed_dynamics(q, v)
        A, b, A_s, b_s = rows(q, v, t)
        # unknowns (a, lam, u): M a - Aᵀ lam - B u = Q, A a = b, A_s a = b_s; least norm of u
        K = np.block([[M, -A.T, -B], [A, np.zeros((2, 8))], [A_s, np.zeros((3, 8))]])
        particular = np.linalg.lstsq(K, np.r_[Q, b, b_s])[0]
        free = np.linalg.svd(K)[2][np.linalg.matrix_rank(K) :].T
        shift = -np.linalg.pinv(free[7:]) @ particular[7:]
        np.testing.assert_allclose(
            (particular + free @ shift)[7:], motion["u_least"][:, k], atol=1e-11
        )


def test_as_printed_the_reaction_does_not_feel_the_control_and_the_loop_breaks(motion):
    worst = 0.0
    for q, v, t in zip(motion["q"].T[::4], motion["v"].T[::4], motion["t"][::4], strict=True):
        M, Q = printed_dynamics(q, v)
        A, b, A_s, b_s = rows(q, v, t)
        force = Q + reaction(M, Q, A, b)
        a = np.linalg.solve(M, force + B @ printed_law(M, A_s, b_s, force))
        np.testing.assert_allclose(A_s @ a, b_s, atol=1e-11)
        worst = max(worst, np.abs(A @ a - b).max())
    assert worst == pytest.approx(4.99, abs=LAST_DIGIT)  # m/s²


def test_the_mjcf_robots_need_the_same_torques(motion):
    """Relative angles, a spatial loop with a dead row and MuJoCo's inertias: same controls."""
    arms = mb.read_mjcf(models.path("cooperating_arms"))
    bar = arms.frame("bar")
    motion_fun = mb.forward_dynamics(arms, "projection")
    response = motion_fun.factory("G", ["q", "v", "f"], ["a", "jac:a:f"])
    for k in range(0, motion["t"].size, 250):
        q, v, t = motion["q"][:, k], motion["v"][:, k], motion["t"][k]
        q_rel, v_rel = np.diff(q, prepend=0), np.diff(v, prepend=0)
        J = np.array(bar.jacobian(q_rel))[[0, 2, 4]] * np.array([[1], [1], [-1]])
        bias = np.array(bar.bias(q_rel, v_rel)).ravel()[[0, 2, 4]] * [1, 1, -1]
        a_0, G = (np.array(x) for x in response(q_rel, v_rel, np.zeros(5)))
        wanted = np.array([0, np.cos(t) / 2, 0]) - bias - J @ a_0.ravel()
        u = np.linalg.pinv(J @ G @ np.array(arms.actuation(q_rel))) @ wanted
        np.testing.assert_allclose(u, motion["u_least"][:, k], atol=1e-9)
