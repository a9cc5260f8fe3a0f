"""The C of two rates: header, mailbox, and the two functions around the laws."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from mbcasadi.codegen.c_interface import (
    STATES,
    CLaw,
    Port,
    arguments,
    find_port,
    law_template,
    parameters,
    tick_call,
)
from mbcasadi.codegen.callers.cpp_header import cpp_name
from mbcasadi.codegen.controller import STRICT_ARITHMETIC
from mbcasadi.codegen.header import argument_line
from mbcasadi.codegen.sizes import memory_doubles
from mbcasadi.codegen.supervision.layout import supervised_doubles
from mbcasadi.codegen.text import comma_list, constant, number, unique_identifiers
from mbcasadi.codegen.two_rates.interface import (
    AGE,
    FIRST,
    PLAN,
    REFERENCE,
    TIME,
    Interface,
    without,
)
from mbcasadi.codegen.two_rates.watch import watch_of_class, watch_of_header, watch_of_source
from mbcasadi.description.status import Flag, Status

FOLDER = "two_rates/"

PLANS_AHEAD = 1
"""Plans that may wait beside those of the delay, where a plan comes before its tick."""

SLOTS_OF_OTHERS = 4
"""Beside those that wait: one acts, one is written, one is in the mailbox, one is handed to it."""

RETURNED_SLOTS = 3
"""One that a tick writes, one that a plan reads, and one in the mailbox."""

INTEGERS = 11
"""Of the state beside the numbers of the slots that wait."""

ALIGNMENT = 1
"""Doubles for what compilers leave between integers and doubles."""


def two_rates_template(interface: Interface, file: str, values: dict[str, str | int]) -> str:
    """Return a template with the values of the export, and others."""
    slow, fast = interface.periods
    own: dict[str, str | int] = {
        "name": interface.name,
        "NAME": interface.name.upper(),
        "slow": number(slow),
        "fast": number(fast),
        "every": interface.every,
        "delay": number(interface.delay * slow),
        "latest": number(interface.latest),
        "doubles": two_rates_doubles(interface),
        "state_doubles": state_doubles(interface),
        "nu": interface.law.nu,
    }
    return law_template(interface.law, FOLDER + file, own | values)


def two_rates_doubles(interface: Interface) -> int:
    """Return the size of the caller's memory in doubles."""
    work = interface.z0.size + _size(_asked(interface)) + 2
    laws = sum(memory_doubles(law) for law in interface.parts.values())
    if interface.watch is not None:
        laws += supervised_doubles(interface.watch.ticks) - memory_doubles(interface.law)
    return state_doubles(interface) + work + laws + ALIGNMENT


def state_doubles(interface: Interface) -> int:
    """Return how many doubles of the memory hold what one call hands to the next."""
    waiting, plan = _waiting(interface), interface.u0.size
    states = max(1, interface.plan.nz) + max(1, interface.law.nz) + interface.z0.size + 1
    states += 0 if interface.watch is None else interface.watch.state_doubles
    slots = (waiting + SLOTS_OF_OTHERS + interface.delay + 1) * (plan + 1)
    states += RETURNED_SLOTS * (_size(interface.returned) + 1)
    return states + _size(_followed(interface)) + 1 + slots + (waiting + INTEGERS) // 2 + ALIGNMENT


def _waiting(interface: Interface) -> int:
    return interface.delay + PLANS_AHEAD


def _asked(interface: Interface) -> tuple[Port, ...]:
    return without(interface.references.outputs, STATES)


def _followed(interface: Interface) -> tuple[Port, ...]:
    return interface.follow.outputs


def _size(ports: Iterable[Port]) -> int:
    return sum(port.size for port in ports)


def two_rates_header(interface: Interface) -> str:
    """Return `<name>.h`."""
    plan = (interface.plan_inputs, interface.plan_outputs)
    tick = (interface.tick_inputs, interface.tick_outputs)
    ports = [(interface.name, port) for side in tick for port in side]
    ports += [(interface.plan.name, port) for side in plan for port in side]
    labels = unique_identifiers((f"{name}_{port.name}_SIZE" for name, port in ports), set())
    sizes = zip(labels, (port for _, port in ports), strict=True)
    return two_rates_template(
        interface,
        "header.h.in",
        {
            "signature": interface.signature,
            "sizes": "\n".join(f"#define {label} {port.size}" for label, port in sizes),
            "plan_arguments": _lines(*plan),
            "tick_arguments": _lines(*tick),
            "plan_parameters": parameters(interface.plan, *plan),
            "tick_parameters": parameters(interface.law, *tick),
            "plan_statuses": _statuses(interface.plan),
            "tick_statuses": _statuses(interface.law),
            "interrupting": int(Flag.INTERRUPTING),
            **watch_of_header(interface.watch, interface.law, interface.name),
        },
    )


