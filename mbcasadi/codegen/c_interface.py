"""The exported law: its named signals, and the Functions that compute it.

A law is either plain arithmetic (one Function) or contains a least-distance problem
(`build` and `finish`, with the solver between them), whose preparation may be a phase of
its own. The Functions are renamed after the export, so that several exports can be linked into one
program.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen.constant_rows import ConstantRows, constant_rows_of
from mbcasadi.codegen.emergency_function import rename_emergency, require_emergency
from mbcasadi.codegen.names import parameter, require_identifier
from mbcasadi.codegen.precision import Real, range_of
from mbcasadi.codegen.stage_functions import (
    between_functions,
    patterns,
    rename_function,
    stage_functions,
    without_rows,
)
from mbcasadi.description import Controller, Signal, TuningParameter
from mbcasadi.description.safe_command import safe_command
from mbcasadi.errors import ExportError
from mbcasadi.shapes import column

Solver = Literal["mbcasadi", "daqp"]
"""The solver of a law's least-distance problem."""


@dataclass(frozen=True)
class Port:
    """One input or output in C: `values` are the nonzeros of `sparsity`, column by column."""

    name: str
    sparsity: ca.Sparsity
    components: tuple[str, ...]
    units: tuple[str, ...]
    default: float = 0.0

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(self.sparsity.nnz())

    @property
    def identifier(self) -> str:
        """Name of the C parameter."""
        return parameter(self.name)


