"""All formulations with all of their own options."""

import functools
import inspect
from typing import Any

import casadi as ca

import mbcasadi as mb
from mbcasadi.dynamics import FORMULATIONS, Treatment
from support.admissible_states import States, call, column
from support.constrained_mechanisms import Mechanism

OWN_OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "projection": (
        {"inertia": "M_c"},
        {"inertia": "M_c_prime"},
        {"inertia": "M_c_second"},
        {"inertia": "M_c_second", "gamma": 3.0},
    ),
    "virtual_mass": ({}, {"virtual_mass": 1.7}),
    "quasi_velocity": ({"root": "cholesky"}, {"root": "symmetric"}),
    "udwadia_kalaba": ({"root": "symmetric"}, {"root": "cholesky"}),
}
LARGE = 8  # degrees of freedom
FOR_SEMIDEFINITE = ("limbwise", "lagrange", "virtual_mass", "projection inertia=M_c_second")


def labelled() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return label → (formulation, its options) of all formulations that there are."""
    found = {}
    for name, equations in FORMULATIONS.items():
        known = set(inspect.signature(equations).parameters)
        for options in OWN_OPTIONS.get(name, ({},)):
            if set(options) <= known:
                label = " ".join([name, *(f"{key}={value}" for key, value in options.items())])
                found[label] = (name, options)
    return found


def variants(mechanism: Mechanism) -> list[str]:
    """Return the labels of those that hold for the mechanism; for large ones the first of each."""
    labels = list(labelled())
    if mechanism.system.semidefinite:
        return [label for label in labels if label.startswith(FOR_SEMIDEFINITE)]
    if mechanism.system.nv > LARGE:
        first = {labelled()[label][0]: label for label in reversed(labels)}
        return [label for label in labels if label in first.values()]
    return labels


@functools.cache
def forward_dynamics(
    mechanism: Mechanism, label: str, row_scale: float | None = None
) -> ca.Function:
    """Return the forward dynamics of the mechanism in this formulation."""
    name, options = labelled()[label]
    return mb.forward_dynamics(
        mechanism.system,
        name,
        derivatives=False,
        treatment=Treatment(row_scale=row_scale),
        **options,
    )


def motion(
    mechanism: Mechanism, label: str, states: States, row_scale: float | None = None
) -> States:
    """Return a, f_c and lam at every state, (count, rows) each."""
    found = call(forward_dynamics(mechanism, label, row_scale), states)
    return {key: column(found, key) for key in found}
