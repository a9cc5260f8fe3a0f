"""From a Lagrangian, or from equations of motion, to a `System`.

The coordinates are a vector space here: `nq = nv`, `dq/dt = v`, `N = I`.
"""

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.constraints import user_rows
from mbcasadi.errors import ShapeError
from mbcasadi.shapes import real_array, require_shape, unique
from mbcasadi.system.equation_checks import check_equations
from mbcasadi.system.functions import (
    Builder,
    Expression,
    constant,
    function,
    matrix,
    user_row_expressions,
)
from mbcasadi.system.limits import Limits, infinite_ranges
from mbcasadi.system.pieces import coriolis_of_inertia, kinetic_energy, total_energy
from mbcasadi.system.rows import builders_of, rows_as_functions
from mbcasadi.system.system import System


@checked
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
    psi: Expression | None = None,
    t: ca.SX | None = None,
    ctrl_range: ArrayLike | None = None,
    name: str = "lagrangian",
) -> System:
    """Return the `System` of `L = T - V`.

    `M = ∂²T/∂v²`, `h = ∂(∂T/∂v)/∂q v - ∂T/∂q + ∂V/∂q`.

    Args:
        q, v: (nv, 1) symbols.
        kinetic, potential: scalar energies T(q, v) and V(q), J.
        force: (nv, 1) generalised force f(q, v) beside that of the potential: `passive_force`.
        B, phi, A, a0, psi, t, ctrl_range, name: as in `from_equations`.

    Raises:
        ShapeError, ProblemError: as in `from_equations`; kinetic energies are never negative.
    """
    require_shape("q", q, (q.numel(), 1), "(nv, 1)")
    require_shape("v", v, (q.numel(), 1), "(nv, 1)")
    kinetic = matrix("kinetic", kinetic, (1, 1))
    potential = matrix("potential", potential, (1, 1))
    momentum = ca.gradient(kinetic, v)
    h = ca.jtimes(momentum, q, v) - ca.gradient(kinetic, q) + ca.gradient(potential, q)
    return from_equations(
        q,
        v,
        M=ca.jacobian(momentum, v),
        h=h,
        potential=potential,
        force=force,
        B=B,
        phi=phi,
        A=A,
        a0=a0,
        psi=psi,
        t=t,
        ctrl_range=ctrl_range,
        name=name,
    )


