"""Servo constraints as data: rows that a controller enforces, with moving quantities as signals.

A law has no clock. Moving quantities enter as a signal `y(t)`: the caller gives y, ẏ and ÿ as
slices of the reference, and rows `phi(q, y) = 0`, `A(q, y) v + a0(q, y) = 0`, `psi(q, v, y) = 0`
get their second-order form `A_s a + c_s = 0` from them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.constraints import user_rows
from mbcasadi.control.tasks.task import Slot
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.shapes import require_kind, require_shape, require_texts
from mbcasadi.short_text import summarised
from mbcasadi.system import ConstraintRows, System
from mbcasadi.system.functions import Expression, user_row_expressions

SIGNALS = ("y", "ydot", "yddot")

SERVO_ADVICE = "servo_rows or keep_rows makes them"
BAUMGARTE_ADVICE = "mb.Baumgarte(alpha, beta)"


class ServoForm(NamedTuple):
    """Servo rows at one state, `A a + c = 0`.

    Fields: `phi` (k, 1) residual, zero for rows that hold for velocities only; `psi` (k, 1) its
    rate, or the velocity residual of those rows; `A` (k, nv); `c` (k, 1).
    """

    phi: ca.SX
    psi: ca.SX
    A: ca.SX
    c: ca.SX


@summarised
@dataclass(frozen=True)
class ServoRows:
    """Constraints that a controller enforces.

    Attributes:
        form: (q, v, y, ydot, yddot) → (phi, psi, A, c); see `ServoForm`.
        names, units: of each row.
        signals: name of each entry of y.
        holonomic: number of rows, the first ones, that hold for configurations.
    """

    form: ca.Function
    names: tuple[str, ...]
    units: tuple[str, ...]
    signals: tuple[str, ...] = ()
    holonomic: int = 0

    @property
    def count(self) -> int:
        """Number of rows k."""
        return len(self.names)

    @checked
    def at(self, *values: ca.SX) -> ServoForm:
        """Return the rows for (q, v, y, ydot, yddot)."""
        if len(values) != self.form.n_in():
            raise ShapeError(f"{len(values)} arguments; expected q, v, y, ydot and yddot")
        for i, value in enumerate(values):
            require_shape(self.form.name_in(i), value, self.form.size_in(i))
        return ServoForm(*self.form(*values))

    def slots(self) -> tuple[Slot, ...]:
        """Return the slices of the reference for y, ẏ and ÿ; none where nothing moves."""
        if not self.signals:
            return ()
        return tuple(Slot(name, self.signals, ("",) * len(self.signals)) for name in SIGNALS)


@checked
def servo_rows(
    system: System,
    q: ca.SX,
    v: ca.SX,
    *,
    phi: Expression | None = None,
    A: Expression | None = None,
    a0: Expression | None = None,
    psi: Expression | None = None,
    y: ca.SX | None = None,
    names: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
) -> ServoRows:
    """Return `c_s = (∂psi/∂q) N v + (∂psi/∂y) ẏ + (∂psi/∂ẏ) ÿ` and the rest  [L15, eq. 18-23].

    Args:
        system: the mechanism.
        q, v: (nq, 1), (nv, 1) symbols.
        phi: (m, 1) rows `phi(q, y) = 0`, e.g. `bar_pose(q) - y`.
        A, a0: (j, nv), (j, 1) rows `A(q, y) v + a0(q, y) = 0`.
        psi: (i, 1) rows `psi(q, v, y) = 0` of any form in v.
        y: (ny, 1) symbols of the moving quantities; their names become those of the signals.
        names, units: of each row; `row0`, `row1`, … without units by default. The unit of a
            holonomic row is that of phi, of any other that of psi.

    Raises:
        ShapeError: a wrong shape, a symbol that is none of q, v, y, or a y that is no symbol.
        ProblemError: no rows, or names that are not one for each.
    """
    for name, symbols in (("q", q), ("v", v), ("y", ca.SX(0, 1) if y is None else y)):
        require_kind(name, symbols, ca.SX, "symbols, as ca.SX.sym gives them")
    require_shape("q", q, (system.nq, 1), "(nq, 1)")
    require_shape("v", v, (system.nv, 1), "(nv, 1)")
    y = ca.SX(0, 1) if y is None else y
    require_shape("y", y, (y.numel(), 1), "(ny, 1)")
    if not y.is_valid_input():
        raise ShapeError(f"y is {y}; expected symbols, as ca.SX.sym gives them")
    expressions = user_row_expressions(system.nv, phi, A, a0, psi)
    t, ydot, yddot = ca.SX.sym("t"), ca.SX.sym("ydot", y.numel()), ca.SX.sym("yddot", y.numel())
    moving = y + t * ydot + t**2 / 2 * yddot  # equals y(t) to the second derivative at t = 0
    path = dict(
        zip(expressions, ca.substitute([*expressions.values()], [y], [moving]), strict=True)
    )
    rows = user_rows(q, v, system.velocity_map(q), **path, t=t)
    outputs = ca.substitute([rows.phi, rows.psi, rows.A, rows.c], [t], [ca.SX(0)])
    form = ca.Function(
        "servo_rows",
        [q, v, y, ydot, yddot],
        outputs,
        ["q", "v", *SIGNALS],
        list(ServoForm._fields),
        {"allow_free": True, "cse": True},
    )
    if form.has_free():
        raise ShapeError(
            f"servo rows depend on {', '.join(form.get_free())}; expected expressions of q, v and "
            "y only. A quantity that moves with time belongs to y"
        )
    count = int(rows.phi.numel())
    signals = tuple(y[i].name() for i in range(y.numel()))
    return ServoRows(
        form,
        *_labels(count, names, units),
        signals=signals,
        holonomic=int(expressions["phi"].numel()),
    )


@checked
def keep_rows(
    system: System,
    rows: ConstraintRows,
    *,
    names: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
) -> ServoRows:
    """Return rows of `System.rows` as servo rows; nothing in them moves.

    Args:
        system: the mechanism.
        rows: from `system.rows(...)`, without time.
        names, units: of each row; `row0`, `row1`, … without units by default.

    Raises:
        ProblemError: they depend on time.
    """
    require_kind("rows", rows, ConstraintRows, "System.rows makes them")
    found = rows.bias.numel_in("q"), rows.bias.numel_in("v")
    if found != (system.nq, system.nv):
        raise ProblemError(
            f"rows are of another system: their q and v have {found[0]} and {found[1]} entries, "
            f"those of '{system.name}' {system.nq} and {system.nv}"
        )
    if "t" in rows.bias.name_in():
        raise ProblemError(
            "servo rows depend on time, and a law has no clock; give what moves as y to servo_rows"
        )
    q, v, empty = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv), ca.SX(0, 1)
    symbols = {"q": q, "v": v}
    outputs = [
        function(**{name: symbols[name] for name in function.name_in()})[function.name_out(0)]
        for function in (rows.residual, rows.rate, rows.jacobian, rows.bias)
    ]
    form = ca.Function(
        "servo_rows",
        [q, v, empty, empty, empty],
        outputs,
        ["q", "v", *SIGNALS],
        list(ServoForm._fields),
        {"cse": True},
    )
    holonomic = max((i + 1 for i in range(rows.count) if not outputs[0][i].is_zero()), default=0)
    return ServoRows(form, *_labels(rows.count, names, units), holonomic=holonomic)


def _labels(
    count: int, names: Sequence[str] | None, units: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a name and a unit for each row."""
    if count == 0:
        raise ProblemError("no servo rows; give at least one of phi, A and psi")
    for label, texts in {"names": names, "units": units}.items():
        if texts is not None:
            require_texts(label, texts)
    row_names = tuple(f"row{i}" for i in range(count)) if names is None else tuple(names)
    row_units = ("",) * count if units is None else tuple(units)
    if len(row_names) != count or len(set(row_names)) != count or len(row_units) != count:
        raise ProblemError(
            f"servo rows are named {row_names} with units {row_units}; expected {count} different "
            f"names and {count} units"
        )
    return row_names, row_units
