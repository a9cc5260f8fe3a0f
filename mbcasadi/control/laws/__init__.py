"""Control laws of constrained mechanisms, one in each file; every one becomes C as it is."""

from mbcasadi.control.laws.computed_torque import computed_torque
from mbcasadi.control.laws.constraint_force import (
    MultiplierTracking,
    constraint_force_control,
    multiplier_tracking,
)
from mbcasadi.control.laws.controllability import (
    Controllability,
    WorkspaceControllability,
    controllability,
    workspace_controllability,
)
from mbcasadi.control.laws.coordinates import (
    Coordinates,
    chosen_coordinates,
    function_coordinates,
    joint_coordinates,
)
from mbcasadi.control.laws.dependent_regulation import dependent_regulation
from mbcasadi.control.laws.force_loop import ForceGains
from mbcasadi.control.laws.hybrid_motion_force import hybrid_motion_force_control
from mbcasadi.control.laws.law import At, Command, Law
from mbcasadi.control.laws.making import make_law
from mbcasadi.control.laws.passive_joints import passive_joint_control
from mbcasadi.control.laws.poses import sampled_poses
from mbcasadi.control.laws.projected_inverse_dynamics import projected_inverse_dynamics
from mbcasadi.control.laws.servo import servo_control
from mbcasadi.control.laws.servo_consistency import ServoReport, servo_report
from mbcasadi.control.laws.servo_rows import ServoRows, keep_rows, servo_rows

__all__ = [
    "At",
    "Command",
    "Controllability",
    "Coordinates",
    "ForceGains",
    "Law",
    "MultiplierTracking",
    "ServoReport",
    "ServoRows",
    "WorkspaceControllability",
    "chosen_coordinates",
    "computed_torque",
    "constraint_force_control",
    "controllability",
    "dependent_regulation",
    "function_coordinates",
    "hybrid_motion_force_control",
    "joint_coordinates",
    "keep_rows",
    "make_law",
    "multiplier_tracking",
    "passive_joint_control",
    "projected_inverse_dynamics",
    "sampled_poses",
    "servo_control",
    "servo_report",
    "servo_rows",
    "workspace_controllability",
]
