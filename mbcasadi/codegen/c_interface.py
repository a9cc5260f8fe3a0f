"""The exported law: its named signals, and the Functions that compute it.

A law is either plain arithmetic (one Function) or contains a least-distance problem
(`build` and `finish`, with the solver between them), whose preparation may be a phase of
its own. The Functions are renamed after the export, so that several exports can be linked into one
program.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen.casadi_c import generate
from mbcasadi.codegen.common_functions import CommonFunctions, declarations
from mbcasadi.codegen.constant_rows import ConstantRows
from mbcasadi.codegen.names import parameter
from mbcasadi.codegen.precision import Real
from mbcasadi.codegen.text import package_version, template
from mbcasadi.description import TuningParameter
from mbcasadi.description.controller import PlantSensor
from mbcasadi.description.stagewise_qp import StagewiseQP

Solver = Literal["mbcasadi", "daqp"]
"""The solver of a law's least-distance problem."""

STATES = ("z", "z_next")
"""Signals by which a law hands its state from tick to tick."""


class Entry(NamedTuple):
    """One entry of a signal: its component's name and unit, "" where it has none."""

    label: str
    unit: str


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

    @property
    def entries(self) -> list["Entry"]:
        """All entries, in their order."""
        labels = self.components or ("",) * self.size
        units = self.units or ("",) * self.size
        return [Entry(*entry) for entry in zip(labels, units, strict=True)]

    @property
    def is_named(self) -> bool:
        """Whether there are entries, and each has a name."""
        return bool(self.components) and all(self.components)

    @property
    def unit_text(self) -> str:
        """All units, each once, for a comment in C."""
        return comment(", ".join(dict.fromkeys(unit for unit in self.units if unit)))


@dataclass(frozen=True)
class CLaw:
    """The data that code generation needs.

    Attributes:
        name: prefix of every C symbol.
        inputs, outputs: in the Function's order.
        functions: the Functions to generate; (law,), (build, finish) or (build, finish,
            preparation), already renamed.
        u_min, u_max, z0, period: of a `Controller`; None and (0,) for a bare Function.
        between: the Functions between the problems of a tick, where it solves several.
        between_rows: for each of them that of the next problem's rows; None where they stay.
        staged: whether a least-distance problem is solved between the two Functions.
        rows: its rows where they are constant; then no Function gives them.
        solver: of that problem.
        cones: number of its quadratic cones, whose rows are the last ones.
        horizon: a problem over a horizon in its place, or None.
        tuning, parameters: entries of the inputs `tuning` and `p`.
        defaults: what a null pointer means, by the input's name; zeros elsewhere.
        u_safe: (nu,) the control where there is neither a state nor a memory; None for a bare
            Function.
        emergency: (memory, missed) → (u, memory_next), renamed, or None: see
            `description.Emergency`.
        held_first: row of z at which its memory begins.
        sensors: what the input `y` is read from.
        common: the text that has its Functions beside those of other laws, in a file of its own;
            None where they are in its file.
        statuses, safe_statuses: texts of the output `status`, and those with which u is the safe
            output; none for a bare Function.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    functions: tuple[ca.Function, ...]
    between: tuple[ca.Function, ...] = ()
    between_rows: tuple[ca.Function | None, ...] = ()
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
    horizon: StagewiseQP | None = None
    statuses: tuple[str, ...] = ()
    safe_statuses: tuple[int, ...] = ()
    real: Real = "double"
    sensors: tuple[PlantSensor, ...] = ()
    common: CommonFunctions | None = None

    @property
    def has_daqp(self) -> bool:
        """Whether the C calls DAQP."""
        return self.staged and self.solver == "daqp"

    @property
    def generated(self) -> tuple[ca.Function, ...]:
        """All Functions of which there is C."""
        emergency = () if self.emergency is None else (self.emergency,)
        return (*self.of_a_tick, *emergency)

    @property
    def of_a_tick(self) -> tuple[ca.Function, ...]:
        """The Functions of a tick with a solution."""
        return (*self.functions, *self.between, *filter(None, self.between_rows))

    @cached_property
    def text(self) -> str:
        """The C of CasADi in which its Functions are."""
        if self.common is not None:
            return self.common.text
        return generate(self.generated, self.name, real=self.real)

    @property
    def own_text(self) -> str:
        """What its file has of that C: all, or declarations."""
        return self.text if self.common is None else declarations(self.generated)

    @cached_property
    def other_text(self) -> str:
        """What its ticks execute of the C in another file."""
        return "" if self.common is None else self.common.reached(self.generated)

    @property
    def nu(self) -> int:
        """Number of controls; zero for a bare Function."""
        return 0 if self.u_safe is None else self.u_safe.size

    @property
    def held(self) -> int:
        """Number of entries of z that the safe output remembers."""
        return 0 if self.emergency is None else int(self.emergency.numel_in(0))

    @property
    def nz(self) -> int:
        """Number of entries of the state z."""
        return 0 if self.z0 is None else self.z0.size

    @property
    def signals(self) -> tuple[Port, ...]:
        """All inputs and outputs."""
        return self.inputs + self.outputs

    @property
    def has_state(self) -> bool:
        """Whether there is a state `z`."""
        return self.nz > 0

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
    def prepares_rows(self) -> bool:
        """Whether the rows of the QP are known before the measurement."""
        return self.preparation is not None and "A_qp" in self.preparation.name_out()

    @property
    def prepared_from(self) -> tuple[Port, ...]:
        """The inputs of the preparation phase."""
        names = self.preparation.name_in() if self.preparation is not None else ()
        return tuple(p for p in self.inputs if p.name in names)

    @property
    def pattern(self) -> ca.Sparsity:
        """The pattern of A_qp; without entries for a problem over a horizon."""
        if self.horizon is not None:
            return ca.Sparsity(self.horizon.m, self.horizon.n)
        if self.rows is not None:
            return self.rows.pattern
        return rows_function(self.functions).sparsity_out("A_qp")

    @property
    def n(self) -> int:
        """Unknowns of the least-distance problem."""
        return int(self.pattern.size2()) if self.staged else 0

    @property
    def m(self) -> int:
        """Rows of the least-distance problem."""
        return int(self.pattern.size1()) if self.staged else 0


def law_template(law: CLaw, file: str, values: Mapping[str, str | int] | None = None) -> str:
    """Return a template with the values of a law, and others."""
    own: dict[str, str | int] = {"name": law.name, "NAME": law.name.upper(), "real": law.real}
    own |= {"version": package_version(), "casadi": ca.CasadiMeta.version()}
    return template(file, own | dict(values or {}))


def parameters(law: CLaw, inputs: Sequence[Port], outputs: Sequence[Port] = ()) -> str:
    """Return the C parameters for some signals, behind others."""
    texts = [f"const {law.real} *{port.identifier}" for port in inputs]
    texts += [f"{law.real} *{port.identifier}" for port in outputs]
    return "".join(f", {text}" for text in texts)


def arguments(ports: Sequence[Port]) -> str:
    """Return the names of some parameters, behind others."""
    return "".join(f", {port.identifier}" for port in ports)


def tick_call(law: CLaw, memory: str, place: Callable[[Port], str], phase: str = "step") -> str:
    """Return the C of a call of a phase of a tick.

    Args:
        law: whose tick it is.
        memory: C of the caller's block.
        place: gives the C of the pointer for a signal.
        phase: "step", "feedback" or "prepare".
    """
    ports = law.prepared_from if phase == "prepare" else law.signals
    return f"{law.name}_{phase}({', '.join([memory, *map(place, ports)])})"


def enumerators(names: Sequence[str], port: Port, indent: str) -> list[str]:
    """Return the lines of an enumeration of a signal's entries, with their units."""
    return [
        f"{indent}{name} = {k}," + (f" /* {comment(entry.unit)} */" if entry.unit else "")
        for k, (name, entry) in enumerate(zip(names, port.entries, strict=True))
    ]


