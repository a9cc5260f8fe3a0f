"""Springs and dampers in task coordinates, gravity compensated through the constraints."""

from dataclasses import dataclass, replace

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import (
    Array,
    Command,
    Law,
    LawInputs,
    LawInterface,
    interface_of_task,
)
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions
from mbcasadi.control.laws.actuated_force import Allocation
from mbcasadi.control.tasks.reference import Slices, hold_by_task
from mbcasadi.control.tasks.task import Gain, Gains, Slot, Task, own_slices, per_row, require_task
from mbcasadi.system import System
from mbcasadi.system.parametric import carries_parameters


@checked
@carries_parameters
def gravity_compensated_pd(
    system: System,
    task: Task,
    *,
    stiffness: Gain,
    damping: Gain,
    metric: ArrayLike | None = None,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return `u = (P X)⁺ P (g - f_spring + Jᵀ (K e + D ė))`, `e = x_d - x`, on the actuators.

    Only the part of a force in null(A) has an effect, and the actuators give forces in range(B)
    (spanned by X): the constraints carry their part of gravity, redundant motors give the rest
    with the least force, and rows of A may repeat. Springs of the model are compensated with
    gravity; its dampers are not.

    It holds every pose at rest. Towards a fixed x_d the energy `T + ½ eᵀ K e` of joints, positions
    or planar rotations falls at `ẋᵀ D ẋ` and by the model's dampers, for any error of the
    inertia; a wrong mass only leaves an offset. It does not track fast references: inertia is not
    compensated. Status 2 means that the actuators do not reach the force; u is then the nearest.
    At saturation u is clipped entry by entry.

    Args:
        system: the mechanism.
        task: `PostureTask`, `FrameTask` or your own; x are its rows, its own gains have no effect.
        stiffness: K, N/m or N m/rad, a number or one for each row.
        damping: D, N s/m or N m s/rad.
        metric: W of `computed_torque`: the least force is that of `fᵀ W⁻¹ f`.
        options: see `LawOptions`.

    Raises:
        ProblemError, UnknownNameError: the task or the options do not fit the system.
    """
    rank_tol = options.tolerance
    require_task("task", task)
    spring = Spring.of(system, task, stiffness, damping)

    def equations(at: LawInputs) -> Command:
        m = Mechanism.measured(system, at, rank_tol, metric=metric)
        pull = spring.at(at)
        v_0 = ca.SX.zeros(system.nv)
        static = system.gravity_force(at.q) - system.passive_force(at.q, v_0)
        force = Allocation(m, m.weighted_force(static + pull.J.T @ pull.force)).least()
        return Command(
            u=force.u,
            a=m.joint_rate(m.acceleration(force.f)),
            residual={"force": m.joint_force(force.motion)},
            attainable=force.attainable,
            error=pull.error,
            target=pull.target,
        )

    interface = spring.interface("PD with compensation of gravity and constraints")
    return make_law(system, "gravity_compensated_pd", equations, interface, options)


@dataclass(frozen=True)
class Pull:
    """Springs and dampers at one state.

    Attributes:
        J: (k, nv) rows of the task.
        c: (k, 1) `J̇ v`.
        a_ref: (k, 1) acceleration of the reference, zero where it has none.
        force: (k, 1) `K e + D ė`.
        error, target: (k, 1).
    """

    J: ca.SX
    c: ca.SX
    a_ref: ca.SX
    force: ca.SX
    error: ca.SX
    target: ca.SX


@dataclass(frozen=True)
class Spring:
    """Springs and dampers between a task's rows and their reference.

    Attributes:
        system: the mechanism.
        task: only its geometry is used.
        gains: K and D (k,) in place of the task's own.
        slots: of the reference that the law reads.
    """

    system: System
    task: Task
    gains: Gains
    slots: tuple[Slot, ...]

    @classmethod
    def of(
        cls, system: System, task: Task, stiffness: Gain, damping: Gain, *, moving: bool = False
    ) -> "Spring":
        """Return the springs and dampers of a task, gains checked.

        Args:
            system: the mechanism.
            task: only its geometry is used.
            stiffness: K, N/m or N m/rad, a number or one for each row.
            damping: D, N s/m or N m s/rad, a number or one for each row.
            moving: the reference has accelerations.
        """
        rows = task.components(system)
        K, D = (
            per_row(task.name, label, value, rows)
            for label, value in (("stiffness", stiffness), ("damping", damping))
        )
        slots = [slot for slot in task.slots(system) if moving or not _is_acceleration(slot)]
        return cls(system, task, Gains(K, D, K * 0), tuple(slots))

    def interface(self, law: str) -> LawInterface:
        """Return that of a law, named in its notes, which reads `slots`."""
        whole = interface_of_task(self.task, self.system, law)
        read, hold = {slot.name for slot in self.slots}, hold_by_task(self.task, self.system)

        def held(q: Array) -> Slices:
            return {name: value for name, value in hold(q).items() if name in read}

        return replace(whole, slots=self.slots, hold=held)

    def at(self, at: LawInputs) -> Pull:
        """Return the springs' force; the task's own law with K and D for its gains."""
        ref = own_slices(self.task, self.system, at.ref)
        zero_gains = Gains(self.gains.kp * 0, self.gains.kd * 0, self.gains.weight)
        rows, feedforward = (
            self.task.rows(self.system, at.q, at.v, ref, gains)
            for gains in (self.gains, zero_gains)
        )
        force = rows.a_des - feedforward.a_des
        return Pull(ca.SX(rows.J), rows.c, feedforward.a_des, force, rows.error, rows.target)


def _is_acceleration(slot: Slot) -> bool:
    return all(unit.endswith("s²") for unit in slot.units)
