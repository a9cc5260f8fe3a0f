"""What is exported: one law, its named signals, and the Functions that compute it.

A law is either plain arithmetic (one Function) or has a least-distance problem in its middle
(two Functions, `build` and `finish`, with DAQP between them). The Functions are renamed after
the export, so that several exports can be linked into one program.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen.names import parameter, require_identifier
from mbcasadi.description import Controller, LeastDistanceStages, Signal
from mbcasadi.errors import ExportError
from mbcasadi.shapes import column

BUILD_OUTPUTS = ("A_qp", "lba", "uba", "active0", "carry")
SOLUTION_INPUTS = ("carry", "x", "lam_a", "active", "flag")


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
        """Number of doubles."""
        return int(self.sparsity.nnz())

    @property
    def identifier(self) -> str:
        """Name of the C parameter."""
        return parameter(self.name)


@dataclass(frozen=True)
class Law:
    """All that code generation needs to know.

    Attributes:
        name: prefix of every C symbol.
        inputs, outputs: in the Function's order.
        functions: the Functions to generate; (law,) or (build, finish), already renamed.
        u_min, u_max, z0, period: of a `Controller`; None and (0,) for a bare Function.
        staged: a least-distance problem stands between the two Functions.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    functions: tuple[ca.Function, ...]
    u_min: NDArray[np.float64] | None = None
    u_max: NDArray[np.float64] | None = None
    z0: NDArray[np.float64] | None = None
    period: float | None = None
    staged: bool = False
    source: str = ""
    notes: tuple[tuple[str, str], ...] = ()

    @property
    def has_state(self) -> bool:
        """There is a `z` that is carried from tick to tick."""
        return self.z0 is not None and self.z0.size > 0

    @property
    def constants(self) -> list[tuple[str, list[float]]]:
        """Names and values of the arrays that the header declares."""
        named = (("u_min", self.u_min), ("u_max", self.u_max), ("z0", self.z0))
        return [(name, values.tolist()) for name, values in named if values is not None]

    @property
    def n(self) -> int:
        """Unknowns of the least-distance problem."""
        return int(self.functions[0].size2_out("A_qp")) if self.staged else 0

    @property
    def m(self) -> int:
        """Rows of the least-distance problem."""
        return int(self.functions[0].size1_out("A_qp")) if self.staged else 0


def find_port(ports: tuple[Port, ...], name: str) -> Port | None:
    """Return the port of this name, or None."""
    return next((p for p in ports if p.name == name), None)


def law_from_function(function: ca.Function, name: str | None) -> Law:
    """Return a bare Function as a law without state."""
    symbol = require_identifier(name or function.name())
    return Law(
        name=symbol,
        inputs=_ports(function, "in", ()),
        outputs=_ports(function, "out", ()),
        functions=(_renamed(function, f"{symbol}_law", _patterns(function)),),
    )


def law_from_controller(controller: Controller, name: str | None) -> Law:
    """Return a controller as a law, after checking that its parts fit together.

    Raises:
        ExportError: names or sizes of the stages, limits or state contradict the Function.
    """
    symbol = require_identifier(name or controller.name)
    function = controller.function
    _check_state(controller)
    functions = _stage_functions(controller, symbol)
    nu = function.numel_out("u") if "u" in function.name_out() else controller.u_min.size
    return Law(
        name=symbol,
        inputs=_ports(function, "in", controller.inputs),
        outputs=_ports(function, "out", controller.outputs),
        functions=functions,
        u_min=column("u_min", controller.u_min, nu, finite=False),
        u_max=column("u_max", controller.u_max, nu, finite=False),
        z0=column("z0", controller.z0, controller.z0.size),
        period=float(controller.period),
        staged=controller.stages is not None,
        source=controller.source,
        notes=tuple(sorted(controller.notes.items())),
    )


def _stage_functions(controller: Controller, symbol: str) -> tuple[ca.Function, ...]:
    function, stages = controller.function, controller.stages
    if stages is None:
        return (_renamed(function, f"{symbol}_law", _patterns(function)),)
    _check_stages(function, stages)
    return (
        _renamed(stages.build, f"{symbol}_build", _build_patterns(stages.build)),
        _renamed(stages.finish, f"{symbol}_finish", _patterns(function)),
    )