@dataclass(frozen=True)
class Law:
    """The data that code generation needs.

    Attributes:
        name: prefix of every C symbol.
        inputs, outputs: in the Function's order.
        functions: the Functions to generate; (law,), (build, finish) or (build, finish,
            preparation), already renamed.
        u_min, u_max, z0, period: of a `Controller`; None and (0,) for a bare Function.
        between: the Functions between the problems of a tick, where it solves several.
        staged: whether a least-distance problem is solved between the two Functions.
        rows: its rows where they are constant; then no Function gives them.
        solver: of that problem.
        cones: number of its quadratic cones, whose rows are the last ones.
        tuning, parameters: entries of the inputs `tuning` and `p`.
        defaults: what a null pointer means, by the input's name; zeros elsewhere.
        u_safe: (nu,) the control where there is neither a state nor a memory; None for a bare
            Function.
        emergency: (memory, missed) → (u, memory_next), renamed, or None: see
            `description.Emergency`.
        held_first: row of z at which its memory begins.
        statuses, safe_statuses: texts of the output `status`, and those with which u is the safe
            output; none for a bare Function.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    functions: tuple[ca.Function, ...]
    between: tuple[ca.Function, ...] = ()
    u_min: NDArray[np.float64] | None = None
    u_max: NDArray[np.float64] | None = None
    z0: NDArray[np.float64] | None = None
    period: float | None = None
    staged: bool = False
    rows: ConstantRows | None = None
    solver: Solver = "mbcasadi"
    source: str = ""
    notes: tuple[tuple[str, str], ...] = ()
    tuning: tuple[TuningParameter, ...] = ()
    parameters: tuple[TuningParameter, ...] = ()
    defaults: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    u_safe: NDArray[np.float64] | None = None
    emergency: ca.Function | None = None
    held_first: int = 0
    cones: int = 0
    statuses: tuple[str, ...] = ()
    safe_statuses: tuple[int, ...] = ()
    real: Real = "double"

    @property
    def has_daqp(self) -> bool:
        """Whether the C calls DAQP."""
        return self.staged and self.solver == "daqp"

    @property
    def generated(self) -> tuple[ca.Function, ...]:
        """All Functions of which there is C."""
        emergency = () if self.emergency is None else (self.emergency,)
        return (*self.functions, *self.between, *emergency)

    @property
    def nu(self) -> int:
        """Number of controls; zero for a bare Function."""
        return 0 if self.u_safe is None else self.u_safe.size

    @property
    def held(self) -> int:
        """Number of entries of z that the safe output remembers."""
        return 0 if self.emergency is None else int(self.emergency.numel_in(0))

    @property
    def has_state(self) -> bool:
        """Whether there is a state `z`."""
        return self.z0 is not None and self.z0.size > 0

    @property
    def constants(self) -> list[tuple[str, list[float]]]:
        """Names and values of the arrays that the header declares."""
        vectors = (
            ("u_min", self.u_min),
            ("u_max", self.u_max),
            ("u_safe", self.u_safe),
            ("z0", self.z0),
        )
        constants = [(name, values.tolist()) for name, values in vectors if values is not None]
        defaults = [
            (f"{name}_default", values.tolist())
            for name, values in self.defaults.items()
            if name != "z"
        ]
        return [*constants, *defaults]

    def default_name(self, port: Port) -> str:
        """Return the C array that a null pointer stands for; "" where it stands for zeros."""
        if port.name not in self.defaults:
            return ""
        return f"{self.name}_z0" if port.name == "z" else f"{self.name}_{port.name}_default"

    @property
    def preparation(self) -> ca.Function | None:
        """The Function of the preparation phase; None where a tick has one phase."""
        return self.functions[2] if len(self.functions) > 2 else None

    @property
    def prepared_from(self) -> tuple[Port, ...]:
        """The inputs of the preparation phase."""
        names = self.preparation.name_in() if self.preparation is not None else ()
        return tuple(p for p in self.inputs if p.name in names)

    @property
    def pattern(self) -> ca.Sparsity:
        """The pattern of A_qp."""
        if self.rows is not None:
            return self.rows.pattern
        return _rows_function(self.functions).sparsity_out("A_qp")

    @property
    def n(self) -> int:
        """Unknowns of the least-distance problem."""
        return int(self.pattern.size2()) if self.staged else 0

    @property
    def m(self) -> int:
        """Rows of the least-distance problem."""
        return int(self.pattern.size1()) if self.staged else 0


def find_port(ports: tuple[Port, ...], name: str) -> Port | None:
    """Return the port of this name, or None."""
    return next((p for p in ports if p.name == name), None)


def law_from_function(function: ca.Function, name: str | None, real: Real = "double") -> Law:
    """Return a bare Function as a law without state."""
    symbol = require_identifier(name or function.name())
    return Law(
        name=symbol,
        inputs=_ports(function, "in", ()),
        outputs=_ports(function, "out", ()),
        functions=(rename_function(function, f"{symbol}_law", patterns(function)),),
        real=real,
    )


def law_from_controller(
    controller: Controller, name: str | None, solver: Solver, real: Real = "double"
) -> Law:
    """Return a controller as a law, after checking that its parts fit together.

    Raises:
        ExportError: names or sizes of the stages, limits or state contradict the Function.
    """
    symbol = require_identifier(name or controller.name)
    function = controller.function
    _check_state(controller)
    violation = controller.contract_violation()
    if violation:
        raise ExportError(f"controller {controller.name!r} has {violation}")
    require_emergency(controller)
    functions = stage_functions(controller, symbol)
    staged = controller.stages is not None
    cones = 0 if controller.stages is None else controller.stages.cones
    if staged and solver == "daqp" and real == "float":
        raise ExportError(
            f"controller {controller.name!r} is exported in float, and DAQP's library computes in "
            'double; export it with solver="mbcasadi"'
        )
    if cones and solver == "daqp":
        raise ExportError(
            f"controller {controller.name!r} has {cones} quadratic cones, and DAQP takes linear "
            'rows only; export it with solver="mbcasadi"'
        )
    between = between_functions(controller, symbol)
    rows = (
        constant_rows_of(_rows_function(functions), range_of(real))
        if staged and not (cones or between)
        else None
    )
    if rows is not None:
        functions = tuple(without_rows(stage) for stage in functions)
    nu = function.numel_out("u") if "u" in function.name_out() else controller.u_min.size
    emergency = controller.emergency
    return Law(
        name=symbol,
        inputs=_ports(function, "in", controller.inputs),
        outputs=_ports(function, "out", controller.outputs),
        functions=functions,
        between=between,
        u_min=column("u_min", controller.u_min, nu, finite=False),
        u_max=column("u_max", controller.u_max, nu, finite=False),
        z0=column("z0", controller.z0, controller.z0.size),
        period=float(controller.period),
        staged=staged,
        rows=rows,
        solver=solver,
        source=controller.source,
        notes=tuple(sorted(controller.notes.items())),
        tuning=controller.tuning,
        parameters=controller.parameters,
        defaults=controller.defaults,
        u_safe=safe_command(controller),
        emergency=None
        if emergency is None
        else rename_emergency(emergency.function, f"{symbol}_emergency"),
        held_first=0 if emergency is None else emergency.first,
        cones=cones,
        statuses=controller.statuses,
        safe_statuses=controller.safe_statuses,
        real=real,
    )


def _rows_function(functions: tuple[ca.Function, ...]) -> ca.Function:
    """Return the Function that gives A_qp."""
    return next(f for f in functions if "A_qp" in f.name_out())


def _ports(function: ca.Function, side: str, signals: tuple[Signal, ...]) -> tuple[Port, ...]:
    names = function.name_in() if side == "in" else function.name_out()
    signal_of = {signal.name: signal for signal in signals}
    if signals and tuple(s.name for s in signals) != tuple(names):
        raise ExportError(
            f"the controller describes the signals {tuple(signal_of)}, "
            f"its Function has {tuple(names)}: name the same signals in the same order"
        )
    ports = []
    for i, name in enumerate(names):
        pattern = function.sparsity_in(i) if side == "in" else function.sparsity_out(i)
        size = int(pattern.nnz())
        signal = signal_of.get(name, Signal(name, (), ()))
        for label, labels in (("components", signal.components), ("units", signal.units)):
            if labels and len(labels) != size:
                raise ExportError(
                    f"signal {name!r} has {len(labels)} {label}, its Function has {size} entries"
                )
        default = float(function.default_in(i)) if side == "in" else 0.0
        default = 1.0 if side == "in" and signals and name == "mask" else default
        ports.append(Port(name, pattern, tuple(signal.components), tuple(signal.units), default))
    return tuple(ports)


def _check_state(controller: Controller) -> None:
    function, nz = controller.function, controller.z0.size
    sizes = [
        int(function.numel_in("z")) if "z" in function.name_in() else 0,
        int(function.numel_out("z_next")) if "z_next" in function.name_out() else 0,
    ]
    if sizes != [nz, nz]:
        raise ExportError(
            f"controller {controller.name!r}: z0 has {nz} numbers, the Function's z has "
            f"{sizes[0]} and z_next {sizes[1]}; they must agree"
        )
