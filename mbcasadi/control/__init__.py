"""Control laws of constrained mechanisms as named Functions that become C."""

from mbcasadi.control import laws, regulators
from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.control.inverse_dynamics.solution import CondensedQP, InverseDynamicsSolution
from mbcasadi.control.law_interface.with_fallback import with_fallback
from mbcasadi.control.tasks.com_task import ComTask
from mbcasadi.control.tasks.frame_task import FrameTask
from mbcasadi.control.tasks.posture_task import PostureTask
from mbcasadi.control.tasks.task import Gains, Slot, Task, TaskRows

__all__ = [
    "ComTask",
    "CondensedQP",
    "FrameTask",
    "Gains",
    "InverseDynamicsQP",
    "InverseDynamicsSolution",
    "PostureTask",
    "Slot",
    "Task",
    "TaskRows",
    "laws",
    "regulators",
    "with_fallback",
]
