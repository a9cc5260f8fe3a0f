"""Random constrained problems, their solution by singular values, and small mechanisms."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np

CASES = [(4, 6, 4), (6, 6, 3), (3, 5, 0), (0, 4, 0), (5, 4, 2), (2, 7, 2), (1, 1, 1), (3, 3, 3)]
"""Rows, columns and rank of A: full, redundant, vanishing, absent, nothing free."""

SINGULAR_TOL = 1e-9  # of the references: singular values below it are zero


def problem(rng: np.random.Generator, m: int, n: int, r: int) -> dict[str, np.ndarray]:
    """Return M, h, f, A of rank r and c; redundant rows contradict each other."""
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


def with_zero_and_repeated_rows(p: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the problem with a row of zeros in front and the last row once more behind."""
    rows = [np.zeros((1, p["A"].shape[1])), p["A"], p["A"][-1:]]
    biases = [[0.0], p["c"], p["c"][-1:]]
    return p | {"A": np.vstack(rows), "c": np.concatenate(biases)}


def null_columns(A: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of null(A) from a singular value decomposition."""
    if not A.size:
        return np.eye(A.shape[1])
    _, s, Vt = np.linalg.svd(A)
    return Vt[np.sum(s > SINGULAR_TOL) :].T


def pinv(A: np.ndarray) -> np.ndarray:
    return np.linalg.pinv(A, SINGULAR_TOL)


def projector(A: np.ndarray) -> np.ndarray:
    Z = null_columns(A)
    return Z @ Z.T


def reference_motion(M, h, f, A, c) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (a, f_c, lam): `a = -A⁺c + Z y`, then what the equations of motion lack."""
    Z, a_0 = null_columns(A), -pinv(A) @ c
    a = a_0 + Z @ np.linalg.solve(Z.T @ M @ Z, Z.T @ (f - h - M @ a_0))
    f_c = M @ a + h - f
    return a, f_c, pinv(A).T @ f_c


def as_function(
    build: Callable[..., Sequence[ca.SX] | Sequence[ca.MX]],
    kind: type,
    shapes: dict[str, tuple[int, ...]],
    outputs: Sequence[str] = ("a", "f_c", "lam"),
    name: str = "law",
) -> ca.Function:
    """Return `build(*symbols)` as a Function with these inputs and outputs."""
    symbols = [kind.sym(key, *shape) for key, shape in shapes.items()]
    return ca.Function(name, symbols, list(build(*symbols)), list(shapes), list(outputs))


def motion_shapes(m: int, n: int) -> dict[str, tuple[int, ...]]:
    return {"M": (n, n), "h": (n,), "f": (n,), "A": (m, n), "c": (m,)}


def numbers(function: ca.Function, **values: np.ndarray) -> dict[str, np.ndarray]:
    """Call a Function; columns come back as vectors."""
    found = {key: value.full() for key, value in function(**values).items()}
    return {key: x.ravel() if x.shape[1] == 1 else x for key, x in found.items()}


def assert_derivatives_hold(function: ca.Function, values: dict[str, np.ndarray], name: str):
    """Compare the Jacobian of all outputs along one input with central differences."""
    inputs = [ca.MX.sym(key, *function.size_in(key)) for key in values]
    outputs = ca.vertcat(*map(ca.vec, function.call(inputs)))
    of = inputs[list(values).index(name)]
    f = ca.Function("f", inputs, [outputs, ca.jacobian(outputs, of)], list(values), ["y", "J"])
    step = 1e-6  # error step² + 1e-16 / step
    direction = np.random.default_rng(99).standard_normal(values[name].shape)
    ahead, behind = (
        f(**(values | {name: values[name] + s * direction}))["y"].full().ravel()
        for s in (step, -step)
    )
    slope = (ahead - behind) / (2 * step)
    found = f(**values)["J"].full() @ direction.ravel(order="F")
    assert np.abs(slope).max() > 1e-3
    np.testing.assert_allclose(found, slope, atol=1e-7 * (1 + np.abs(slope).max()))


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
