"""Inverse dynamics of a constrained mechanism as a QP of inequalities only.

The unknowns are the actuator forces p and, where several contacts share a body, its internal
forces w. With `a = T p + t` (see `condensed_dynamics.py`):

    min ½ Σ_tasks |J a + c - a_des|²_W + ½ r_p |p - p_ref|² + ½ r_w |w|² + ½ r_f |f - f_ref|²
    subject to torque limits, friction pyramids and normal force limits.

`r_p > 0` and `r_w > 0` make the Hessian positive definite: they determine the forces that cause no
motion (of a redundant motor, of feet that press against each other). They are shares of the tasks'
cost, in the units of `scaling.py`.
"""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.constraints import stabilised_bias
from mbcasadi.control.inverse_dynamics.condensed_dynamics import Dynamics
from mbcasadi.control.inverse_dynamics.contacts.contact_rows import ContactRows, contact_rows
from mbcasadi.control.inverse_dynamics.contacts.force_feedback import Integrated, integrated
from mbcasadi.control.inverse_dynamics.contacts.force_rows import (
    cone_rows,
    friction_rows,
    sole_rows,
)
from mbcasadi.control.inverse_dynamics.contacts.load_ramp import ramped, unloaded
from mbcasadi.control.inverse_dynamics.contacts.sliding_contacts import sliding_of
from mbcasadi.control.inverse_dynamics.friction_loss import friction_force
from mbcasadi.control.inverse_dynamics.inequalities import (
    Rows,
    Sizes,
    joint_rows,
    joint_sums,
    stack_rows,
    sum_rows,
    torque_rows,
)
from mbcasadi.control.inverse_dynamics.inputs import Inputs
from mbcasadi.control.inverse_dynamics.limits.actuator_limits import LastForce, limit_forces
from mbcasadi.control.inverse_dynamics.limits.distance_limits import distance_rows
from mbcasadi.control.inverse_dynamics.limits.loop_force_limits import loop_force_rows
from mbcasadi.control.inverse_dynamics.limits.predicted_motion import (
    plan_memory,
    planned_tick,
    plans,
    predicted_state,
)
from mbcasadi.control.inverse_dynamics.limits.tuned_limits import (
    tuned_actuator_limits,
    tuned_actuators,
    tuned_joints,
)
from mbcasadi.control.inverse_dynamics.limits.viability import sharing_rows, shortfall_row
from mbcasadi.control.inverse_dynamics.load_sharing import constraint_rows_on
from mbcasadi.control.inverse_dynamics.memory.last_force import force_reference, last_force
from mbcasadi.control.inverse_dynamics.memory.observer import Observed
from mbcasadi.control.inverse_dynamics.objective import TaskStack, stack_tasks
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.rigid_springs import spring_lengths, spring_rows
from mbcasadi.control.inverse_dynamics.servos.servo_dynamics import (
    ServoState,
    end_rows,
    forces_alone,
    servo_state,
    speeds,
    with_servos,
)
from mbcasadi.control.inverse_dynamics.singular_inertia import completed_inertia
from mbcasadi.control.inverse_dynamics.weighed_forces import desired_forces, forces_on
from mbcasadi.linalg.scalars import Late
from mbcasadi.system import evaluate
from mbcasadi.system.actuator_model import ActuatorModel, actuator_model
from mbcasadi.system.closing import row_scale_at

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Remembered:
    """What z holds of the ticks before.

    Attributes:
        last: actuator forces of the last tick.
        planned: accelerations that do not act yet; see `predicted_motion.py`.
        unloaded: (nc,) share of each contact that its ramp has not loaded yet; none without it.
        contacts_on: (nc,) one where a contact is on; none without a ramp.
        integrated: the integral of the contact forces, or None without feedback.
        missed_ticks: of each judged task.
        observed: the state of the observer, or None without one.
    """

    last: LastForce
    planned: ca.SX
    unloaded: ca.SX
    contacts_on: ca.SX
    integrated: Integrated | None
    missed_ticks: ca.SX
    observed: Observed | None


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
        servo: the servos that change their force during the tick; None where there are none.
        tasks: rows of all tasks.
        p_ref: (nu,) reference of the actuator forces in the cost.
        f_ref: reference of the contact forces (3 nc,), then of the loop forces in the cost; zero
            for those that are off.
        remembered: what z holds of the ticks before.
        on: (m,) one for each row of G that is on.
        late: what rows of distances know by a call, or None.
    """

    dynamics: Dynamics
    definite: Dynamics
    v: ca.SX
    gap: ca.SX
    actuators: ActuatorModel
    contacts: ContactRows
    rows: Rows
    servo: ServoState | None
    tasks: TaskStack
    p_ref: ca.SX
    f_ref: ca.SX
    remembered: Remembered
    on: ca.SX
    late: Late | None


def assemble_problem(setup: Setup, at: Inputs) -> Problem:
    """Return the problem at a state."""
    system = setup.system
    nc = len(setup.contacts)
    servos = setup.servos
    commands = at.memory[setup.memory_places["servos"], 0]
    servo = None if servos is None else servo_state(system, servos, (at.q, at.v), commands)
    ahead = None if servo is None else servo.ahead
    model = actuator_model(system, setup.ranges, setup.period, at.q, at.v, at.act, ahead)
    actuators, sums = joint_sums(system, model)
    actuators = tuned_actuators(actuators, system.actuator_names, at.tuning)
    last, limits = last_force(setup, at.memory), setup.limited_actuators
    if limits is not None:
        speed = speeds(actuators, servo, at.v)
        tuned = tuned_actuator_limits(limits, system.actuator_names, at.tuning)
        actuators = limit_forces(tuned, actuators, speed, last, setup.period)
    values = at.tuned.contacts
    share = unloaded_contacts(setup, at)
    if setup.load_ramp is not None:
        values = tuple(ramped(setup.load_ramp, each, share[i]) for i, each in enumerate(values))
    contacts_now = list(zip(setup.contacts, values, strict=True))
    contacts = contact_rows(
        system,
        setup.contact_groups,
        [values.axes for values in at.tuned.contacts],
        at.on[:nc, 0],
        (at.q, at.v),
        damping=setup.contact_damping,
        internal=setup.internal_forces == "body",
        sliding={
            i: sliding_of(setup, contact, values.friction, at.ref)
            for i, (contact, values) in enumerate(contacts_now)
            if contact.slides
        },
    )
    if sharing_rows(setup):
        no_force = ca.SX(contacts.of_w.shape[0], 1)
        contacts = replace(contacts, of_w=ca.horzcat(no_force, contacts.of_w))
    A, bias = bilateral_rows(setup, at)
    f = system.passive_force(at.q, at.v) + actuators.rest - system.bias_force(at.q, at.v)
    f = f + friction_force(setup, at.v, at.ref)
    dynamics = Dynamics(
        M=system.mass_matrix(at.q),
        f=f if at.observed is None else f + at.observed.force,
        B=actuators.moment,
        G=ca.sparsify(ca.vertcat(A, contacts.J)),
        c=ca.vertcat(bias, contacts.c),
    )
    if servos is not None and servo is not None:
        dynamics = with_servos(dynamics, servos, servo)
    definite = definite_dynamics(setup, at, dynamics, A.shape[0])
    sizes = Sizes(system.nu, dynamics.G.shape[0], contacts.of_w.shape[1], system.nv)
    apart, late = distance_rows(
        setup.limited_distances,
        (at.q, at.v),
        plans(setup, at.memory),
        planned_tick(setup),
        sizes,
        at.tuning,
    )
    rows = stack_rows(
        [
            torque_rows(
                actuators, system.actuator_names, sizes, "" if limits is None else limits.label
            ),
            sum_rows(sums, sizes),
            friction_rows(contacts_now, setup.contact_names, at.on[:nc, 0], contacts, sizes),
            sole_rows(setup.contact_names, contacts, sizes),
            loop_force_rows(setup, at, sizes),
            joint_rows(
                tuned_joints(setup.limited_joints, at.tuning),
                predicted_state(setup, at.memory, at.q, at.v),
                planned_tick(setup),
                sizes,
            ),
            apart,
            shortfall_row(setup, sizes),
            end_rows(servos, servo, joint_sums(system, forces_alone(model, setup.ranges)), sizes),
            cone_rows(contacts_now, setup.contact_names, contacts, sizes),
        ]
    )
    p_ref = (
        at.ref[setup.reference_slices["torque"], 0]
        if setup.torque_reference
        else ca.SX(system.nu, 1)
    )
    f_ref, integral = desired_forces(setup, at), None
    if setup.force_feedback is not None and at.f_measured is not None:
        memory = at.memory[setup.memory_places["integrals"], 0]
        forces = f_ref, at.f_measured
        integral = integrated(
            setup.force_feedback, memory, forces_on(setup, at), forces, setup.force_costs
        )
        f_ref = f_ref + integral.force
    return Problem(
        dynamics=dynamics,
        definite=definite,
        v=at.v,
        gap=at.gap,
        actuators=actuators,
        contacts=contacts,
        rows=rows,
        servo=servo,
        tasks=stack_tasks(setup, at),
        p_ref=force_reference(setup, p_ref, last),
        f_ref=f_ref,
        remembered=Remembered(
            last=last,
            planned=plan_memory(setup, at.memory),
            unloaded=share,
            contacts_on=at.on[:nc, 0] if setup.load_ramp else ca.SX(0, 1),
            integrated=integral,
            missed_ticks=at.memory[setup.memory_places["misses"], 0],
            observed=at.observed,
        ),
        on=constraint_rows_on(setup, at),
        late=late,
    )


def unloaded_contacts(setup: Setup, at: Inputs) -> ca.SX:
    """Return (nc,) the share of each contact that its ramp has not loaded yet."""
    if setup.load_ramp is None:
        return ca.SX(0, 1)
    shares = at.memory[setup.memory_places["ramps"], 0]
    return unloaded(shares, at.on[: len(setup.contacts), 0])


def definite_dynamics(setup: Setup, at: Inputs, dynamics: Dynamics, nc: int) -> Dynamics:
    """Return the dynamics with a definite inertia; `nc` rows of G are bilateral."""
    system = setup.system
    if not system.semidefinite:
        return dynamics
    lengths = np.concatenate([system.scales.rows, spring_lengths(setup)])
    row_scale = row_scale_at(ca.DM(lengths), setup.rank_tol, at.gap)
    rows = (dynamics.G[:nc, :], dynamics.c[:nc, 0])
    M, f = completed_inertia(system, dynamics.M, rows, row_scale=row_scale, rank_tol=setup.rank_tol)
    return dynamics._replace(M=M, f=dynamics.f + f)


def bilateral_rows(setup: Setup, at: Inputs) -> tuple[ca.SX, ca.SX]:
    """Return rows and bias of the equality constraints, then of the springs that are held."""
    A, bias = equality_rows(setup, at)
    if setup.rigid_springs is None:
        return A, bias
    S, slowing = spring_rows(setup, at.v)
    return ca.vertcat(A, S), ca.vertcat(bias, slowing)


def equality_rows(setup: Setup, at: Inputs) -> tuple[ca.SX, ca.SX]:
    """Return the equality constraints' rows and bias, those that are off zero.

    With stabilisation ω the rows are `A a + c + 2 ω psi + ω² phi = 0`, psi and phi those of the
    measured state.
    """
    system = setup.system
    if system.nc == 0:
        return ca.SX(0, system.nv), ca.SX(0, 1)
    state = {"q": at.q, "v": at.v}
    A, bias = evaluate(system.loop_jacobian, state), system.loop_bias(at.q, at.v)
    if setup.stabilisation:
        omega = ca.DM(setup.stabilisation)
        psi, phi = system.loop_rate(*at.measured), system.constraint(at.measured[0])
        bias = stabilised_bias(bias, psi, phi, omega, omega)
    on = at.on_rows(setup)
    return ca.repmat(on, 1, system.nv) * A, on * bias
