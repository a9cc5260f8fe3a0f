"""Actuator forces that carry a load, with the help of constraints.

At rest the mechanism is in balance where `B p + Gᵀ lam = g(q)`, with g the bias force at zero
velocity minus springs and what the model compensates. The same equation with `M a` in place of g
gives the forces that cause the acceleration a. Coordinates that one actuator drives
directly (D) follow from the others (U), which only rows and other actuators can carry:

    C_Uᵀ mu = g_U,   C = (G; B_otherᵀ),   mu = W C_U (C_Uᵀ W C_U + ε M_UU)⁻¹ g_U,
    p_D = (g_D - C_Dᵀ mu) / gear.

mu is the least force that balances U, the feet's share of the weight for example; what nothing
carries, such as the base of a robot in flight, gets no force, and its joints still carry their own
links. Rows of G may repeat: ε M_UU makes the matrix definite. A mechanism that may fall by what is
not carried accelerates by `a = -ε (C_Uᵀ W C_U + ε M_UU)⁻¹ g_U` in U, and its joints carry `M_DU a`
beside g_D.
"""

from collections.abc import Callable

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.linalg import tree_cholesky, tree_solve
from mbcasadi.system import System, evaluate
from mbcasadi.system.actuator_model import actuator_model, direct_drives
from mbcasadi.system.ranges import require_ranges

Array = NDArray[np.float64]

UNCARRIED = 1e-6
"""Share ε of the load that rows and actuators leave in balance with the inertia: a direction that
they reach with less than its root, relative to their usual reach, counts as not carried."""

CARRIES = 1e4
"""Inertia of a row of a loop, by the largest of those of contacts, that makes its force count for
nothing."""

LEAST_INERTIA = 1e-9
"""Share of the largest inertia, in the sizes of the coordinates, below which a pose's inertia
matrix is completed."""


def static_forces(
    load: ca.SX,
    M: ca.SX,
    B: ca.SX,
    G: ca.SX,
    row_mass: Array,
    actuator_mass: Array,
    *,
    falls: bool = False,
) -> ca.SX:
    """Return the actuator forces p (nu, k).

    Args:
        load: (nv, k) generalised forces that have to be carried, each by itself.
        M: (nv, nv) inertia.
        B: (nv, nu) moments of the actuators.
        G: (m, nv) active rows of constraints and contacts; rows that are off are zero.
        row_mass: (m,) inertia that each row sees, `1 / (G_i M⁻¹ G_iᵀ)`.
        actuator_mass: (nu,) the same of each actuator.
        falls: whether coordinates accelerate by what nothing carries.
    """
    (nv, nu), k = B.shape, load.shape[1]
    drives = direct_drives(B)
    driven = [dof for dof, _ in drives.values()]
    free = [dof for dof in range(nv) if dof not in driven]
    others = [column for column in range(nu) if column not in drives]
    C = ca.sparsify(ca.vertcat(G, B[:, others].T))
    multipliers, inertial = ca.SX(C.shape[0], k), ca.SX(nv, k)
    if free and C.shape[0]:
        W = ca.DM(np.concatenate([row_mass, actuator_mass[others]]))
        C_U = C[:, free]
        K = C_U.T @ (ca.diag(W) @ C_U) + UNCARRIED * M[free, free]
        balance = tree_solve(tree_cholesky(K), load[free, :])
        multipliers = ca.diag(W) @ (C_U @ balance)
        inertial = -UNCARRIED * M[:, free] @ balance
    p = ca.SX(nu, k)
    if others:
        p[others, :] = multipliers[G.shape[0] :, :]
    rest = load - C.T @ multipliers + (inertial if falls else 0)
    for column, (dof, gear) in drives.items():
        p[column, :] = rest[dof, :] / gear
    return ca.densify(p)


def carrying(row_mass: Array, contacts: NDArray[np.bool_]) -> Array:
    """Return inertias (m,) of rows with which those of loops and springs carry what they have to.

    With forces of loops as small as may be, too, light rods in a leg make feet press against each
    other: what little of a rod's force that takes off costs more than the friction on the ground.

    Args:
        row_mass: (m,) inertia that each row sees.
        contacts: (m,) whether a row is one of a contact.
    """
    least = CARRIES * row_mass[contacts].max(initial=0.0)
    return np.where(contacts, row_mass, np.maximum(row_mass, least))


def actuator_inertias(system: System) -> Array:
    """Return the inertia (nu,) that each actuator sees, `1 / (bᵀ M⁻¹ b)`, medians over poses."""
    q = ca.SX.sym("q", system.nq)
    model = actuator_model(system, require_ranges(system, None, None), 1.0, q, _still(system), None)
    moment = ca.Function("moment", [q], [ca.densify(model.moment)])
    return _seen(system, lambda q, _: moment(q).full().T)


def row_inertias(system: System) -> Array:
    """Return the inertia (nc,) that each constraint row sees, `1 / (A_i M⁻¹ A_iᵀ)`."""
    if not system.nc:
        return np.zeros(0)

    def rows_at(q: Array, v: Array) -> Array:
        return np.asarray(evaluate(system.loop_jacobian, {"q": q, "v": v, "t": 0.0}).full())

    return _seen(system, rows_at)


def _still(system: System) -> ca.SX:
    return ca.SX(system.nv, 1)


def _seen(system: System, rows_at: Callable[[Array, Array], Array]) -> Array:
    """Return the median over closed poses of the inertia that rows (k, nv) see; never infinite."""
    mobilities, size = [], system.scales.coordinates
    for q, v in system.scales.states:
        M = np.asarray(system.mass_matrix(q)) * np.outer(size, size)
        rows = rows_at(q, v) * size
        least = LEAST_INERTIA * max(np.abs(M).max(), np.finfo(float).tiny)
        response = np.linalg.lstsq(M + least * np.eye(len(M)), rows.T, rcond=None)[0]
        mobilities.append(np.einsum("ij,ji->i", rows, response))
    mobility = np.median(mobilities, axis=0)
    floor = LEAST_INERTIA * mobility.max(initial=0.0) or 1.0
    return np.asarray(1 / np.maximum(mobility, floor))
