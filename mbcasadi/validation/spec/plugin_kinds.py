"""Types of controllers that other packages add: functions whose signatures are the tables."""

import inspect
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbcasadi.system import System
from mbcasadi.validation.spec import laws
from mbcasadi.validation.spec.common import Motion, Spec
from mbcasadi.validation.spec.controller_kind import Kind
from mbcasadi.validation.spec.experiment import Experiment
from mbcasadi.validation.spec.own import experiment_of
from mbcasadi.validation.spec.plugins import (
    CONTROLLERS,
    LAWS,
    broken,
    find_plugin,
    load_function,
    owner_of,
    run_plugin,
)
from mbcasadi.validation.spec.tables import fields_of, new_table

Array = NDArray[np.float64]


def plugin_kind(name: str) -> Kind | None:
    """Return the type of controller that a package adds; None where none has this name.

    Raises:
        ProblemError: the package cannot be imported, its function has arguments that no file can
            hold, or several packages have the name; the message names them.
    """
    entry = find_plugin(name, LAWS, CONTROLLERS)
    if entry is None:
        return None
    return (_law_kind if entry.group == LAWS else _controller_kind)(entry)


def _law_kind(entry: EntryPoint) -> Kind:
    """Return the type of a law: `make(system, ..., *, name, period, options)`, as those of ours."""
    make = load_function(entry)
    table = _table(entry, make, lambda: laws.table_of_law(entry.name, make))

    def build(spec: Any, system: System, q0: Array) -> Experiment:
        with run_plugin(entry):
            return laws.build_law(spec, system, q0, make)

    return Kind(table, build)


def _controller_kind(entry: EntryPoint) -> Kind:
    """Return the type of a controller: `make(system, *, name, period, ...)`."""
    make = load_function(entry)
    table = _table(
        entry,
        make,
        lambda: new_table(entry.name, Spec, reference=(Motion, {}), **_own_fields(make)),
    )
    takes = {*inspect.signature(make).parameters}

    def build(spec: Any, system: System, q0: Array) -> Experiment:
        values = spec.given | {"name": spec.name, "period": spec.period}
        with run_plugin(entry):
            controller = make(system, **{k: v for k, v in values.items() if k in takes})
        return experiment_of(controller, q0, spec.reference, system, owner_of(entry))

    return Kind(table, build)


def _own_fields(make: Callable[..., Any]) -> dict[str, Any]:
    return fields_of(make, but=(*_first(make), *laws.OF_ALL))


def _first(make: Callable[..., Any]) -> list[str]:
    """Return the name of the first argument, which is the system."""
    return [*inspect.signature(make).parameters][:1]


def _table(
    entry: EntryPoint, make: Callable[..., Any], table_of: Callable[[], type[Spec]]
) -> type[Spec]:
    """Return the table of a function.

    Raises:
        ProblemError: its annotations are wrong; an argument that no file can hold has no default,
            or has the name of a key of all files.
    """
    try:
        arguments = inspect.signature(make).parameters.values()
        table = table_of()
    except (TypeError, ValueError, NameError) as error:
        raise broken(entry, f"its signature is no table: {error}") from error
    first, special = _first(make), {*laws.OTHER} if entry.group == LAWS else set[str]()
    needed = [
        each.name
        for each in arguments
        if each.default is each.empty and each.kind not in {each.VAR_POSITIONAL, each.VAR_KEYWORD}
    ]
    for name in needed:
        if name not in (*first, *special, *table.model_fields):
            raise broken(entry, f"no file can hold its argument {name!r}, which has no default")
    base = laws.LawSpec if entry.group == LAWS else Spec
    keys = {*base.model_fields, "reference"} - {*laws.OF_ALL}
    taken = keys & {each.name for each in arguments}
    if taken:
        raise broken(entry, f"its argument {min(taken)!r} is a key of all files; give another name")
    return table
