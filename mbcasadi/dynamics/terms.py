"""The matrices of a `System` at one state, and its inputs as symbols."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.constraints import stabilised_bias
from mbcasadi.description import Baumgarte
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.linalg import RANK_TOL, DropRule, MatrixRoot, Sym, kind_for, operations
from mbcasadi.shapes import real_array
from mbcasadi.system import System, evaluate
from mbcasadi.system.closing import row_scale_fun


@dataclass(frozen=True)
class Treatment:
    """How constraint rows are treated.

    Attributes:
        row_scale: absolute scale of every row in the drop rule of `linalg.row_basis`; None for the
            usual length of each row, from the mechanism, wider by what a gap of the state may
            make of redundant rows (`system/closing.py`).
        rank_tol: relative length below which a row is dropped.
        pivot: exchange rows; safest where constraints are redundant. Without it, independent
            constraints on different branches take a half to a fifth of the time. The default
            formulation exchanges rows inside limbs in any case.
        baumgarte: stabilisation of drift, `c + 2 α psi + β² phi`, or None.
        compact: in exported C the response of derivatives is one loop whatever the mechanism: short
            where the limbs' own text is long.

    Raises:
        ProblemError: a number of the drop rule is out of range, or `baumgarte` is of another type.
    """

    row_scale: float | None = None
    rank_tol: float = RANK_TOL
    pivot: bool = True
    baumgarte: Baumgarte | None = None
    compact: bool = False

    def __post_init__(self) -> None:
        require_fields(self)
        if self.row_scale is not None and not (np.isfinite(self.row_scale) and self.row_scale >= 0):
            raise ProblemError(f"row_scale is {self.row_scale}; expected a number of at least 0")
        if not 0 <= self.rank_tol < 1:
            raise ProblemError(f"rank_tol is {self.rank_tol}; expected a number from 0 to below 1")

    @property
    def key(self) -> str:
        """A text that is the same for equal treatments only."""
        rates = _numbers_of(self.baumgarte)
        return f"{self.row_scale!r} {self.rank_tol!r} {self.pivot} {rates} {self.compact}"

    def rule(self, row_scale: object) -> DropRule:
        """Return the drop rule, as the arguments of a formulation.

        Args:
            row_scale: that of `row_scale_of`.
        """
        return {"row_scale": row_scale, "rank_tol": self.rank_tol, "pivot": self.pivot}


def _numbers_of(baumgarte: Baumgarte | None) -> list[list[float]] | None:
    """Return the rates of a stabilisation, the same for equal ones."""
    rates = (baumgarte.alpha, baumgarte.beta) if baumgarte else ()
    return [np.ravel(rate).tolist() for rate in rates] or None


TREATMENT = Treatment()


class Terms(NamedTuple, Generic[Sym]):
    """`M a + h = f + Aᵀ lam`, `A a + c = 0`, passive forces inside `h`.

    Fields: `M` (nv, nv), `h` (nv, 1) bias force minus passive force, `A` (nc, nv), `c` (nc, 1).
    Rows that the mask switches off are zero.
    """

    M: Sym
    h: Sym
    A: Sym
    c: Sym


class State(NamedTuple, Generic[Sym]):
    """Symbols of the inputs that all Functions share; t, mask, step where the system has them.

    `step` is the length of the step whose dynamics they are, s.
    """

    q: Sym
    v: Sym
    t: Sym | None
    mask: Sym | None
    step: Sym | None = None

    @property
    def of_qv(self) -> dict[str, Sym]:
        """The inputs that motion is differentiated by: q, v, [t]."""
        return {"q": self.q, "v": self.v} | ({} if self.t is None else {"t": self.t})

    @property
    def inputs(self) -> dict[str, Sym]:
        """All inputs: q, v, [t], [mask], [step]."""
        further = {"mask": self.mask, "step": self.step}
        return self.of_qv | {key: x for key, x in further.items() if x is not None}

    @property
    def last(self) -> dict[str, Sym]:
        """The optional inputs, which are the last ones: [t], [mask], [step]."""
        return {name: symbol for name, symbol in self.inputs.items() if name not in ("q", "v")}


def state_symbols(system: System, kind: type[Sym]) -> State[Sym]:
    """Return symbols of `kind` (`ca.SX` or `ca.MX`) for the inputs of the system."""
    t = kind.sym("t") if system.timed else None
    mask = None if system.mask is None else kind.sym("mask", system.nc)
    step = kind.sym("step") if system.step_is_input else None
    return State(kind.sym("q", system.nq), kind.sym("v", system.nv), t, mask, step)


def row_scale_of(
    system: System,
    at: Mapping[str, Sym],
    treatment: Treatment,
    root: MatrixRoot[ca.DM] | None = None,
) -> Sym | float:
    """Return the scales of the constraint rows at a state.

    Args:
        system: the mechanism.
        at: q, [t], [mask] by name.
        treatment: how rows are treated.
        root: of the metric in whose coordinates the rows are factored, or None.
    """
    if treatment.row_scale is not None or not system.nc:
        return 1.0 if treatment.row_scale is None else treatment.row_scale
    of_rate = None if root is None else np.asarray(root.inverse, dtype=float)
    scale = row_scale_fun(system, treatment.rank_tol, of_rate)
    value: Sym = evaluate(scale, at)
    return value


def drop_rule(system: System, state: State[Sym], treatment: Treatment) -> DropRule:
    """Return the drop rule of a treatment at a state, as the arguments of a formulation."""
    return treatment.rule(row_scale_of(system, state.inputs, treatment))


def terms(system: System, state: State[ca.SX], baumgarte: Baumgarte | None = None) -> Terms[ca.SX]:
    """Return the matrices of the system as scalars, `c` with its stabilisation."""
    at = state.of_qv
    h = system.bias_force(state.q, state.v) - system.passive_force(state.q, state.v)
    M = system.mass_matrix(state.q) + inertia_of_step(system, state)
    if system.nc == 0:
        return Terms(M, h, ca.SX(0, system.nv), ca.SX(0, 1))
    A, c = evaluate(system.loop_jacobian, at), evaluate(system.loop_bias, at)
    if baumgarte is not None:
        psi, phi = evaluate(system.loop_rate, at), evaluate(system.constraint, at)
        c = stabilised_bias(c, psi, phi, *rates_of(baumgarte, system.nc, state.step))
    if state.mask is not None:
        A, c = ca.diag(state.mask) @ A, state.mask * c
    return Terms(M, h, A, c)


def terms_fun(system: System, baumgarte: Baumgarte | None = None) -> ca.Function:
    """Return `terms` as a Function (q, v, [t], [mask]) → (M, h, A, c) that shares kinematics.

    It is kept by the system: all that moves has these matrices.
    """

    def make() -> ca.Function:
        state = state_symbols(system, ca.SX)
        out, inputs = terms(system, state, baumgarte)._asdict(), state.inputs
        names = (list(inputs), list(out))
        return ca.Function("terms", [*inputs.values()], [*out.values()], *names, {"cse": True})

    return system.cached_function(f"terms {_numbers_of(baumgarte)}", make)


def terms_at(
    system: System, state: State[ca.MX], baumgarte: Baumgarte | None = None
) -> Terms[ca.MX]:
    """Return the matrices in the kind of expression that the state has, of `choose_kind`."""
    return Terms(**terms_fun(system, baumgarte)(**state.inputs))


def rates(system: System, state: State[ca.SX]) -> tuple[ca.SX, ca.SX]:
    """Return `(Mdot, Adot)` along the velocity; `Adot` with its explicit dependence on time.

    For rows whose A depends on v, `Adot` is that at constant v.
    """
    now = terms(system, state)
    dq = system.velocity_map(state.q) @ state.v
    Mdot, Adot = (_along(part, state.q, dq) for part in (now.M, now.A))
    if state.t is not None:
        Adot += _along(now.A, state.t, ca.SX(1))
    return Mdot, Adot


def _along(value: ca.SX, symbol: ca.SX, direction: ca.SX) -> ca.SX:
    """Return the directional derivative of a matrix, with its pattern."""
    return ca.SX(ca.jtimes(value, symbol, direction))


def inertia_of_step(system: System, state: State[ca.SX]) -> ca.SX:
    """Return (nv, nv) what forces at the end of a step add to M."""
    if system.at_end is None:
        return ca.SX(system.nv, system.nv)
    return system.at_end.inertia(state.q, state.v, state.step)


def rates_of(
    baumgarte: Baumgarte, nc: int, step: ca.SX | None = None
) -> tuple[ca.SX | ca.DM, ca.SX | ca.DM]:
    """Return α and β as (nc, 1) columns, 1/s; those of a step are divided by its length.

    Raises:
        ShapeError: neither a scalar nor one for each row, or not finite, or negative.
    """
    columns = list[ca.SX | ca.DM]()
    for name in ("alpha", "beta"):
        values = real_array(f"Baumgarte {name}", getattr(baumgarte, name))
        if values.shape not in {(), (nc,)}:
            raise ShapeError(
                f"Baumgarte {name} has shape {values.shape}, expected a scalar or ({nc},), "
                "one for each constraint row"
            )
        if not np.all(np.isfinite(values)) or np.any(values < 0):
            raise ShapeError(f"Baumgarte {name} is {values}; expected finite rates >= 0, in 1/s")
        column = ca.DM(np.broadcast_to(values, (nc,)).reshape(nc, 1))
        columns.append(column if step is None else column / step)
    return columns[0], columns[1]


def choose_kind(system: System, pivot: bool, extra: int = 0) -> type[ca.MX]:
    """Return `ca.SX` where the constrained solve is small enough to unroll, else `ca.MX`.

    Args:
        system: the mechanism.
        pivot: whether its rows are factored with pivoting.
        extra: operations beside those that every formulation needs.
    """
    count = extra + 5 * system.nv**3 // 3  # products and elimination of nv x nv matrices
    if system.nc:
        count += 2 * operations(system.loop_jacobian.sparsity_out("A"), pivot)
    return kind_for(count)
