"""Servo constraints as a task: what a controller keeps as well as limits and other tasks allow."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.tasks.servo_rows import SIGNALS, ServoRows
from mbcasadi.control.tasks.task import Array, Gain, Residual, Slot, Task, require_state
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.short_text import summarised
from mbcasadi.system import System

NEWTON_STEPS = 20
CLOSED = 1e-12  # relative, a last step
STARTS = (0.0, 1.0, -1.0)  # of all entries of y: at zero, y² has no slope


@final
@summarised
@dataclass(frozen=True)
class ServoTask(Task):
    """Rows `phi(q, y) = 0`, `A(q, y) v + a0(q, y) = 0`, `psi(q, v, y) = 0` are kept  [L15].

    The desired second-order form is `A_s a + c_s = -kd psi - kp phi`, with phi zero for rows that
    hold for velocities only; the error that is reported is -phi. `kp = β²`, `kd = 2 α` are
    Baumgarte's.

    Attributes:
        servo: rows from `laws.servo_rows` or `laws.keep_rows`.
        name: prefix of the reference's slices `y`, `ydot`, `yddot`; none where nothing moves.
        kp, kd: gains, 1/s² and 1/s, a number or one for each row; kd is critical unless given.
        weight: of the squared acceleration error, a number or one for each row.

    Raises:
        ProblemError: no servo rows.
    """

    servo: ServoRows
    name: str = "servo"
    kp: Gain = 100.0
    kd: Gain | None = None
    weight: Gain = 1.0

    def __post_init__(self) -> None:
        require_fields(self)

    @checked
    def components(self, system: System) -> tuple[str, ...]:
        """Return the names of the rows."""
        form = self.servo.form
        if (form.numel_in("q"), form.numel_in("v")) != (system.nq, system.nv):
            raise ProblemError(
                f"{self.name}: the rows take {form.numel_in('q')} coordinates and "
                f"{form.numel_in('v')} velocities, '{system.name}' has {system.nq} and {system.nv}"
            )
        return self.servo.names

    @checked
    def units(self, system: System) -> tuple[str, ...]:  # noqa: ARG002  # the interface's
        """Return the units of the rows."""
        return self.servo.units

    @checked
    def slots(self, system: System) -> tuple[Slot, ...]:  # noqa: ARG002  # the interface's
        """Return the slices of what moves, of its rate and of its acceleration."""
        own = self.servo.slots()
        return tuple(Slot(f"{self.name}.{x.name}", x.components, x.units) for x in own)

    @checked
    def residual(self, system: System, q: ca.SX, v: ca.SX, ref: Mapping[str, ca.SX]) -> Residual:
        """Return the rows' error, Jacobian and bias.

        Args:
            system, q, v, ref: as in `Task.residual`.
        """
        self.components(system)
        require_state(self, system, q, v, ref)
        nothing = ca.SX(0, 1)
        form = self.servo.at(q, v, *(ref.get(name, nothing) for name in SIGNALS))
        zero = ca.SX(form.phi.numel(), 1)
        return Residual(
            J=form.A,
            c=form.c,
            error=-form.phi,
            target=zero,
            v_ref=form.A @ v - form.psi,
            a_ref=zero,
        )

    @checked
    def hold_reference(self, system: System, q: Array) -> dict[str, Array]:
        """Return the y at which the rows hold at rest in q, its rates zero.

        Newton's method starts from several y; the one with the least residual is returned.
        """
        self.components(system)
        if not self.servo.signals:
            return {}
        pose, count = column("q", q, system.nq), len(self.servo.signals)
        found = [self._closed_from(system, pose, np.full(count, start)) for start in STARTS]
        y = min(found, key=lambda each: each[1])[0]
        return dict(zip(SIGNALS, (y, 0 * y, 0 * y), strict=True))

    def _closed_from(self, system: System, q: Array, y: Array) -> tuple[Array, float]:
        """Return y by Newton's method from a start, and the residual of the rows."""
        form, v = self.servo.form, np.zeros(system.nv)
        slope = form.factory("slope", form.name_in(), ["phi", "jac:phi:y"])
        for _ in range(NEWTON_STEPS):
            phi, by_y = (np.array(value) for value in slope(q, v, y, 0 * y, 0 * y))
            if not np.all(np.isfinite(phi)) or not np.all(np.isfinite(by_y)):
                return y, np.inf
            step = np.linalg.lstsq(by_y, phi.ravel(), rcond=None)[0]
            y = y - step
            if np.abs(step).max(initial=0.0) <= CLOSED * (1 + np.abs(y).max(initial=0.0)):
                break
        return y, float(np.linalg.norm(np.array(form(q, v, y, 0 * y, 0 * y)[0])))
