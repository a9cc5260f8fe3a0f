"""The C of a supervision: `<name>_supervised.c` and `.h`."""

from collections.abc import Mapping
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen.c_interface import STATES, CLaw, Port, law_template, parameters, tick_call
from mbcasadi.codegen.casadi_c import generate
from mbcasadi.codegen.controller import HIDDEN, VISIBLE
from mbcasadi.codegen.emergency import keeps_last
from mbcasadi.codegen.supervision.layout import (
    BUILD_BYTES,
    code_hash,
    header_type,
    law_code,
    log_fields,
    record_fields,
    record_type,
    state_fields,
    supervised_doubles,
    supervised_state_doubles,
)
from mbcasadi.codegen.supervision.plan import LONGEST, SHORTEST, InputChecks, Plan
from mbcasadi.codegen.supervision.supervision import EVENT_TEXTS, IMPLAUSIBLE, TickEvent
from mbcasadi.codegen.text import comma_list, number
from mbcasadi.description.status import Flag, Status


def supervision_files(plan: Plan, contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return `<name>_supervised.c` and `.h`.

    Args:
        plan: numbers of the supervision.
        contents: the files of the law itself, whose hash a log has.
    """
    name = plan.law.name
    source = _source(plan)
    code = code_hash(law_code(plan, contents), contents[f"{name}.h"], source.encode())
    return {
        f"{name}_supervised.c": source.encode(),
        f"{name}_supervised.h": _header(plan, code).encode(),
    }


def _header(plan: Plan, code: str) -> str:
    law = plan.law
    return law_template(
        law,
        "supervised.h.in",
        {
            "doubles": supervised_doubles(plan),
            "state_doubles": supervised_state_doubles(plan),
            "record_bytes": record_type(log_fields(plan), law.real).itemsize,
            "header_bytes": header_type().itemsize,
            "code": code,
            "events": "\n".join(
                f"  {law.name.upper()}_{event.name} = {int(event)}, /* {EVENT_TEXTS[event]} */"
                for event in TickEvent
            ),
            "implausible": int(IMPLAUSIBLE),
            "sample_use": "" if plan.stale_after >= 0 else "; this supervision does not look at it",
            "parameters": parameters(law, plan.inputs, plan.outputs),
            "two_phases": _phases(plan, "supervised_phases.h.in"),
            "fade_time": number(plan.fade_time),
            "without_z": ", without z" if law.has_state else "",
        },
    )


def tables_of_inputs(checks: InputChecks, law: CLaw) -> str:
    """Return the C of the limits of inputs; `examine_inputs` reads them."""
    real, checked = law.real, checks.checked
    limits = {
        name: [x for row in checked for x in getattr(row, name)]
        for name in ("lower", "upper", "jump")
    }
    values: dict[str, str | int] = {
        "checked_rows": ", ".join(
            f"{{{row.place}, {row.first}, {row.port.size}, {int(row.is_measured)}}}"
            for row in checked
        )
        or "{0, 0, 0, 0}",
        **{name: _list(numbers, real) for name, numbers in limits.items()},
        **_quaternions(checks),
        "others": len(checks.others),
        "other_rows": ", ".join([*(f"{{{i}, {int(j)}}}" for i, j in checks.others), "{-1, 0}"]),
        "input_first": _starts(checks.inputs),
        "widest": max(1, *(port.size for port in checks.inputs), 1),
        "not_a_number": comma_list(["NAN"] * max(1, *(port.size for port in checks.inputs), 1)),
        "measured": f"static const int measured[] = {{{comma_list([*checks.measured, -1])}}};\n",
    }
    return law_template(law, "supervised_tables.c.in", values)


def examine_inputs(law: CLaw) -> str:
    """Return the C that looks whether inputs are plausible."""
    values = {
        "quarter": number(SHORTEST**2, law.real),
        "four": number(LONGEST**2, law.real),
        "abs": "fabs" if law.real == "double" else "fabsf",
    }
    return law_template(law, "supervised_inputs.c.in", values)


def _source(plan: Plan) -> str:
    law = plan.law
    real = law.real
    values: dict[str, str | int] = {
        "tables": tables_of_inputs(plan, law),
        "examine": examine_inputs(law),
        "nu": law.nu,
        "nz_array": max(1, law.nz),
        "keep_state": "  if (is_answer) memcpy(s->z, m->z_next, sizeof s->z);\n"
        if law.has_state
        else "",
        "nz": law.nz,
        "n_in": len(plan.inputs),
        "n_out": len(plan.outputs),
        "checked": len(plan.checked),
        "entries": plan.entries,
        "stale_after": plan.stale_after,
        "trip_after": plan.trip_after,
        "recover_after": plan.recover_after,
        "fade_ticks": plan.fade_ticks,
        "most": _list(plan.rate, real),
        "nu_array": max(1, law.nu),
        "output_first": _starts(plan.outputs),
        "state_members": "".join(f.c_text(real) for f in state_fields(plan)),
        "record_members": "".join(f.c_text(real) for f in record_fields(plan)[2:]),
        "inputs_array": max(1, sum(port.size for port in plan.inputs)),
        "outputs_array": max(1, sum(port.size for port in plan.outputs)),
        "build": BUILD_BYTES,
        "abs": "fabs" if real == "double" else "fabsf",
        "largest": "DBL_MAX" if real == "double" else "FLT_MAX",
        "safe_statuses": "".join(f" || code == {int(code)}" for code in law.safe_statuses),
        "parameters": parameters(law, plan.inputs, plan.outputs),
        "bind": _bind(plan),
        "initial_state": _initial_state(law),
        "spoil": _spoil(plan, "s->is_tripped"),
        "call": _call(plan),
        "u": f"m->out + output_first[{_place(plan, 'u')}]",
        "u_index": _place(plan, "u"),
        "refused_step": _tick_call(plan, "step", "0", "0", "0"),
        **_refusal(plan),
        **_kept(law),
        **_safe(plan),
        "two_phases": _phases(plan, "supervised_phases.c.in"),
        "record_phase": _record_phase(law),
        "replay_phase": _replay_phase(plan),
    }
    return law_template(law, "supervised.c.in", values)


def _list(numbers: "list[float] | NDArray[np.float64]", real: str) -> str:
    return comma_list(number(float(x), real) for x in numbers)


def _starts(ports: tuple[Port, ...]) -> str:
    return comma_list(accumulate((port.size for port in ports), initial=0))


def _place(plan: Plan, name: str) -> int:
    return [port.name for port in plan.outputs].index(name)


def _quaternions(checks: InputChecks) -> dict[str, str | int]:
    starts = [start for row in checks.checked for start in row.quaternions]
    return {"quaternion_count": len(starts), "quaternions": comma_list([*starts, -1])}


def _bind(plan: Plan) -> str:
    lines = [f"  in[{i}] = {port.identifier};\n" for i, port in enumerate(plan.inputs)]
    lines += [f"  out[{i}] = {port.identifier};\n" for i, port in enumerate(plan.outputs)]
    return "".join(lines)


def _initial_state(law: CLaw) -> str:
    if not law.has_state:
        return ""
    return f"  for (i = 0; i < NZ; ++i) m->s.z[i] = {law.name}_z0[i];\n"


def _spoil(plan: Plan, condition: str) -> str:
    """Return the C that takes one input away, so that the law has its safe output."""
    if plan.spoiled is None:
        return ""
    return f"  if ({condition}) in[{plan.inputs.index(plan.spoiled)}] = not_a_number;\n"


def _tick_call(plan: Plan, phase: str, memory: str, state: str, next_state: str) -> str:
    """Return the C of a call of the law."""

    def place(port: Port) -> str:
        if port.name in STATES:
            return state if port.name == STATES[0] else next_state
        if port in plan.inputs:
            return f"in[{plan.inputs.index(port)}]"
        return f"out[{plan.outputs.index(port)}]"

    return tick_call(plan.law, memory, place, phase)


def _call(plan: Plan) -> str:
    places = ("s->z", "m->z_next") if plan.law.has_state else ("0", "0")
    step = _tick_call(plan, "step", "m->law", *places)
    if not plan.law.prepared_from:
        return f"  code = {step};\n"
    feedback = _tick_call(plan, "feedback", "m->law", *places)
    return f"  if (phase == FEEDBACK)\n    code = {feedback};\n  else\n    code = {step};\n"


def _refusal(plan: Plan) -> dict[str, str | int]:
    """Return what a call says that interrupts another one."""
    names = [port.name for port in plan.outputs]
    lines = ""
    if "flags" in names:
        k = names.index("flags")
        lines = f"  if (out[{k}]) out[{k}][0] = {int(Flag.INTERRUPTING)};\n"
    failed = f"{plan.law.name.upper()}_FAILED"
    returned = str(int(Status.BAD_INPUT)) if "status" in names else failed
    return {"refused_codes": lines, "refused_return": returned}


def _kept(law: CLaw) -> dict[str, str | int]:
    """Return the C that keeps and restores what the memory of the law hands on."""
    keep, restore = "", ""
    if law.staged:
        keep += f"  m->s.law_limit = {law.name}_iteration_limit(m->law);\n"
        restore += f"  {law.name}_limit_iterations(m->law, (int)m->s.law_limit);\n"
    if keeps_last(law):
        keep += f"  m->s.law_age = {law.name}_last_control(m->law, m->s.law_last);\n"
        restore += f"  {law.name}_set_last_control(m->law, m->s.law_last, (int)m->s.law_age);\n"
    return {"keep_memory": keep, "restore_memory": restore}


def _safe(plan: Plan) -> dict[str, str | int]:
    """Return the C of the safe law, and of its place in the memory."""
    law, f = plan.law, plan.safe_law
    if f is None:
        text = law_template(law, "supervised_no_safe.c.in")
        place = f"{law.name}_u_safe"
        return {"safe_work": "", "safe_text": "", "safe_control": text, "safe_place": place}
    names = [port.name for port in plan.inputs]
    bind = ""
    for k, name in enumerate(f.name_in()):
        index = names.index(name)
        default = law.default_name(plan.inputs[index])
        value = f"in[{index}] ? in[{index}] : {default}" if default else f"in[{index}]"
        bind += f"  m->arg[{k}] = {value};\n"
    text = HIDDEN + generate((f,), f"{law.name}_safe", real=law.real) + VISIBLE
    work = (
        f"  real safe_u[{max(1, law.nu)}], w[{max(1, int(f.sz_w()))}];\n"
        f"  casadi_int iw[{max(1, int(f.sz_iw()))}];\n"
        f"  const real *arg[{int(f.sz_arg())}];\n"
        f"  real *res[{max(1, int(f.sz_res()))}];\n"
    )
    other = f"m->has_safe ? m->safe_u : {law.name}_u_safe"
    return {
        "safe_work": work,
        "safe_text": f"\n/* ---- The safe law {'-' * 74} */\n\n{text}",
        "safe_control": law_template(law, "supervised_safe.c.in", {"safe_bind": bind}),
        "safe_place": other,
    }


def _known(plan: Plan) -> list[Port]:
    return [port for port in plan.law.prepared_from if port.name not in STATES]


def _phases(plan: Plan, file: str) -> str:
    law = plan.law
    if not law.prepared_from:
        return ""
    known = _known(plan)
    bind = [f"  in[{plan.inputs.index(port)}] = {port.identifier};\n" for port in known]
    is_known = plan.spoiled is not None and plan.spoiled in known
    return law_template(
        law,
        file,
        {
            "known_parameters": parameters(law, known),
            "parameters": parameters(law, plan.inputs, plan.outputs),
            "bind_known": "".join(bind),
            "bind": _bind(plan),
            "spoil": _spoil(plan, "m->s.is_tripped") if is_known else "",
            "prepare": _tick_call(plan, "prepare", "m->law", "m->s.z", ""),
        },
    )


def _record_phase(law: CLaw) -> str:
    """Return the C that notes a feedback without its preparation."""
    if not law.prepared_from:
        return ""
    test = f"r->phase == FEEDBACK && {law.name}_is_prepared(m->law) != 1"
    return f"  if ({test}) r->phase = UNPREPARED;\n"


def _replay_phase(plan: Plan) -> str:
    """Return the C that prepares a feedback again, where it was prepared."""
    law = plan.law
    if not law.prepared_from:
        return ""
    return (
        "  if (r->phase == FEEDBACK) {\n"
        "    const real *given[IN + 1];\n"
        "    memcpy(given, in, sizeof given);\n"
        f"  {_spoil(plan, 'm->s.is_tripped').rstrip()}\n"
        f"    {_tick_call(plan, 'prepare', 'm->law', 'm->s.z', '')};\n"
        "    memcpy(in, given, sizeof given);\n"
        "  }\n"
    )
