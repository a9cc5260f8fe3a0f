"""A frame as a spring, a damper and a mass, on mechanisms with loops and passive joints."""

from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Array, Command, Law, LawInputs
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions
from mbcasadi.control.law_interface.verdicts import is_definite
from mbcasadi.control.laws.actuated_force import Allocation
from mbcasadi.control.laws.gravity_compensation import Pull, Spring
from mbcasadi.control.tasks.task import Gain, Slot, Task, gains_of, per_row, require_task
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.formulation.root import constraint_basis, root_factor
from mbcasadi.linalg import complete_factor, tree_cholesky
from mbcasadi.shapes import require_numbers, require_positive
from mbcasadi.system import System
from mbcasadi.system.parametric import carries_parameters


@checked
@carries_parameters
def impedance_control(
    system: System,
    task: Task,
    *,
    stiffness: Gain,
    damping: Gain,
    inertia: Gain | None = None,
    joint_damping: float = 0.0,
    metric: ArrayLike | None = None,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return the control of `Λ (ẍ - ẍ_d) = K e + D ė + F`, `e = x_d - x`, F an external force.

    Without `inertia`, Λ is the mechanism's own: `Λ⁻¹ = J G Jᵀ` with its mobility within the
    constraints, `G = M⁻¹ - M⁻¹ Aᵀ (A M⁻¹ Aᵀ)⁺ A M⁻¹`; F need not be known. With it, Λ is a
    diagonal of your choice, and F is the slice `<task>.measured` of the reference: the measurement
    of a sensor at the frame, N or N m, zero where there is none. With F left at zero, the free
    motion is that of the chosen mass, but the response to a push is that of the own inertia.

    G, Λ and the directions that the task leaves free are those of the kinetic energy: nothing
    depends on the units of q. Where the frame cannot move, as at a singular pose, K and D give no
    force (own inertia) or a bounded one (chosen inertia). Free directions are damped at the rate
    `joint_damping`. Status 2 means that the actuators do not reach the force. At saturation u is
    clipped entry by entry: the frame is softer than K, and in other directions too.

    Args:
        system: the mechanism, M positive definite.
        task: a `FrameTask`, or any other; x are its rows. Its own kp and kd have no effect, its
            weight only where its rows contradict each other.
        stiffness: K, N/m or N m/rad, a number or one for each row.
        damping: D, N s/m or N m s/rad.
        inertia: Λ, kg or kg m², positive, a number or one for each row; None for the own one.
        joint_damping: 1/s, of motions that the task leaves free.
        metric: (nv, nv) W of the force, as in `gravity_compensated_pd`.
        options: see `LawOptions`.

    Raises:
        ProblemError, UnknownNameError: the task or the options do not fit the system.
        UnsupportedFeatureError: M is only semidefinite.
    """
    require_numbers(joint_damping=joint_damping)
    rank_tol = options.tolerance
    require_task("task", task)
    if system.semidefinite:
        raise UnsupportedFeatureError(
            f"impedance needs a positive definite M, but the M of '{system.name}' is singular"
        )
    spring = Spring.of(system, task, stiffness, damping, moving=True)
    mass, weight = _mass(system, task, inertia), gains_of(task, system).weight
    force_slot = _measured_force_slot(system, task)

    def equations(at: LawInputs) -> Command:
        m = Mechanism(system, at, rank_tol)
        pull = spring.at(at)
        F = at.ref[force_slot.name] if mass is not None else None
        a = _acceleration(m, pull, weight, mass, F, joint_damping)
        w = Mechanism.measured(system, at, rank_tol, metric=metric)
        force = Allocation(w, w.weighted_force(m.M @ a + m.h)).least()
        return Command(
            u=force.u,
            a=a,
            residual={"force": w.joint_force(force.motion)},
            attainable=force.attainable,
            solvable=is_definite(tree_cholesky(m.M), ca.diag(m.M)),
            error=pull.error,
            target=pull.target,
        )

    interface = spring.interface("impedance within the constraints")
    if mass is not None:
        interface = replace(interface, slots=(*interface.slots, force_slot))
    return make_law(system, "impedance_control", equations, interface, options)


def _acceleration(
    m: Mechanism,
    pull: Pull,
    weight: Array,
    mass: Array | None,
    F: ca.SX | None,
    joint_damping: float,
) -> ca.SX:
    """Return the acceleration that the control gives before F acts.

    In quasi-velocities `v̄ = Wᵀ v`: `ā = V1 v̄̇_o + J̄⁺ (ẍ_d - c - J a_0 + Λ⁻¹ (K e + D ė))` with
    `J̄ = J W⁻ᵀ (I - V1 V1ᵀ)`, so that `Λ_own⁻¹ = J̄ J̄ᵀ`. Rows that contradict each other count by
    their weight (k,).
    """
    share = ca.DM(np.sqrt(weight))
    root = root_factor(m.M)
    rows = constraint_basis(root, m.A, **m.rule)
    V1 = rows.V1
    J_W = root.divide(pull.J.T).T
    length = ca.densify(ca.sqrt(ca.sum2(J_W**2)))
    J_bar = ca.densify(J_W - (J_W @ V1) @ V1.T)
    factor = complete_factor(ca.diag(share) @ J_bar, row_scale=share * length, rank_tol=m.rank_tol)
    bar = V1 @ rows.rate(m.c)
    missing = pull.a_ref - pull.c - J_W @ bar
    if mass is None or F is None:
        bar = bar + factor.pinv_times(share * missing) + J_bar.T @ pull.force
    else:
        wanted = missing + (pull.force + F) / mass
        bar = bar + factor.pinv_times(share * wanted) - J_bar.T @ F
    if joint_damping:
        v_free = root.W.T @ m.at.v
        for V in (V1, factor.basis.V):
            v_free = v_free - V @ (V.T @ v_free)
        bar = bar - joint_damping * v_free
    return root.divide_transposed(bar)


def _mass(system: System, task: Task, inertia: Gain | None) -> Array | None:
    if inertia is None:
        return None
    mass = per_row(task.name, "inertia", inertia, task.components(system))
    require_positive(inertia=float(np.min(mass)))
    return mass


def _measured_force_slot(system: System, task: Task) -> Slot:
    rows = task.components(system)
    return Slot(f"{task.name}.measured", rows, ("N or N m",) * len(rows))