@checked
def from_equations(
    q: ca.SX,
    v: ca.SX,
    *,
    M: Expression,
    h: Expression,
    potential: Expression | None = None,
    force: Expression | None = None,
    B: Expression | None = None,
    phi: Expression | None = None,
    A: Expression | None = None,
    a0: Expression | None = None,
    psi: Expression | None = None,
    t: ca.SX | None = None,
    ctrl_range: ArrayLike | None = None,
    name: str = "equations",
) -> System:
    """Return the `System` of `M a + h = force + B u + Aᵀ lam`.

    M may be singular where it is positive definite on null(A), as for a rigid body in four
    Euler parameters; then `System.semidefinite` is set.

    Args:
        q, v: (nv, 1) symbols; the elements of q name the coordinates.
        M: (nv, nv) inertia M(q), symmetric.
        h: (nv, 1) bias force h(q, v).
        potential: scalar energy V(q), J, whose gradient is part of h; used for energies only.
        force: (nv, 1) passive force f(q, v), zero by default.
        B: (nv, nu) actuation matrix B(q), none by default.
        phi: (m, 1) holonomic constraints phi(q, t) = 0.
        A, a0: (k, nv), (k, 1) Pfaffian rows `A(q, t) v + a0(q, t) = 0`, below those of phi.
            Their residual in `constraint` is zero: they hold for velocities only.
        psi: (j, 1) rows psi(q, v, t) = 0 of any form in v, below the others.
        t: symbol of time, s, where constraints depend on it.
        ctrl_range: (nu, 2) limits of the control.
        name: name of the system.

    Raises:
        ShapeError: a wrong shape, a symbol that is none of q, v, t, or an expression that is NaN
            or infinite at all sampled states.
        ProblemError: M is not symmetric, or has a negative eigenvalue, at a sampled configuration.
    """
    nv = int(q.numel())
    require_shape("q", q, (nv, 1), "(nv, 1)")
    require_shape("v", v, (nv, 1), "(nv, 1) as q")
    names = _coordinate_names(q)
    M, h = matrix("M", M, (nv, nv)), matrix("h", h, (nv, 1))
    force = matrix("force", np.zeros((nv, 1)) if force is None else force, (nv, 1))
    B = matrix("B", ca.SX(nv, 0) if B is None else B, (nv, None))
    rows = user_rows(q, v, ca.SX.eye(nv), **user_row_expressions(nv, phi, A, a0, psi), t=_time(t))
    constraints = rows_as_functions(rows, q, v, t)
    of_q, of_qv = {"q": q}, {"q": q, "v": v}
    members: dict[str, tuple[dict[str, ca.SX], str, ca.SX]] = {
        "mass_matrix": (of_q, "M", M),
        "bias_force": (of_qv, "h", h),
        "coriolis_matrix": (of_qv, "C", coriolis_of_inertia(M, q, v)),
        "gravity_force": (of_q, "g", ca.substitute(h, v, ca.SX.zeros(nv))),
        "passive_force": (of_qv, "f_passive", force),
        "actuation": (of_q, "B", B),
        "actuator_bias": (of_qv, "f_0", ca.SX.zeros(nv)),
        "velocity_map": (of_q, "N", ca.SX.eye(nv)),
    }
    if potential is not None:
        members["potential_energy"] = (of_q, "V", matrix("potential", potential, (1, 1)))
    builders = {key: constant(function(key, *parts)) for key, parts in members.items()}
    semidefinite = check_equations(builders)
    builders["kinetic_energy"] = kinetic_energy(builders["mass_matrix"], nv)
    if potential is not None:
        parts = (builders["kinetic_energy"], builders["potential_energy"])
        builders["total_energy"] = total_energy(*parts, nv)
    builders |= builders_of(constraints) | _vector_space(nv)
    nu = int(B.shape[1])
    ctrl = infinite_ranges(nu) if ctrl_range is None else real_array("ctrl_range", ctrl_range)
    require_shape("ctrl_range", ctrl, (nu, 2), "(nu, 2)")
    builders["actuator_force"] = _actuator_force(q, v, B, ctrl)
    return System(
        name=name,
        nq=nv,
        nv=nv,
        nu=nu,
        na=0,
        nc=constraints.count,
        builders=builders,
        limits=Limits(ctrl, infinite_ranges(nu), infinite_ranges(0), infinite_ranges(0)),
        coordinate_names=names,
        timed=t is not None,
        semidefinite=semidefinite,
    )


def _coordinate_names(q: ca.SX) -> tuple[str, ...]:
    """Return the names of the elements of q.

    Raises:
        ShapeError: an element is no symbol.
    """
    if not q.is_valid_input():
        raise ShapeError(f"q holds expressions: {q}; expected a column of symbols (ca.SX.sym)")
    return unique([element.name() for element in ca.vertsplit(q)] if q.numel() else [])


def _time(t: ca.SX | None) -> ca.SX:
    return ca.SX.sym("t") if t is None else t


def _actuator_force(
    q: ca.SX, v: ca.SX, B: ca.SX, ctrl: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> Builder:
    u = ca.SX.sym("u", B.shape[1])
    clipped = ca.fmin(ca.fmax(u, ctrl[:, 0]), ctrl[:, 1])
    return constant(
        ca.Function("actuator_force", [q, v, u], [B @ clipped], ["q", "v", "u"], ["f_actuator"])
    )


def _vector_space(nv: int) -> dict[str, Builder]:
    q, q1, dv = ca.SX.sym("q", nv), ca.SX.sym("q1", nv), ca.SX.sym("dv", nv)
    return {
        "integrate": constant(ca.Function("integrate", [q, dv], [q + dv], ["q", "dv"], ["q_next"])),
        "difference": constant(ca.Function("difference", [q, q1], [q1 - q], ["q0", "q1"], ["dv"])),
    }
