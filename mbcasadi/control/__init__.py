"""Control laws of constrained mechanisms as named Functions that become C."""

from typing import TYPE_CHECKING

from mbcasadi.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbcasadi.contacts.touch_down import touch_down
    from mbcasadi.control import laws as laws
    from mbcasadi.control import regulators as regulators
    from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
    from mbcasadi.control.inverse_dynamics.explaining.explanation import Explanation
    from mbcasadi.control.inverse_dynamics.parts.force_feedback import ForceFeedback
    from mbcasadi.control.inverse_dynamics.parts.friction_loss import FrictionLoss
    from mbcasadi.control.inverse_dynamics.parts.load_ramp import LoadRamp
    from mbcasadi.control.inverse_dynamics.parts.load_sharing import LoadSharing
    from mbcasadi.control.inverse_dynamics.parts.loop_force_weights import LoopForceWeights
    from mbcasadi.control.inverse_dynamics.parts.observer import DisturbanceObserver
    from mbcasadi.control.inverse_dynamics.parts.rigid_springs import RigidSprings
    from mbcasadi.control.inverse_dynamics.proposed_gains import (
        ProposedGains,
        gains_from_bandwidth,
        propose_gains,
    )
    from mbcasadi.control.inverse_dynamics.solution import CondensedQP, InverseDynamicsSolution
    from mbcasadi.control.law_interface.control_law import ControlLaw
    from mbcasadi.control.law_interface.control_solution import ControlSolution
    from mbcasadi.control.law_interface.options import LawOptions
    from mbcasadi.control.law_interface.with_fallback import with_fallback
    from mbcasadi.control.limits.actuator_limits import ActuatorLimits
    from mbcasadi.control.limits.angular_momentum import AngularMomentumLimit
    from mbcasadi.control.limits.distance_limits import DistanceLimits
    from mbcasadi.control.limits.half_space import HalfSpace
    from mbcasadi.control.limits.joint_limits import JointLimits
    from mbcasadi.control.limits.kept_pairs import KeptPairs
    from mbcasadi.control.limits.loop_force_limits import LoopForceLimits
    from mbcasadi.control.limits.soft_limits import SoftLimit
    from mbcasadi.control.modes import ControlMode, SequencedLaw, Transition
    from mbcasadi.control.modes.sequence import sequence as sequence
    from mbcasadi.control.policy import PolicyLaw, with_policy
    from mbcasadi.control.tasks.axis_task import DirectionTask, LookAtTask
    from mbcasadi.control.tasks.check_task import TaskCheck, check_task
    from mbcasadi.control.tasks.com_task import ComTask
    from mbcasadi.control.tasks.distance_task import DistanceTask
    from mbcasadi.control.tasks.frame_task import FrameTask
    from mbcasadi.control.tasks.function_task import FunctionTask
    from mbcasadi.control.tasks.joint_range_task import JointRangeTask
    from mbcasadi.control.tasks.momentum_task import MomentumTask
    from mbcasadi.control.tasks.moving import MotionReference, follow_motions
    from mbcasadi.control.tasks.output_task import OutputTask
    from mbcasadi.control.tasks.posture_task import PostureTask
    from mbcasadi.control.tasks.servo_task import ServoTask
    from mbcasadi.control.tasks.task import Gains, Residual, Slot, Task, TaskRows
    from mbcasadi.control.tick.design import Design
    from mbcasadi.control.tick.part import Bound, Part
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ActuatorLimits",
    "AngularMomentumLimit",
    "Bound",
    "ComTask",
    "CondensedQP",
    "ControlLaw",
    "ControlMode",
    "ControlSolution",
    "Design",
    "DirectionTask",
    "DistanceLimits",
    "DistanceTask",
    "DisturbanceObserver",
    "Explanation",
    "ForceFeedback",
    "FrameTask",
    "FrictionLoss",
    "FunctionTask",
    "Gains",
    "HalfSpace",
    "InverseDynamicsQP",
    "InverseDynamicsSolution",
    "JointLimits",
    "JointRangeTask",
    "KeptPairs",
    "LawOptions",
    "LoadRamp",
    "LoadSharing",
    "LookAtTask",
    "LoopForceLimits",
    "LoopForceWeights",
    "MomentumTask",
    "MotionReference",
    "OutputTask",
    "Part",
    "PolicyLaw",
    "PostureTask",
    "ProposedGains",
    "Residual",
    "RigidSprings",
    "SequencedLaw",
    "ServoTask",
    "Slot",
    "SoftLimit",
    "Task",
    "TaskCheck",
    "TaskRows",
    "Transition",
    "check_task",
    "follow_motions",
    "gains_from_bandwidth",
    "propose_gains",
    "touch_down",
    "with_fallback",
    "with_policy",
]

NOT_STARRED = ("laws", "regulators", "sequence")
"""Public names that `import *` leaves out: they are words that people have variables of."""
