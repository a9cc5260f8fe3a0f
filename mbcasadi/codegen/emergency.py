"""The C of a tick on which the law cannot run: the safe output from the state alone.

It is for calls without memory, during another call on the same memory, without a preparation that the
law itself misses, and after an arithmetic breakdown. A controller of this package brings the
Function (`description.Emergency`); for any other the memory keeps its last finite control.
"""

import casadi as ca

from mbcasadi.codegen.c_interface import Law, Port, find_port
from mbcasadi.codegen.text import template
from mbcasadi.description.status import Flag, Status

CONTROL, STATE = "u", "z_next"


def emergency_c(law: Law) -> str:
    """Return the C of the safe output, of an interrupting call, and of the end of a tick."""
    z, u = find_port(law.inputs, "z"), find_port(law.outputs, CONTROL)
    status, flags = (find_port(law.outputs, name) for name in ("status", "flags"))
    z_next = find_port(law.outputs, STATE)
    values: dict[str, str | int] = {
        "state": f"in[{law.inputs.index(z)}]" if z and law.has_state else "0",
        "z0": f"{law.name}_z0" if law.has_state else "0",
        "control": _control(law, u),
        "next_state": _next_state(law, z_next),
        "others": "".join(_other(law, port) for port in law.outputs),
        "hide_state": _hide_state(law, z, z_next),
        "code": "status" if status else f"{law.name.upper()}_FAILED",
        "mark": _mark(law, flags),
        "misses": _misses(law, status),
        "check": _check(law, u),
        "success": _success(law, status),
        "bad_input": int(Status.BAD_INPUT),
        "failed": int(Status.FAILED),
        "unprepared": int(Flag.UNPREPARED),
        "interrupting": int(Flag.INTERRUPTING),
        "uninitialised": int(Flag.UNINITIALISED),
        "NAME": law.name.upper(),
    }
    unprepared = template("unprepared.c.in", values) if law.prepared_from else ""
    return template("emergency.c.in", values | {"if_unprepared": unprepared})


def keeps_last(law: Law) -> bool:
    """Whether the memory keeps the last control."""
    return law.emergency is None and law.nu > 0


def last_member(law: Law) -> str:
    """Return the member of the memory that keeps the last control."""
    return f"  double last[{law.nu}];\n" if keeps_last(law) else ""


def initial_last(law: Law) -> str:
    """Return the C that sets it before the first tick: zero within the limits."""
    if not keeps_last(law):
        return ""
    return f"  for (i = 0; i < {law.nu}; ++i) m->last[i] = {_nearest_to_zero(law)};\n"


def _nearest_to_zero(law: Law) -> str:
    return f"fmin(fmax(0, {law.name}_u_min[i]), {law.name}_u_max[i])"


def _control(law: Law, u: Port | None) -> str:
    """Return the C that finds the control, and the next memory in `held`."""
    write = ""
    if u is not None and law.nu:
        place = f"out[{law.outputs.index(u)}]"
        value = "u[i]" if law.emergency else f"m ? m->last[i] : {_nearest_to_zero(law)}"
        write = f"  for (i = 0; {place} && i < {law.nu}; ++i) {place}[i] = {value};\n"
    if law.emergency is None:
        return "  (void)m;\n  (void)missed;\n" + write
    f = law.emergency
    read = f"  memcpy(held, z + {law.held_first}, {law.held} * sizeof *held);\n" if law.held else ""
    return (
        f"  double held[{max(1, law.held)}], held_next[{max(1, law.held)}], u[{max(1, law.nu)}];\n"
        f"  const double *arg[{max(2, int(f.sz_arg()))}] = {{held, &missed}};\n"
        f"  double *res[{max(2, int(f.sz_res()))}] = {{u, held_next}};\n"
        f"  (void)m;\n{read}  {f.name()}(arg, res, 0, 0, 0);\n{write}"
    )


def _next_state(law: Law, z_next: Port | None) -> str:
    if z_next is None or not law.has_state:
        return "  (void)own;\n"
    place = f"out[{law.outputs.index(z_next)}]"
    lines = f"  for (i = 0; {place} && i < {z_next.size}; ++i) {place}[i] = own[i];\n"
    if law.held:
        lines += f"  for (i = 0; {place} && i < {law.held}; ++i)\n"
        lines += f"    {place}[{law.held_first} + i] = held_next[i];\n"
    return lines


def _other(law: Law, port: Port) -> str:
    """Return the C of an output that is neither control nor state."""
    if port.name in (CONTROL, STATE) or not port.size:
        return ""
    known = {"status": "status", "flags": "flags", "residual": "HUGE_VAL"}
    place, value = f"out[{law.outputs.index(port)}]", known.get(port.name, "NAN")
    return f"  for (i = 0; {place} && i < {port.size}; ++i) {place}[i] = {value};\n"


def _hide_state(law: Law, z: Port | None, z_next: Port | None) -> str:
    """Return the C that keeps the state as it is."""
    if z is None or z_next is None or not law.has_state:
        return ""
    here, there = f"in[{law.inputs.index(z)}]", f"out[{law.outputs.index(z_next)}]"
    return (
        f"  for (i = 0; {there} && i < {z_next.size}; ++i) {there}[i] = {here}[i];\n  {there} = 0;\n"
    )


def _misses(law: Law, status: Port | None) -> str:
    """Return the C for: the law itself misses the preparation."""
    if status is None:
        return "0"
    return f"out[{law.outputs.index(status)}][0] == {Status.BAD_INPUT}"


def _mark(law: Law, flags: Port | None) -> str:
    if flags is None:
        return ""
    place = f"out[{law.outputs.index(flags)}]"
    return f"    if ({place}) {place}[0] += {int(Flag.UNPREPARED)};\n"


def _check(law: Law, u: Port | None) -> str:
    """Return the C that refuses a control that is not finite, and keeps the last one."""
    if not keeps_last(law) or u is None:
        return "  (void)m;\n"
    place = f"out[{law.outputs.index(u)}]"
    return (
        "  int i;\n"
        f"  for (i = 0; {place} && i < {law.nu}; ++i)\n"
        f"    if (!(fabs({place}[i]) <= DBL_MAX)) return broken(m, in, out);\n"
        f"  if ({place}) memcpy(m->last, {place}, sizeof m->last);\n"
    )


def _success(law: Law, status: Port | None) -> str:
    if status is None:
        return f"  (void)in;\n  (void)out;\n  return {law.name.upper()}_OK;\n"
    place = f"out[{law.outputs.index(status)}][0]"
    return (
        f"  if ({place} >= 0 && {place} <= 99) return (int){place};\n  return broken(m, in, out);\n"
    )


def rename_emergency(function: ca.Function, name: str) -> ca.Function:
    """Return the Function under another name; its C keeps all it needs on the stack."""
    inputs = function.sx_in()
    names = function.name_in(), function.name_out()
    return ca.Function(name, inputs, function.call(inputs), *names)
