"""Model predictive control of mechanisms with constraints."""

from mbcasadi.control.mpc.linear import LinearMPC, lti_mpc
from mbcasadi.control.mpc.linear_model import LinearModel, Output
from mbcasadi.control.mpc.linear_problem import LinearProblem, linear_problem
from mbcasadi.control.mpc.mechanism import deviation_output, linear_mpc
from mbcasadi.control.mpc.ocp import OptimalControlProblem
from mbcasadi.control.mpc.offset_free import offset_free_lti, offset_free_mpc

__all__ = [
    "LinearMPC",
    "LinearModel",
    "LinearProblem",
    "OptimalControlProblem",
    "Output",
    "deviation_output",
    "linear_mpc",
    "linear_problem",
    "lti_mpc",
    "offset_free_lti",
    "offset_free_mpc",
]
