"""Contact forces from the residual of a momentum observer.

Contacts are external forces: the residual of a limb's joints is `J_limbᵀ f` of the contacts that it
carries. The rows of a free base, in which all limbs add up, are left out. Of all forces that fit,
those of least norm are taken, damped near poses in which a limb is singular:

    f = J_limb (J_limbᵀ J_limb + d² I)⁻¹ r_limb
"""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.contacts.constraints import GroupPoints
from mbcasadi.contacts.friction_cone import require_contacts
from mbcasadi.contacts.groups import contact_groups_of
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.landmarks import limbs_of
from mbcasadi.estimation.observer_guard import require_observable_dynamics
from mbcasadi.linalg import damped_pinv
from mbcasadi.shapes import require_identifier
from mbcasadi.system import System

DAMPING = 1e-2
"""d, relative to the root mean square of the singular values of J_limb: where all are equal, forces
are too small by 1e-4; along a direction with a hundredth of the mean by one half."""


@checked
def residual_forces(
    system: System, contacts: Sequence[Contact], *, name: str = "residual_forces"
) -> ca.Function:
    """Return (q, residual) → (f): the forces (3 nc,) on all contacts, n, t1, t2 of each, N.

    They are exact where nothing else touches the limb and its joints determine them, three for a
    point; of less joints, or more points, they are those of least norm.

    Args:
        system: the mechanism, without rows of these contacts.
        contacts: of its limbs with the world or other bodies.
        name: a C identifier.

    Raises:
        ProblemError: no contacts, contacts that no joint moves, a system with parameters.
        UnknownNameError: no such frame.
    """
    require_identifier("name", name)
    require_observable_dynamics(system)
    require_contacts(contacts)
    if not contacts:
        raise ProblemError(f"'{system.name}' without contacts; expected those of its limbs")
    q, residual = ca.SX.sym("q", system.nq), ca.SX.sym("residual", system.nv)
    rows = _contact_rows(system, contacts, q)
    size, f = ca.DM(system.scales.coordinates), ca.SX(3 * len(contacts), 1)
    for moving, members in limbs_of(rows):
        joints = sorted(moving)
        if not joints:
            raise ProblemError(
                f"no joint moves the contact '{contacts[members[0]].frame}' of '{system.name}'"
            )
        J = ca.densify(ca.vertcat(*(rows[i] for i in members))[:, joints] @ ca.diag(size[joints]))
        damping = DAMPING * ca.norm_fro(J) / len(joints) ** 0.5
        own = damped_pinv(J.T, damping) @ (size * residual)[joints]
        for k, i in enumerate(members):
            f[3 * i : 3 * i + 3] = own[3 * k : 3 * k + 3]
    return ca.Function(name, [q, residual], [f], ["q", "residual"], ["f"], {"cse": True})


def _contact_rows(system: System, contacts: Sequence[Contact], q: ca.SX) -> list[ca.SX]:
    """Return the Jacobian (3, nv) of each contact along n, t1, t2, without a free base."""
    rows = [ca.SX(3, system.nv)] * len(contacts)
    for group in contact_groups_of(system, contacts):
        points = GroupPoints(group, contacts, q)
        for k, i in enumerate(group.members):
            rows[i] = ca.sparsify(points.rates(k))
    free = 0 if system.tree is None or system.tree.joints[0].kind != "free" else 6
    limb = ca.DM.ones(system.nv)
    limb[:free] = 0
    return [ca.sparsify(J @ ca.diag(ca.sparsify(limb))) for J in rows]
