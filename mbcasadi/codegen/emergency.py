"""The C of a tick on which the law cannot run: the safe output from the state alone.

It is for calls without memory, during another call on the same memory, without a preparation that
the law itself misses, and after an arithmetic breakdown. A controller of this package brings the
Function, `description.Emergency`. For any other the memory keeps the last finite control, which is
used for `LAST_COMMAND` seconds, and afterwards a constant that is known at export: `u_safe`.
"""

from mbcasadi.codegen.c_interface import CLaw, Port, find_port, law_template
from mbcasadi.codegen.text import number
from mbcasadi.description.controller import ticks_of_last_command
from mbcasadi.description.status import Flag, Status

CONTROL, STATE = "u", "z_next"


def emergency_c(law: CLaw) -> str:
    """Return the C of the safe output, of each case that needs it, and of the end of a tick."""
    z, z_next = find_port(law.inputs, "z"), find_port(law.outputs, STATE)
    values: dict[str, str | int] = {
        "state": f"in[{law.inputs.index(z)}]" if z and law.has_state else "0",
        "z0": f"{law.name}_z0" if law.has_state else "0",
        "control": _control(law),
        "next_state": _next_state(law, z_next),
        "others": "".join(_other(law, port) for port in law.outputs),
        "hide_state": _hide_state(law, z, z_next),
        "older": "  if (m->age < INT_MAX) ++m->age;\n" if keeps_last(law) else "",
        "code": "status" if find_port(law.outputs, "status") else f"{law.name.upper()}_FAILED",
        "misses": _misses(law),
        "mark": _mark(law),
        "finite": _finite(law),
        "check_status": _check_status(law),
        "at_limit": _at_limit(law),
        "keep_control": _keep_control(law),
        "success": _success(law),
    }
    values |= {"bad_input": int(Status.BAD_INPUT), "failed": int(Status.FAILED)}
    values |= {flag.name.lower(): int(flag) for flag in Flag if flag.name}
    unprepared = law_template(law, "unprepared.c.in", values) if law.prepared_from else ""
    return law_template(law, "emergency.c.in", values | {"if_unprepared": unprepared})


def _of_real(law: CLaw, double: str, single: str) -> str:
    """Return one of two names in C."""
    return double if law.real == "double" else single


def keeps_last(law: CLaw) -> bool:
    """Whether the memory keeps the last control."""
    return law.emergency is None and law.nu > 0 and find_port(law.outputs, CONTROL) is not None


def last_member(law: CLaw) -> str:
    """Return the member of the memory that keeps the last control."""
    return f"  {law.real} last[{law.nu}];\n" if keeps_last(law) else ""


def initial_last(law: CLaw) -> str:
    """Return the C that says: there was no control yet."""
    return "  m->age = INT_MAX;\n" if keeps_last(law) else ""


def _place(law: CLaw, name: str) -> str:
    """Return the C of the pointer to an output."""
    port = find_port(law.outputs, name)
    return "" if port is None or not port.size else f"out[{law.outputs.index(port)}]"


def _control(law: CLaw) -> str:
    """Return the C that finds the control, and the next memory of the safe output in `held`."""
    place = _place(law, CONTROL) if law.u_safe is not None else ""
    f = law.emergency
    if f is None:
        ticks = ticks_of_last_command(law.period) if law.period else 0
        young = f"m && m->age <= {ticks} - missed" if keeps_last(law) else ""
        value = f"is_young ? m->last[i] : {law.name}_u_safe[i]"
        found = f"  const int is_young = {young};\n" if young else "  (void)m;\n  (void)missed;\n"
        return found + _write(place, law.nu, value)
    held = max(1, law.held)
    read = f"  memcpy(held, z + {law.held_first}, sizeof held);\n" if law.held else ""
    return (
        f"  {law.real} held[{held}], held_next[{held}] = {{0}}, u[{max(1, law.nu)}] = {{0}};\n"
        f"  const {law.real} ticks = ({law.real})missed;\n"
        f"  const {law.real} *arg[{max(2, int(f.sz_arg()))}];\n"
        f"  {law.real} *res[{max(2, int(f.sz_res()))}];\n"
        "  (void)m;\n"
        f"{read}  arg[0] = held;\n  arg[1] = &ticks;\n  res[0] = u;\n  res[1] = held_next;\n"
        f"  {f.name()}(arg, res, 0, 0, 0);\n{_write(place, law.nu, 'u[i]')}"
    )


