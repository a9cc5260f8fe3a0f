"""Random states of a mechanism by the thousand, on its manifold or off it.

Everything is one array with a column for each state, as `ca.Function.map` takes it.
"""

import functools

import casadi as ca
import numpy as np

from support.constrained_mechanisms import Mechanism

Array = np.ndarray
States = dict[str, Array]

ON_MANIFOLD = 1e-12  # m, rad or their rates
SINGULAR = 1e-8  # singular values of A below it are zero
NEWTON_STEPS = 25
TIME_SPAN = 2.0  # s
DRIFT = 0.01  # m or rad


def call(function: ca.Function, values: States) -> States:
    """Return the outputs of `function` at every column, an array (count, rows, columns) each."""
    names = [function.name_in(i) for i in range(function.n_in())]
    count = values[names[0]].shape[1]
    outputs = function.map(count)(**{name: values[name] for name in names})
    return {
        name: np.moveaxis(value.full().reshape(*_split(function, name, count)), 0, 1)
        for name, value in outputs.items()
    }


def _split(function: ca.Function, name: str, count: int) -> tuple[int, int, int]:
    rows, columns = function.size_out(name)
    return rows, count, columns


def column(values: States, key: str) -> Array:
    """Return an output of `call` that is a vector as (count, rows)."""
    return values[key][:, :, 0]


def times(matrices: Array, vectors: Array) -> Array:
    """Return the products of (count, m, n) and (count, n)."""
    return np.einsum("kmn,kn->km", matrices, vectors)


def assert_close(found: Array, expected: Array, tol: float = 1e-9) -> None:
    """Assert that numbers agree relative to the largest; conditions of M are below 1e4."""
    np.testing.assert_allclose(found, expected, atol=tol * max(1.0, np.abs(expected).max()))


def pinv(matrices: Array) -> Array:
    """Return the pseudo-inverses by singular values, those below `SINGULAR` counted as zero."""
    if 0 in matrices.shape:
        return np.swapaxes(matrices, 1, 2)
    U, s, Vt = np.linalg.svd(matrices, full_matrices=False)
    inverse = np.where(s > SINGULAR, 1 / np.maximum(s, SINGULAR), 0)
    return np.einsum("kji,kj,klj->kil", Vt, inverse, U)


@functools.cache
def admissible_states(mechanism: Mechanism, count: int = 1000, seed: int = 0) -> States:
    """Return q, v, f, [t], [mask] of states that obey all constraints; not to be changed."""
    rng = np.random.default_rng(seed)
    system = mechanism.system
    parts: list[States] = []
    while sum(part["q"].shape[1] for part in parts) < count:
        at = configurations(mechanism, rng, count)
        at["v"] = velocities(mechanism, at, rng)
        good = obeys(mechanism, at)
        parts.append({key: values[:, good] for key, values in at.items()})
        assert len(parts) < 50, f"{mechanism.name}: too few states are admissible"
    states = {key: np.hstack([part[key] for part in parts])[:, :count] for key in parts[0]}
    states["f"] = 5 * rng.standard_normal((system.nv, count))
    if system.mask is not None:
        states["mask"] = rng.integers(0, 2, (system.nc, count)).astype(float)
    return states


def drifted_states(mechanism: Mechanism, count: int = 1000, seed: int = 1) -> States:
    """Return states near the manifold that obey no constraint: `phi ≠ 0`, `psi ≠ 0`."""
    rng = np.random.default_rng(seed)
    states = admissible_states(mechanism, count, seed)
    nv = mechanism.system.nv
    step = DRIFT * rng.standard_normal((nv, count))
    moved = call(mechanism.system.integrate, {"q": states["q"], "dv": step})
    return states | {"q": column(moved, "q_next").T, "v": rng.standard_normal((nv, count))}


def configurations(mechanism: Mechanism, rng: np.random.Generator, count: int) -> States:
    """Return q (and t), moved onto the manifold by Newton steps of minimum norm."""
    system = mechanism.system
    time = {"t": rng.uniform(0, TIME_SPAN, (1, count))} if system.timed else {}
    if mechanism.poses is not None:
        return {"q": mechanism.poses(rng, count)} | time
    q = np.tile(np.reshape(mechanism.centre, (-1, 1)), count)
    dv = mechanism.spread * rng.standard_normal((system.nv, count))
    for _ in range(NEWTON_STEPS):
        q = column(call(system.integrate, {"q": q, "dv": dv}), "q_next").T
        at = {"q": q, "v": np.zeros((system.nv, count))} | time
        phi = column(call(system.constraint, at), "phi")
        if np.abs(phi).max(initial=0) < ON_MANIFOLD / 10:
            break
        dv = -times(pinv(call(system.constraint_jacobian, at)["A"]), phi).T
    return {"q": q} | time


def velocities(mechanism: Mechanism, at: States, rng: np.random.Generator) -> Array:
    """Return v with `psi(q, v, t) = 0`, for most rows `A v + a0 = 0`, by Newton steps."""
    system = mechanism.system
    v = rng.standard_normal((system.nv, at["q"].shape[1]))
    for _ in range(NEWTON_STEPS):
        now = at | {"v": v}
        psi = column(call(system.constraint_rate, now), "psi")
        if np.abs(psi).max(initial=0) < ON_MANIFOLD / 10:
            break
        v = v - times(pinv(call(system.constraint_jacobian, now)["A"]), psi).T
    return v


def obeys(mechanism: Mechanism, at: States) -> Array:
    """Return which states obey the constraints with the rank that the mechanism has."""
    system = mechanism.system
    A = call(system.constraint_jacobian, at)["A"]
    phi = column(call(system.constraint, at), "phi")
    psi = column(call(system.constraint_rate, at), "psi")
    off = np.abs(np.hstack([phi, psi])).max(axis=1, initial=0)
    values = np.linalg.svd(A, compute_uv=False) if A.size else np.zeros((len(A), 0))
    return (off < ON_MANIFOLD) & (np.sum(values > SINGULAR, axis=1) == mechanism.rank)
