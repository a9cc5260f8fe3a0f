"""The control function's C: CasADi's text, the solver's setting, the functions of the header.

A tick may have two phases, the preparation before the measurement and the feedback, and several
problems of one size, with Functions between them.
"""

from itertools import accumulate

from mbcasadi.codegen.c_interface import CLaw, Port, find_port, law_template, parameters
from mbcasadi.codegen.common_functions import CommonFunctions
from mbcasadi.codegen.cone_c import rest_values
from mbcasadi.codegen.emergency import emergency_c, initial_last, keeps_last, last_member
from mbcasadi.codegen.prefetch import with_prefetch
from mbcasadi.codegen.sizes import LEAST_UNKNOWNS, most_passed, work_sizes
from mbcasadi.codegen.solver_c import least_distance_c
from mbcasadi.codegen.text import comma_list, constant

# GCC and Clang define the first two, Microsoft's compiler the third.
STRICT_ARITHMETIC = """\
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \\
    defined(_M_FP_FAST)
#error "no -ffast-math, -Ofast, -ffinite-math-only, /fp:fast: they remove the checks of NaN"
#endif
"""

# CasADi's runtime functions are not static, so that position-independent code must leave them
# replaceable: it calls them through a table and inlines none. Hidden, they cost nothing. The text
# includes no header in between, but for <math.h>, which is included before.
HIDDEN = """\
#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility push(hidden)
#endif
"""
VISIBLE = """\
#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility pop
#endif
"""


def controller_c(law: CLaw) -> str:
    """Return `<name>.c`: CasADi's C, the solver's setting, and the functions of the header."""
    head = f'#include "{law.name}.h"\n\n{includes()}\n{STRICT_ARITHMETIC}\n'
    glue = law_template(law, "controller.c.in", _controller_values(law))
    solver = least_distance_c(law) if law.staged else ""
    internal = HIDDEN + with_prefetch(law.own_text, law.name) + VISIBLE
    return head + internal + "\n" + solver + glue.rstrip() + "\n"


def includes() -> str:
    """Return the C that includes what CasADi's C and the laws need."""
    return "".join(f"#include <{h}.h>\n" for h in ("float", "limits", "math", "string"))


def common_c(common: CommonFunctions) -> str:
    """Return the C of Functions that several laws share."""
    return f"{includes()}\n{STRICT_ARITHMETIC}\n{HIDDEN}{common.text}{VISIBLE}"


def _controller_values(law: CLaw) -> dict[str, str | int]:
    bind = [f"  in[{i}] = {argument(law, p)};\n" for i, p in enumerate(law.inputs)]
    bind += [f"  out[{i}] = {p.identifier};\n" for i, p in enumerate(law.outputs)]
    state, status = find_port(law.inputs, "z"), find_port(law.outputs, "status")
    keep = ""
    if state and law.has_state and state not in law.prepared_from:
        i = law.inputs.index(state)
        keep = f"  in[{i}] = (const {law.real} *)memcpy(m->state, in[{i}], sizeof m->state);\n"
    local = ""
    if status:
        k = law.outputs.index(status)
        local = f"  {law.real} status_value = 0;\n"
        bind.append(f"  if (!out[{k}]) out[{k}] = &status_value;\n")
    work = work_sizes(law)
    values: dict[str, str | int] = {
        "stage_members": _stage_members(law),
        "initial_limit": "  m->ldp.limit = LDP_ITERATIONS;\n" if law.staged else "",
        "state_member": f"  {law.real} state[{state.size}];\n" if keep and state else "",
        "last_member": last_member(law),
        "initial_last": initial_last(law),
        "keep": keep,
        "prepared_members": members(law),
        "constants": _constant_definitions(law),
        "body": _body(law) + "\n" + emergency_c(law),
        "parameters": parameters(law, law.inputs, law.outputs),
        "locals": local,
        "bind": "".join(bind),
        "accessors": _accessors(law),
        "n_in_array": max(1, len(law.inputs)),
        "n_out_array": max(1, len(law.outputs)),
    }
    values.update({k: max(1, size) for k, size in work.items()})
    values["entries"] = (
        phases_c(law, values) if law.prepared_from else law_template(law, "step.c.in", values)
    )
    return values


def _stage_members(law: CLaw) -> str:
    if not law.staged:
        return ""
    daqp = "  struct daqp daqp;\n" if law.has_daqp else ""
    limited = "  int is_limited; /* the solver was stopped by its limit in this tick */\n"
    return limited + "  struct ldp ldp;\n" + daqp + between_members(law)


def _body(law: CLaw) -> str:
    solve = f"  flag = ({law.real})ldp_solve(p);\n  if (p->posed > 0) m->exit_flag = (int)flag;\n"
    if law.horizon is not None and law.preparation is not None:
        place = "  p->response = (double(*)[LQ_ALL])m->w; /* of CasADi's, which waits */\n"
        solve = f"  p->data = {_data_of(law)};\n{place}{solve}"
    if law.has_daqp:
        solve = "  flag = daqp_solve(p, &m->daqp, &m->exit_flag);\n"
    solve += (
        "  if (flag <= LDP_STOPPED && flag >= LDP_STOPPED && p->is_stopped) m->is_limited = 1;\n"
    )
    values: dict[str, str | int] = {
        "solve": solved_in_turn(law, solve) if law.between else solve,
        "rests": law_template(law, "rests.c.in", rest_values(law.cones)) if law.between else "",
        "turn": ", turn = 0, rests" if law.between else "",
        "n_in": len(law.inputs),
        "n_out": len(law.outputs),
        "build_arguments": build_arguments(law) if law.staged else "",
        "finish_arguments": finish_arguments(law) if law.staged else "",
    }
    return law_template(law, "staged.c.in" if law.staged else "plain.c.in", values)


