"""Options of an inverse-dynamics controller, checked where they are given, and derived values."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.contacts.friction_cone import FORCE_AXES, require_contacts
from mbcasadi.contacts.groups import (
    ContactGroup,
    contact_groups_of,
)
from mbcasadi.control.inverse_dynamics.actuator_delay import actuator_delay_ticks
from mbcasadi.control.inverse_dynamics.contacts.creeping import (
    PerForce,
    creeping_weights,
    force_weights,
)
from mbcasadi.control.inverse_dynamics.contacts.force_rows import ContactForces
from mbcasadi.control.inverse_dynamics.contacts.sliding_contacts import slide_task_of
from mbcasadi.control.inverse_dynamics.parts.force_feedback import ForceFeedback
from mbcasadi.control.inverse_dynamics.parts.friction_loss import FrictionLoss
from mbcasadi.control.inverse_dynamics.parts.last_force import LastForce, torque_weights
from mbcasadi.control.inverse_dynamics.parts.load_ramp import LoadRamp
from mbcasadi.control.inverse_dynamics.parts.load_sharing import LoadSharing
from mbcasadi.control.inverse_dynamics.parts.loop_force_weights import (
    LoopForceWeights,
    weighed_loops,
)
from mbcasadi.control.inverse_dynamics.parts.missed_tasks import MissedTasks
from mbcasadi.control.inverse_dynamics.parts.observer import DisturbanceObserver
from mbcasadi.control.inverse_dynamics.parts.rigid_springs import RigidSprings
from mbcasadi.control.inverse_dynamics.parts.servo_dynamics import ServoMotion
from mbcasadi.control.inverse_dynamics.parts.servos import (
    ServoPlant,
    Servos,
    servo_plant_of,
    servos_of,
)
from mbcasadi.control.inverse_dynamics.parts.unclipped import unclipped_ranges
from mbcasadi.control.limits.actuator_limits import ActuatorLimits, PerActuator
from mbcasadi.control.limits.actuator_ranges import ActuatorRanges
from mbcasadi.control.limits.distance_limits import DistanceLimits
from mbcasadi.control.limits.joint_limits import JointLimits
from mbcasadi.control.limits.loop_force_limits import LoopForceLimits
from mbcasadi.control.limits.predicted_motion import PlannedMotion
from mbcasadi.control.limits.soft_limits import SoftLimit
from mbcasadi.control.safe_output.safe_output import FALLBACKS, memory_size
from mbcasadi.control.tasks.moving import Moving
from mbcasadi.control.tasks.reference import Values, fill_reference, hold_by_task, merged
from mbcasadi.control.tasks.task import Slot, Task
from mbcasadi.control.tick.design import Design, Tick, WeighedForce
from mbcasadi.control.tick.part import Bound, FollowedCoordinate, Part
from mbcasadi.control.tick.tuning import TUNABLE, tuning_parameters
from mbcasadi.description import Contact, TuningParameter
from mbcasadi.errors import ProblemError
from mbcasadi.qp.plugins import require_solver
from mbcasadi.shapes import (
    require_choice,
    require_identifier,
    require_name,
    require_numbers,
    require_positive,
    require_whole,
)
from mbcasadi.system import System
from mbcasadi.system.coordinates import initial_pose, moving_size, pose_inputs, pose_of, start_pose
from mbcasadi.system.ranges import Ranges, require_ranges

Array = NDArray[np.float64]

INTERNAL_FORCES = ("body", "none", "wrench")

TORQUE_WEIGHT = 1e-7
"""Share of the tasks' cost that an actuator force costs which moves them as much."""

INTERNAL_FORCE_WEIGHT = 1e-5
"""The same of internal contact forces, which move nothing."""

LEVEL_DAMPING = 1e-2
"""Share of its usual strength below which a direction of a level is damped."""

CONTACT_RANK_TOL = 1e-3
"""A constraint direction weaker than this, relative to its usual strength, is dropped: a redundant
row of several contacts is as strong as the contacts' poses are wrong, and if it were kept, the
mechanism could not move. A true direction that is this weak needs forces a thousand times larger
than others."""


