"""From a Lagrangian, or from equations of motion, to a `System`.

The coordinates are a vector space here: `nq = nv`, `dq/dt = v`, `N = I`.
"""

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.errors import ShapeError
from mbcasadi.shapes import require_shape
from mbcasadi.system.limits import Limits, unlimited
from mbcasadi.system.system import Builder, System

Expression = ca.SX | ca.DM | ArrayLike


def from_lagrangian(
    q: ca.SX,
    v: ca.SX,
    *,
    kinetic: Expression,
    potential: Expression = 0.0,
    force: Expression | None = None,
    B: Expression | None = None,
    phi: Expression | None = None,
    A: Expression | None = None,
    a0: Expression | None = None,
    t: ca.SX | None = None,
    ctrl_range: ArrayLike | None = None,
    name: str = "lagrangian",
) -> System:
    """Return the `System` of `L = T - V`.

    `M = ∂²T/∂v²`, `h = ∂(∂T/∂v)/∂q v - ∂T/∂q + ∂V/∂q`.

    Args:
        q, v: (nv, 1) symbols.
        kinetic, potential: scalar energies T(q, v) and V(q), J.
        force: (nv, 1) generalised force f(q, v) besides the potential's: `passive_force`.
        B, phi, A, a0, t, ctrl_range, name: as in `from_equations`.

    Raises:
        ShapeError: a wrong shape, or a symbol that is none of q, v, t.
    """
    kinetic, potential = (
        _matrix("kinetic", kinetic, (1, 1)),
        _matrix("potential", potential, (1, 1)),
    )
    momentum = ca.gradient(kinetic, v)
    h = ca.jtimes(momentum, q, v) - ca.gradient(kinetic, q) + ca.gradient(potential, q)
    M = ca.jacobian(momentum, v)
    return from_equations(
        q, v, M=M, h=h, force=force, B=B, phi=phi, A=A, a0=a0, t=t, ctrl_range=ctrl_range, name=name
    )


def from_equations(
    q: ca.SX,
    v: ca.SX,
    *,
    M: Expression,
    h: Expression,
    force: Expression | None = None,
    B: Expression | None = None,
    phi: Expression | None = None,
    A: Expression | None = None,
    a0: Expression | None = None,
    t: ca.SX | None = None,
    ctrl_range: ArrayLike | None = None,
    name: str = "equations",
) -> System:
    """Return the `System` of `M a + h = force + B u + Aᵀ lam`.

    Args:
        q, v: (nv, 1) symbols.
        M: (nv, nv) inertia M(q).
        h: (nv, 1) bias force h(q, v).
        force: (nv, 1) passive force f(q, v), zero by default.
        B: (nv, nu) actuation matrix B(q), none by default.
        phi: (m, 1) holonomic constraints phi(q, t) = 0.
        A, a0: (k, nv), (k, 1) Pfaffian rows `A(q, t) v + a0(q, t) = 0`, below those of phi.
            Their residual in `constraint` is zero: they hold for velocities only.
        t: symbol of time, s, where constraints depend on it.
        ctrl_range: (nu, 2) limits of the control.
        name: name of the system.

    Raises:
        ShapeError: a wrong shape, or a symbol that is none of q, v, t.
    """
    nv = int(q.numel())
    require_shape("q", q, (nv, 1), "(nv, 1)")
    require_shape("v", v, (nv, 1), "(nv, 1) as q")
    M, h = _matrix("M", M, (nv, nv)), _matrix("h", h, (nv, 1))
    force = _matrix("force", np.zeros((nv, 1)) if force is None else force, (nv, 1))
    B = _matrix("B", ca.SX(nv, 0) if B is None else B, (nv, None))
    rows = _constraint_rows(q, v, phi, A, a0, t)
    of_q, of_qv = {"q": q}, {"q": q, "v": v}
    time = {} if t is None else {"t": t}
    members: dict[str, tuple[dict[str, ca.SX], str, ca.SX]] = {
        "mass_matrix": (of_q, "M", M),
        "bias_force": (of_qv, "h", h),
        "passive_force": (of_qv, "f_passive", force),
        "actuation": (of_q, "B", B),
        "actuator_bias": (of_qv, "f_0", ca.SX.zeros(nv)),
        "constraint": (of_q | time, "phi", rows["phi"]),
        "constraint_jacobian": (of_q | time, "A", rows["A"]),
        "constraint_bias": (of_qv | time, "c", rows["c"]),
        "loop_jacobian": (of_q | time, "A", rows["A"]),
        "loop_bias": (of_qv | time, "c", rows["c"]),
        "velocity_map": (of_q, "N", ca.SX.eye(nv)),
    }
    if t is not None:
        members["constraint_velocity"] = (of_q | time, "a0", rows["a0"])
    builders = {key: _constant(_function(key, *parts)) for key, parts in members.items()}
    builders.update(_vector_space(nv))
    nu = int(B.shape[1])
    u = ca.SX.sym("u", nu)
    ctrl = unlimited(nu) if ctrl_range is None else np.asarray(ctrl_range, dtype=float)
    require_shape("ctrl_range", ctrl, (nu, 2), "(nu, 2)")
    clipped = ca.fmin(ca.fmax(u, ctrl[:, 0]), ctrl[:, 1])
    builders["actuator_force"] = _constant(
        ca.Function("actuator_force", [q, v, u], [B @ clipped], ["q", "v", "u"], ["f_actuator"])
    )
    limits = Limits(ctrl, unlimited(nu), unlimited(0), unlimited(0))
    nc = int(rows["phi"].numel())
    return System(name, nv, nv, nu, 0, nc, builders, limits)


