"""The C of a tick in two phases: the preparation before the measurement, and the feedback."""

from itertools import accumulate

from mbcasadi.codegen.c_interface import Law, Port, find_port
from mbcasadi.codegen.text import comma_list, template
from mbcasadi.description.status import Status

FIELDS = {"A_qp": "p->A", "lba": "p->lba", "uba": "p->uba", "active0": "p->active"}
FIELDS |= {"carry": "p->carry"}


def build_arguments(law: Law) -> str:
    """Return the C that points to the inputs of `build` after the law's own, and its outputs."""
    lines = [f"  m->arg[{len(law.inputs)}] = m->prepared;\n"] if law.prepared_from else []
    names = law.functions[0].name_out()
    lines += [f"  m->res[{i}] = {FIELDS[name]};\n" for i, name in enumerate(names)]
    return "".join(lines)


def finish_arguments(law: Law) -> str:
    """Return the C that points to the inputs of `finish` after the law's own."""
    fields = ["m->prepared"] if law.prepared_from else []
    fields += ["p->carry", "p->x", "p->lam_a", "p->active", "&flag"]
    n_inputs = len(law.inputs)
    places = [f"{n_inputs} + {i}" if i else f"{n_inputs}" for i in range(len(fields))]
    return "".join(
        f"  m->arg[{place}] = {field};\n" for place, field in zip(places, fields, strict=True)
    )


def members(law: Law) -> str:
    """Return the members of the memory that hold the prepared values."""
    if law.preparation is None:
        return ""
    size, known_size = (
        int(law.preparation.nnz_out("prepared")),
        sum(p.size for p in law.prepared_from),
    )
    return f"  double prepared[{max(1, size)}], known[{max(1, known_size)}];\n"


def prepares_rows(law: Law) -> bool:
    """Whether the rows of the QP are known before the measurement."""
    return law.preparation is not None and "A_qp" in law.preparation.name_out()


def phases_c(law: Law, entry: dict[str, str | int]) -> str:
    """Return prepare, feedback and step; `entry` are the values of a plain step's template."""
    assert law.preparation is not None
    places = [law.inputs.index(port) for port in law.prepared_from]
    pointers = {"prepared": "m->prepared", "A_qp": "m->ldp.A"}
    results = [
        f"  m->res[{i}] = {pointers[name]};\n" for i, name in enumerate(law.preparation.name_out())
    ]
    bind = [f"  in[{i}] = {law.inputs[i].identifier};\n" for i in places]
    normal = "  if (!failed) m->ldp.normal = ldp_normalise(&m->ldp);\n"
    values = entry | {
        "known": len(places),
        "known_input": comma_list(places),
        "known_start": comma_list(accumulate((port.size for port in law.prepared_from), initial=0)),
        "prepared": int(law.preparation.nnz_out("prepared")),
        "prepare_results": "".join(results),
        "prepare_rows": normal if prepares_rows(law) else "",
        "forget_rows": "  m->ldp.normal = 0;\n" if prepares_rows(law) else "",
        "unprepared": _unprepared_c(law),
        "bind_known": "".join(bind),
        "known_parameters": known_parameters(law),
        "refuse": _refuse(law),
    }
    for phase, is_whole in (("feedback", 0), ("step", 1)):
        tick_values = values | {"phase": phase, "whole": is_whole}
        values[f"tick_{phase}"] = template("phase.c.in", tick_values)
    return template("phases.c.in", values)


def known_parameters(law: Law) -> str:
    """Return the parameters of `<name>_prepare` after the memory."""
    return "".join(f", const double *{port.identifier}" for port in law.prepared_from)


def output_loops(law: Law, entries: dict[str, str]) -> list[str]:
    """Return the C that writes a value to every entry of an output, 0 where none is chosen."""
    lines = []
    for k, port in enumerate(law.outputs):
        value = entries.get(port.name, "0")
        if port.size:
            lines += [
                f"  if (out[{k}])",
                f"    for (i = 0; i < {port.size}; ++i) out[{k}][i] = {value};",
            ]
    return lines


def zero_control(law: Law) -> str:
    """Return the entry of u that is zero within its limits."""
    return f"fmin(fmax(0, {law.name}_u_min[i]), {law.name}_u_max[i])"


def _unprepared_c(law: Law) -> str:
    state = find_port(law.inputs, "z")
    entries = {"u": zero_control(law), "status": str(Status.BAD_INPUT), "residual": "HUGE_VAL"}
    if state is not None:
        place = f"in[{law.inputs.index(state)}]"
        entries["z_next"] = f"{place} ? {place}[i] : 0"
    code = Status.BAD_INPUT if _status(law) else f"{law.name.upper()}_FAILED"
    return "\n".join(
        [
            "/* Nothing is prepared: zero control within its limits, the state as it was. */",
            "static int unprepared(const double **in, double **out) {",
            "  int i;",
            "  (void)in;",
            *output_loops(law, entries),
            f"  return {code};",
            "}",
            "",
        ]
    )


def _refuse(law: Law) -> str:
    """Return the C for a law that does not itself detect a missing preparation."""
    status = _status(law)
    if status is None:
        return "  if (!prepared) return unprepared(in, out);\n"
    place = law.outputs.index(status)
    return (
        f"  if (!prepared && out[{place}][0] != {Status.BAD_INPUT}) return unprepared(in, out);\n"
    )


def _status(law: Law) -> Port | None:
    return find_port(law.outputs, "status")