def _write(place: str, size: int, value: str) -> str:
    """Return the C that writes a value to each entry of an output, where there is one."""
    if not place or not size:
        return ""
    return f"  for (i = 0; {place} && i < {size}; ++i) {place}[i] = {value};\n"


def _next_state(law: CLaw, z_next: Port | None) -> str:
    if z_next is None or not law.has_state:
        return "  (void)own;\n"
    place = _place(law, STATE)
    lines = _write(place, z_next.size, "own[i]")
    if law.held:
        lines += (
            f"  if ({place}) memcpy({place} + {law.held_first}, held_next, sizeof held_next);\n"
        )
    return lines


def _other(law: CLaw, port: Port) -> str:
    """Return the C of an output that is neither control nor state."""
    if law.u_safe is not None and port.name in (CONTROL, STATE):
        return ""
    known = {
        "status": f"({law.real})status",
        "flags": f"({law.real})flags",
        "residual": _of_real(law, "HUGE_VAL", "HUGE_VALF"),
    }
    value = known.get(port.name, "NAN") if law.u_safe is not None else "NAN"
    return _write(_place(law, port.name), port.size, value)


def _hide_state(law: CLaw, z: Port | None, z_next: Port | None) -> str:
    """Return the C that keeps the state as it is."""
    if z is None or z_next is None or not law.has_state:
        return ""
    place = _place(law, STATE)
    here = f"in[{law.inputs.index(z)}]"
    return _write(place, z_next.size, f"{here}[i]") + f"  {place} = 0;\n"


def _misses(law: CLaw) -> str:
    """Return the C for: the law itself misses the preparation."""
    place = _place(law, "status")
    return f"{place}[0] == {Status.BAD_INPUT} && is_finite(out)" if place else "0"


def _mark(law: CLaw) -> str:
    place = _place(law, "flags")
    return f"    if ({place}) {place}[0] += {int(Flag.UNPREPARED)};\n" if place else ""


def _finite(law: CLaw) -> str:
    """Return the C that looks for a control that is not finite."""
    place = _place(law, CONTROL) if law.u_safe is not None else ""
    if not place:
        return "  (void)out;\n"
    absolute, largest = _of_real(law, "fabs", "fabsf"), _of_real(law, "DBL_MAX", "FLT_MAX")
    return (
        f"  for (i = 0; {place} && i < {law.nu}; ++i)\n"
        f"    if (!({absolute}({place}[i]) <= {largest})) return 0;\n"
    )


def _keep_control(law: CLaw) -> str:
    place = _place(law, CONTROL)
    if not keeps_last(law) or not place:
        return ""
    return f"  if ({place}) memcpy(m->last, {place}, sizeof m->last);\n  m->age = 0;\n"


def _check_status(law: CLaw) -> str:
    """Return the C that refuses a status that is none."""
    place = _place(law, "status")
    if not place or law.u_safe is None:
        return "  (void)in;\n"
    return f"  if (!({place}[0] >= 0 && {place}[0] <= 99)) return broken(m, in, out);\n"


def can_be_limited(law: CLaw) -> bool:
    """Whether a tick that reaches the limit of iterations has a status of its own."""
    has_status = find_port(law.outputs, "status") is not None and law.u_safe is not None
    return law.staged and has_status and len(law.statuses) > Status.LIMIT


def _at_limit(law: CLaw) -> str:
    """Return the C of the status of a tick whose solver was stopped by its limit.

    A law may take a solver that stopped for one that found the problem infeasible.
    """
    if not can_be_limited(law):
        return ""
    place = _place(law, "status")
    codes = [code for code in law.safe_statuses if code not in (Status.BAD_INPUT, Status.LIMIT)]
    numbers = [number(float(code), law.real) for code in codes]
    tests = " || ".join(f"({place}[0] >= {x} && {place}[0] <= {x})" for x in numbers)
    limit = number(float(Status.LIMIT), law.real)
    return f"  if (m->is_limited && ({tests})) {place}[0] = {limit};\n" if tests else ""


def _success(law: CLaw) -> str:
    """Return the C of what a completed tick returns."""
    place = _place(law, "status")
    if not place:
        return f"{law.name.upper()}_OK"
    return f"{place}[0] >= 0 && {place}[0] <= 99 ? (int){place}[0] : {Status.FAILED}"
