"""What the sensors of a filter do not observe, at its start and at rest, in words."""

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.regulators.controllability import REACH_TOL, split_reachable
from mbcasadi.control.regulators.modes import ALIKE, MOVES, STEADY, Mode
from mbcasadi.control.regulators.tangent import TANGENT_RANK_TOL
from mbcasadi.estimation.manifold_tick import ManifoldTick

Array = NDArray[np.float64]


def unobservable_modes(tick: ManifoldTick, q0: Array, names: Sequence[str]) -> tuple[str, ...]:
    """Return the modes of errors that leave no trace in the sensors, at rest at a pose.

    In coordinates of the tangent space, each error in the size of its first deviation.

    Args:
        tick: of the filter.
        q0: (nq,) pose.
        names: (n,) of the errors.
    """
    F, H, Z = _linear(tick, q0)
    A, C = Z.T @ (F - np.eye(len(F))) @ Z / tick.period, H @ Z
    length = np.linalg.norm(C, axis=1)
    C = C[length > 0] / length[length > 0, None]
    unseen = split_reachable(A.T, C.T, REACH_TOL)[1]
    values, vectors = np.linalg.eig(unseen.T @ A @ unseen)
    steady = STEADY * np.linalg.norm(A, 2)
    words = list[str]()
    for value, y in zip(values, vectors.T, strict=True):
        x = Z @ unseen @ y
        s = complex(np.log(1 + value * tick.period) / tick.period)
        s = complex(0 if abs(s.real) < steady else s.real, 0 if abs(s.imag) < steady else s.imag)
        if s.imag >= 0:
            words.append(Mode(s, s.real < 0, x, _moving(tick, x, names)).in_words)
    return tuple(dict.fromkeys(words))


def _linear(tick: ManifoldTick, q0: Array) -> tuple[Array, Array, Array]:
    """Return F (n, n), H (ny, n) and a basis Z (n, k) of the tangent space, errors in their size.

    Args:
        tick: of the filter.
        q0: (nq,) pose, at rest.
    """
    process, n = tick.process, tick.layout.n
    start = tick.memory.split(ca.SX(tick.memory_at(q0)))
    at = {key: ca.DM(ca.evalf(x)) for key, x in start.items()}
    q = ca.vertcat(at["q"], ca.DM(tick.system.parameters.values))
    v, x, u = at["v"], at["x"], at["drive"]
    force = process.drive(q=q, v=v, x=x, u=u)
    motion = process.motion(q=q, v=v, f=force["f"]) | {k: force[k] for k in ("f_q", "f_v")}
    moved = process.errors(q=q, v=v, L=ca.DM.eye(n), dt=tick.period, **motion)
    H = np.array(tick.reading.function(q=q, v=v, x=x, u=u)["H"])
    D = tick.deviations
    root = np.array(at["L"]).reshape((n, n), order="F") / D[:, None]
    U, s, _ = np.linalg.svd(root)
    Z = U[:, s > TANGENT_RANK_TOL * s.max()]
    return np.array(moved["W"])[:, :n] * D / D[:, None], H * D, Z


def _moving(tick: ManifoldTick, x: Array, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the errors that change most in a mode x (n,)."""
    nv, share = tick.layout.nv, np.abs(x)
    still = np.concatenate([share[:nv], 0 * share[:nv], share[2 * nv :]])
    share = still if still.max() > STEADY * share.max() else share
    order = np.argsort(-share.round(ALIKE), kind="stable")
    return tuple(names[i] for i in order if share[i] >= MOVES * share.max())