def _data_of(law: CLaw) -> str:
    """Return the C that points to the data of a problem over a horizon."""
    assert law.horizon is not None
    assert law.preparation is not None
    return f"m->prepared + {int(law.preparation.nnz_out('prepared')) - law.horizon.size}"


def _constant_definitions(law: CLaw) -> str:
    rows = [constant(f"const {law.real}", f"{law.name}_{n}", v, law.real) for n, v in law.constants]
    return "".join([*rows, "\n"]) if rows else ""


def _accessors(law: CLaw) -> str:
    rows = "rows_of_horizon.c.in" if law.horizon else "excluding_rows.c.in"
    values = {"excluding_rows": law_template(law, rows)}
    text = law_template(law, "accessors.c.in", values) if law.staged else ""
    return text + (law_template(law, "last_control.c.in") if keeps_last(law) else "")


def between_members(law: CLaw) -> str:
    """Return the members of the memory that hold what is passed on, and a solution."""
    if not law.between:
        return ""
    sizes: dict[str, str | int] = {
        "passed": most_passed(law),
        "n_array": max(LEAST_UNKNOWNS, law.n),
        "m_array": max(1, law.m),
    }
    return law_template(law, "between_members.c.in", sizes)


def solved_in_turn(law: CLaw, solve: str) -> str:
    """Return the C that solves a problem, poses the next one and solves it, and so on.

    Args:
        law: the law.
        solve: C that solves the problem in `p`.
    """
    first = law_template(law, "solve_unless_at_rest.c.in", {"rows": "", "solve": solve})
    return first + "".join(_next(law, i, solve) for i in range(len(law.between)))


def _next(law: CLaw, i: int, solve: str) -> str:
    has_rows = law.between_rows[i] is not None
    rows = law_template(law, "between_rows.c.in", {"number": i}) if has_rows else ""
    solved = law_template(law, "solve_unless_at_rest.c.in", {"rows": rows, "solve": solve})
    values: dict[str, str | int] = {
        "number": i,
        "condition": "" if has_rows else "if (!rests) ",
        "solve": solved,
    }
    return law_template(law, "between.c.in", values)


FIELDS = {"A_qp": "p->A", "lba": "p->lba", "uba": "p->uba", "active0": "p->active"}
FIELDS |= {"carry": "p->carry", "passed": "m->passed[0]"}
FIELDS |= {"x_first": "p->x_first"}


def build_arguments(law: CLaw) -> str:
    """Return the C that points to the inputs of `build` after the law's own, and its outputs."""
    lines = [f"  m->arg[{len(law.inputs)}] = m->prepared;\n"] if law.prepared_from else []
    names = law.functions[0].name_out()
    lines += [f"  m->res[{i}] = {FIELDS[name]};\n" for i, name in enumerate(names)]
    return "".join(lines)


def finish_arguments(law: CLaw) -> str:
    """Return the C that points to the inputs of `finish` after the law's own."""
    fields = ["m->prepared"] if law.prepared_from else []
    passed = ["m->passed[turn]"] if law.between else []
    fields += ["p->carry", *passed, "p->x", "p->lam_a", "p->active", "&flag"]
    n_inputs = len(law.inputs)
    places = [f"{n_inputs} + {i}" if i else f"{n_inputs}" for i in range(len(fields))]
    return "".join(
        f"  m->arg[{place}] = {field};\n" for place, field in zip(places, fields, strict=True)
    )


def members(law: CLaw) -> str:
    """Return the members of the memory that hold the prepared values."""
    if law.preparation is None:
        return ""
    size, known_size = (
        int(law.preparation.nnz_out("prepared")),
        sum(p.size for p in law.prepared_from),
    )
    return f"  {law.real} prepared[{max(1, size)}], known[{max(1, known_size)}];\n"


def phases_c(law: CLaw, entry: dict[str, str | int]) -> str:
    """Return prepare, feedback and step; `entry` are the values of a plain step's template."""
    assert law.preparation is not None
    places = [law.inputs.index(port) for port in law.prepared_from]
    pointers = {"prepared": "m->prepared", "A_qp": "m->ldp.A", "lam0": "m->ldp.lam0"}
    results = [
        f"  m->res[{i}] = {pointers[name]};\n" for i, name in enumerate(law.preparation.name_out())
    ]
    bind = [f"  in[{i}] = {argument(law, law.inputs[i])};\n" for i in places]
    known, forget = "", ""
    if law.prepares_rows:
        known = "  if (!failed) m->ldp.measured = ldp_measure(&m->ldp);\n"
        forget = "  m->ldp.measured = 0;\n"
    if law.horizon is not None:
        known = f"  m->ldp.data = {_data_of(law)};\n  if (!failed) ldp_prepare(&m->ldp);\n"
        forget = "  m->ldp.is_fresh = 0;\n"
    values = entry | {
        "known": len(places),
        "known_input": comma_list(places),
        "known_start": comma_list(accumulate((port.size for port in law.prepared_from), initial=0)),
        "prepared": int(law.preparation.nnz_out("prepared")),
        "prepare_results": "".join(results),
        "prepare_rows": known,
        "forget_rows": forget,
        "bind_known": "".join(bind),
        "known_parameters": parameters(law, law.prepared_from),
    }
    for phase, is_whole in (("feedback", 0), ("step", 1)):
        tick_values = values | {"phase": phase, "whole": is_whole}
        values[f"tick_{phase}"] = law_template(law, "phase.c.in", tick_values)
    return law_template(law, "phases.c.in", values)


def argument(law: CLaw, port: Port) -> str:
    """Return the C of one input: null is its default."""
    default = law.default_name(port)
    return f"{port.identifier} ? {port.identifier} : {default}" if default else port.identifier
