"""The formulations by name, their options, and what they require of a system."""

import inspect
from collections.abc import Mapping
from functools import partial
from typing import TypedDict

from numpy.typing import ArrayLike

from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.formulation import (
    Equations,
    in_metric,
    lagrange,
    limbwise,
    null_space,
    projection,
    quasi_velocity,
    udwadia_kalaba,
    virtual_mass,
)
from mbcasadi.linalg import root_operations
from mbcasadi.shapes import real_array, require_name, require_shape
from mbcasadi.system import System


class FormulationOptions(TypedDict, total=False):
    """Options of single formulations; each takes those of its own docstring.

    Keys: `semidefinite` of "limbwise" and "lagrange"; `inertia`, `gamma` of "projection";
    `virtual_mass` of "virtual_mass"; `root` of "quasi_velocity" and "udwadia_kalaba".
    """

    semidefinite: bool
    inertia: str
    gamma: float | None
    virtual_mass: float | None
    root: str


FORMULATIONS: dict[str, Equations] = {
    "limbwise": limbwise,
    "lagrange": lagrange,
    "projection": projection,
    "virtual_mass": virtual_mass,
    "quasi_velocity": quasi_velocity,
    "udwadia_kalaba": udwadia_kalaba,
    "null_space": null_space,
}
"""Name → equations; each takes (M, h, f, A, c) and the drop rule of `linalg.row_basis`."""

DEFAULT = "limbwise"
"""The formulation where none is named."""

SEMIDEFINITE: dict[str, FormulationOptions] = {
    "limbwise": {"semidefinite": True},
    "lagrange": {"semidefinite": True},
    "virtual_mass": {},
    "projection": {"inertia": "M_c_second"},
}
"""Formulations that serve an M which is definite on null(A) only, with the options they need."""

NOT_OPTIONS = ("M", "h", "f", "A", "c", "row_scale", "rank_tol", "pivot")


def equations_of(
    system: System,
    formulation: str,
    options: Mapping[str, object],
    metric: ArrayLike | None = None,
) -> Equations:
    """Return the equations with their options bound, in the coordinates of a metric.

    Args:
        system: the mechanism.
        formulation: a key of `FORMULATIONS`.
        options: the formulation's own options by name.
        metric: (nv, nv) weight of velocities, or None.

    Raises:
        UnknownNameError: no such formulation or option; the message lists the names.
        UnsupportedFeatureError: the formulation needs a positive definite M.
        ShapeError: the metric is not (nv, nv), symmetric and positive definite.
    """
    valid = option_names(formulation)
    for name in options:
        require_name(f"option of formulation '{formulation}'", name, valid)
    bound_options = dict(options)
    if system.semidefinite:
        bound_options |= _options_for_semidefinite(system, formulation, options)
    equations = partial(FORMULATIONS[formulation], **bound_options)
    if metric is None:
        return equations
    require_shape("metric", real_array("metric", metric), (system.nv, system.nv))
    return in_metric(equations, metric)


def option_names(formulation: str) -> list[str]:
    """Return the names of a formulation's own options.

    Raises:
        UnknownNameError: no such formulation; the message lists the names.
    """
    require_name("formulation", formulation, list(FORMULATIONS))
    parameters = inspect.signature(FORMULATIONS[formulation]).parameters
    return [name for name in parameters if name not in NOT_OPTIONS]


def operations_of_root(equations: Equations, nv: int) -> int:
    """Return about how many operations the symmetric root of M takes, zero where none is used."""
    root = inspect.signature(equations).parameters.get("root")
    return root_operations(nv) if root is not None and root.default == "symmetric" else 0


def _options_for_semidefinite(
    system: System, formulation: str, options: Mapping[str, object]
) -> FormulationOptions:
    """Return the options with which a formulation serves a semidefinite M.

    Raises:
        UnsupportedFeatureError: it does not, or not with the options that are given.
    """
    required = SEMIDEFINITE.get(formulation)
    if required is not None and all(options.get(k, v) == v for k, v in required.items()):
        return required
    with_options = "".join(f" with {key}={value!r}" for key, value in options.items())
    raise UnsupportedFeatureError(
        f"formulation '{formulation}'{with_options} needs a positive definite M, but the M of "
        f"'{system.name}' is singular (definite on the free directions at best); use "
        "'limbwise', 'lagrange', 'virtual_mass' or 'projection' with inertia='M_c_second'"
    )
