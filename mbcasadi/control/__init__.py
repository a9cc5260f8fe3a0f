"""Control laws of constrained mechanisms as named Functions that become C."""

from mbcasadi.control import laws, linear, mpc
from mbcasadi.control.frame_task import FrameTask
from mbcasadi.control.inverse_dynamics import InverseDynamicsQP
from mbcasadi.control.posture import PostureTask
from mbcasadi.control.solution import CondensedQP, InverseDynamicsSolution
from mbcasadi.control.tasks import Gains, Slot, Task, TaskRows

__all__ = [
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
    "linear",
    "mpc",
]
