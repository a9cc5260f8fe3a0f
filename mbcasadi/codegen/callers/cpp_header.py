"""The C++ header of an export: memory and state as one object, names of components, statuses."""

import re
from collections.abc import Iterable

from mbcasadi.codegen.c_interface import (
    STATES,
    CLaw,
    Port,
    comment,
    enumerators,
    find_port,
    law_template,
)
from mbcasadi.codegen.names import KEYWORDS, MACROS
from mbcasadi.codegen.text import number
from mbcasadi.description.status import Flag

CODES = (
    ("bad_memory", -1, "the memory is not ready"),
    ("failed", -2, "the arithmetic could not be completed"),
    ("busy", -3, "another call on this memory is running"),
)


def header_hpp(law: CLaw) -> str:
    """Return `<name>.hpp`."""
    statuses = _statuses(law)
    first = find_port(law.inputs, "q") or law.inputs[0] if law.inputs else None
    labels = cpp_names(first.components) if first else []
    owned = law.has_state
    values: dict[str, str | int] = {
        "title": f"The control function {law.name}" if law.u_min is not None else law.name,
        "namespace": cpp_name(law.name),
        "period": _period(law),
        "example": labels[0] if labels else "name",
        "indices": _indices(law),
        "statuses": "".join(f"  {name} = {code}, /* {text} */\n" for name, code, text in statuses),
        "safe": _is_safe(law),
        "texts": "".join(
            f'    case Status::{name}:\n      return "{text}";\n' for name, _, text in statuses
        ),
        "flags": _flags(law),
        "null_state": _null_inputs(law),
        "inputs": "".join(
            f"  View<const Real, {p.size}> {_member(law.inputs, p)};{_unit(p)}\n"
            for p in _given(law)
        ),
        "outputs": "".join(
            f"  std::array<Real, {p.size}> {_member(law.outputs, p)}{{}};{_unit(p)}\n"
            for p in law.outputs
            if not (owned and p.name in STATES)
        ),
        "reset": f"    for (std::size_t i = 0; i < z_.size(); ++i) z_[i] = {law.name}_z0[i];\n"
        if owned
        else "",
        "unused": _unused(law),
        "arguments": _arguments(law),
        "methods": _methods(law),
        "members": f"  std::array<Real, {law.nz}> z_{{}};\n" if owned else "",
    }
    return law_template(law, "header.hpp.in", values).rstrip() + "\n"


def cpp_name(label: str) -> str:
    """Return a legal C++ name that resembles `label`."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", label).strip("_")
    if not name or name[0].isdigit():
        name = f"n{name}"
    return f"{name}_" if name in KEYWORDS | MACROS else name


def cpp_names(labels: Iterable[str]) -> list[str]:
    """Return legal C++ names, with a number where two would be equal."""
    names: list[str] = []
    for label in labels:
        base = candidate = cpp_name(label)
        k = 1
        while candidate in names:
            k += 1
            candidate = f"{base}_{k}"
        names.append(candidate)
    return names


def _member(ports: tuple[Port, ...], port: Port) -> str:
    """Return the member of `Inputs` or `Outputs` that stands for one of these signals."""
    return cpp_names(p.name for p in ports)[ports.index(port)]


def _given(law: CLaw) -> list[Port]:
    """Return the inputs that the caller provides: the object owns z."""
    return [p for p in law.inputs if not (law.has_state and p.name == "z")]


def _period(law: CLaw) -> str:
    if law.period is None:
        return ""
    value = number(law.period)
    return f"/* Sample time, s. */\ninline constexpr double period = {value};\n\n"


def _indices(law: CLaw) -> str:
    blocks, taken = [], set()
    for port in law.signals:
        name = cpp_name(port.name)
        name = _free(name[0].upper() + name[1:])
        if not port.is_named or name in taken:
            continue
        taken.add(name)
        labels = [f"{c}_" if c == name else c for c in cpp_names(port.components)]
        rows = enumerators(labels, port, "    ")
        blocks.append(
            f"struct {name} {{\n  enum : std::size_t {{\n" + "\n".join(rows) + "\n  };\n};\n"
        )
    return "".join(blocks)


OWN_NAMES = frozenset({"Controller", "Flag", "Inputs", "Outputs", "Real", "Status", "View"})


def _free(name: str) -> str:
    """Return a name that none of the header's own types has."""
    return f"{name}Index" if name in OWN_NAMES else name


