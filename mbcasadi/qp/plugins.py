"""The QP plugins of CasADi that serve, with their options."""

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca

from mbcasadi.description.qp_stages import PLUGIN_PRIMAL_TOLERANCE
from mbcasadi.errors import SolverError

QRQP = {"print_iter": False, "print_header": False, "print_info": False, "print_time": False}

DENSE_SOLVERS: dict[str, dict[str, Any]] = {
    "daqp": {"error_on_fail": False, "daqp": {"primal_tol": PLUGIN_PRIMAL_TOLERANCE}},
    "qrqp": {"error_on_fail": False, **QRQP},
}
"""Plugins for least-distance problems, with their options."""

ACCURACY = 1e-12
"""Residual at which a solver stops."""

SPARSE_SOLVERS: dict[str, dict[str, Any]] = {
    "proxqp": {"proxqp": {"eps_abs": ACCURACY, "eps_rel": 0.0}},
    "piqp": {"piqp": {"eps_abs": ACCURACY, "eps_rel": ACCURACY}},
    "qrqp": QRQP,
}
"""Plugins for the sparse form of linear MPC, with their options."""

HORIZON_SOLVER: dict[str, Any] = {"piqp": {"eps_abs": 1e-14, "eps_rel": 1e-14}}
"""Options of piqp, the plugin of a problem over a horizon, where numbers are about one."""


def require_solver(solver: str, *further: str) -> None:
    """Raise `SolverError` unless CasADi has this solver and it serves least-distance problems.

    Args:
        solver: its name.
        further: names of other forms that a caller offers.
    """
    if solver not in further:
        _require_plugin(solver, DENSE_SOLVERS, "a least-distance problem", further)


def require_sparse_solver(solver: str) -> None:
    """Raise `SolverError` unless CasADi has this solver and it serves the sparse form of MPC."""
    _require_plugin(solver, SPARSE_SOLVERS, "the sparse form")


def _require_plugin(
    solver: str, table: Mapping[str, object], purpose: str, further: Sequence[str] = ()
) -> None:
    if not isinstance(solver, str) or solver not in table:
        names = ", ".join(map(repr, [*table, *further]))
        raise SolverError(f"solver {solver!r}; expected one of {names} for {purpose}")
    if not ca.has_conic(solver):
        raise SolverError(f"this CasADi has no plugin {solver!r}; install the official wheel")
