"""Terms in quasi-velocities: skew Coriolis matrix, decoupled equations, bases and their rates."""

from functools import partial

import casadi as ca
import numpy as np
import pytest
from formulation_problems import as_function, motion_shapes, null_columns, numbers, problem
from support.compiled import compiled

from mbcasadi.errors import UnknownNameError
from mbcasadi.formulation.quasi_velocity import quasi_velocity
from mbcasadi.formulation.quasi_velocity_equations import (
    QuasiTerms,
    coriolis_term,
    free_basis_near,
    quasi_terms,
    root_rate,
)
from mbcasadi.formulation.root import ROOTS, constraint_basis, root_factor

ROUNDING = 1e-11  # matrices of condition below 1e4
STEP = 1e-5
DIFFERENCE = 1e-7  # step² times third derivatives
SHAPES = [(4, 6, 4), (5, 6, 3), (3, 5, 0), (0, 4, 0), (2, 1, 1), (4, 3, 2)]


class Moving:
    """Matrices that move with t: `M`, `A` of constant rank, and a C with `Ṁ = C + Cᵀ`."""

    def __init__(self, seed, m, n, r):
        rng = np.random.default_rng(seed)
        self.m, self.n = m, n
        self.X, self.X1 = rng.standard_normal((2, n, n))
        self.F, self.F1 = rng.standard_normal((2, m, r))
        self.G, self.G1 = rng.standard_normal((2, r, n))
        turn = rng.standard_normal((n, n))
        Mdot = self.X1 @ self.X.T + self.X @ self.X1.T
        self.C = Mdot / 2 + turn - turn.T
        self.Mdot = Mdot
        self.Adot = self.F1 @ self.G + self.F @ self.G1
        self.f = rng.standard_normal(n)
        Z = null_columns(self.A(0.0))
        self.v = Z @ rng.standard_normal(Z.shape[1])

    def M(self, t):
        X = self.X + t * self.X1
        return X @ X.T + np.eye(self.n)

    def A(self, t):
        return (self.F + t * self.F1) @ (self.G + t * self.G1)

    def values(self):
        named = {"M": self.M(0.0), "C": self.C, "v": self.v, "f": self.f}
        return named | {"A": self.A(0.0), "Adot": self.Adot}

    def terms(self, kind, root):
        return {
            key: np.array(value)
            for key, value in self.function(kind, root)(**self.values()).items()
        }

    def function(self, kind, root):
        m, n = self.m, self.n
        shapes = {"M": (n, n), "C": (n, n), "v": (n,), "f": (n,), "A": (m, n), "Adot": (m, n)}

        def build(*symbols):
            found, lam = quasi_terms(*symbols, root=root)
            return [*found, lam]

        return as_function(build, kind, shapes, [*QuasiTerms._fields, "lam"])


@pytest.fixture(params=SHAPES, ids=str)
def moving(request):
    return Moving(61, *request.param)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_rate_of_the_root_is_its_difference(root, kind):
    moving = Moving(62, 1, 5, 1)
    M, Mdot = kind.sym("M", 5, 5), kind.sym("Mdot", 5, 5)
    f = ca.Function("f", [M, Mdot], [root_factor(M, root).W, root_rate(M, Mdot, root)])
    W, Wdot = (x.full() for x in f(moving.M(0.0), moving.Mdot))
    ahead, behind = (f(moving.M(t), moving.Mdot)[0].full() for t in (STEP, -STEP))
    np.testing.assert_allclose(Wdot, (ahead - behind) / (2 * STEP), atol=DIFFERENCE)
    np.testing.assert_allclose(Wdot @ W.T + W @ Wdot.T, moving.Mdot, atol=ROUNDING)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_coriolis_term_is_its_definition_and_skew(root, kind, moving):
    """`Γ = (W⁻¹ C - Ẇᵀ) W⁻ᵀ = -Γᵀ`, so it takes no power: `v̄ᵀ Γ v̄ = 0`."""
    n = moving.n
    M, C = kind.sym("M", n, n), kind.sym("C", n, n)
    f = ca.Function(
        "f",
        [M, C],
        [coriolis_term(M, C, root), root_factor(M, root).W, root_rate(M, C + C.T, root)],
    )
    Gamma, W, Wdot = (x.full() for x in f(moving.M(0.0), moving.C))
    inverse = np.linalg.inv(W)
    np.testing.assert_allclose(
        Gamma, (inverse @ moving.C - Wdot.T) @ inverse.T, atol=ROUNDING * np.abs(moving.C).max()
    )
    np.testing.assert_allclose(Gamma + Gamma.T, 0.0, atol=ROUNDING * np.abs(Gamma).max())
    assert n == 1 or np.abs(Gamma).max() > 0.1


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.every(3)
def test_bases_split_the_quasi_velocities(root, moving):
    """`V1 V1ᵀ + V2 V2ᵀ = I`, `A_W V2 = 0`, columns orthonormal or zero."""
    for kind in (ca.SX, ca.MX):
        t = moving.terms(kind, root)
        both = t["V1"] @ t["V1"].T + t["V2"] @ t["V2"].T
        np.testing.assert_allclose(both, np.eye(moving.n), atol=ROUNDING)
        np.testing.assert_allclose(t["A_W"] @ t["V2"], 0.0, atol=ROUNDING)
        for V in (t["V1"], t["V2"]):
            used = np.abs(V).max(axis=0) > 0
            np.testing.assert_allclose(V.T @ V, np.diag(used.astype(float)), atol=ROUNDING)
        np.testing.assert_allclose(t["A_W"] @ t["W"].T, moving.A(0.0), atol=ROUNDING)


