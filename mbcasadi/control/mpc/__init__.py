"""Model predictive control and trajectory optimisation of mechanisms with constraints."""

from mbcasadi.control.mpc.ocp import OptimalControlProblem

__all__ = ["OptimalControlProblem"]
