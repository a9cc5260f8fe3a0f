"""Constraint rows as named Functions, and their combination with the rows of a system."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca

from mbcasadi.constraints import UserRows
from mbcasadi.short_text import summarised
from mbcasadi.system.functions import Builder, constant, function

MEMBER_OF = {
    "constraint": "residual",
    "constraint_rate": "rate",
    "constraint_jacobian": "jacobian",
    "constraint_bias": "bias",
    "loop_rate": "rate",
    "loop_jacobian": "jacobian",
    "loop_bias": "bias",
}
"""Member of `System` → Function of `ConstraintRows` that it stacks."""


@summarised
@dataclass(frozen=True)
class ConstraintRows:
    """Constraint rows as data: of a mechanism, or rows that a controller enforces.

    Attributes:
        count: number of rows k.
        residual: (q, [t]) → (phi): (k, 1), zero for rows that hold for velocities only.
        rate: (q, v, [t]) → (psi): (k, 1), `A v + a0`, or psi where it is nonlinear in v.
        jacobian: (q, [v], [t]) → (A): (k, nv), `∂psi/∂v`.
        bias: (q, v, [t]) → (c): (k, 1), `A a + c = 0`.
        at_rest: (q, [t]) → (a0): (k, 1), psi at v = 0.
    """

    count: int
    residual: ca.Function
    rate: ca.Function
    jacobian: ca.Function
    bias: ca.Function
    at_rest: ca.Function

    @property
    def still(self) -> bool:
        """Whether every row allows rest: `a0 = 0` at all q and t."""
        return bool(ca.SX(self.at_rest.call(self.at_rest.sx_in())[0]).is_zero())


def rows_as_functions(rows: UserRows, q: ca.SX, v: ca.SX, t: ca.SX | None) -> ConstraintRows:
    """Return the expressions of `rows` as Functions of the given symbols.

    Args:
        rows: the expressions.
        q, v: (nq, 1), (nv, 1) symbols.
        t: symbol of time, s, or None.

    Raises:
        ShapeError: an expression holds a symbol that is none of q, v, t.
    """
    time = {} if t is None else {"t": t}
    of_q, of_qv = {"q": q} | time, {"q": q, "v": v} | time
    return ConstraintRows(
        count=int(rows.phi.numel()),
        residual=function("constraint", of_q, "phi", rows.phi),
        rate=function("constraint_rate", of_qv, "psi", rows.psi),
        jacobian=function("constraint_jacobian", of_qv if rows.nonlinear else of_q, "A", rows.A),
        bias=function("constraint_bias", of_qv, "c", rows.c),
        at_rest=function("constraint_velocity", of_q, "a0", rows.a0),
    )


def builders_of(rows: ConstraintRows) -> dict[str, Builder]:
    """Return the builders of a system that has these rows only."""
    builders = {name: constant(getattr(rows, part)) for name, part in MEMBER_OF.items()}
    return builders | ({} if rows.still else {"constraint_velocity": constant(rows.at_rest)})


def append_rows(builders: Mapping[str, Builder], rows: ConstraintRows) -> dict[str, Builder]:
    """Return the constraint members with `rows` below those that the builders have."""
    members = {
        name: _stack(name, builders[name], getattr(rows, part)) for name, part in MEMBER_OF.items()
    }
    before = builders.get("constraint_velocity")
    if before is not None:
        members["constraint_velocity"] = _stack("constraint_velocity", before, rows.at_rest)
    elif not rows.still:
        members["constraint_velocity"] = _below_zeros(builders["constraint"], rows.at_rest)
    return members


def _stack(name: str, above: Builder, below: ca.Function) -> Builder:
    def build() -> ca.Function:
        upper = above()
        inputs = _inputs([upper, below])
        values = [_only_output(member, inputs) for member in (upper, below)]
        stack = ca.sparsify(ca.vertcat(*values))
        return ca.Function(
            name, list(inputs.values()), [stack], list(inputs), [below.name_out(0)], {"cse": True}
        )

    return build


def _below_zeros(above: Builder, below: ca.Function) -> Builder:
    def build() -> ca.Function:
        inputs = _inputs([below])
        zeros = ca.SX.zeros(above().size1_out(0))
        stack = ca.vertcat(zeros, _only_output(below, inputs))
        return ca.Function(
            "constraint_velocity", list(inputs.values()), [stack], list(inputs), ["a0"]
        )

    return build


def _inputs(functions: list[ca.Function]) -> dict[str, ca.SX]:
    """Return symbols for the inputs of all, in the order q, v, t."""
    symbols: dict[str, ca.SX] = {}
    for member in functions:
        for i, name in enumerate(member.name_in()):
            symbols.setdefault(name, ca.SX.sym(name, member.sparsity_in(i)))
    return {name: symbols[name] for name in ("q", "v", "t") if name in symbols}


def _only_output(member: ca.Function, inputs: Mapping[str, ca.SX]) -> ca.SX:
    return member(**{name: inputs[name] for name in member.name_in()})[member.name_out(0)]