@pytest.mark.parametrize("root", ROOTS)
def test_kinetic_energy_and_power_are_those_of_the_velocities(root, moving):
    t = moving.terms(ca.SX, root)
    energy = moving.v @ moving.M(0.0) @ moving.v
    for key in ("v_bar", "v_r"):
        assert float(np.sum(t[key] ** 2)) == pytest.approx(energy, rel=1e-10, abs=1e-20)
    power = (t["u_r"].T @ t["v_r"]).item()
    assert power == pytest.approx(moving.f @ moving.v, rel=1e-9, abs=1e-12)
    norm = moving.f @ np.linalg.solve(moving.M(0.0), moving.f)  # [A10, end of 4.2 corrected]
    split = float(np.sum(t["u_r"] ** 2) + np.sum(t["u_o"] ** 2))
    assert split == pytest.approx(norm, rel=1e-10)
    np.testing.assert_allclose(t["v_o"], 0.0, atol=ROUNDING)
    np.testing.assert_allclose(t["Gamma_r"] + t["Gamma_r"].T, 0.0, atol=1e-10)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.every(3)
def test_the_two_equations_give_the_motion_and_the_multipliers(root, moving):
    """Eq. 31 with signs of lam turned, against the formulation."""
    m, n = moving.m, moving.n
    t = moving.terms(ca.SX, root)
    h, c = moving.C @ moving.v, moving.Adot @ moving.v
    symbols = {"M": (n, n), "h": (n,), "f": (n,), "A": (m, n), "c": (m,)}
    solve = as_function(lambda *p: quasi_velocity(*p, root=root), ca.SX, symbols)
    expected = numbers(solve, M=moving.M(0.0), h=h, f=moving.f, A=moving.A(0.0), c=c)
    W, V1, V2 = t["W"], t["V1"], t["V2"]
    Wdot = root_rate(ca.DM(moving.M(0.0)), ca.DM(moving.Mdot), root).full()
    rate = W.T @ expected["a"].reshape(-1, 1) + Wdot.T @ moving.v.reshape(-1, 1)  # of v_bar
    size = 1.0 + np.abs(rate).max() + np.abs(t["Gamma"]).max()
    # along: V2ᵀ v̄̇ is the rate of v_r in the gauge V2ᵀ V̇2 = 0, plus V2ᵀ V̇1 v_o = 0
    np.testing.assert_allclose(
        V2.T @ rate + t["Gamma_r"] @ t["v_r"], t["u_r"], atol=1e-9 * size, err_msg="motion"
    )
    pressed = t["A_W"].T @ expected["lam"].reshape(-1, 1)
    across_it = V1 @ (t["Gamma_o"] @ t["v_r"] - t["u_o"])
    np.testing.assert_allclose(pressed, across_it, atol=1e-9 * size, err_msg="force")
    scale = 1.0 + np.abs(expected["lam"]).max(initial=0.0)
    np.testing.assert_allclose(t["lam"].ravel(), expected["lam"].ravel(), atol=1e-9 * scale)


