"""Model predictive control of mechanisms with constraints."""

from mbcasadi.control.mpc.handing_on import (
    to_acados_model,
    to_do_mpc_model,
    to_opti,
    to_rockit,
)
from mbcasadi.control.mpc.legged.body import rigid_body_state, single_rigid_body
from mbcasadi.control.mpc.legged.gait import Gait, trot
from mbcasadi.control.mpc.legged.rigid_body_mpc import single_rigid_body_mpc
from mbcasadi.control.mpc.legged.rigid_body_parts import SingleRigidBody
from mbcasadi.control.mpc.legged.walking_guide import WalkingGuide, walking_guide
from mbcasadi.control.mpc.legged.walking_parts import Stepping
from mbcasadi.control.mpc.linear.force_outputs import force_output, friction_output
from mbcasadi.control.mpc.linear.lti import LinearMPC, lti_mpc
from mbcasadi.control.mpc.linear.mechanism import deviation_output, linear_mpc
from mbcasadi.control.mpc.linear.model import LinearModel, Output
from mbcasadi.control.mpc.linear.offset_free import offset_free_lti, offset_free_mpc
from mbcasadi.control.mpc.linear.problem import LinearProblem, linear_problem
from mbcasadi.control.mpc.linear.terminal_set import TerminalSet
from mbcasadi.control.mpc.linear.violations import Violation
from mbcasadi.control.mpc.nonlinear.collocation import collocated, collocation_guess
from mbcasadi.control.mpc.nonlinear.integrators import discrete_dynamics, step_fun
from mbcasadi.control.mpc.nonlinear.ocp import OptimalControlProblem
from mbcasadi.control.mpc.nonlinear.ocp_solution import OcpSolution, guess_of, rollout
from mbcasadi.control.mpc.nonlinear.ocp_stage import Bounded, StageSymbols, stage_symbols
from mbcasadi.control.mpc.nonlinear.problem import optimal_control_problem
from mbcasadi.control.mpc.nonlinear.solve import OcpSolver, ocp_solver, solve
from mbcasadi.control.mpc.real_time.controller import RealTimeIteration, real_time_iteration
from mbcasadi.control.mpc.trajectory.actuation_measure import actuation_measure
from mbcasadi.control.mpc.trajectory.linear_mpc import moving_model, trajectory_mpc
from mbcasadi.control.mpc.trajectory.optimisation import (
    TrajectorySolver,
    optimise,
    trajectory_guess,
    trajectory_solver,
)
from mbcasadi.control.mpc.trajectory.pose_path import PosePath, pose_path
from mbcasadi.control.mpc.trajectory.problem import TrajectoryProblem, trajectory_problem
from mbcasadi.control.mpc.trajectory.rows import fixed_freedoms
from mbcasadi.control.mpc.trajectory.solution import TrajectorySolution
from mbcasadi.control.mpc.trajectory.tracking import (
    linearize_trajectory,
    moving_reference,
    tracking_guess,
)

__all__ = [
    "Bounded",
    "Gait",
    "LinearMPC",
    "LinearModel",
    "LinearProblem",
    "OcpSolution",
    "OcpSolver",
    "OptimalControlProblem",
    "Output",
    "PosePath",
    "RealTimeIteration",
    "SingleRigidBody",
    "StageSymbols",
    "Stepping",
    "TerminalSet",
    "TrajectoryProblem",
    "TrajectorySolution",
    "TrajectorySolver",
    "Violation",
    "WalkingGuide",
    "actuation_measure",
    "collocated",
    "collocation_guess",
    "deviation_output",
    "discrete_dynamics",
    "fixed_freedoms",
    "force_output",
    "friction_output",
    "guess_of",
    "linear_mpc",
    "linear_problem",
    "linearize_trajectory",
    "lti_mpc",
    "moving_model",
    "moving_reference",
    "ocp_solver",
    "offset_free_lti",
    "offset_free_mpc",
    "optimal_control_problem",
    "optimise",
    "pose_path",
    "real_time_iteration",
    "rigid_body_state",
    "rollout",
    "single_rigid_body",
    "single_rigid_body_mpc",
    "solve",
    "stage_symbols",
    "step_fun",
    "to_acados_model",
    "to_do_mpc_model",
    "to_opti",
    "to_rockit",
    "tracking_guess",
    "trajectory_guess",
    "trajectory_mpc",
    "trajectory_problem",
    "trajectory_solver",
    "trot",
    "walking_guide",
]
