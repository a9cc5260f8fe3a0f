"""Control laws of constrained mechanisms, one per file; each is exported to C unchanged."""

from mbcasadi.control.law_interface.law import Command, Law, LawInputs, LawInterface
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.options import LawOptions
from mbcasadi.control.laws.adaptive_tracking import Adaptation, adaptive_tracking
from mbcasadi.control.laws.computed_torque import computed_torque, qr_inverse_dynamics
from mbcasadi.control.laws.constraint_force import (
    MultiplierTracking,
    constraint_force_control,
    hybrid_motion_force_control,
    multiplier_tracking,
)
from mbcasadi.control.laws.dependent_coordinates import (
    DryFriction,
    dependent_regulation,
    dependent_tracking,
)
from mbcasadi.control.laws.force_loop import ForceGains
from mbcasadi.control.laws.gain_condition import GainCondition, gain_condition
from mbcasadi.control.laws.gravity_compensation import gravity_compensated_pd
from mbcasadi.control.laws.impedance import impedance_control
from mbcasadi.control.laws.input_reach import (
    InputReach,
    WorkspaceInputReach,
    input_reach,
    workspace_input_reach,
)
from mbcasadi.control.laws.poses import sampled_poses
from mbcasadi.control.laws.projected_inverse_dynamics import (
    passive_joint_control,
    projected_inverse_dynamics,
)
from mbcasadi.control.laws.quasi_velocity_tracking import (
    composite_error,
    quasi_velocity_force,
    quasi_velocity_tracking,
)
from mbcasadi.control.laws.servo import servo_control
from mbcasadi.control.laws.servo_consistency import ServoReport, servo_report
from mbcasadi.control.laws.task_coordinates import (
    Coordinates,
    chosen_coordinates,
    function_coordinates,
    joint_coordinates,
)
from mbcasadi.control.laws.within_limits import within_limits
from mbcasadi.control.tasks.servo_rows import ServoRows, keep_rows, servo_rows

__all__ = [
    "Adaptation",
    "Command",
    "Coordinates",
    "DryFriction",
    "ForceGains",
    "GainCondition",
    "InputReach",
    "Law",
    "LawInputs",
    "LawInterface",
    "LawOptions",
    "MultiplierTracking",
    "ServoReport",
    "ServoRows",
    "WorkspaceInputReach",
    "adaptive_tracking",
    "chosen_coordinates",
    "composite_error",
    "computed_torque",
    "constraint_force_control",
    "dependent_regulation",
    "dependent_tracking",
    "function_coordinates",
    "gain_condition",
    "gravity_compensated_pd",
    "hybrid_motion_force_control",
    "impedance_control",
    "input_reach",
    "joint_coordinates",
    "keep_rows",
    "make_law",
    "multiplier_tracking",
    "passive_joint_control",
    "projected_inverse_dynamics",
    "qr_inverse_dynamics",
    "quasi_velocity_force",
    "quasi_velocity_tracking",
    "sampled_poses",
    "servo_control",
    "servo_report",
    "servo_rows",
    "within_limits",
    "workspace_input_reach",
]
