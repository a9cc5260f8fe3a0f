"""Options of an inverse-dynamics controller, checked where they are given, and derived values."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.inverse_dynamics.actuator_delay import actuator_delay_ticks
from mbcasadi.control.inverse_dynamics.contacts.contact_groups import (
    ContactGroup,
    contact_groups_of,
)
from mbcasadi.control.inverse_dynamics.contacts.creeping import creeping_speeds, creeping_weights
from mbcasadi.control.inverse_dynamics.contacts.force_feedback import (
    ForceFeedback,
    PerForce,
    force_weights,
    require_feedback,
)
from mbcasadi.control.inverse_dynamics.contacts.load_ramp import LoadRamp
from mbcasadi.control.inverse_dynamics.friction_loss import FrictionLoss, require_losses
from mbcasadi.control.inverse_dynamics.level_names import LEVEL_DAMPING, require_levels
from mbcasadi.control.inverse_dynamics.limits.actuator_limits import (
    ActuatorLimits,
    LimitedActuators,
    PerActuator,
    limited_actuators,
)
from mbcasadi.control.inverse_dynamics.limits.distance_limits import (
    DistanceLimits,
    LimitedDistances,
    limited_distances,
)
from mbcasadi.control.inverse_dynamics.limits.joint_limits import (
    JointLimits,
    LimitedJoints,
    limited_joints,
)
from mbcasadi.control.inverse_dynamics.limits.loop_force_limits import LoopForceLimits, limited_rows
from mbcasadi.control.inverse_dynamics.limits.soft_limits import (
    SoftLimit,
    price_parameters,
    require_once,
)
from mbcasadi.control.inverse_dynamics.limits.tuned_limits import limit_parameters
from mbcasadi.control.inverse_dynamics.load_sharing import LoadSharing
from mbcasadi.control.inverse_dynamics.loop_force_weights import (
    LoopForceWeights,
    WeighedRow,
    weighed_rows,
)
from mbcasadi.control.inverse_dynamics.memory.last_force import torque_weights
from mbcasadi.control.inverse_dynamics.memory.observer import (
    DisturbanceObserver,
    learning_gain,
)
from mbcasadi.control.inverse_dynamics.memory.parts import memory_parts
from mbcasadi.control.inverse_dynamics.option_checks import (
    require_fallback_law,
    require_rows_of_levels,
    require_slides,
    require_system,
    require_tasks,
)
from mbcasadi.control.inverse_dynamics.rigid_springs import (
    RigidSprings,
    limits_beside_springs,
    require_springs,
    spring_map,
)
from mbcasadi.control.inverse_dynamics.servos.servo_stability import require_stable
from mbcasadi.control.inverse_dynamics.servos.servos import (
    ServoPlant,
    Servos,
    servo_plant_of,
    servos_of,
)
from mbcasadi.control.inverse_dynamics.servos.unclipped import unclipped_ranges
from mbcasadi.control.inverse_dynamics.tuning import TUNABLE, tuning_parameters
from mbcasadi.control.inverse_dynamics.weighed_forces import force_costs, force_slots
from mbcasadi.control.safe_output.safe_output import FALLBACKS, memory_size
from mbcasadi.control.tasks.reference import (
    Slices,
    fill_reference,
    hold_by_task,
    merged,
    slot_slices,
)
from mbcasadi.control.tasks.task import Gains, Slot, Task, gains_of
from mbcasadi.description import Contact, TuningParameter
from mbcasadi.errors import ProblemError
from mbcasadi.qp.friction_cone import require_contacts
from mbcasadi.qp.solver import require_solver
from mbcasadi.shapes import (
    require_choice,
    require_identifier,
    require_numbers,
    require_positive,
    unique,
)
from mbcasadi.system import System
from mbcasadi.system.coordinates import (
    equality_groups,
    initial_pose,
    pose_inputs,
    pose_of,
    start_pose,
)
from mbcasadi.system.ranges import Ranges, require_ranges

Array = NDArray[np.float64]

INTERNAL_FORCES = ("body", "none", "wrench")

TORQUE_WEIGHT = 1e-7
"""Share of the tasks' cost that an actuator force costs which moves them as much."""

INTERNAL_FORCE_WEIGHT = 1e-5
"""The same of internal contact forces, which move nothing."""