@dataclass(frozen=True, eq=False)
class Setup(Design):
    """Tasks, contacts and options of a controller; see `InverseDynamicsQP` for each of them.

    Raises:
        ProblemError: tasks, contacts, limits or options that contradict themselves.
        UnknownNameError: a frame or joint that the model does not have.
        SolverError: the solver is not available.
    """

    system: System
    tasks: Sequence[Task]
    contacts: Sequence[Contact] = ()
    _: KW_ONLY
    torque_weight: PerActuator = TORQUE_WEIGHT
    torque_rate_weight: PerActuator = 0.0
    levels: Sequence[Sequence[str]] = ()
    level_damping: float = LEVEL_DAMPING
    torque_reference: bool = False
    internal_forces: str = "body"
    internal_force_weight: float = INTERNAL_FORCE_WEIGHT
    force_weight: PerForce | None = None
    force_reference: bool = False
    force_feedback: ForceFeedback | None = None
    ctrl_limits: ArrayLike | None = None
    force_limits: ArrayLike | None = None
    joint_limits: JointLimits | None = None
    bound_errors: bool | None = None
    observer: DisturbanceObserver | None = None
    soft: Sequence[SoftLimit] = ()
    actuator_limits: ActuatorLimits | None = None
    servo_plant: str = "model"
    servo_timestep: float | None = None
    delay: int | None = None
    friction_loss: FrictionLoss | None = None
    rigid_springs: RigidSprings | None = None
    load_ramp: LoadRamp | None = None
    loop_force_limits: LoopForceLimits | None = None
    loop_force_weights: LoopForceWeights | None = None
    sharing: LoadSharing | None = None
    distance_limits: DistanceLimits | None = None
    parts: Sequence[Part] = ()
    tunable: Sequence[str] = ()
    stabilisation: float = 0.0
    contact_damping: float = 0.0
    rank_tol: float = CONTACT_RANK_TOL
    tolerance: float = 1e-6
    fallback: str = "safe"
    fallback_law: ca.Function | None = None
    period: float = 1e-3
    solver: str = "daqp"
    name: str = "inverse_dynamics"

    def __post_init__(self) -> None:
        require_system(self.system)
        object.__setattr__(self, "system", self.system.carried)
        for name in ("tasks", "contacts", "soft", "parts", "tunable"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "levels", tuple(tuple(level) for level in self.levels))
        require_numbers(
            stabilisation=self.stabilisation,
            contact_damping=self.contact_damping,
        )
        require_positive(
            internal_force_weight=self.internal_force_weight,
            level_damping=self.level_damping,
            rank_tol=self.rank_tol,
            tolerance=self.tolerance,
            period=self.period,
        )
        require_choice("fallback", self.fallback, FALLBACKS)
        require_choice("internal_forces", self.internal_forces, INTERNAL_FORCES)
        require_solver(self.solver)
        require_identifier("name", self.name)
        for each in self.tunable:
            require_choice("tunable", each, TUNABLE)
        if self.delay is not None:
            require_whole(0, delay=self.delay)
        require_tasks(self)
        require_levels(self)
        require_contacts(self.contacts, wheels=True)
        require_slides(self)
        require_fallback_law(self)

    @cached_property
    def bound(self) -> tuple[Bound, ...]:
        """What each part adds: those of every controller, those that are given, what they need."""
        first = (MissedTasks(), ActuatorRanges(), ContactForces(), *self.given)
        bound = [part.bind(self) for part in first]
        dofs = {dof for each in bound for dof in each.planned}
        behind: list[Part] = [PlannedMotion(tuple(sorted(dofs)))] if dofs else []
        behind += [] if self.servos is None else [ServoMotion(self.servos)]
        weight, change = self.torque_weights
        limits = self.actuator_limits
        if np.any(change) or (limits is not None and limits.rate is not None):
            behind.append(LastForce(weight, change))
        return (*bound, *(part.bind(self) for part in behind))

    @property
    def given(self) -> tuple[Part, ...]:
        """All parts that a user has given."""
        own = [getattr(self, field.name) for field in fields(Setup)]
        return (*(each for each in own if isinstance(each, Part)), *self.soft, *self.parts)

    @property
    def safe_output_kind(self) -> str:
        """One of `FALLBACKS`, or "law"."""
        return self.fallback if self.fallback_law is None else "law"

    @property
    def safe_output_size(self) -> int:
        """Number of entries of the state that the safe output remembers."""
        return memory_size(self.safe_output_kind, self.system.nu)

    @property
    def problems(self) -> int:
        """Number of QPs of a tick, each with an active set: those of all levels, and one."""
        return len(self.levels) + self.has_weighed_forces + 1 if self.levels else 1

    @property
    def delay_ticks(self) -> int:
        """Ticks from a measurement to the moment at which its control acts, by the model too."""
        return (self.delay or 0) + actuator_delay_ticks(self.system, self.period)

    @property
    def plant_of_servos(self) -> ServoPlant:
        """What the servos are stepped by."""
        kind, step = self.servo_plant, self.servo_timestep
        return servo_plant_of(self.system, kind, step, self.period, self.delay_ticks)

    @cached_property
    def servos(self) -> Servos | None:
        """What the servos do during a tick; None where there is none."""
        return servos_of(self.system, self.plant_of_servos)

    @property
    def tick(self) -> Tick:
        """How a tick of the plant advances coordinates."""
        return Tick(self.period, self.plant_of_servos.advance_share)

    @property
    def held_joints(self) -> tuple[str, ...]:
        """Joints, by name, that are held as rigid springs."""
        return () if self.rigid_springs is None else tuple(self.rigid_springs.joints)

    @property
    def added_inertia(self) -> Callable[[Array], Array] | None:
        """From a pose to the inertia with what the servos add to it during a tick."""
        servos, system = self.servos, self.system
        return None if servos is None else lambda q: servos.inertia(system, q)

    @cached_property
    def ranges(self) -> Ranges:
        """Ranges of controls and forces, without the ends at which servos are clipped."""
        ranges = require_ranges(self.system, self.ctrl_limits, self.force_limits)
        if self.servos is None:
            return ranges
        return unclipped_ranges(self.system, self.servos, ranges)

    @cached_property
    def torque_weights(self) -> tuple[Array, Array]:
        """The weights (nu,) of actuator forces and of their changes."""
        return torque_weights(self.system, self.torque_weight, self.torque_rate_weight)

    @cached_property
    def creep(self) -> tuple[Array, str]:
        """Weights of contacts that creep in MuJoCo, where none are given, and a note of them."""
        none = np.zeros(3 * len(self.contacts)), ""
        return creeping_weights(self) if self.force_weight is None else none

    @cached_property
    def contact_weights(self) -> Array:
        """The weights (3 nc,) of the contact forces."""
        if self.force_weight is None:
            return self.creep[0]
        return force_weights(self.force_weight, len(self.contacts))

    @cached_property
    def weighed_forces(self) -> tuple[WeighedForce, ...]:
        """All components of contact forces, then the forces of equality constraints in the cost."""
        named = [(i, name, k) for i, name in enumerate(self.contact_names) for k in range(3)]
        of_contacts = [
            WeighedForce(f"{name}.{FORCE_AXES[k]}", float(r), ("contact", name), "N", i, k)
            for (i, name, k), r in zip(named, self.contact_weights, strict=True)
        ]
        loops = self.loop_force_weights
        return (*of_contacts, *(() if loops is None else weighed_loops(loops, self)))

    @property
    def has_weighed_forces(self) -> bool:
        """Whether a force of a contact or a loop has a weight."""
        return any(each.weight for each in self.weighed_forces)

    @property
    def load_sharing(self) -> LoadSharing | None:
        """How loads are shared; limits and weights of loop forces need a way."""
        if self.sharing is None and (self.loop_force_limits or self.loop_force_weights):
            return LoadSharing()
        return self.sharing

    @cached_property
    def memory_places(self) -> dict[str, slice]:
        """Where the entries of each part are in the state behind the safe output."""
        ends = np.cumsum([0, *(len(each.memory) for each in self.bound)]).tolist()
        return {each.name: slice(*ends[k : k + 2]) for k, each in enumerate(self.bound)}

    @property
    def memory_names(self) -> tuple[str, ...]:
        """Name of each entry of the state behind the safe output."""
        return tuple(name for each in self.bound for name in each.memory)

    @property
    def memory_size(self) -> int:
        """Number of these entries."""
        return len(self.memory_names)

    @cached_property
    def followed(self) -> tuple[FollowedCoordinate, ...]:
        """What tasks may require of limited coordinates."""
        return tuple(coordinate for each in self.bound for coordinate in each.followed)

    @property
    def bounded_errors(self) -> bool:
        """Whether errors of tasks are bounded by what joints with limits can follow."""
        return bool(self.followed) and self.bound_errors is not False

    @cached_property
    def held_rows(self) -> Array:
        """(k, nv) constant rows that parts hold, behind those of equality constraints."""
        rows = [each.held for each in self.bound if each.held is not None]
        return np.vstack([np.zeros((0, self.system.nv)), *rows])

    @cached_property
    def tuning(self) -> tuple[TuningParameter, ...]:
        """The entries of the input `tuning`; none where nothing is tunable."""
        tasks = list(zip(self.tasks, self.gains, strict=True))
        contacts = list(zip(self.contact_names, self.contacts, strict=True))
        own = tuning_parameters(self.tunable, self.system, tasks, contacts)
        return (*own, *(entry for each in self.bound for entry in each.tuning))

    @cached_property
    def contact_groups(self) -> tuple[ContactGroup, ...]:
        """The contacts by body."""
        wrenches = self.internal_forces == "wrench"
        tuned = {"friction", "normals"} & set(self.tunable)
        if wrenches and tuned:
            raise ProblemError(
                f'internal_forces="wrench" with tunable {", ".join(sorted(tuned))}; expected '
                'constant ones, or internal_forces="body"'
            )
        return contact_groups_of(self.system, self.contacts, wrenches=wrenches)

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Slices of the reference, in order."""
        slots = [slot for task in self.tasks for slot in task.slots(self.system)]
        if self.torque_reference:
            names = self.system.actuator_names
            slots.append(Slot("torque", names, ("N or N m",) * self.system.nu))
        return (*slots, *(force_slots(self) if self.force_reference else ()))

    @checked
    def reference(self, values: Values | None = None, /, **slices: ArrayLike | Moving) -> Array:
        """Return the reference (nref,) with these slices; the rest holds the model's first pose.

        Args:
            values: by name, `{"base.acceleration": [0, 0, 1]}`.
            slices: the same as keywords, with `_` for dots: `base_acceleration=[0, 0, 1]`.

        A `Pose`, or a sample of a motion, goes by the name of its task: `hand=pose`.

        Raises:
            UnknownNameError: no such slice; the message lists those there are.
            ShapeError: a slice of a wrong size.
            ProblemError: a pose for what has none.
        """
        return self.reference_at(initial_pose(self.system), merged(values, slices))

    def example_inputs(self) -> dict[str, Array]:
        """Return a keyframe or the initial pose, and the reference that holds it."""
        pose = start_pose(self.system)
        return pose_inputs(self.system, pose) | {"ref": self.reference_at(pose)}

    @checked
    def reference_at(self, q: ArrayLike, values: Values | None = None) -> Array:
        """Return the reference (nref,) that holds the pose q at rest, with these slices changed.

        Args:
            q: (nq,) pose.
            values: slices with another value, by name.

        Raises:
            UnknownNameError: no such slice; the message lists those there are.
            ShapeError: a wrong shape.
        """
        pose = pose_of(self.system, "q", q, finite=False)
        held: dict[str, ArrayLike] = {}
        for task in self.tasks:
            held |= hold_by_task(task, self.system)(pose)
        return fill_reference(self.slots, values or {}, fill_reference(self.slots, held))


def require_system(system: System) -> None:
    """Raise for systems that inverse dynamics does not support."""
    if system.nu == 0:
        raise ProblemError(f"'{system.name}' has no actuators; expected at least one")
    if system.timed:
        raise ProblemError(
            f"'{system.name}' has constraints that depend on time; the controller has no clock. "
            "Make the moving quantity a task"
        )


def require_tasks(setup: Setup) -> None:
    """Raise for no task, two with one name, or nothing with a positive weight."""
    if not setup.tasks:
        raise ProblemError("no tasks; expected at least one, such as PostureTask()")
    names = [task.name for task in setup.tasks]
    if len(set(names)) != len(names):
        raise ProblemError(f"tasks are named {', '.join(names)}; expected different names")
    if not any(np.any(each.weight > 0) for each in setup.gains):
        raise ProblemError("all task weights are zero; expected at least one that is positive")


def require_levels(setup: Setup) -> None:
    """Raise unless the levels, where there are any, hold each task once and nothing unknown.

    Raises:
        UnknownNameError: there is no such task.
        ProblemError: a task in no level or in two, an empty level, a damping of one or more.
    """
    if not setup.levels:
        return
    names, levels = [task.name for task in setup.tasks], setup.levels
    members = [name for level in levels for name in level]
    for member in members:
        require_name("task of a level", member, names)
    if sorted(members) != sorted(names) or not all(levels):
        raise ProblemError(
            f"levels = {[list(level) for level in levels]}; expected each task once, in levels "
            f"that are not empty: {', '.join(names)}"
        )
    if setup.level_damping >= 1:
        raise ProblemError(
            f"level_damping = {setup.level_damping:g}; expected less than 1, the usual strength of "
            "a task"
        )


def require_slides(setup: Setup) -> None:
    """Raise for sliding contacts whose loads are shared, or for a task that has no velocity.

    Loads of contacts that slide are not shared: friction follows them.
    """
    for contact in setup.contacts:
        if contact.slide_task:
            slide_task_of(setup, contact)
    slides = [contact.frame for contact in setup.contacts if contact.slides]
    if slides and setup.sharing is not None and setup.sharing.rows == "all":
        raise ProblemError(
            f"contact '{slides[0]}' slides, with LoadSharing(rows=\"all\"); expected "
            'rows="loops": the friction of a sliding contact follows its normal force'
        )


def require_fallback_law(setup: Setup) -> None:
    """Raise unless a fallback law takes (q, v, ref, mask) and returns u."""
    law = setup.fallback_law
    if law is None:
        return
    system = setup.system
    sizes = tuple(law.size1_in(i) * law.size2_in(i) for i in range(law.n_in()))
    expected = (moving_size(system), system.nv, setup.nref, len(setup.mask_names))
    if sizes != expected or law.n_out() < 1 or law.numel_out(0) != system.nu:
        nq, nv, nref, nmask = expected
        raise ProblemError(
            f"fallback law {law}; expected (q[{nq}], v[{nv}], ref[{nref}], mask[{nmask}]) -> "
            f"(u[{system.nu}])"
        )


CONTACT_SLOT, LOOP_SLOT = "force", "loop_force"
"""Slices of the reference."""


def force_slots(setup: Setup) -> list[Slot]:
    """Return the slices of the reference that hold forces.

    Raises:
        ProblemError: no force has a weight.
    """
    slots, count = [], 3 * len(setup.contacts)
    parts = {CONTACT_SLOT: setup.weighed_forces[:count], LOOP_SLOT: setup.weighed_forces[count:]}
    for name, forces in parts.items():
        if any(each.weight for each in forces):
            names, units = (tuple(getattr(x, key) for x in forces) for key in ("name", "unit"))
            slots.append(Slot(name, names, units))
    if not slots:
        raise ProblemError(
            f"a reference of {len(setup.contacts)} contact forces with force_weight = "
            f"{setup.force_weight or 0}; expected contacts and a positive weight, or "
            "loop_force_weights"
        )
    return slots
