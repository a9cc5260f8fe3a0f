"""Which formulations there are, their options, and what they ask of a system."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.formulation import (
    ConstrainedMotion,
    in_metric,
    lagrange,
    null_space,
    projection,
    quasi_velocity,
    udwadia_kalaba,
    virtual_mass,
)
from mbcasadi.linalg import root_operations
from mbcasadi.shapes import require_name, require_shape
from mbcasadi.system import System

Equations = Callable[..., ConstrainedMotion[Any]]

FORMULATIONS: dict[str, Equations] = {
    "lagrange": lagrange,
    "projection": projection,
    "virtual_mass": virtual_mass,
    "quasi_velocity": quasi_velocity,
    "udwadia_kalaba": udwadia_kalaba,
    "null_space": null_space,
}
"""Name → equations; each takes (M, h, f, A, c) and the drop rule of `linalg.row_basis`."""

SEMIDEFINITE: dict[str, dict[str, Any]] = {
    "lagrange": {"semidefinite": True},
    "virtual_mass": {},
    "projection": {"inertia": "M_c_second"},
}
"""Formulations that serve an M which is definite on null(A) only, with the options they need."""

NOT_OPTIONS = ("M", "h", "f", "A", "c", "row_scale", "rank_tol", "pivot")


def equations_of(
    system: System, formulation: str, options: Mapping[str, Any], metric: ArrayLike | None = None
) -> Equations:
    """Return the equations with their options bound, in the coordinates of a metric.

    Raises:
        UnknownNameError: no such formulation or option; the message lists the names.
        UnsupportedFeatureError: the formulation needs a positive definite M.
        ShapeError: the metric is not (nv, nv), symmetric and positive definite.
    """
    valid = option_names(formulation)
    for name in options:
        require_name(f"option of formulation '{formulation}'", name, valid)
    equations = FORMULATIONS[formulation]
    chosen = dict(options)
    if system.semidefinite:
        chosen = _semidefinite(system, formulation, chosen)
    bound = partial(equations, **chosen)
    if metric is None:
        return bound
    require_shape("metric", ca.DM(np.asarray(metric, dtype=float)), (system.nv, system.nv))
    return in_metric(bound, metric)


def option_names(formulation: str) -> list[str]:
    """Return the names of a formulation's own options.

    Raises:
        UnknownNameError: no such formulation; the message lists the names.
    """
    require_name("formulation", formulation, list(FORMULATIONS))
    taken = inspect.signature(FORMULATIONS[formulation]).parameters
    return [name for name in taken if name not in NOT_OPTIONS]


def operations_of_root(equations: Equations, nv: int) -> int:
    """Return about how many operations the symmetric root of M takes, zero where none is used."""
    root = inspect.signature(equations).parameters.get("root")
    return root_operations(nv) if root is not None and root.default == "symmetric" else 0


def _semidefinite(system: System, formulation: str, options: dict[str, Any]) -> dict[str, Any]:
    needed = SEMIDEFINITE.get(formulation)
    clash = needed is None or any(options.get(k, value) != value for k, value in needed.items())
    if clash:
        asked = "".join(f" with {key}={value!r}" for key, value in options.items())
        raise UnsupportedFeatureError(
            f"formulation '{formulation}'{asked} needs a positive definite M, but the M of "
            f"'{system.name}' is singular (definite on the free directions at best); use "
            "'lagrange', 'virtual_mass' or 'projection' with inertia='M_c_second'"
        )
    assert needed is not None
    return options | needed
