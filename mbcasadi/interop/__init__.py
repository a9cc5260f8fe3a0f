"""Constrained dynamics, and optimal control problems, as the objects of other packages.

`to_…` hands on the motion of a mechanism, to CasADi's Opti, acados, do-mpc and rockit. These are
functions and not members of `System`, which has no dynamics. Ranges of controls are not part of
these models: `system.limits.ctrl` has them. `ocp_to_…` hands on a whole `OptimalControlProblem`,
cost and rows, so that solvers can be compared on one problem.
"""

from mbcasadi.interop.acados import ocp_to_acados, to_acados_model
from mbcasadi.interop.aligator import ocp_to_aligator
from mbcasadi.interop.continuous_dynamics import continuous_dynamics
from mbcasadi.interop.crocoddyl import ocp_to_crocoddyl
from mbcasadi.interop.do_mpc import to_do_mpc_model
from mbcasadi.interop.opti import OptiOfOcp, OptiProblem, ocp_to_opti, to_opti
from mbcasadi.interop.rockit import RockitOfOcp, RockitProblem, ocp_to_rockit, to_rockit

__all__ = [
    "OptiOfOcp",
    "OptiProblem",
    "RockitOfOcp",
    "RockitProblem",
    "continuous_dynamics",
    "ocp_to_acados",
    "ocp_to_aligator",
    "ocp_to_crocoddyl",
    "ocp_to_opti",
    "ocp_to_rockit",
    "to_acados_model",
    "to_do_mpc_model",
    "to_opti",
    "to_rockit",
]