def _constraint_rows(
    q: ca.SX,
    v: ca.SX,
    phi: Expression | None,
    A: Expression | None,
    a0: Expression | None,
    t: ca.SX | None,
) -> dict[str, ca.SX]:
    """Return phi, A, a0 and c of the holonomic rows above the Pfaffian rows."""
    nv = int(q.numel())
    time = ca.SX.sym("t") if t is None else t
    holonomic = _matrix("phi", ca.SX(0, 1) if phi is None else phi, (None, 1))
    pfaffian = _matrix("A", ca.SX(0, nv) if A is None else A, (None, nv))
    k = int(pfaffian.shape[0])
    drift = _matrix("a0", np.zeros((k, 1)) if a0 is None else a0, (k, 1))
    jacobian = ca.vertcat(ca.jacobian(holonomic, q), pfaffian)
    a0_all = ca.vertcat(ca.jacobian(holonomic, time), drift)
    psi = jacobian @ v + a0_all
    c = ca.jtimes(psi, q, v) + ca.jacobian(psi, time)
    return {
        "phi": ca.vertcat(holonomic, ca.SX.zeros(k)),
        "A": jacobian,
        "a0": a0_all,
        "c": c,
    }


def _vector_space(nv: int) -> dict[str, Builder]:
    q, q1, dv = ca.SX.sym("q", nv), ca.SX.sym("q1", nv), ca.SX.sym("dv", nv)
    return {
        "integrate": _constant(
            ca.Function("integrate", [q, dv], [q + dv], ["q", "dv"], ["q_next"])
        ),
        "difference": _constant(ca.Function("difference", [q, q1], [q1 - q], ["q0", "q1"], ["dv"])),
    }


def _matrix(name: str, value: Expression, shape: tuple[int | None, int | None]) -> ca.SX:
    """Return `value` as SX; None in `shape` leaves that size free."""
    if isinstance(value, (ca.SX, ca.DM)):
        matrix = ca.SX(value)
    else:
        numbers = np.asarray(value, dtype=float)
        matrix = ca.SX(ca.DM(numbers if numbers.ndim else numbers.reshape(1, 1)))
    expected = tuple(
        found if wanted is None else wanted
        for found, wanted in zip(matrix.shape, shape, strict=True)
    )
    require_shape(name, matrix, (expected[0], expected[1]))
    return matrix


def _function(name: str, inputs: dict[str, ca.SX], output: str, value: ca.SX) -> ca.Function:
    function = ca.Function(
        name, list(inputs.values()), [value], list(inputs), [output], {"allow_free": True}
    )
    if function.has_free():
        raise ShapeError(
            f"{name} depends on {', '.join(function.get_free())}; expected an expression of "
            f"the given symbols {', '.join(inputs)} only"
        )
    return function


def _constant(function: ca.Function) -> Builder:
    return lambda: function
