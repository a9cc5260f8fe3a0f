"""Admissible states of a `System`, and its acceleration there by a plain null-space solution."""

import casadi as ca
import numpy as np

import mbcasadi as mb

RANK_TOL = 1e-7  # rows of these mechanisms have singular values of 0.01 and more, or rounding
STRIDES, STRIDE = 6, 0.12  # random steps along the manifold; rad, m
SHORTEST = 1e-12  # projection of a random vector where nothing is free to move


def array(value):
    """Return a CasADi value as a NumPy array, columns as vectors."""
    numbers = np.array(value)
    return numbers.ravel() if numbers.ndim == 2 and numbers.shape[1] == 1 else numbers


def close(system: mb.System, q: np.ndarray, rank: int) -> np.ndarray:
    """Return the pose next to `q` on the manifold: Newton with the `rank` leading directions."""
    for _ in range(8):
        U, s, Vt = np.linalg.svd(np.array(system.constraint_jacobian(q)))
        gap = U[:, :rank].T @ np.array(system.constraint(q)).ravel()
        q = q - Vt[:rank].T @ (gap / s[:rank])
    return q


def null_space(A: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (nv, nv - rank) of null(A)."""
    _, s, Vt = np.linalg.svd(A)
    return Vt[int((s > RANK_TOL).sum()) :].T


def admissible_states(system: mb.System, start, count: int, seed: int = 0):
    """Yield `count` states (q, v) of a random walk on the manifold of phi(q) = 0 from `start`.

    Steps and velocities are projections of random vectors: a basis of the null space has signs, and
    where it has several columns a turn, that differ between BLAS libraries. The strides differ in
    length, so that a walk with one freedom does not come back to where it was.
    """
    rng = np.random.default_rng(seed)
    q = np.array(start, dtype=float)
    for _ in range(count):
        for _ in range(STRIDES):
            N = null_space(np.array(system.constraint_jacobian(q)))
            step = N @ (N.T @ rng.normal(size=system.nv))
            stride = STRIDE * rng.uniform(0.5, 1.5) / max(np.linalg.norm(step), SHORTEST)
            q = close(system, q + stride * step, system.nv - N.shape[1])
        N = null_space(np.array(system.constraint_jacobian(q)))
        yield q, N @ (N.T @ rng.normal(size=system.nv))


def acceleration(system: mb.System, q, v, u, t: float | None = None) -> np.ndarray:
    """Return `a = a_n + N (Nᵀ M N)⁻¹ Nᵀ (f - h - M a_n)` with `a_n = -A⁺ c`."""
    time = () if t is None else (t,)
    inputs = (q, v, *time) if "v" in system.constraint_jacobian.name_in() else (q, *time)
    A = np.array(system.constraint_jacobian(*inputs))
    c = np.array(system.constraint_bias(q, v, *time)).ravel()
    M = np.array(system.mass_matrix(q))
    force = array(system.passive_force(q, v) - system.bias_force(q, v)).ravel()
    force = force + np.array(system.actuation(q)) @ np.asarray(u, dtype=float)
    N = null_space(A)
    across = -np.linalg.pinv(A, rcond=RANK_TOL) @ c
    return across + N @ np.linalg.solve(N.T @ M @ N, N.T @ (force - M @ across))


def embedding(to_mjcf, nv: int) -> ca.Function:
    """Return `(q, v) -> (q_m, E, b)` of a map q_m(q): `v_m = E v` and `a_m = E a + b`."""
    q, v = ca.SX.sym("q", nv), ca.SX.sym("v", nv)
    there = to_mjcf(q)
    bend = ca.jtimes(ca.jtimes(there, q, v), q, v)
    return ca.Function("embedding", [q, v], [there, ca.jacobian(there, q), bend])
