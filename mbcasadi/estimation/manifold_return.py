"""A corrected state brought back to the constraint manifold, and its errors with it.

After `q ⊕ δq`, `v + δv` the state is closed (`system/closing.py`), a fixed number of Newton steps.
Errors of states on the manifold obey `A δq = 0`, `∂psi/∂q δq + A δv = 0`; the map onto them,

    T = [Π, 0; -A⁺ ∂psi/∂q Π, Π],   A⁺ and Π = I - A⁺ A in the metric of the coordinates' sizes,

is the derivative of closing where the rank is constant. Π of q is that of the rows of phi alone.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.control.regulators.tangent import TANGENT_RANK_TOL
from mbcasadi.estimation.manifold_process import plus
from mbcasadi.linalg import DropRule, complement, complete_factor
from mbcasadi.simulation.active_rows import holonomic_rows
from mbcasadi.system import System, evaluate
from mbcasadi.system.closing import close_state, row_scale_at


class Returned(NamedTuple):
    """A state on the manifold.

    Attributes:
        q, v: (nq,), (nv,).
        T: (2 nv, 2 nv) errors of this state by those of the state before its correction.
        closed: whether it could be closed.
    """

    q: ca.SX
    v: ca.SX
    T: ca.SX
    closed: ca.SX


def returned_fun(system: System) -> ca.Function:
    """Return (q, v, step) → (q, v, T, closed): the state after a step (2 nv,) of its errors.

    Args:
        system: the mechanism, which carries its parameters behind q.
    """
    nv = system.nv
    q, v, step = (ca.SX.sym(k, n) for k, n in (("q", system.nq), ("v", nv), ("step", 2 * nv)))
    moved = plus(system, q, step[:nv])
    rates = v + step[nv:]
    out = Returned(moved.q, rates, ca.diagcat(moved.by_dq, ca.SX.eye(nv)), ca.SX(1))
    if system.nc:
        closed = close_state(system, moved.q, rates, ca.SX.ones(system.nc))
        T = tangent_map(system, closed.q, closed.v, closed.gap)
        out = Returned(closed.q, closed.v, T @ out.T, closed.closed)
    names = (["q", "v", "step"], ["q_next", "v_next", "T", "closed"])
    outputs = [ca.densify(x) if x is not out.T else x for x in out]
    return ca.Function("returned", [q, v, step], outputs, *names, {"cse": True})


def tangent_map(system: System, q: ca.SX, v: ca.SX, gap: ca.SX) -> ca.SX:
    """Return T (2 nv, 2 nv) at a state on the manifold.

    Args:
        system: the mechanism.
        q, v: its state.
        gap: that is left.
    """
    here, rate = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    s = {"q": here, "v": rate}
    psi = evaluate(system.loop_rate, s)
    psi_q = ca.jacobian(psi, here) @ system.velocity_map(here)
    rows = ca.Function("rows", [here, rate], [evaluate(system.loop_jacobian, s), psi_q])
    A, psi_q = rows(q, v)
    size, of_phi = ca.DM(system.scales.coordinates), holonomic_rows(system)
    scale = row_scale_at(ca.DM(system.scales.rows), TANGENT_RANK_TOL, gap)
    rule: DropRule = {"row_scale": scale, "rank_tol": TANGENT_RANK_TOL, "pivot": True}
    all_rows = complete_factor(ca.densify(A @ ca.diag(size)), **rule)
    Pi_v = _in_units(complement(all_rows.basis.V), size)
    Pi_q = Pi_v
    if float(ca.sum1(of_phi)) < system.nc:
        only = complete_factor(ca.densify(ca.diag(of_phi) @ A @ ca.diag(size)), **rule)
        Pi_q = _in_units(complement(only.basis.V), size)
    slope = -ca.diag(size) @ all_rows.pinv_times(ca.densify(psi_q @ Pi_q))
    return ca.blockcat([[Pi_q, ca.SX(*Pi_q.shape)], [slope, Pi_v]])


def _in_units(P: ca.SX, size: ca.DM) -> ca.SX:
    """Return a projector of sized coordinates as one of the coordinates."""
    return ca.diag(size) @ P @ ca.diag(1 / size)
