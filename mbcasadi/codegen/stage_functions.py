"""The Functions around the QP solver, checked against each other and renamed for the C.

A law has one Function, or `build` and `finish` with the solver between them, or these two and the
`prepare` of a preparation phase.
"""

from collections.abc import Sequence
from typing import cast

import casadi as ca

from mbcasadi.codegen.constant_rows import stored_pattern
from mbcasadi.description import Controller, LeastDistanceStages
from mbcasadi.errors import ExportError

BUILD_OUTPUTS = ("A_qp", "lba", "uba", "active0", "carry")
HORIZON_OUTPUTS = ("x_first", "carry")
BETWEEN_OUTPUTS = ("lba", "uba", "active0", "passed_next")
PREPARE_OUTPUTS = (("prepared",), ("prepared", "A_qp"))
HORIZON_PREPARE_OUTPUTS = (("prepared", "lam0"),)
SOLUTION_INPUTS = ("carry", "x", "lam_a", "active", "flag")
MEASURED = ("q", "v", "act", "f_c", "f_measured", "x0", "y")


def stage_functions(controller: Controller, symbol: str) -> tuple[ca.Function, ...]:
    """Return (law,), (build, finish) or (build, finish, preparation), renamed after `symbol`.

    Raises:
        ExportError: names or sizes contradict each other or the controller's Function.
    """
    function, stages = controller.function, controller.stages
    if stages is None:
        return (rename_function(function, f"{symbol}_law", patterns(function)),)
    _check_prepare(function, stages)
    _check_names(function, stages)
    _check_sizes(stages)
    _check_shapes(function, stages)
    renamed = (
        rename_function(stages.build, f"{symbol}_build", _dense_outputs(stages.build)),
        rename_function(stages.finish, f"{symbol}_finish", patterns(function)),
    )
    if stages.prepare is None:
        return renamed
    return (
        *renamed,
        rename_function(stages.prepare, f"{symbol}_preparation", _dense_outputs(stages.prepare)),
    )


def rename_function(
    function: ca.Function, name: str, sparsities: Sequence[ca.Sparsity]
) -> ca.Function:
    """Return the same Function under another name, its outputs in these sparsity patterns."""
    inputs = _symbols(function)
    outputs = [ca.project(o, p) for o, p in zip(function.call(inputs), sparsities, strict=True)]
    names = (function.name_in(), function.name_out())
    return ca.Function(name, inputs, outputs, *names, _defaults(function))


def without_rows(function: ca.Function) -> ca.Function:
    """Return the same Function without its output A_qp."""
    names = [name for name in function.name_out() if name != "A_qp"]
    if names == function.name_out():
        return function
    inputs = _symbols(function)
    outputs_by_name = dict(zip(function.name_out(), function.call(inputs), strict=True))
    outputs = [outputs_by_name[name] for name in names]
    return ca.Function(
        function.name(), inputs, outputs, function.name_in(), names, _defaults(function)
    )


def _symbols(function: ca.Function) -> list[ca.MX]:
    """Return the inputs as symbols; SX has the same operations and is typed as MX here."""
    return cast(list[ca.MX], function.sx_in()) if function.is_a("SXFunction") else function.mx_in()


def _defaults(function: ca.Function) -> dict[str, list[float]]:
    return {"default_in": [function.default_in(i) for i in range(function.n_in())]}


def patterns(function: ca.Function) -> list[ca.Sparsity]:
    """Return the sparsity patterns of the outputs."""
    return [function.sparsity_out(i) for i in range(function.n_out())]


def _dense_outputs(function: ca.Function) -> list[ca.Sparsity]:
    """Keep the zeros of A_qp where they are many, fill the vectors."""
    return [
        stored_pattern(function.sparsity_out(i))
        if name == "A_qp" and "passed" not in function.name_out()
        else ca.Sparsity.dense(*function.size_out(i))
        for i, name in enumerate(function.name_out())
    ]


def between_functions(
    controller: Controller, symbol: str
) -> tuple[tuple[ca.Function, ...], tuple[ca.Function | None, ...]]:
    """Return the Functions between the problems of a tick, and their rows, renamed after `symbol`.

    Raises:
        ExportError: names or sizes contradict those of the stages.
    """
    stages, renamed = controller.stages, list[ca.Function]()
    if stages is None:
        return (), ()
    rows: list[ca.Function | None] = []
    sizes = {"A_qp": (stages.m, stages.n)} | dict.fromkeys(("lba", "uba", "active0"), (stages.m, 1))
    sizes |= {"x": (stages.n, 1), "lam_a": (stages.m, 1), "active": (stages.m, 1), "flag": (1, 1)}
    sizes["carry"] = stages.build.size_out("carry")
    passed = stages.build.size_out("passed") if stages.between else (0, 1)
    if len(stages.between) != len(stages.between_rows):
        raise ExportError(
            f"there are {len(stages.between)} Functions between problems and "
            f"{len(stages.between_rows)} of rows; expected one of rows, or None, for each"
        )
    pairs = zip(stages.between, stages.between_rows, strict=True)
    for i, (each, of_rows) in enumerate(pairs):
        _check_between(f"between {i}", each, sizes | {"passed": passed})
        renamed.append(rename_function(each, f"{symbol}_between{i}", _dense(each)))
        if of_rows is None and each.size_out("passed_next") != passed:
            raise ExportError(f"between {i} passes on other numbers; expected the same, or rows")
        passed = each.size_out("passed_next")
        rows.append(of_rows and rename_function(of_rows, f"{symbol}_rows{i}", _dense(of_rows)))
    return tuple(renamed), tuple(rows)


