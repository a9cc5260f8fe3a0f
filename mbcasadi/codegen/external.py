"""The interface of a law for `casadi.external`."""

from itertools import accumulate

import casadi as ca

from mbcasadi.codegen.c_interface import CLaw, law_template
from mbcasadi.codegen.text import comma_list, number


def external_c(law: CLaw) -> str:
    """Return `<name>_external.c`, the interface that `casadi.external` loads."""
    arrays = []
    for side, ports in (("in", law.inputs), ("out", law.outputs)):
        for i, port in enumerate(ports):
            numbers = _compressed(port.sparsity)
            arrays.append(
                f"static const casadi_int {side}_{i}[{len(numbers)}] = {{{comma_list(numbers)}}};\n"
            )
    calls = [f"arg[{i}]" for i in range(len(law.inputs))]
    calls += [f"res[{i}]" for i in range(len(law.outputs))]
    values: dict[str, str | int] = {
        "sparsities": "".join(arrays),
        "arrays": CONVERSIONS if law.real == "float" else "",
        "step": _step(law, calls),
        "more": f" + {_numbers(law)}" if law.real == "float" else "",
        "n_in": len(law.inputs),
        "n_out": len(law.outputs),
        "n_in_array": max(1, len(law.inputs)),
        "n_out_array": max(1, len(law.outputs)),
        "defaults": _cases([number(p.default) for p in law.inputs]),
        "names_in": _cases([f'"{p.name}"' for p in law.inputs]),
        "names_out": _cases([f'"{p.name}"' for p in law.outputs]),
        "sparsity_in": _cases([f"in_{i}" for i in range(len(law.inputs))]),
        "sparsity_out": _cases([f"out_{i}" for i in range(len(law.outputs))]),
    }
    return law_template(law, "external.c.in", values)


def _compressed(sparsity: ca.Sparsity) -> list[int]:
    """Return a pattern as CasADi reads it; of a dense one only its sizes, and 1."""
    if sparsity.is_dense():
        return [sparsity.size1(), sparsity.size2(), 1]
    return list(sparsity.compress())


CONVERSIONS = """\

/* The law's numbers are floats, CasADi's are doubles. */
static const float *to_float(const casadi_real *from, int size, float *to) {
  int i;
  for (i = 0; from && i < size; ++i) to[i] = (float)from[i];
  return from ? to : 0;
}

static void to_double(const float *from, int size, casadi_real *to) {
  int i;
  for (i = 0; to && i < size; ++i) to[i] = (casadi_real)from[i];
}
"""


def _numbers(law: CLaw) -> int:
    """Return the doubles that hold all inputs and outputs as floats."""
    return (sum(port.size for port in law.signals) + 1) // 2


def _step(law: CLaw, calls: list[str]) -> str:
    """Return the C of one tick on the pointers of CasADi."""
    if law.real == "double":
        return f"  return {law.name}_step(w{''.join(f', {c}' for c in calls)}) < 0;\n"
    starts = accumulate((port.size for port in law.signals), initial=0)
    places = [f"x + {start}" for start in starts][: len(calls)]
    ins, outs = len(law.inputs), len(law.outputs)
    given = [
        f"to_float({call}, {port.size}, {place})"
        for call, port, place in zip(calls[:ins], law.inputs, places, strict=False)
    ]
    given += [
        f"{call} ? {place} : 0" for call, place in zip(calls[ins:], places[ins:], strict=True)
    ]
    results = "".join(
        f"  to_double({place}, {port.size}, {call});\n"
        for call, port, place in zip(calls[ins:], law.outputs, places[ins:], strict=True)
        if outs
    )
    return (
        f"  {{\n    float *x = (float *)(w + {law.name.upper()}_MEMORY_DOUBLES);\n"
        f"    const int code = {law.name}_step(w{''.join(f', {g}' for g in given)});\n"
        + results.replace("  to_", "    to_")
        + "    return code < 0;\n  }\n"
    )


def _cases(values: list[str]) -> str:
    return "".join(f"    case {i}: return {v};\n" for i, v in enumerate(values))
