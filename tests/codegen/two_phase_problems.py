"""A controller in two phases, made by hand: a least-distance problem that follows a reference."""

import casadi as ca
import numpy as np

from mbcasadi.description import Controller, LeastDistanceStages, Signal
from mbcasadi.qp.solver import controller_fun

N, M = 3, 4
LARGEST = 1e6  # inputs beyond are bad
TOLERANCE = 1e-7
LIMIT = 4.0
BAD_INPUT, INFEASIBLE, SOLVED = 3, 2, 0


def two_phase_controller(
    name: str = "phased", *, rows_prepared: bool = True, deaf: bool = False
) -> Controller:
    """Return (q, ref, z) → (u, z_next, status, residual) with a preparation from (ref, z).

    min ½ xᵀx,  lower - q_0 <= A(ref) x <= upper - q_0;  u is x turned by ref and moved by q. z is
    the active set. The safe output is the reference, clipped to the limits.

    Args:
        name: of the controller.
        rows_prepared: A is an output of prepare, not of build.
        deaf: the law does not see that `prepared` holds NaN.
    """
    q, ref, z = ca.SX.sym("q", 2), ca.SX.sym("ref", N), ca.SX.sym("z", M)
    valid = ca.sum1(ca.fabs(ref)) <= LARGEST
    r = ca.if_else(valid, ref, ca.DM.zeros(N))
    A = ca.vertcat(
        ca.horzcat(1, ca.sin(r[0]), 0),
        ca.horzcat(ca.cos(r[1]), -1, r[2] / (1 + r[2] ** 2)),
        ca.horzcat(0, ca.exp(-(r[0] ** 2)), 2),
        ca.horzcat(ca.tanh(r[1]), 1, -1),
    )
    turned, active = ca.tanh(A[:N, :]), (z > 0.5) - (z < -0.5)
    column = ca.vertcat(ca.vec(turned), active, valid)
    outputs = [column, A] if rows_prepared else [ca.vertcat(ca.vec(ca.densify(A)), column)]
    labels = ["prepared", "A_qp"][: len(outputs)]
    prepare = ca.Function("prepare", [ref, z], outputs, ["ref", "z"], labels)

    prepared = ca.SX.sym("prepared", prepare.numel_out("prepared"))
    rows, first = ca.reshape(prepared[: M * N], M, N), 0 if rows_prepared else M * N
    turn, warm = ca.reshape(prepared[first : first + N**2], N, N), prepared[first + N**2 : -1]
    good = ca.logic_and(ca.sum1(ca.fabs(q)) <= LARGEST, ca.logic_or(prepared[-1] > 0.5, deaf))
    lower = ca.vertcat(1, -2, -ca.inf, q[1]) - ca.if_else(good, q[0], 0)
    upper = ca.vertcat(ca.inf, -1, 1.5, ca.inf) - ca.if_else(good, q[0], 0)
    names = ["q", "ref", "z", "prepared"]
    posed = {"A_qp": rows, "lba": lower, "uba": upper, "active0": warm, "carry": good}
    if rows_prepared:
        del posed["A_qp"]
    given = [q, ref, z, prepared]
    build = ca.Function("build", given, list(posed.values()), names, list(posed))

    carry, x = ca.SX.sym("carry"), ca.SX.sym("x", N)
    lam, final, flag = ca.SX.sym("lam_a", M), ca.SX.sym("active", M), ca.SX.sym("flag")
    status = ca.if_else(carry > 0.5, ca.if_else(flag > 0.5, SOLVED, INFEASIBLE), BAD_INPUT)
    status = ca.if_else(deaf, ca.if_else(flag > 0.5, SOLVED, INFEASIBLE), status)
    solved = status == SOLVED
    safe = ca.if_else(ca.fabs(ref) <= LARGEST, ref, 0)
    u = ca.if_else(solved, turn @ x + q[0], safe)
    u = ca.fmin(ca.fmax(u, -LIMIT), LIMIT)
    residual = ca.if_else(carry > 0.5, ca.norm_2(x), ca.inf)
    outputs = ["u", "z_next", "status", "residual"]
    finish = ca.Function(
        "finish",
        [*given, carry, x, lam, final, flag],
        [u, ca.if_else(solved, final, z), status, residual],
        [*names, "carry", "x", "lam_a", "active", "flag"],
        outputs,
    )
    stages = LeastDistanceStages(build, finish, prepare)
    units = {"q": ("m", "rad"), "ref": ("N",) * N, "u": ("N",) * N}
    sizes = {"q": 2, "ref": N, "z": M, "u": N, "z_next": M, "status": 1, "residual": 1}
    signals = {
        key: Signal(key, tuple(f"{key}{i}" for i in range(size)), units.get(key, ("",) * size))
        for key, size in sizes.items()
    }
    return Controller(
        name=name, function=controller_fun(name, stages, "daqp"),
        inputs=tuple(signals[key] for key in ("q", "ref", "z")),
        outputs=tuple(signals[key] for key in outputs), u_min=np.full(N, -LIMIT),
        u_max=np.full(N, LIMIT), z0=np.zeros(M), period=0.01, stages=stages,
    )  # fmt: skip
