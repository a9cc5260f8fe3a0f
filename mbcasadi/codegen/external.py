"""The interface of a law for `casadi.external`."""

from mbcasadi.codegen.c_interface import Law
from mbcasadi.codegen.text import comma_list, number, template


def external_c(law: Law) -> str:
    """Return `<name>_external.c`, the interface that `casadi.external` loads."""
    arrays = []
    for side, ports in (("in", law.inputs), ("out", law.outputs)):
        for i, port in enumerate(ports):
            numbers = port.sparsity.compress()
            arrays.append(
                f"static const casadi_int {side}_{i}[{len(numbers)}] = {{{comma_list(numbers)}}};\n"
            )
    calls = [f"arg[{i}]" for i in range(len(law.inputs))]
    calls += [f"res[{i}]" for i in range(len(law.outputs))]
    values: dict[str, str | int] = {
        "sparsities": "".join(arrays),
        "call": "".join(f", {c}" for c in calls),
        "n_in": len(law.inputs),
        "n_out": len(law.outputs),
        "n_in_array": max(1, len(law.inputs)),
        "n_out_array": max(1, len(law.outputs)),
        "defaults": _cases([number(p.default) for p in law.inputs]),
        "names_in": _cases([f'"{p.name}"' for p in law.inputs]),
        "names_out": _cases([f'"{p.name}"' for p in law.outputs]),
        "sparsity_in": _cases([f"in_{i}" for i in range(len(law.inputs))]),
        "sparsity_out": _cases([f"out_{i}" for i in range(len(law.outputs))]),
        "name": law.name,
        "NAME": law.name.upper(),
    }
    return template("external.c.in", values)


def _cases(values: list[str]) -> str:
    return "".join(f"    case {i}: return {v};\n" for i, v in enumerate(values))
