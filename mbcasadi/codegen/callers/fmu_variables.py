"""The variables of a co-simulation unit: one for each component of each signal."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen.c_interface import Law, Port

OWNED = ("z", "z_next", "t")
"""Signals that are no variables: the state is the unit's, the time is the simulator's."""

CODES = ("status", "flags")
"""Outputs that are whole numbers."""

PARAMETERS = ("tuning", "p")
"""Inputs that are parameters."""


@dataclass(frozen=True)
class Variable:
    """One scalar variable.

    Attributes:
        name: unique in the unit.
        unit: "" where there is none.
        causality: of FMI.
        start: of an input or a parameter.
        description: of a code, what its values mean.
    """

    name: str
    unit: str
    causality: str
    start: float = 0.0
    description: str = ""


@dataclass(frozen=True)
class Variables:
    """All variables, by kind; value references run through them in this order, from 1 on.

    Attributes:
        given: inputs and parameters.
        results: outputs that are real numbers.
        codes: outputs that are whole numbers.
        places: the C expression of each signal, by name.
        first_of_u: place of u among the results, or None.
        return_place: the C expression of what a step returns where the law has no status.
    """

    given: tuple[Variable, ...]
    results: tuple[Variable, ...]
    codes: tuple[Variable, ...]
    places: dict[str, str]
    first_of_u: int | None
    return_place: str


def variables_of(law: Law, values: Mapping[str, NDArray[np.float64]]) -> Variables:
    """Return the variables of a law.

    Args:
        law: what is exported.
        values: start values of the inputs.
    """
    given: list[Variable] = []
    results: list[Variable] = []
    codes: list[Variable] = []
    places = {"z": "s->z", "z_next": "s->z", "t": "t"}
    first_of_u = None
    for port in law.inputs:
        if port.name not in OWNED:
            places[port.name] = f"value + {len(given)}"
            causality = "parameter" if port.name in PARAMETERS else "input"
            given += _scalars(port, causality, np.ravel(values[port.name]))
    for port in law.outputs:
        if port.name not in (*OWNED, *CODES):
            if port.name == "u":
                first_of_u = len(results)
            places[port.name] = f"value + {len(given) + len(results)}"
            results += _scalars(port, "output", np.zeros(port.size))
    names = {port.name for port in law.outputs}
    first = len(given) + len(results)
    meanings = "; ".join(f"{code}: {text}" for code, text in enumerate(law.statuses))
    for name in CODES:
        if name == "status" or name in names:
            places[name] = f"value + {first + len(codes)}"
            text = meanings if name == "status" else "bits, as in the header"
            codes.append(Variable(name, "", "output", description=text))
    status = places["status"].removeprefix("value + ")
    return_place = "" if "status" in names else f"s->value[{status}]"
    return Variables(tuple(given), tuple(results), tuple(codes), places, first_of_u, return_place)


def _scalars(port: Port, causality: str, start: NDArray[np.float64]) -> list[Variable]:
    labels = list(port.components) or [str(k) for k in range(port.size)]
    labels = [label or str(k) for k, label in enumerate(labels)]
    units = port.units or ("",) * port.size
    names = [f"{port.name}.{label}" for label in labels]
    twice = len(set(names)) < len(names)
    return [
        Variable(f"{name}[{k}]" if twice else name, unit, causality, float(start[k]))
        for k, (name, unit) in enumerate(zip(names, units, strict=True))
    ]