def _dense(function: ca.Function) -> list[ca.Sparsity]:
    return [ca.Sparsity.dense(*function.size_out(k)) for k in range(function.n_out())]


def _check_between(label: str, function: ca.Function, sizes: dict[str, tuple[int, int]]) -> None:
    """Raise unless names and sizes of a Function between two problems are right."""
    inputs = ("carry", "passed", *SOLUTION_INPUTS[1:])
    names = tuple(function.name_out())
    if tuple(function.name_in()) != inputs or names != BETWEEN_OUTPUTS:
        raise ExportError(f"{label} is {function}, expected {inputs} -> {BETWEEN_OUTPUTS}")
    found = {name: function.size_in(name) for name in inputs}
    found |= {name: function.size_out(name) for name in names if name in sizes}
    for name, size in found.items():
        if size != sizes[name]:
            raise ExportError(f"{name} of {label} is {size}, expected {sizes[name]}")


def _check_prepare(function: ca.Function, stages: LeastDistanceStages) -> None:
    if stages.prepare is None:
        return
    names, inputs = stages.prepare.name_in(), function.name_in()
    if not names or names != [n for n in inputs if n in names] or set(names) & set(MEASURED):
        raise ExportError(
            f"the inputs of prepare are {tuple(names)}, expected some of "
            f"{tuple(n for n in inputs if n not in MEASURED)}, in this order: what is measured is "
            "not known yet"
        )
    known = PREPARE_OUTPUTS if stages.horizon is None else HORIZON_PREPARE_OUTPUTS
    if tuple(stages.prepare.name_out()) not in known:
        raise ExportError(
            f"the outputs of prepare are {tuple(stages.prepare.name_out())}, expected "
            "('prepared',), or ('prepared', 'A_qp') where build gives no A_qp, or "
            "('prepared', 'lam0') of a problem over a horizon"
        )


def _check_names(function: ca.Function, stages: LeastDistanceStages) -> None:
    build, finish = stages.build, stages.finish
    two_phases = ("prepared",) if stages.prepare is not None else ()
    passed = ("passed",) if stages.between else ()
    inputs = (*function.name_in(), *two_phases)
    least_distance = tuple(n for n in BUILD_OUTPUTS if n != "A_qp" or stages.posing is build)
    built = least_distance + passed if stages.horizon is None else HORIZON_OUTPUTS
    solution = (SOLUTION_INPUTS[0], *passed, *SOLUTION_INPUTS[1:])
    expected = (
        ("the inputs of build", tuple(build.name_in()), inputs),
        ("the outputs of build", tuple(build.name_out()), built),
        ("the inputs of finish", tuple(finish.name_in()), inputs + solution),
        ("the outputs of finish", tuple(finish.name_out()), tuple(function.name_out())),
    )
    for label, actual, required in expected:
        if actual != required:
            raise ExportError(f"{label} are {actual}, expected {required}")


def _check_sizes(stages: LeastDistanceStages) -> None:
    build, finish = stages.build, stages.finish
    m, n, horizon = stages.m, stages.n, stages.horizon
    solution = {"carry": build.numel_out("carry"), "x": n, "lam_a": m, "active": m, "flag": 1}
    starts = {"lba": m, "uba": m, "active0": m}
    if horizon is not None:
        starts = {"x_first": horizon.nx}
    rows = [(name, build.numel_out(name), size) for name, size in starts.items()]
    if horizon is not None and stages.prepare is not None:
        rows.append(("lam0", stages.prepare.numel_out("lam0"), m))
    rows += [(f"finish {name}", finish.nnz_in(name), size) for name, size in solution.items()]
    for label, found, expected in rows:
        if found != expected:
            raise ExportError(
                f"{label} has {found} entries, expected {expected} for A_qp of {m} rows and {n} "
                "columns"
            )
    size = 0 if stages.prepare is None else stages.prepare.numel_out("prepared")
    for stage in (build, finish) if stages.prepare is not None else ():
        if stage.nnz_in("prepared") != size:
            raise ExportError(
                f"{stage.name()} prepared has {stage.nnz_in('prepared')} entries, expected the "
                f"{size} of prepare"
            )


def _check_shapes(function: ca.Function, stages: LeastDistanceStages) -> None:
    for name in function.name_out():
        found, expected = stages.finish.size_out(name), function.size_out(name)
        if found != expected:
            raise ExportError(
                f"output {name!r} of finish is {found}, of the controller's Function {expected}: "
                "they must agree"
            )
    for label in ("build", "finish", "prepare"):
        stage: ca.Function | None = getattr(stages, label)
        for name in stage.name_in() if stage is not None else ():
            known = name in function.name_in()
            if stage and known and stage.sparsity_in(name) != function.sparsity_in(name):
                raise ExportError(f"input {name!r} has another shape in {label}")
