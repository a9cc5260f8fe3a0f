"""Control laws of constrained mechanisms as named Functions that become C."""

from mbcasadi.control import laws, regulators
from mbcasadi.control.inverse_dynamics.actuator_limits import ActuatorLimits
from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.control.inverse_dynamics.distance_limits import DistanceLimits
from mbcasadi.control.inverse_dynamics.explanation import Explanation
from mbcasadi.control.inverse_dynamics.joint_limits import JointLimits
from mbcasadi.control.inverse_dynamics.load_sharing import LoadSharing
from mbcasadi.control.inverse_dynamics.loop_force_limits import LoopForceLimits
from mbcasadi.control.inverse_dynamics.observer import DisturbanceObserver
from mbcasadi.control.inverse_dynamics.soft_limits import SoftLimit
from mbcasadi.control.inverse_dynamics.solution import CondensedQP, InverseDynamicsSolution
from mbcasadi.control.law_interface.with_fallback import with_fallback
from mbcasadi.control.tasks.axis_task import DirectionTask, LookAtTask
from mbcasadi.control.tasks.check_task import TaskCheck, check_task
from mbcasadi.control.tasks.com_task import ComTask
from mbcasadi.control.tasks.distance_task import DistanceTask
from mbcasadi.control.tasks.frame_task import FrameTask
from mbcasadi.control.tasks.function_task import FunctionTask
from mbcasadi.control.tasks.momentum_task import MomentumTask
from mbcasadi.control.tasks.output_task import OutputTask
from mbcasadi.control.tasks.posture_task import PostureTask
from mbcasadi.control.tasks.task import Gains, Residual, Slot, Task, TaskRows

__all__ = [
    "ActuatorLimits",
    "ComTask",
    "CondensedQP",
    "DirectionTask",
    "DistanceLimits",
    "DistanceTask",
    "DisturbanceObserver",
    "Explanation",
    "FrameTask",
    "FunctionTask",
    "Gains",
    "InverseDynamicsQP",
    "InverseDynamicsSolution",
    "JointLimits",
    "LoadSharing",
    "LookAtTask",
    "LoopForceLimits",
    "MomentumTask",
    "OutputTask",
    "PostureTask",
    "Residual",
    "Slot",
    "SoftLimit",
    "Task",
    "TaskCheck",
    "TaskRows",
    "check_task",
    "laws",
    "regulators",
    "with_fallback",
]
