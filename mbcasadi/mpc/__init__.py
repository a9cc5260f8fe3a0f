"""Model predictive control of mechanisms with constraints."""

from mbcasadi.control.regulators.innovation_gate import Gate
from mbcasadi.mpc.integrators.semi_implicit import SemiImplicitStep
from mbcasadi.mpc.integrators.step import discrete_dynamics, step_fun
from mbcasadi.mpc.integrators.step_options import DynamicsOptions, StepOptions
from mbcasadi.mpc.legged.capture_point import capture_point, support_margin
from mbcasadi.mpc.legged.capture_step import CaptureStep, StepParameters, capture_step
from mbcasadi.mpc.legged.footsteps import SwingParameters
from mbcasadi.mpc.legged.from_system import rigid_body_state, single_rigid_body
from mbcasadi.mpc.legged.gait import Gait
from mbcasadi.mpc.legged.gait import bound as bound
from mbcasadi.mpc.legged.gait import pace as pace
from mbcasadi.mpc.legged.gait import pronk as pronk
from mbcasadi.mpc.legged.gait import trot as trot
from mbcasadi.mpc.legged.gait import walk as walk
from mbcasadi.mpc.legged.rigid_body import SingleRigidBody
from mbcasadi.mpc.legged.rigid_body_controller import RigidBodyPlan, SingleRigidBodyMPC
from mbcasadi.mpc.legged.rigid_body_mpc import single_rigid_body_mpc
from mbcasadi.mpc.legged.touch_down import TouchDown
from mbcasadi.mpc.legged.walking_planner import WalkingPlanner, walking_planner
from mbcasadi.mpc.linear.controller import LinearMPC
from mbcasadi.mpc.linear.disturbance import Noise
from mbcasadi.mpc.linear.force_outputs import force_output, friction_output
from mbcasadi.mpc.linear.linear_mpc import deviation_output, linear_mpc, lti_mpc
from mbcasadi.mpc.linear.model import LinearModel, Output
from mbcasadi.mpc.linear.offset_free import offset_free_lti, offset_free_mpc
from mbcasadi.mpc.linear.problem import LinearOptions, LinearProblem, linear_problem
from mbcasadi.mpc.linear.terminal_set import TerminalSet
from mbcasadi.mpc.linear.violations import Violation
from mbcasadi.mpc.ocp.collocation import collocation_guess, direct_collocation
from mbcasadi.mpc.ocp.contact_cones import ContactCones
from mbcasadi.mpc.ocp.contact_landing import ContactLanding
from mbcasadi.mpc.ocp.contact_schedule import ContactSchedule
from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.mpc.ocp.disturbance import Disturbance
from mbcasadi.mpc.ocp.joint_ranges import JointRanges
from mbcasadi.mpc.ocp.make_problem import optimal_control_problem
from mbcasadi.mpc.ocp.problem import OptimalControlProblem
from mbcasadi.mpc.ocp.regulator_weight import periodic_weights, regulator_weight
from mbcasadi.mpc.ocp.solution import OcpSolution, initial_guess
from mbcasadi.mpc.ocp.solution import rollout as rollout
from mbcasadi.mpc.ocp.solver import OcpSolver, ocp_solver, solve_ocp
from mbcasadi.mpc.ocp.stage import StageSymbols, stage_symbols
from mbcasadi.mpc.ocp.stage_bounds import StageBounds
from mbcasadi.mpc.ocp.stage_forces import StageForces
from mbcasadi.mpc.rti.controller import real_time_iteration
from mbcasadi.mpc.rti.iteration import RealTimeIteration
from mbcasadi.mpc.trajectory.actuation_measure import actuation_measure
from mbcasadi.mpc.trajectory.constraints import pin_independent_coordinates
from mbcasadi.mpc.trajectory.initial_state import Start
from mbcasadi.mpc.trajectory.layout import ControlRate, TimeCost
from mbcasadi.mpc.trajectory.optimisation import (
    TrajectorySolver,
    solve_trajectory,
    trajectory_guess,
    trajectory_solver,
)
from mbcasadi.mpc.trajectory.pose_path import PosePath, pose_path
from mbcasadi.mpc.trajectory.problem import TrajectoryProblem, trajectory_problem
from mbcasadi.mpc.trajectory.reference import (
    linearize_trajectory,
    reference_from_trajectory,
    tracking_guess,
)
from mbcasadi.mpc.trajectory.solution import TrajectorySolution
from mbcasadi.mpc.trajectory.tracking_mpc import time_varying_model, trajectory_mpc
from mbcasadi.mpc.whole_body.default_cost import ActuatorForceCost, default_cost
from mbcasadi.mpc.whole_body.options import WholeBodyOptions
from mbcasadi.mpc.whole_body.standing import Standing
from mbcasadi.mpc.whole_body.swing_feet import SwingFeet
from mbcasadi.mpc.whole_body.task_command import task_command
from mbcasadi.mpc.whole_body.whole_body_mpc import WholeBodyMPC, whole_body_mpc
from mbcasadi.qp.rows import Bounded

__all__ = [
    "ActuatorForceCost",
    "Bounded",
    "CaptureStep",
    "ContactCones",
    "ContactLanding",
    "ContactSchedule",
    "ControlRate",
    "Cost",
    "Disturbance",
    "DynamicsOptions",
    "Gait",
    "Gate",
    "JointRanges",
    "LinearMPC",
    "LinearModel",
    "LinearOptions",
    "LinearProblem",
    "Noise",
    "OcpSolution",
    "OcpSolver",
    "OptimalControlProblem",
    "Output",
    "PosePath",
    "RealTimeIteration",
    "RigidBodyPlan",
    "SemiImplicitStep",
    "SingleRigidBody",
    "SingleRigidBodyMPC",
    "StageBounds",
    "StageForces",
    "StageSymbols",
    "Standing",
    "Start",
    "StepOptions",
    "StepParameters",
    "SwingFeet",
    "SwingParameters",
    "TerminalSet",
    "TimeCost",
    "TouchDown",
    "TrajectoryProblem",
    "TrajectorySolution",
    "TrajectorySolver",
    "Violation",
    "WalkingPlanner",
    "WholeBodyMPC",
    "WholeBodyOptions",
    "actuation_measure",
    "capture_point",
    "capture_step",
    "collocation_guess",
    "default_cost",
    "deviation_output",
    "direct_collocation",
    "discrete_dynamics",
    "force_output",
    "friction_output",
    "initial_guess",
    "linear_mpc",
    "linear_problem",
    "linearize_trajectory",
    "lti_mpc",
    "ocp_solver",
    "offset_free_lti",
    "offset_free_mpc",
    "optimal_control_problem",
    "periodic_weights",
    "pin_independent_coordinates",
    "pose_path",
    "real_time_iteration",
    "reference_from_trajectory",
    "regulator_weight",
    "rigid_body_state",
    "single_rigid_body",
    "single_rigid_body_mpc",
    "solve_ocp",
    "solve_trajectory",
    "stage_symbols",
    "step_fun",
    "support_margin",
    "task_command",
    "time_varying_model",
    "tracking_guess",
    "trajectory_guess",
    "trajectory_mpc",
    "trajectory_problem",
    "trajectory_solver",
    "walking_planner",
    "whole_body_mpc",
]

NOT_STARRED = ("bound", "pace", "pronk", "rollout", "trot", "walk")
"""Public names that `import *` leaves out: they are words that people have variables of."""
