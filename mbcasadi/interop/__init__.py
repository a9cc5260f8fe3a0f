"""Constrained dynamics as the objects of other packages: CasADi's Opti, acados, do-mpc, rockit.

These are functions and not members of `System`, which has no dynamics. Ranges of controls are
not part of these models: `system.limits.ctrl` has them.
"""

from mbcasadi.interop.acados import to_acados_model
from mbcasadi.interop.continuous_dynamics import continuous_dynamics
from mbcasadi.interop.do_mpc import to_do_mpc_model
from mbcasadi.interop.opti import OptiProblem, to_opti
from mbcasadi.interop.rockit import RockitProblem, to_rockit

__all__ = [
    "OptiProblem",
    "RockitProblem",
    "continuous_dynamics",
    "to_acados_model",
    "to_do_mpc_model",
    "to_opti",
    "to_rockit",
]
