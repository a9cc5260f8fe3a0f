"""A `ca.Function` or a folder that `export_c` wrote, in the loop.

Inputs of a Function are mapped by name, or by position where that is plain. The compiled library of
a folder runs; nothing is generated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen import CProject, TickTimes
from mbcasadi.codegen.compiler import library_to_load
from mbcasadi.codegen.manifest import Manifest, SignalEntry
from mbcasadi.description import Controller, Signal, TuningParameter
from mbcasadi.description.status import OUTPUTS
from mbcasadi.errors import CompilerError, ProblemError
from mbcasadi.plant import Plant
from mbcasadi.platforms import library_name
from mbcasadi.validation.closed_loop.compiled_law import KNOWN_INPUTS, Caller
from mbcasadi.validation.closed_loop.controllers.description import (
    CheckedTick,
    OtherController,
    control_of,
    describe,
    sizes_of,
)
from mbcasadi.validation.closed_loop.runnable import Runnable, RunningLaw

Array = NDArray[np.float64]

ORDERS = (("q", "v"), ("t", "q", "v"), ("q", "v", "ref"), ("q", "v", "ref", "t"))
"""Orders of inputs that are recognised without names, by their sizes."""


def casadi_function(given: ca.Function, plant: Plant, period: float) -> OtherController:
    """Return a Function of the user, evaluated by CasADi as it is: no C is generated."""
    function = renamed(given, plant)
    reported = ("status",) if "status" in function.name_out() else ()
    data = describe(given.name(), function, plant, period, reported)
    who = f"the Function {given.name()!r}"
    return OtherController(
        data, function, "a CasADi Function", lambda on: checked_caller(function, on.nu, who)
    )


def checked_caller(function: ca.Function, nu: int, who: str) -> CheckedTick:
    """Return what calls a Function that others wrote; a control that is not finite is an error."""
    caller = Caller(function)

    def outputs(values: Mapping[str, Array]) -> dict[str, Array]:
        answer = caller(values)
        control_of(answer["u"], nu, float(values["t"][0]), who)
        return answer

    return CheckedTick({name: caller.size(name) for name in caller.names_in}, outputs)


def renamed(given: ca.Function, plant: Plant) -> ca.Function:
    """Return a Function with the names of a closed loop.

    Raises:
        ProblemError: neither names nor sizes say which input is which; no output is u; sizes that
            are not the plant's.
    """
    inputs, outputs = _input_names(given, plant), _output_names(given, plant)
    if inputs == given.name_in() and outputs == given.name_out():
        return given
    symbols = [ca.MX.sym(name, given.sparsity_in(i)) for i, name in enumerate(inputs)]
    options = {"allow_free": False}
    return ca.Function(given.name(), symbols, given.call(symbols), inputs, outputs, options)


def _input_names(given: ca.Function, plant: Plant) -> list[str]:
    names = given.name_in()
    sizes = [given.numel_in(i) for i in range(given.n_in())]
    if names and all(name in KNOWN_INPUTS for name in names):
        _require_sizes(given, names, sizes, plant)
        return list(names)
    known = sizes_of(plant)
    fitting = [
        order
        for order in ORDERS
        if len(order) == len(names)
        and all(known.get(n, size) == size for n, size in zip(order, sizes, strict=True))
        and all(own not in KNOWN_INPUTS or own == n for own, n in zip(names, order, strict=True))
    ]
    if len(fitting) == 1:
        return list(fitting[0])
    found = ", ".join(f"{n} ({size},)" for n, size in zip(names, sizes, strict=True))
    reason = "which may be " + " or ".join(map(str, fitting)) if fitting else "which fit no order"
    raise ProblemError(
        f"the Function {given.name()!r} takes {found or 'nothing'}, {reason}; the plant has "
        f"q ({plant.nq},) and v ({plant.nv},): name the inputs, some of {', '.join(KNOWN_INPUTS)}"
    )


def _require_sizes(given: ca.Function, names: list[str], sizes: list[int], plant: Plant) -> None:
    known = sizes_of(plant)
    for name, size in zip(names, sizes, strict=True):
        if known.get(name, size) != size:
            raise ProblemError(
                f"the Function {given.name()!r} takes {name} of size {size}, but the plant has "
                f"{known[name]}; it was made for another model"
            )
    if ("z" in names) != ("z_next" in given.name_out()):
        raise ProblemError(
            f"the Function {given.name()!r} has an input z or an output z_next; expected both, for "
            "a state, or none"
        )


def _output_names(given: ca.Function, plant: Plant) -> list[str]:
    names = list(given.name_out())
    if "u" not in names and len(names) == 1:
        names = ["u"]
    if "u" not in names:
        raise ProblemError(
            f"the Function {given.name()!r} has the outputs {', '.join(names) or 'none'}; expected "
            f"one of them named u, the others any of {', '.join(OUTPUTS[1:])}"
        )
    size = given.numel_out(names.index("u"))
    if size != plant.nu:
        raise ProblemError(
            f"the Function {given.name()!r} gives u of size {size}, but the plant has {plant.nu} "
            "actuators"
        )
    return names


class ExportedFolder(Runnable):
    """The library of an exported folder; it is built where it is not yet.

    Names, units, limits, initial state and period are those of the manifest. The export of a bare
    Function has no limits and no period: it gets those of the plant and of the call.

    Attributes:
        controller: what the manifest says.
        project: the folder.
    """

    def __init__(self, project: CProject, plant: Plant, period: float) -> None:
        self.project = project
        self._is_law = project.manifest["period"] is not None
        library = load_library(project)
        if self._is_law:
            _require_inputs(project)
            self.function = library
            self.controller = _law_of(project.manifest, self.function)
        else:
            self.function = renamed(library, plant)
            self.controller = describe(project.name, self.function, plant, period)

    @property
    def kind(self) -> str:
        """What runs, in words."""
        return f"the exported C in {self.project.folder}"

    def start(self, plant: Plant) -> RunningLaw:
        """Return what calls the library."""
        if self._is_law:
            return Caller(self.function)
        return checked_caller(self.function, plant.nu, f"the export {self.project.name!r}")

    def facts(self) -> dict[str, object]:
        """Return the size of the C, and what wrote it."""
        versions = self.project.manifest["versions"]
        return {
            "operations in a tick": self.project.operations,
            "lines of C": self.project.lines,
            "exported by": ", ".join(f"{name} {version}" for name, version in versions.items()),
        }

    def times(self, inputs: Mapping[str, Array]) -> TickTimes | None:
        """Return the time of each tick, called in C with these inputs.

        Args:
            inputs: name → (ticks, size).
        """
        known = self.function.name_in()
        own = [entry["name"] for entry in self.project.manifest["inputs"]]
        rows = {own[known.index(n)]: x for n, x in inputs.items() if n in known}
        return self.project.time(rows, repeats=1)


def load_library(project: CProject) -> ca.Function:
    """Return the folder's library; where there is no compiler, the newest one that is built.

    Raises:
        CompilerError: no compiler, and no library that is newer than the C.
    """
    try:
        return project.load()
    except CompilerError:
        pattern = library_name(f"{project.name}_*")
        ages = {path: path.stat().st_mtime for path in (project.folder / "build").glob(pattern)}
        newest = max(ages, key=lambda path: ages[path], default=None)
        if newest is None or ages[newest] < project.source.stat().st_mtime:
            raise
        return ca.external(project.name, str(library_to_load(newest)))


def _require_inputs(project: CProject) -> None:
    unknown = [e["name"] for e in project.manifest["inputs"] if e["name"] not in KNOWN_INPUTS]
    if unknown:
        raise ProblemError(
            f"the export {project.name!r} has the inputs {unknown}; a closed loop provides "
            f"{', '.join(KNOWN_INPUTS)} only"
        )
    if "u" not in [entry["name"] for entry in project.manifest["outputs"]]:
        raise ProblemError(f"the export {project.name!r} has no output 'u'")


def _law_of(manifest: Manifest, function: ca.Function) -> Controller:
    """Return the controller of a manifest."""
    outputs, period = _signals(manifest["outputs"]), manifest["period"]
    nu = next(len(signal.components) for signal in outputs if signal.name == "u")
    unreported = ["tracking", "plan", "contacts"]
    if "status" not in [signal.name for signal in outputs]:
        unreported.append("status")
    assert period is not None
    law = Controller(
        name=manifest["name"],
        function=function,
        inputs=_signals(manifest["inputs"]),
        outputs=outputs,
        u_min=_bounds(manifest["u_min"], -np.inf, nu),
        u_max=_bounds(manifest["u_max"], np.inf, nu),
        z0=np.array(manifest["z0"] or [], dtype=float),
        period=period,
        source=manifest["source"],
        notes=dict(manifest["notes"]),
        tuning=tuple(_entries(manifest, "tuning")),
        parameters=tuple(_entries(manifest, "parameters")),
        unreported=tuple(unreported),
    )
    if not manifest.get("statuses"):  # of an earlier version
        return law
    return replace(
        law,
        statuses=tuple(manifest["statuses"]),
        safe_statuses=tuple(manifest["safe_statuses"]),
    )


def _signals(entries: Sequence[SignalEntry]) -> tuple[Signal, ...]:
    return tuple(Signal(e["name"], tuple(e["components"]), tuple(e["units"])) for e in entries)


def _bounds(values: list[float | None] | None, unbounded: float, size: int) -> Array:
    """Return (size,) bounds; None in JSON is no bound."""
    given: list[float | None] = values or [None] * size
    return np.array([unbounded if value is None else value for value in given])


def _entries(manifest: Manifest, key: Literal["tuning", "parameters"]) -> list[TuningParameter]:
    return [
        TuningParameter(
            name=entry["name"],
            default=entry["default"],
            lower=-np.inf if entry["lower"] is None else entry["lower"],
            upper=np.inf if entry["upper"] is None else entry["upper"],
            unit=entry["unit"],
        )
        for entry in manifest.get(key, [])
    ]
