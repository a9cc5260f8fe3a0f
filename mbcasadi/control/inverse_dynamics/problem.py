"""Inverse dynamics of a constrained mechanism as a QP of inequalities only.

The unknowns are the actuator forces p and, where several contacts share a body, its internal
forces w. With `a = T p + t` (see `condensed_dynamics.py`):

    min ½ Σ_tasks |J a + c - a_des|²_W + ½ r_p |p - p_ref|² + ½ r_w |w|² + ½ r_f |f - f_ref|²
    subject to torque limits, friction pyramids and normal force limits.

`r_p > 0` and `r_w > 0` make the Hessian positive definite: they determine the forces that cause no
motion (of a redundant motor, of feet that press against each other). They are shares of the tasks'
cost, in the units of `scaling.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from mbcasadi.constraints import stabilised_bias
from mbcasadi.contacts.rows import ContactRows, axes_of_pair, contact_rows
from mbcasadi.control.inverse_dynamics.condensed_dynamics import Dynamics
from mbcasadi.control.inverse_dynamics.contacts.force_rows import NAME as CONTACTS
from mbcasadi.control.inverse_dynamics.contacts.sliding_contacts import sliding_of
from mbcasadi.control.inverse_dynamics.far_errors import home_error
from mbcasadi.control.inverse_dynamics.options import CONTACT_SLOT, LOOP_SLOT, Setup
from mbcasadi.control.inverse_dynamics.singular_inertia import completed_inertia
from mbcasadi.control.inverse_dynamics.task_stack import TaskStack, stack_tasks
from mbcasadi.control.inverse_dynamics.viability import Viability
from mbcasadi.control.tick.design import forces_on
from mbcasadi.control.tick.instant import Instant
from mbcasadi.linalg.scalars import Late
from mbcasadi.qp.rows import Rows, Sizes, stack_rows
from mbcasadi.system import evaluate
from mbcasadi.system.actuator_model import ActuatorModel, actuator_model
from mbcasadi.system.closing import row_scale_at


@dataclass(frozen=True)
class Problem:
    """The parts of the QP at one state, before they are condensed.

    Attributes:
        dynamics: `M a = f + B p + Gᵀ lam`, `G a + c = 0`.
        definite: the same with an inertia that is definite; see `singular_inertia.py`.
        v: (nv,) velocity.
        gap: scaled residual of the loops.
        actuators: gains, biases and ranges of the actuators.
        contacts: rows and forces of the contacts.
        rows: the inequalities.
        tasks: rows of all tasks.
        p_ref: (nu,) reference of the actuator forces in the cost.
        f_ref: reference of the contact forces (3 nc,), then of the loop forces in the cost; zero
            for those that are off.
        carried: numbers that parts need behind the solver, by part and name.
        on: (m,) one for each row of G that is on.
        late: what rows know by a call, or None.
    """

    dynamics: Dynamics
    definite: Dynamics
    v: ca.SX
    gap: ca.SX
    actuators: ActuatorModel
    contacts: ContactRows
    rows: Rows
    tasks: TaskStack
    p_ref: ca.SX
    f_ref: ca.SX
    carried: dict[str, Mapping[str, ca.SX]]
    on: ca.SX
    late: Late | None


def assemble_problem(setup: Setup, now: Instant) -> Problem:
    """Return the problem at an instant."""
    system, viability = setup.system, Viability.of(setup)
    now = changed_by_parts(setup, now)
    contacts = rows_of_contacts(setup, now)
    if viability.sharing:
        no_force = ca.SX(contacts.of_w.shape[0], 1)
        contacts = replace(contacts, of_w=ca.horzcat(no_force, contacts.of_w))
    A, bias = bilateral_rows(setup, now)
    dynamics = Dynamics(
        M=now.M,
        f=now.f,
        B=now.actuators.moment,
        G=ca.sparsify(ca.vertcat(A, contacts.J)),
        c=ca.vertcat(bias, contacts.c),
    )
    sizes = Sizes(system.nu, dynamics.G.shape[0], contacts.of_w.shape[1], system.nv)
    now = now.knowing(CONTACTS, contacts)
    parts = [rows for each in setup.bound if each.rows for rows in each.rows(now, sizes)]
    rows = stack_rows([*parts, viability.shortfall_row(sizes)])
    return Problem(
        dynamics=dynamics,
        definite=definite_dynamics(setup, now, dynamics, A.shape[0]),
        v=now.v,
        gap=now.gap,
        actuators=now.actuators,
        contacts=contacts,
        rows=replace(rows, late=None),
        tasks=replace(stack_tasks(setup, now), home_error=home_error(setup, now)),
        p_ref=now.p_ref,
        f_ref=now.f_ref,
        carried={each.name: each.carry(now) for each in setup.bound if each.carry},
        on=constraint_rows_on(setup, now),
        late=rows.late,
    )


def changed_by_parts(setup: Setup, now: Instant) -> Instant:
    """Return the instant with actuators, inertia and forces, as all parts change them."""
    system, forces = setup.system, setup.weighed_forces
    for each in setup.bound:
        now = each.state(now) if each.state else now
    state = now.q, now.v
    actuators = actuator_model(system, setup.ranges, setup.period, *state, now.act, now.ahead)
    count = 3 * len(setup.contacts)
    desired = now.slice(CONTACT_SLOT, count), now.slice(LOOP_SLOT, len(forces) - count)
    now = replace(
        now,
        actuators=actuators,
        M=system.mass_matrix(now.q),
        f=system.passive_force(*state) + actuators.rest - system.bias_force(*state),
        p_ref=now.slice("torque", system.nu),
        f_ref=forces_on(setup, now.on, now.on_rows) * ca.vertcat(*desired),
    )
    for each in setup.bound:
        now = each.forces(now) if each.forces else now
    return now


def rows_of_contacts(setup: Setup, now: Instant) -> ContactRows:
    """Return the rows of all contacts at an instant."""
    sliding = {
        i: sliding_of(setup, contact, values.friction, now.ref)
        for i, (contact, values) in enumerate(zip(setup.contacts, now.contacts, strict=True))
        if contact.slides
    }
    return contact_rows(
        setup.system,
        setup.contact_groups,
        [
            values.axes if contact.geoms is None else axes_of_pair(setup.system, contact, now.q)
            for contact, values in zip(setup.contacts, now.contacts, strict=True)
        ],
        now.contacts_on,
        (now.q, now.v),
        damping=setup.contact_damping,
        internal=setup.internal_forces == "body",
        sliding=sliding,
    )


def constraint_rows_on(setup: Setup, now: Instant) -> ca.SX:
    """Return (m,) one for each row of loops, of what parts hold, and of contacts that is on.

    The rows of a body with several points that are off have no force: they count as on.
    """
    parts = [now.on_rows, ca.SX.ones(len(setup.held_rows), 1)]
    for group in setup.contact_groups:
        alone = len(group.members) == 1
        on = now.on[group.members[0]] if alone else ca.SX(1)
        parts.append(ca.repmat(on, group.rows, 1))
    return ca.vertcat(ca.SX(0, 1), *parts)


def definite_dynamics(setup: Setup, now: Instant, dynamics: Dynamics, nc: int) -> Dynamics:
    """Return the dynamics with a definite inertia; `nc` rows of G are bilateral."""
    system = setup.system
    if not system.semidefinite:
        return dynamics
    held = np.linalg.norm(setup.held_rows * system.scales.coordinates, axis=1)
    lengths = np.concatenate([system.scales.rows, held])
    row_scale = row_scale_at(ca.DM(lengths), setup.rank_tol, now.gap)
    rows = (dynamics.G[:nc, :], dynamics.c[:nc, 0])
    M, f = completed_inertia(system, dynamics.M, rows, row_scale=row_scale, rank_tol=setup.rank_tol)
    return dynamics._replace(M=M, f=dynamics.f + f)


def bilateral_rows(setup: Setup, now: Instant) -> tuple[ca.SX, ca.SX]:
    """Return rows and bias of the equality constraints, then of what parts hold."""
    A, bias = equality_rows(setup, now)
    for each in setup.bound:
        if each.held is not None and each.held_bias is not None:
            A = ca.vertcat(A, ca.SX(ca.sparsify(ca.DM(each.held))))
            bias = ca.vertcat(bias, each.held_bias(now))
    return A, bias


def equality_rows(setup: Setup, now: Instant) -> tuple[ca.SX, ca.SX]:
    """Return the equality constraints' rows and bias, those that are off zero.

    With stabilisation ω the rows are `A a + c + 2 ω psi + ω² phi = 0`, psi and phi those of the
    measured state.
    """
    system = setup.system
    if system.nc == 0:
        return ca.SX(0, system.nv), ca.SX(0, 1)
    state = {"q": now.q, "v": now.v}
    A, bias = evaluate(system.loop_jacobian, state), system.loop_bias(now.q, now.v)
    if setup.stabilisation:
        omega = ca.DM(setup.stabilisation)
        psi, phi = system.loop_rate(*now.measured), system.constraint(now.measured[0])
        bias = stabilised_bias(bias, psi, phi, omega, omega)
    on = now.on_rows
    return ca.repmat(on, 1, system.nv) * A, on * bias
