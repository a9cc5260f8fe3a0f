"""Random problems and small mechanisms for the tests of the projector formulations."""

from typing import NamedTuple

import casadi as ca
import numpy as np

CASES = [(4, 6, 4), (6, 6, 3), (3, 5, 0), (0, 4, 0), (5, 4, 2), (2, 7, 2), (3, 3, 3)]
"""Rows, coordinates, rank: independent, redundant, vanishing, none, nothing free."""


def problem(rng, m: int, n: int, r: int) -> dict[str, np.ndarray]:
    X = rng.standard_normal((n, n))
    return {
        "M": X @ X.T + np.eye(n),
        "h": rng.standard_normal(n),
        "f": rng.standard_normal(n),
        "A": rng.standard_normal((m, r)) @ rng.standard_normal((r, n)),
        "c": rng.standard_normal(m),
    }


def semidefinite_problem(rng, m: int, n: int, r: int) -> dict[str, np.ndarray]:
    """A problem whose inertia has rank `n - r`: definite on null(A), singular as a whole."""
    p = problem(rng, m, n, r)
    X = rng.standard_normal((n, max(n - r, 1)))
    return p | {"M": X @ X.T}


def null_basis(A: np.ndarray) -> np.ndarray:
    if not A.size:
        return np.eye(A.shape[1])
    _, s, Vt = np.linalg.svd(A)
    return Vt[np.sum(s > 1e-9) :].T


def projector(A: np.ndarray) -> np.ndarray:
    Z = null_basis(A)
    return Z @ Z.T


def motion_reference(M, h, f, A, c) -> tuple[np.ndarray, np.ndarray]:
    """Return `a = -A⁺c + Z y` with Z from a singular value decomposition, and `f_c`."""
    Z, a_0 = null_basis(A), -np.linalg.pinv(A, 1e-9) @ c
    a = a_0 + Z @ np.linalg.solve(Z.T @ M @ Z, Z.T @ (f - h - M @ a_0))
    return a, M @ a + h - f


def formulation_function(
    name: str, equations, kind: type, m: int, n: int, **options
) -> ca.Function:
    symbols = [kind.sym("M", n, n), *(kind.sym(x, n) for x in "hf"), kind.sym("A", m, n)]
    symbols.append(kind.sym("c", m))
    motion = equations(*symbols, **options)
    return ca.Function(name, symbols, list(motion), ["M", "h", "f", "A", "c"], ["a", "f_c", "lam"])


class Moving(NamedTuple):
    """A random mechanism with rows that repeat: Functions of (q, v), and what they give."""

    q: ca.SX
    v: ca.SX
    M: ca.SX
    C: ca.SX
    A: ca.SX

    def rate(self, matrix: ca.SX) -> ca.SX:
        return ca.reshape(ca.jtimes(ca.vec(matrix), self.q, self.v), *matrix.shape)


def moving(rng, m: int, n: int, r: int) -> Moving:
    """`M = X Xᵀ + I` and `A = K B`, trigonometric in q; C from Christoffel's symbols."""
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    X = 0.4 * _waves(rng, n, q) + ca.DM(rng.standard_normal((n, n)))
    M = X @ X.T + ca.DM.eye(n)
    B = _waves(rng, r, q) + ca.DM(rng.standard_normal((r, n)))
    A = ca.DM(rng.standard_normal((m, r))) @ B
    momentum_q = ca.jacobian(M @ v, q)  # sum_k dM_ik/dq_j v_k
    Mdot = ca.reshape(ca.jtimes(ca.vec(M), q, v), n, n)
    return Moving(q, v, M, (Mdot + momentum_q - momentum_q.T) / 2, A)


def _waves(rng, rows: int, q: ca.SX) -> ca.SX:
    return ca.sin(ca.DM(rng.standard_normal((rows, q.shape[0]))) * ca.repmat(q.T, rows, 1))


def admissible_state(rng, mechanism: Moving) -> tuple[np.ndarray, np.ndarray]:
    q = rng.standard_normal(mechanism.q.shape[0])
    A = ca.Function("A", [mechanism.q], [mechanism.A])(q).full()
    return q, projector(A) @ rng.standard_normal(q.size)


class Quaternion(NamedTuple):
    """A rigid body in four Euler parameters: `problem` and the acceleration by Euler's equation."""

    problem: dict[str, np.ndarray]
    a: np.ndarray


def euler_parameters(rng) -> Quaternion:
    """`T = 2 ṗᵀ Gᵀ J G ṗ` has an inertia of rank 3; the row is `2 pᵀ ṗ = 0`."""
    p, pdot = ca.SX.sym("p", 4), ca.SX.sym("pdot", 4)
    w, x, y, z = ca.vertsplit(p)
    rows = [[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]]
    G = ca.vertcat(*[ca.horzcat(*row) for row in rows])  # omega = 2 G pdot in the body's axes
    J = ca.diag(ca.DM([0.5, 0.8, 1.1]))
    omega = 2 * G @ pdot
    kinetic = (omega.T @ J @ omega) / 2
    momentum = ca.gradient(kinetic, pdot)
    h = ca.jtimes(momentum, p, pdot) - ca.gradient(kinetic, p)
    torque = ca.DM([0.3, -0.2, 0.7])
    omega_dot = ca.solve(J, torque - ca.cross(omega, J @ omega))
    a = (ca.jtimes(G, p, pdot).T @ omega + G.T @ omega_dot) / 2
    fun = ca.Function(
        "euler_parameters",
        [p, pdot],
        [4 * G.T @ J @ G, h, 2 * G.T @ torque, 2 * p.T, 2 * ca.sumsqr(pdot), a],
    )
    p_0 = rng.standard_normal(4)
    p_0 /= np.linalg.norm(p_0)
    v_0 = (np.eye(4) - np.outer(p_0, p_0)) @ rng.standard_normal(4)
    M, h_0, f, A, c, a_0 = (value.full() for value in fun(p_0, v_0))
    numbers = {"M": M, "h": h_0.ravel(), "f": f.ravel(), "A": A, "c": c.ravel()}
    return Quaternion(numbers, a_0.ravel())