def _renamed(function: ca.Function, name: str, patterns: Sequence[ca.Sparsity]) -> ca.Function:
    """Return the same Function under another name, its outputs in these sparsity patterns."""
    names = (function.name_in(), function.name_out())
    options = {"default_in": [function.default_in(i) for i in range(function.n_in())]}
    if function.is_a("SXFunction"):
        sx = function.sx_in()
        sx_out = [ca.project(o, p) for o, p in zip(function.call(sx), patterns, strict=True)]
        return ca.Function(name, sx, sx_out, *names, options)
    mx = function.mx_in()
    mx_out = [ca.project(o, p) for o, p in zip(function.call(mx), patterns, strict=True)]
    return ca.Function(name, mx, mx_out, *names, options)


def _patterns(function: ca.Function) -> list[ca.Sparsity]:
    return [function.sparsity_out(i) for i in range(function.n_out())]


def _build_patterns(build: ca.Function) -> list[ca.Sparsity]:
    """Keep the zeros of A_qp, fill the vectors."""
    return [build.sparsity_out(0), *(ca.Sparsity.dense(*build.size_out(i)) for i in range(1, 5))]


def _ports(function: ca.Function, side: str, signals: tuple[Signal, ...]) -> tuple[Port, ...]:
    names = function.name_in() if side == "in" else function.name_out()
    described = {signal.name: signal for signal in signals}
    if signals and tuple(s.name for s in signals) != tuple(names):
        raise ExportError(
            f"the controller describes the signals {tuple(described)}, "
            f"its Function has {tuple(names)}: name the same signals in the same order"
        )
    ports = []
    for i, name in enumerate(names):
        pattern = function.sparsity_in(i) if side == "in" else function.sparsity_out(i)
        size = int(pattern.nnz())
        signal = described.get(name, Signal(name, (), ()))
        for what, labels in (("components", signal.components), ("units", signal.units)):
            if labels and len(labels) != size:
                raise ExportError(
                    f"signal {name!r} has {len(labels)} {what}, its Function has {size} entries"
                )
        default = float(function.default_in(i)) if side == "in" else 0.0
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


def _check_stages(function: ca.Function, stages: LeastDistanceStages) -> None:
    build, finish = stages.build, stages.finish
    inputs = tuple(function.name_in())
    expected = (
        ("the inputs of build", tuple(build.name_in()), inputs),
        ("the outputs of build", tuple(build.name_out()), BUILD_OUTPUTS),
        ("the inputs of finish", tuple(finish.name_in()), inputs + SOLUTION_INPUTS),
        ("the outputs of finish", tuple(finish.name_out()), tuple(function.name_out())),
    )
    for what, found, wanted in expected:
        if found != wanted:
            raise ExportError(f"{what} are {found}, expected {wanted}")
    m, n = build.size_out("A_qp")
    carry = build.numel_out("carry")
    shapes = {"lba": m, "uba": m, "active0": m}
    shapes_finish = {"carry": carry, "x": n, "lam_a": m, "active": m, "flag": 1}
    found_sizes = {k: build.numel_out(k) for k in shapes} | {
        f"finish {k}": finish.nnz_in(k) for k in shapes_finish
    }
    wanted_sizes = shapes | {f"finish {k}": size for k, size in shapes_finish.items()}
    for name, wanted_size in wanted_sizes.items():
        if found_sizes[name] != wanted_size:
            raise ExportError(
                f"{name} has {found_sizes[name]} entries, expected {wanted_size} for A_qp of "
                f"{m} rows and {n} columns"
            )
    for name in function.name_out():
        if finish.size_out(name) != function.size_out(name):
            raise ExportError(
                f"output {name!r} of finish is {finish.size_out(name)}, "
                f"of the controller's Function {function.size_out(name)}: they must agree"
            )
    for name in inputs:
        if not build.sparsity_in(name) == finish.sparsity_in(name) == function.sparsity_in(name):
            raise ExportError(f"input {name!r} has another shape in build or finish")