def _unit(port: Port) -> str:
    return f" /* {port.unit_text} */" if port.unit_text else ""


def _statuses(law: CLaw) -> list[tuple[str, int, str]]:
    """Return name, number and text of what a tick returns."""
    texts = list(law.statuses) if find_port(law.outputs, "status") else []
    texts = texts or ["ok"]
    rows = [(name, code, texts[code]) for code, name in enumerate(cpp_names(texts))]
    taken = {name for name, _, _ in rows}
    for name, code, text in CODES if law.prepared_from else CODES[:2]:
        label = f"c_{name}" if name in taken else name
        rows.append((label, code, text))
    return [(name, code, comment(text.replace('"', "'"))) for name, code, text in rows]


def _is_safe(law: CLaw) -> str:
    safe = [f"static_cast<int>(status) == {int(code)}" for code in law.safe_statuses]
    return " || ".join(["static_cast<int>(status) < 0", *safe])


def _flags(law: CLaw) -> str:
    if find_port(law.outputs, "flags") is None:
        return ""
    rows = "".join(f"    {str(flag.name).lower()} = {int(flag)},\n" for flag in Flag)
    return (
        "/* Bits of the output `flags`. */\nstruct Flag {\n  enum : unsigned {\n"
        f"{rows}  }};\n}};\n\n"
    )


def _null_inputs(law: CLaw) -> str:
    return "".join(
        f", {port.name} as {default}"
        for port in law.inputs
        if port.name != "z" and (default := law.default_name(port))
    )


def _unused(law: CLaw) -> str:
    lines = "" if _given(law) else "    (void)inputs;\n"
    own = all(law.has_state and p.name in STATES for p in law.outputs)
    return lines + ("    (void)outputs;\n" if own else "")


def _arguments(law: CLaw) -> str:
    inputs = [_input(law, p) for p in law.inputs]
    outputs = [
        "z_.data()"
        if law.has_state and p.name == "z_next"
        else f"outputs.{_member(law.outputs, p)}.data()"
        for p in law.outputs
    ]
    return "".join(f", {argument}" for argument in inputs + outputs)


def _input(law: CLaw, port: Port) -> str:
    owned = law.has_state and port.name == "z"
    return "z_.data()" if owned else f"inputs.{_member(law.inputs, port)}.data()"


def _methods(law: CLaw) -> str:
    name = law.name
    parts = []
    if law.prepared_from:
        known = "".join(f", {_input(law, p)}" for p in law.prepared_from)
        parts.append(
            "  /* The part of a tick that needs no measurement; 0, or a negative status. */\n"
            "  Status prepare(const Inputs &inputs) noexcept {\n"
            f"    return static_cast<Status>({name}_prepare(memory_.data(){known}));\n  }}\n\n"
            "  /* The other part, with the inputs of the preparation unchanged. */\n"
            "  Status feedback(const Inputs &inputs, Outputs &outputs) noexcept {\n"
            f"    return static_cast<Status>({name}_feedback(memory_.data(){_arguments(law)}));\n"
            "  }\n"
        )
    if law.has_state:
        parts.append(
            "  /* The state z, which a tick replaces. */\n"
            f"  std::array<Real, {law.nz}> &state() noexcept {{ return z_; }}\n"
            f"  const std::array<Real, {law.nz}> &state() const noexcept "
            "{ return z_; }\n"
        )
    if law.staged:
        parts.append(
            "  /* Of the solver, in the last tick. */\n"
            f"  int exit_flag() const noexcept {{ return {name}_exit_flag(memory_.data()); }}\n"
            f"  int iterations() const noexcept {{ return {name}_iterations(memory_.data()); }}\n"
            "  void limit_iterations(int limit) noexcept "
            f"{{ {name}_limit_iterations(memory_.data(), limit); }}\n"
        )
    for label, values in law.constants:
        parts.append(
            f"  static View<const Real, {max(1, len(values))}> {label}() noexcept "
            f"{{ return {name}_{label}; }}\n"
        )
    return "".join(f"\n{part}" for part in parts)