def comment(text: str) -> str:
    """Return a text for a comment in C."""
    return text.replace("*/", "* /")


def find_port(ports: tuple[Port, ...], name: str) -> Port | None:
    """Return the port of this name, or None."""
    return next((p for p in ports if p.name == name), None)


def rows_function(functions: tuple[ca.Function, ...]) -> ca.Function:
    """Return the Function that gives A_qp."""
    return next(f for f in functions if "A_qp" in f.name_out())


DIGITS = 16
"""Of the hash, hexadecimal."""


def signature(law: CLaw) -> str:
    """Return the hash of names, sizes and units of the signals, of period and type of numbers.

    Two exports of the same signature are called alike; gains, limits and models may differ.
    """
    inputs, outputs = ([_of_port(p) for p in ports] for ports in (law.inputs, law.outputs))
    return _signature_hash(law.name, inputs, outputs, law.period, law.real)


def signature_of_manifest(manifest: Mapping[str, Any]) -> str:
    """Return the signature of what a manifest says of the signals."""
    keys = ("name", "shape", "size", "components", "units")
    inputs, outputs = (
        [[entry.get(key) for key in keys] for entry in manifest[side]]
        for side in ("inputs", "outputs")
    )
    real = manifest.get("real", "double")
    return _signature_hash(manifest["name"], inputs, outputs, manifest.get("period"), real)


def _signature_hash(
    name: str,
    inputs: Sequence[object],
    outputs: Sequence[object],
    period: float | None,
    real: str,
) -> str:
    relied_on = {
        "name": name,
        "inputs": inputs,
        "outputs": outputs,
        "period": period,
        "real": real,
    }
    text = json.dumps(relied_on, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _of_port(port: Port) -> list[object]:
    return [
        port.name,
        list(port.sparsity.shape),
        port.size,
        list(port.components),
        list(port.units),
    ]
