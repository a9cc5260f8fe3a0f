"""Small laws and random least-distance problems for the tests of code generation."""

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from mbcasadi.description import Controller, LeastDistanceStages, Signal
from mbcasadi.description.qp_stages import ZERO_BOUND
from mbcasadi.qp.solver import controller_fun

Array = NDArray[np.float64]


def least_distance_controller(n: int, m: int, name: str = "qp") -> Controller:
    """Return a controller whose inputs are the least-distance problem itself.

    (A, lower, upper, z) → (u, z_next, status, residual): u is x, z_next the active set, status 0
    where the solver claims an optimum, 2 where it proves that there is none, 4 elsewhere; residual
    the multipliers.
    """

    shapes = (("A", m, n), ("lower", m, 1), ("upper", m, 1), ("z", m, 1))
    names = ["A", "lower", "upper", "z"]
    A, lower, upper, z = (ca.SX.sym(label, rows, cols) for label, rows, cols in shapes)
    build = ca.Function(
        "build",
        [A, lower, upper, z],
        [A, lower, upper, z, ca.SX(0, 1)],
        names,
        ["A_qp", "lba", "uba", "active0", "carry"],
    )
    x, lam_a, active, flag = ca.SX.sym("x", n), ca.SX.sym("l", m), ca.SX.sym("a", m), ca.SX.sym("f")
    outputs = ["u", "z_next", "status", "residual"]
    finish = ca.Function(
        "finish",
        [A, lower, upper, z, ca.SX.sym("c", 0, 1), x, lam_a, active, flag],
        [x, active, ca.if_else(flag > 0.5, 0, ca.if_else(flag < -0.5, 2, 4)), lam_a],
        [*names, "carry", "x", "lam_a", "active", "flag"],
        outputs,
    )
    stages = LeastDistanceStages(build, finish)
    return Controller(
        name=name, function=controller_fun("law", stages, "daqp"),
        inputs=tuple(Signal(label, (), ()) for label in names),
        outputs=tuple(Signal(label, (), ()) for label in outputs), u_min=np.full(n, -np.inf),
        u_max=np.full(n, np.inf), z0=np.zeros(m), period=1e-3, stages=stages,
        source="a least-distance problem",
    )  # fmt: skip


def reference(A: Array, lba: Array, uba: Array) -> Array | None:
    """Solve the least-distance problem by non-negative least squares; None where infeasible.

    `min ½xᵀx, G x >= h` has the solution `x = -r[:n] / r[n]`, where `r = E w - e` is the
    residual of `min ‖E w - e‖, w >= 0`, with `E = [Gᵀ; hᵀ]` and `e` the last unit vector; `r`
    vanishes where the problem is infeasible (Lawson and Hanson, chapter 23).
    """
    n = A.shape[1]
    norms = np.linalg.norm(A, axis=1)
    if np.any((norms == 0) & ((lba > ZERO_BOUND) | (uba < -ZERO_BOUND))):
        return None
    scale = np.where(norms > 0, norms, 1.0)
    lower, upper = np.abs(lba) < 1e30, np.abs(uba) < 1e30
    lower, upper = lower & (norms > 0), upper & (norms > 0)
    G = np.vstack([A[lower] / scale[lower, None], -A[upper] / scale[upper, None]])
    h = np.concatenate([lba[lower] / scale[lower], -uba[upper] / scale[upper]])
    size = max(1.0, float(np.max(h, initial=0.0)))
    E = np.vstack([G.T, h[None, :] / size])
    e = np.zeros(n + 1)
    e[n] = 1.0
    w, distance = nnls(E, e, maxiter=100 * E.shape[1])
    if distance < 1e-9:
        return None
    r = E @ w - e
    return -size * r[:n] / r[n]


def planar_arm() -> ca.Function:
    """Return a law in SX with a matrix output: (q, v) → (M, tau)."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    c = ca.cos(q[1])
    M = ca.vertcat(ca.horzcat(3 + 2 * c, 1 + c), ca.horzcat(1 + c, 1))
    tau = M @ ca.tanh(v) + ca.vertcat(ca.sin(q[0]), ca.sqrt(1 + q[1] ** 2))
    return ca.Function("arm", [q, v], [M, tau], ["q", "v"], ["M", "tau"])


def nested_law() -> ca.Function:
    """Return a law in MX that calls an SX Function twice, solves a system and reads a matrix."""
    inner = planar_arm()
    q, v, weight = ca.MX.sym("q", 2), ca.MX.sym("v", 2), ca.MX.sym("weight", ca.Sparsity.lower(2))
    M, tau = inner(q, v)
    M2, _ = inner(v, q)
    a = ca.solve(M + M2.T @ M2 + ca.DM.eye(2), tau - weight @ v)
    pattern = ca.MX(ca.Sparsity.diag(2), a)
    return ca.Function("nested", [q, v, weight], [a, pattern], ["q", "v", "weight"], ["a", "D"])


def saturated_controller(name: str = "pd") -> Controller:
    """Return a plain controller with a state: a PD law, saturated, that counts its ticks."""
    q, v, z = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("z", 1)
    u = ca.fmax(-5, ca.fmin(5, -20 * q - 3 * v))
    names, outputs = ["q", "v", "z"], ["u", "z_next", "status"]
    law = ca.Function("law", [q, v, z], [u, z + 1, 0 * z], names, outputs)
    return Controller(
        name=name,
        function=law,
        inputs=(
            Signal("q", ("hip", "knee"), ("rad", "rad")),
            Signal("v", ("hip", "knee"), ("rad/s", "rad/s")),
            Signal("z", ("ticks",), ("",)),
        ),
        outputs=(
            Signal("u", ("motor/1", "motor.1"), ("N m", "N m")),
            Signal("z_next", ("ticks",), ("",)),
            Signal("status", ("status",), ("",)),
        ),
        u_min=np.full(2, -5.0),
        u_max=np.full(2, 5.0),
        z0=np.array([3.0]),
        period=0.002,
        source="arm.xml",
    )
