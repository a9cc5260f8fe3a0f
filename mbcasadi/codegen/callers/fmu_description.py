"""The XML files of a co-simulation unit."""

import math
from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

from mbcasadi.codegen.c_interface import Law
from mbcasadi.codegen.callers.fmu_variables import Variable, Variables
from mbcasadi.codegen.manifest import recommended_flags
from mbcasadi.codegen.text import number, package_version

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


def model_description(law: Law, variables: Variables, token: str) -> str:
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


def build_description(law: Law, functions: str) -> str:
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
