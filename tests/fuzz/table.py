"""All valid calls by the path of what is called; a package's calls are made when one is needed."""

from collections.abc import Callable
from functools import cache
from typing import Any

from fuzz import (
    calls_control,
    calls_estimation,
    calls_mechanics,
    calls_motion,
    calls_mpc,
    calls_plant,
)

Calls = dict[str, dict[str, Any]]

CALLS_OF: dict[str, Callable[[], Calls]] = {
    "anatomy": calls_mechanics.calls_of_anatomy,
    "codegen": calls_plant.calls_of_codegen,
    "contacts": calls_mechanics.calls_of_contacts,
    "control": calls_control.calls_of_tasks,
    "control.laws": calls_control.calls_of_laws,
    "control.regulators": calls_control.calls_of_regulators,
    "description": calls_plant.calls_of_data,
    "dynamics": calls_mechanics.calls_of_dynamics,
    "environments": calls_plant.calls_of_environments,
    "estimation": calls_estimation.calls_of_estimation,
    "formulation": calls_mechanics.calls_of_formulations,
    "identification": calls_mechanics.calls_of_identification,
    "interop": calls_mpc.calls_of_interop,
    "linalg": calls_mechanics.calls_of_linalg,
    "models": calls_plant.calls_of_data,
    "motion": calls_motion.calls_of_motion,
    "mpc": calls_mpc.calls_of_mpc,
    "plant": calls_plant.calls_of_plants,
    "plots": calls_plant.calls_of_data,
    "simulation": calls_mechanics.calls_of_simulation,
    "system": calls_mechanics.calls_of_systems,
    "validation": calls_plant.calls_of_validation,
}


@cache
def calls_of(package: str) -> Calls:
    """Return the calls of a package."""
    return CALLS_OF[package]()


def arguments_of(path: str) -> dict[str, Any]:
    """Return the arguments of the valid call; a `KeyError` is a lack of the table."""
    package = max((name for name in CALLS_OF if path.startswith(f"{name}.")), key=len)
    return calls_of(package)[path]
