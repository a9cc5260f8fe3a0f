"""What is exported: one law, its named signals, and the Functions that compute it.

A law is either plain arithmetic (one Function) or has a least-distance problem in its middle
(two Functions, `build` and `finish`, with DAQP between them). The Functions are renamed after
the export, so that several exports can be linked into one program.
"""

import re
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller, LeastDistanceStages, Signal
from mbcasadi.errors import ExportError
from mbcasadi.shapes import column

BUILD_OUTPUTS = ("A_qp", "lba", "uba", "active0", "carry")
SOLUTION_INPUTS = ("carry", "x", "lam_a", "active", "flag")
# Words that would not compile as a name in C or C++, or would replace a symbol that the
# generated code calls.
RESERVED = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while bool catch class delete false friend mutable namespace "
    "new operator private protected public template this throw true try typename using virtual "
    "main abs sin cos tan asin acos atan atan2 sinh cosh tanh exp log sqrt pow fabs floor ceil "
    "fmin fmax hypot erf memset memcpy malloc free casadi_int casadi_real "
    "memory in out m p tick_ code_ status_value NX ACTIVE LOWER IMMUTABLE SOFT BINARY N_CONSTR N_SIMPLE SQUARE ARSUM NAN "
    "INFINITY c_float".split()
)


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
        return f"{self.name}_" if self.name in RESERVED else self.name


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
    def n(self) -> int:
        """Unknowns of the least-distance problem."""
        return int(self.functions[0].size2_out("A_qp")) if self.staged else 0

    @property
    def m(self) -> int:
        """Rows of the least-distance problem."""
        return int(self.functions[0].size1_out("A_qp")) if self.staged else 0


def law_from_function(function: ca.Function, name: str | None) -> Law:
    """Return a bare Function as a law without state."""
    symbol = require_identifier(name or function.name())
    return Law(
        name=symbol,
        inputs=_ports(function, "in", ()),
        outputs=_ports(function, "out", ()),
        functions=(_renamed(function, f"{symbol}_law"),),
    )


def law_from_controller(controller: Controller, name: str | None) -> Law:
    """Return a controller as a law, after checking that its parts fit together.

    Raises:
        ExportError: names or sizes of the stages, limits or state contradict the Function.
    """
    symbol = require_identifier(name or controller.name)
    function = controller.function
    _check_state(controller)
    if controller.stages is None:
        functions = (_renamed(function, f"{symbol}_law"),)
    else:
        _check_stages(function, controller.stages)
        functions = (
            _renamed(controller.stages.build, f"{symbol}_build", sparse=("A_qp",)),
            _renamed(controller.stages.finish, f"{symbol}_finish"),
        )
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


def require_identifier(name: str) -> str:
    """Return `name`, or raise `ExportError` where C or the linker would refuse it."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in RESERVED:
        raise ExportError(
            f"{name!r} cannot name a C function; expected a letter, then letters, digits or "
            "underscores, and no word of C or of its library: pass another name="
        )
    return name


def operations(function: ca.Function) -> int:
    """Return the scalar operations of one call, nested Functions counted at every call.

    A matrix operation counts as many operations as its result has entries.
    """
    if function.is_a("SXFunction"):
        return int(function.n_instructions())
    if function.is_a("MXFunction"):
        return sum(_instruction_size(function, k) for k in range(function.n_instructions()))
    repeats = int(function.info().get("n", 1)) if function.is_a("Map") else 1
    return repeats * sum(operations(f) for f in function.find_functions(0))


def largest_body(function: ca.Function) -> int:
    """Return the operations of the largest single C function body."""
    bodies = [function, *function.find_functions()]
    return max((int(f.n_instructions()) for f in bodies if _has_body(f)), default=0)


def _has_body(function: ca.Function) -> bool:
    return bool(function.is_a("SXFunction") or function.is_a("MXFunction"))


def _instruction_size(function: ca.Function, k: int) -> int:
    kind = function.instruction_id(k)
    if kind in (ca.OP_INPUT, ca.OP_OUTPUT):
        return 0
    node = function.instruction_MX(k)
    return operations(node.which_function()) if kind == ca.OP_CALL else max(1, int(node.nnz()))


def _renamed(function: ca.Function, name: str, sparse: tuple[str, ...] = ()) -> ca.Function:
    """Return the same Function with dense outputs, except `sparse`, under another name."""
    symbols = function.sx_in() if function.is_a("SXFunction") else function.mx_in()
    outputs = function.call(symbols)
    if name.endswith(("_build", "_finish")):
        outputs = [
            out if label in sparse else ca.densify(out)
            for label, out in zip(function.name_out(), outputs, strict=True)
        ]
    options = {"default_in": [function.default_in(i) for i in range(function.n_in())]}
    return ca.Function(name, symbols, outputs, function.name_in(), function.name_out(), options)


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
    for name in inputs:
        if not build.sparsity_in(name) == finish.sparsity_in(name) == function.sparsity_in(name):
            raise ExportError(f"input {name!r} has another shape in build or finish")
