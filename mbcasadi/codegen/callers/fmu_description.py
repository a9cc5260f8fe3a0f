"""Variables of a co-simulation unit, one for each component of a signal, and its XML files."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen.c_interface import CLaw, Port
from mbcasadi.codegen.manifest import recommended_flags
from mbcasadi.codegen.text import number, package_version

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


def variables_of(law: CLaw, values: Mapping[str, NDArray[np.float64]]) -> Variables:
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
    entries = port.entries
    names = [f"{port.name}.{entry.label or k}" for k, entry in enumerate(entries)]
    twice = len(set(names)) < len(names)
    return [
        Variable(f"{names[k]}[{k}]" if twice else names[k], entry.unit, causality, float(start[k]))
        for k, entry in enumerate(entries)
    ]


BASE_UNITS = {
    "rad": 'rad="1"',
    "rad/s": 'rad="1" s="-1"',
    "rad/s²": 'rad="1" s="-2"',
    "m": 'm="1"',
    "m/s": 'm="1" s="-1"',
    "m/s²": 'm="1" s="-2"',
    "s": 's="1"',
    "kg": 'kg="1"',
    "N": 'kg="1" m="1" s="-2"',
    "N m": 'kg="1" m="2" s="-2"',
    "N/m": 'kg="1" s="-2"',
    "1/s": 's="-1"',
}
"""Units in the base units of FMI."""

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def model_description(law: CLaw, variables: Variables, token: str) -> str:
    """Return `modelDescription.xml`."""
    period = number(law.period or 0.0)
    everything = (*variables.given, *variables.results, *variables.codes)
    source = f" made from {law.source}" if law.source else ""
    description = f"A control function{source}, sampled every {period} s"
    rows = [
        _float64("time", 0, 'causality="independent" variability="continuous" unit="s"'),
        *(_variable(v, k + 1) for k, v in enumerate(everything)),
    ]
    outputs = range(len(variables.given) + 1, len(everything) + 1)
    structure = "".join(f'    <Output valueReference="{k}"/>\n' for k in outputs)
    structure += "".join(f'    <InitialUnknown valueReference="{k}"/>\n' for k in outputs)
    return (
        f'{HEAD}<fmiModelDescription fmiVersion="3.0" modelName={quoteattr(law.name)} '
        f'instantiationToken="{token}" description={quoteattr(description)} '
        f'generationTool="mbcasadi {package_version()}" variableNamingConvention="flat">\n'
        f"  <CoSimulation modelIdentifier={quoteattr(law.name)} "
        'canGetAndSetFMUState="true" canSerializeFMUState="true" '
        f'canHandleVariableCommunicationStepSize="false" fixedInternalStepSize="{period}"/>\n'
        f"{_units(everything)}"
        '  <LogCategories>\n    <Category name="logStatusError"/>\n  </LogCategories>\n'
        f'  <DefaultExperiment startTime="0" stepSize="{period}"/>\n'
        f"  <ModelVariables>\n{''.join(rows)}  </ModelVariables>\n"
        f"  <ModelStructure>\n{structure}  </ModelStructure>\n"
        "</fmiModelDescription>\n"
    )


def build_description(law: CLaw, functions: str) -> str:
    """Return `buildDescription.xml`, by which a simulator compiles the sources."""
    options = " ".join(recommended_flags(law))
    return (
        f'{HEAD}<fmiBuildDescription fmiVersion="3.0">\n'
        f"  <BuildConfiguration modelIdentifier={quoteattr(law.name)}>\n"
        f'    <SourceFileSet language="C99" compilerOptions="{options}">\n'
        f'      <SourceFile name="{functions}"/>\n'
        f'      <SourceFile name="{law.name}.c"/>\n'
        "    </SourceFileSet>\n"
        "  </BuildConfiguration>\n"
        "</fmiBuildDescription>\n"
    )


def _units(variables: Iterable[Variable]) -> str:
    names = dict.fromkeys(["s", *(v.unit for v in variables if v.unit)])
    rows = ""
    for name in names:
        base = BASE_UNITS.get(name)
        rows += (
            f"    <Unit name={quoteattr(name)}><BaseUnit {base}/></Unit>\n"
            if base
            else f"    <Unit name={quoteattr(name)}/>\n"
        )
    return f"  <UnitDefinitions>\n{rows}  </UnitDefinitions>\n"


def _variable(variable: Variable, reference: int) -> str:
    unit = f" unit={quoteattr(variable.unit)}" if variable.unit else ""
    if variable.causality == "output":
        kind = f'causality="output" variability="discrete" initial="calculated"{unit}'
    else:
        variability = "tunable" if variable.causality == "parameter" else "discrete"
        start = variable.start if math.isfinite(variable.start) else 0.0
        kind = f'causality="{variable.causality}" variability="{variability}"{unit} '
        kind += f'start="{number(start)}"'
    if variable.description or variable.name in ("status", "flags"):
        text = f" description={quoteattr(variable.description)}" if variable.description else ""
        return (
            f"    <Int32 name={quoteattr(variable.name)} "
            f'valueReference="{reference}" {kind}{text}/>\n'
        )
    return _float64(variable.name, reference, kind)


def _float64(name: str, reference: int, kind: str) -> str:
    return f'    <Float64 name={quoteattr(name)} valueReference="{reference}" {kind}/>\n'
