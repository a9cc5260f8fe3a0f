"""The C of a tick in two phases: the preparation before the measurement, and the feedback."""

from itertools import accumulate

from mbcasadi.codegen.c_interface import Law, Port, law_template, parameters
from mbcasadi.codegen.text import comma_list

FIELDS = {"A_qp": "p->A", "lba": "p->lba", "uba": "p->uba", "active0": "p->active"}
FIELDS |= {"carry": "p->carry", "passed": "m->passed[0]"}


def build_arguments(law: Law) -> str:
    """Return the C that points to the inputs of `build` after the law's own, and its outputs."""
    lines = [f"  m->arg[{len(law.inputs)}] = m->prepared;\n"] if law.prepared_from else []
    names = law.functions[0].name_out()
    lines += [f"  m->res[{i}] = {FIELDS[name]};\n" for i, name in enumerate(names)]
    return "".join(lines)


def finish_arguments(law: Law) -> str:
    """Return the C that points to the inputs of `finish` after the law's own."""
    fields = ["m->prepared"] if law.prepared_from else []
    passed = [f"m->passed[{len(law.between) % 2}]"] if law.between else []
    fields += ["p->carry", *passed, "p->x", "p->lam_a", "p->active", "&flag"]
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
    return f"  {law.real} prepared[{max(1, size)}], known[{max(1, known_size)}];\n"


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
    bind = [f"  in[{i}] = {argument(law, law.inputs[i])};\n" for i in places]
    normal = "  if (!failed) m->ldp.measured = ldp_measure(&m->ldp);\n"
    values = entry | {
        "known": len(places),
        "known_input": comma_list(places),
        "known_start": comma_list(accumulate((port.size for port in law.prepared_from), initial=0)),
        "prepared": int(law.preparation.nnz_out("prepared")),
        "prepare_results": "".join(results),
        "prepare_rows": normal if prepares_rows(law) else "",
        "forget_rows": "  m->ldp.measured = 0;\n" if prepares_rows(law) else "",
        "bind_known": "".join(bind),
        "known_parameters": parameters(law, law.prepared_from),
    }
    for phase, is_whole in (("feedback", 0), ("step", 1)):
        tick_values = values | {"phase": phase, "whole": is_whole}
        values[f"tick_{phase}"] = law_template(law, "phase.c.in", tick_values)
    return law_template(law, "phases.c.in", values)


def argument(law: Law, port: Port) -> str:
    """Return the C of one input: null is its default."""
    default = law.default_name(port)
    return f"{port.identifier} ? {port.identifier} : {default}" if default else port.identifier