@pytest.mark.parametrize("root", ROOTS)
def test_coriolis_term_of_the_constraint_holds_the_rate_of_the_basis(root):
    """`Γ_o = V1ᵀ Γ V2 + V1ᵀ V̇2`, with V̇2 by differences of the basis next to the present one."""
    for m, n, r in ((4, 6, 4), (5, 6, 3)):
        moving = Moving(63, m, n, r)
        t = moving.terms(ca.SX, root)

        def basis(time, moving=moving, reference=t["V2"]):
            rows = constraint_basis(root_factor(ca.DM(moving.M(time)), root), ca.DM(moving.A(time)))
            return free_basis_near(rows.V1, ca.DM(reference)).full()

        np.testing.assert_allclose(basis(0.0), t["V2"], atol=ROUNDING)
        V2dot = (basis(STEP) - basis(-STEP)) / (2 * STEP)
        V1 = t["V1"]
        expected = V1.T @ (t["Gamma"] @ t["V2"] + V2dot)
        assert np.abs(V1.T @ V2dot).max() > 0.1
        np.testing.assert_allclose(t["Gamma_o"], expected, atol=1e-6)
        # turning within the free directions is skew
        within = t["V2"].T @ V2dot
        np.testing.assert_allclose(within + within.T, 0.0, atol=1e-6)


def test_units_change_bases_but_neither_the_coriolis_term_nor_any_length():
    moving = Moving(64, 5, 6, 3)
    S = np.diag(10.0 ** np.array([3, 0, -2, 1, 0, 3]))
    D = np.diag(10.0 ** np.array([2, -1, 0, 3, 0]))
    here = moving.values()
    there = {
        "M": S @ here["M"] @ S,
        "C": S @ here["C"] @ S,
        "v": np.linalg.solve(S, here["v"]),
        "f": S @ here["f"],
        "A": D @ here["A"] @ S,
        "Adot": D @ here["Adot"] @ S,
    }
    f = moving.function(ca.SX, "cholesky")
    one, two = ({k: np.array(x) for k, x in f(**values).items()} for values in (here, there))
    for key in ("v_bar", "u_bar", "Gamma"):
        np.testing.assert_allclose(two[key], one[key], atol=1e-8 * np.abs(one[key]).max())
    for key in ("v_r", "u_r", "u_o", "Gamma_r", "Gamma_o"):
        assert np.linalg.norm(two[key]) == pytest.approx(np.linalg.norm(one[key]), rel=1e-8)
    for key in ("V1", "V2"):
        projectors = [t[key] @ t[key].T for t in (one, two)]
        np.testing.assert_allclose(*projectors, atol=1e-8)


def test_generated_c_of_the_terms_equals_the_function(tmp_path):
    moving = Moving(65, 3, 4, 2)
    f = moving.function(ca.SX, "symmetric")
    external = compiled(f, tmp_path)
    expected, found = f(**moving.values()), external(**moving.values())
    for key in expected:
        size = max(1.0, float(ca.norm_inf(ca.vec(expected[key]))))
        np.testing.assert_allclose(found[key], expected[key], atol=1e-12 * size, err_msg=key)


@pytest.mark.parametrize("root", ROOTS)
def test_a_heavy_body_does_not_make_a_row_look_like_a_repeated_one(root):
    """Its row of A_W is 1e-12 long, below every tolerance; that of A is 1."""
    heavy = 1e24 if root == "cholesky" else 1e12
    p = {"M": np.diag([1.0, heavy]), "h": np.zeros(2), "f": np.ones(2), "A": np.eye(2)}
    motion = as_function(partial(quasi_velocity, root=root), ca.SX, motion_shapes(2, 2))
    found = numbers(motion, **p, c=np.array([2.0, 3.0]))
    np.testing.assert_allclose(found["a"], [-2.0, -3.0], rtol=1e-12)


def test_quasi_velocities_of_the_triangular_root_are_the_same_in_all_units():
    rng = np.random.default_rng(55)
    M, v = problem(rng, 1, 6, 1)["M"], rng.standard_normal(6)
    S = np.diag(10.0 ** np.array([3, 0, -2, 1, 0, 3]))
    for root in ROOTS:
        W = root_factor(ca.DM(M), root).W.full()
        W_other = root_factor(ca.DM(S @ M @ S), root).W.full()
        v_bar, v_bar_other = W.T @ v, W_other.T @ np.linalg.solve(S, v)
        np.testing.assert_allclose(W @ W.T, M, atol=1e-12 * np.abs(M).max())
        assert v_bar @ v_bar == pytest.approx(v @ M @ v, rel=1e-12)
        # the kinetic energy has no units to choose, and the symmetric root has others
        assert v_bar_other @ v_bar_other == pytest.approx(v @ M @ v, rel=1e-6)
        same = np.allclose(v_bar, v_bar_other, rtol=1e-9, atol=1e-9)
        assert same == (root == "cholesky")


def test_an_unknown_root_is_refused_with_the_names():
    with pytest.raises(UnknownNameError, match="unknown root 'lu'; valid: 'cholesky', 'symmetric'"):
        as_function(partial(quasi_velocity, root="lu"), ca.SX, motion_shapes(1, 2))