def two_rates_hpp(interface: Interface) -> str:
    """Return `<name>.hpp`."""
    plan = (interface.plan_inputs, interface.plan_outputs)
    tick = (interface.tick_inputs, interface.tick_outputs)
    values: dict[str, str | int] = {"namespace": cpp_name(interface.name)}
    values |= watch_of_class(interface.watch, interface.name)
    for function, (inputs, outputs) in (("plan", plan), ("tick", tick)):
        texts = [f"const double *{port.identifier}" for port in inputs]
        texts += [f"double *{port.identifier} = nullptr" for port in outputs]
        values[f"{function}_parameters"] = ", ".join(texts)
        values[f"{function}_arguments"] = arguments((*inputs, *outputs))
    return two_rates_template(interface, "header.hpp.in", values)


def _lines(inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    lines = [argument_line("in ", port) for port in inputs]
    return "\n".join([*lines, *(argument_line("out", port) for port in outputs)])


def _statuses(law: CLaw) -> str:
    return "".join(f" *   {code}  {text}\n" for code, text in enumerate(law.statuses))


def two_rates_source(interface: Interface) -> str:
    """Return `<name>.c`."""
    plan, law, followed = interface.plan, interface.law, _followed(interface)
    tick = (*interface.tick_inputs, *interface.tick_outputs)
    of_follow = [p for p in interface.tick_inputs if _is_followed(interface, p)]
    waiting = _waiting(interface)
    mark = "  if (flags) flags[0] = " + f"{int(Flag.INTERRUPTING)};\n"
    mark = mark if find_port(law.outputs, "flags") else ""
    mark += f"  code = {int(Status.BAD_INPUT)};\n  if (status) status[0] = code;\n"
    copied = "  if (plan) memcpy(plan, slot->plan, sizeof slot->plan);\n"
    values: dict[str, str | int] = {
        "strict": STRICT_ARITHMETIC,
        "plan_size": interface.u0.size,
        "nz": interface.z0.size,
        "asked": _size(_asked(interface)),
        "followed": _size(followed),
        "returned": _size(interface.returned),
        "returned_slots": RETURNED_SLOTS,
        "take_back": TAKE_BACK if interface.returned else "",
        "hand_back": _hand_back(interface),
        "waiting": waiting,
        "recent": interface.delay + 1,
        "soon": number(interface.periods[1] / 4),
        "nz_plan": max(1, plan.nz),
        "nz_law": max(1, law.nz if interface.watch is None else 0),
        "u_safe": constant("const double", f"{interface.name}_u_safe", _u_safe(interface)) + "\n",
        "first_plan": comma_list(map(number, interface.u0.tolist())),
        "first_z": comma_list(map(number, interface.z0.tolist())),
        "first_followed": comma_list(map(number, _first_followed(interface))),
        "initialise": _initialise(interface),
        "safe_plans": "".join(f" || code == {int(code)}" for code in plan.safe_statuses),
        "plan_parameters": parameters(plan, interface.plan_inputs, interface.plan_outputs),
        "tick_parameters": parameters(
            law, tick[: len(interface.tick_inputs)], tick[len(interface.tick_inputs) :]
        ),
        "tick_arguments": arguments(tick),
        "follow_parameters": parameters(law, of_follow),
        "follow_arguments": arguments(of_follow),
        "references_step": _references_step(interface),
        "plan_step": _plan_step(interface),
        "follow_step": _follow_step(interface),
        "law_step": _law_step(
            interface, "m->law", "m->followed", ("m->z_law", "m->z_law"), "m->returned[m->given]"
        ),
        "refused_step": _law_step(interface, "m->law", "nothing", ("m->z_law", "0")),
        "uninitialised_step": _law_step(interface, "0", "", ("0", "0")),
        "spoiled": _spoiled(followed, "m->followed"),
        "spoiled_nothing": _spoiled(followed, "nothing"),
        "copy_plan": copied,
        "unused": "".join(
            f"  (void){p.identifier};\n"
            for p in interface.tick_inputs
            if find_port(law.inputs, p.name) is None
        ),
        "mark": mark,
        "bad_input": int(Status.BAD_INPUT),
        "failed": int(Status.FAILED),
        **watch_of_source(interface.watch, law, interface.name),
    }
    return two_rates_template(interface, "source.c.in", values)


def _is_followed(interface: Interface, port: Port) -> bool:
    return port.name == TIME or find_port(interface.follow.inputs, port.name) is not None


def _first_followed(interface: Interface) -> list[float]:
    """Return what the law takes for the outputs of `follow` before there are any."""
    defaults = interface.law.defaults
    values = [defaults.get(p.name, np.zeros(p.size)) for p in _followed(interface)]
    return [float(x) for value in values for x in value]


def _u_safe(interface: Interface) -> list[float]:
    value = interface.law.u_safe
    assert value is not None
    return [float(x) for x in value]


def _initialise(interface: Interface) -> str:
    bad = f"{interface.name.upper()}_BAD_MEMORY"
    supervised = "" if interface.watch is None else "_supervised"
    lines = [
        f"  if ({law.name}{supervised * (part == 'law')}_init(m->{part}, sizeof m->{part})) "
        f"return {bad};\n"
        for part, law in interface.parts.items()
    ]
    lines += [
        f"  memcpy(m->z_{part}, {law.name}_z0, sizeof m->z_{part});\n"
        for part, law in (("plan", interface.plan), ("law", interface.law))
        if law.has_state and not (supervised and part == "law")
    ]
    if supervised:
        lines.append("  m->watched.fault = -1;\n")
    return "".join(lines)


def _places(ports: Iterable[Port], array: str) -> dict[str, str]:
    """Return the C of the pointers to ports that lie in one array, by name."""
    places, first = dict[str, str](), 0
    for port in ports:
        places[port.name] = f"{array} + {first}" if array else "0"
        first += port.size
    return places


def _placed(places: dict[str, str]) -> Callable[[Port], str]:
    return lambda port: places.get(port.name, port.identifier)


def _plan_inputs(interface: Interface) -> dict[str, str]:
    """Return the C of the pointers to inputs of a plan that were examined."""
    if interface.watch is None:
        return {}
    return {port.name: f"in[{i}]" for i, port in enumerate(interface.plan_inputs)}


def _references_step(interface: Interface) -> str:
    places = (
        _plan_inputs(interface)
        | _places(_asked(interface), "m->asked")
        | {"z": "m->z", "z_next": "m->z_next"}
    )
    places |= {PLAN: "m->recent[now].plan", AGE: "&age_now"}
    places |= _places(interface.returned, "m->returned[m->read]")
    return tick_call(interface.references, "m->references", _placed(places))


def _plan_step(interface: Interface) -> str:
    asked = _places(_asked(interface), "m->asked")
    places = _plan_inputs(interface)
    places |= {name.removeprefix(FIRST): place for name, place in asked.items()}
    places |= {"z": "m->z_plan", "z_next": "m->z_plan", PLAN: "slot->plan"}
    return tick_call(interface.plan, "m->plan", _placed(places))


def _follow_step(interface: Interface) -> str:
    places = _places(_followed(interface), "m->followed")
    places |= {PLAN: "m->slots[m->order[0]].plan", AGE: "&now"}
    return tick_call(interface.follow, "m->follow", _placed(places))


def _law_step(
    interface: Interface, memory: str, followed: str, states: tuple[str, str], returned: str = ""
) -> str:
    """Return the C of a tick of the law; what is returned to plans goes there, or to the caller."""
    places = _places(_followed(interface), followed) | dict(zip(STATES, states, strict=True))
    places |= _places(interface.returned, returned) if returned else {}
    watch, placed = interface.watch, _placed(places)
    if watch is None:
        return tick_call(interface.law, memory, placed)
    log = "log" if returned else "0"
    own = [placed(port) for port in (*watch.ticks.inputs, *watch.ticks.outputs)]
    return f"{interface.law.name}_supervised_step({', '.join([memory, log, 'sample', *own])})"


def _hand_back(interface: Interface) -> str:
    """Return the C that hands outputs of a tick to the caller and to the next plan."""
    places = _places(interface.returned, "m->returned[m->given]")
    lines = [
        f"  if ({p.identifier}) memcpy({p.identifier}, {places[p.name]}, "
        f"{p.size} * sizeof(double));\n"
        for p in interface.returned
    ]
    return "".join(lines) + (HAND_BACK if lines else "")


TAKE_BACK = (
    "  if (LOOK(&m->returns) & UNREAD) m->read = EXCHANGE(&m->returns, m->read) & ~UNREAD;\n"
)

HAND_BACK = "  if (code >= 0) m->given = EXCHANGE(&m->returns, m->given | UNREAD) & ~UNREAD;\n"


def _spoiled(ports: Sequence[Port], array: str) -> str:
    """Return the C arguments for what the law misses: its reference, or all values."""
    place = _places(ports, array).get(REFERENCE)
    port = find_port(tuple(ports), REFERENCE)
    return f"{array}, FOLLOWED" if port is None else f"{place}, {port.size}"