CONTACT_RANK_TOL = 1e-3
"""A constraint direction weaker than this, relative to its usual strength, is dropped: a redundant
row of several contacts is as strong as the contacts' poses are wrong, and if it were kept, the
mechanism could not move. A true direction that is this weak needs forces a thousand times larger
than others."""


@dataclass(frozen=True, eq=False)
class Setup:
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
        for name in ("tasks", "contacts", "soft", "tunable"):
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
        require_tasks(self.tasks, self.gains)
        require_levels([task.name for task in self.tasks], self.levels, self.level_damping)
        require_rows_of_levels(self)
        require_contacts(self.contacts)
        require_once(self.soft)
        require_springs(self)
        _ = self.limited_joints, limited_rows(self), self.limited_distances, self.contact_groups
        if self.observer is not None:
            learning_gain(self.observer, self.period, self.delay_ticks)
        _ = self.limited_actuators, self.torque_weights
        require_slides(self)
        require_losses(self)
        require_feedback(
            self.force_feedback,
            self.force_costs,
            self.force_reference,
            (self.period, self.delay_ticks),
        )
        if self.servos is not None:
            require_stable(self, self.servos)
        require_fallback_law(self)

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
        forces = bool(np.any(self.contact_weights))
        return len(self.levels) + forces + 1 if self.levels else 1

    @cached_property
    def servos(self) -> Servos | None:
        """What the servos do during a tick; None where there is none."""
        return servos_of(self)

    @property
    def plant_of_servos(self) -> ServoPlant:
        """What the servos are stepped by."""
        return servo_plant_of(self)

    @cached_property
    def torque_weights(self) -> tuple[Array, Array]:
        """The weights (nu,) of actuator forces and of their changes."""
        return torque_weights(self.system, self.torque_weight, self.torque_rate_weight)

    @cached_property
    def creeping_speeds(self) -> tuple[float, ...]:
        """How fast each contact creeps at the edge of its friction cone in MuJoCo, m/s."""
        return creeping_speeds(self.system, tuple(self.contacts))

    @cached_property
    def contact_weights(self) -> Array:
        """The weights (3 nc,) of the contact forces."""
        if self.force_weight is None:
            return creeping_weights(self)
        return force_weights(self.force_weight, len(self.contacts))

    @cached_property
    def weighed_loops(self) -> tuple[WeighedRow, ...]:
        """The forces of equality constraints in the cost."""
        return weighed_rows(self)

    @cached_property
    def force_costs(self) -> Array:
        """The weights of the contact forces, then of the forces of `weighed_loops`."""
        return force_costs(self)

    @cached_property
    def limited_actuators(self) -> LimitedActuators | None:
        """The limits of the actuators beside the model's ranges; None where there are none."""
        limits = self.actuator_limits
        return None if limits is None else limited_actuators(self.system, limits)

    @property
    def remembers_force(self) -> bool:
        """Whether the state holds the forces of the last tick."""
        limits = self.limited_actuators
        has_rate = limits is not None and bool(np.any(np.isfinite(limits.rate)))
        return has_rate or bool(np.any(self.torque_weights[1]))

    @cached_property
    def memory_parts(self) -> dict[str, tuple[str, ...]]:
        """Names of the entries of the state behind the safe output, by what they belong to."""
        return memory_parts(self)

    @cached_property
    def memory_places(self) -> dict[str, slice]:
        """Where each of these parts is."""
        ends = np.cumsum([0, *map(len, self.memory_parts.values())]).tolist()
        return {name: slice(*ends[k : k + 2]) for k, name in enumerate(self.memory_parts)}

    @property
    def memory_names(self) -> tuple[str, ...]:
        """Name of each entry of the state behind the safe output."""
        return tuple(name for names in self.memory_parts.values() for name in names)

    @property
    def memory_size(self) -> int:
        """Number of these entries."""
        return len(self.memory_names)

    @property
    def bounded_errors(self) -> bool:
        """Whether errors of tasks are bounded by what joints with limits can follow."""
        return self.limited_joints is not None and self.bound_errors is not False

    @property
    def delay_ticks(self) -> int:
        """Ticks from a measurement to the moment at which its control acts, by the model too."""
        return (self.delay or 0) + actuator_delay_ticks(self.system, self.period)

    @cached_property
    def gains(self) -> tuple[Gains, ...]:
        """Gains and weights of each task."""
        return tuple(gains_of(task, self.system) for task in self.tasks)

    @cached_property
    def tuning(self) -> tuple[TuningParameter, ...]:
        """The entries of the input `tuning`; none where nothing is tunable."""
        tasks = list(zip(self.tasks, self.gains, strict=True))
        contacts = list(zip(self.contact_names, self.contacts, strict=True))
        own = tuning_parameters(self.tunable, self.system, tasks, contacts)
        limits: list[TuningParameter] = []
        if "limits" in self.tunable:
            names = self.system.actuator_names
            limits = limit_parameters(
                names,
                self.limited_actuators,
                limited_rows(self),
                self.limited_joints,
                self.limited_distances,
            )
        prices = price_parameters(self.soft) if "prices" in self.tunable else []
        return (*own, *limits, *prices)

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
    def contact_names(self) -> tuple[str, ...]:
        """A unique name for each contact."""
        return unique([contact.frame for contact in self.contacts])

    @cached_property
    def equality_sizes(self) -> tuple[int, ...]:
        """Rows of each equality constraint."""
        return equality_groups(self.system)[1]

    @cached_property
    def spring_map(self) -> Array:
        """(k, nv) the rates of the springs that are held, as a map of v."""
        return spring_map(self.system, self.rigid_springs)

    @cached_property
    def mask_names(self) -> tuple[str, ...]:
        """Name of each entry of `mask`: contacts, then equality constraints."""
        return self.contact_names + equality_groups(self.system)[0]

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Slices of the reference, in order."""
        slots = [slot for task in self.tasks for slot in task.slots(self.system)]
        if self.torque_reference:
            names = self.system.actuator_names
            slots.append(Slot("torque", names, ("N or N m",) * self.system.nu))
        if self.force_reference:
            slots += force_slots(self)
        return tuple(slots)

    @cached_property
    def reference_slices(self) -> dict[str, slice]:
        """Slices of `ref`, by `<task>.<quantity>`."""
        return slot_slices(self.slots)

    @property
    def nref(self) -> int:
        """Size of the reference."""
        return sum(slot.size for slot in self.slots)

    @cached_property
    def ranges(self) -> Ranges:
        """Ranges of controls and forces, without the ends at which servos are clipped."""
        ranges = require_ranges(self.system, self.ctrl_limits, self.force_limits)
        if self.servos is None:
            return ranges
        return unclipped_ranges(self.system, self.servos, ranges)

    @property
    def load_sharing(self) -> LoadSharing | None:
        """How loads are shared; limits and weights of loop forces need a way."""
        if self.sharing is None and (self.loop_force_limits or self.loop_force_weights):
            return LoadSharing()
        return self.sharing

    @cached_property
    def limited_joints(self) -> LimitedJoints | None:
        """The limits of joints as numbers."""
        if self.joint_limits is None:
            return None
        limits = limits_beside_springs(self, self.joint_limits)
        servos, system = self.servos, self.system
        inertia = None if servos is None else lambda q: servos.inertia(system, q)
        return limited_joints(system, limits, self.ranges, self.period, inertia)

    @cached_property
    def limited_distances(self) -> LimitedDistances | None:
        """The pairs whose distance is kept."""
        if self.distance_limits is None:
            return None
        used = [contact.frame for contact in self.contacts]
        return limited_distances(self.system, self.distance_limits, used)

    @checked
    def reference(self, values: Slices | None = None, /, **slices: ArrayLike) -> Array:
        """Return the reference (nref,) with these slices; the rest holds the model's first pose.

        Args:
            values: by name, `{"base.acceleration": [0, 0, 1]}`.
            slices: the same as keywords, with `_` for dots: `base_acceleration=[0, 0, 1]`.

        Raises:
            UnknownNameError: no such slice; the message lists those there are.
            ShapeError: a slice of a wrong size.
        """
        return self.reference_at(initial_pose(self.system), merged(values, slices))

    def example_inputs(self) -> dict[str, Array]:
        """Return a keyframe or the initial pose, and the reference that holds it."""
        pose = start_pose(self.system)
        return pose_inputs(self.system, pose) | {"ref": self.reference_at(pose)}

    @checked
    def reference_at(self, q: ArrayLike, values: Slices | None = None) -> Array:
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
