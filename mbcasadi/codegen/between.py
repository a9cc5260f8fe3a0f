"""The C between the problems of a tick that solves several of one size."""

from mbcasadi.codegen.c_interface import Law
from mbcasadi.codegen.phases import FIELDS
from mbcasadi.codegen.sizes import LEAST_UNKNOWNS, most_passed
from mbcasadi.codegen.text import template


def between_members(law: Law) -> str:
    """Return the members of the memory that hold what is passed on, and a solution."""
    if not law.between:
        return ""
    sizes: dict[str, str | int] = {
        "real": law.real,
        "passed": most_passed(law),
        "n_array": max(LEAST_UNKNOWNS, law.n),
        "m_array": max(1, law.m),
    }
    return template("between_members.c.in", sizes)


def between_c(law: Law, solve: str) -> str:
    """Return the C behind the first solution: pose the next problem and solve it, and so on.

    Args:
        law: the law.
        solve: C that solves the problem in `p`.
    """
    return "".join(_next(law, i, solve) for i in range(len(law.between)))


def _next(law: Law, i: int, solve: str) -> str:
    fields = FIELDS | {"passed_next": f"m->passed[{(i + 1) % 2}]"}
    names = law.between[i].name_out()
    results = "".join(f"  m->res[{k}] = {fields[name]};\n" for k, name in enumerate(names))
    values: dict[str, str | int] = {
        "name": law.name,
        "number": i,
        "from": i % 2,
        "results": results,
        "solve": solve,
    }
    return template("between.c.in", values)
