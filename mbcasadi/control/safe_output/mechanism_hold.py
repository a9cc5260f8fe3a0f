"""The hold of a mechanism whose contacts are constraints, if it has any."""

from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.safe_output.holding_command import holding_command
from mbcasadi.control.safe_output.safe_output import SafeOutput
from mbcasadi.control.safe_output.static_load import (
    Array,
    actuator_inertias,
    carrying,
    row_inertias,
)
from mbcasadi.short_text import summarised
from mbcasadi.system import System, evaluate
from mbcasadi.system.ranges import require_ranges


@summarised
class Hold(NamedTuple):
    """The safe output, and (q, v) → load and own (2 nu,) of a mechanism; None without one."""

    safe: SafeOutput
    command: ca.Function | None


def hold_at(system: System, q: ca.SX, v: ca.SX, on: ca.SX, period: float) -> ca.SX:
    """Return load and own (2 nu,) of the `HoldingCommand`.

    Args:
        system: the mechanism.
        q, v: (nq,), (nv,) state.
        on: (nc,) one for each constraint row that is on, else zero.
        period: sample time, s.
    """
    rows = ca.SX(0, system.nv)
    if system.nc:
        at = {"q": q, "v": v, "t": ca.SX(0)}
        rows = ca.SX(ca.diag(on) @ evaluate(system.loop_jacobian, at))
    ranges, inertias = require_ranges(system, None, None), row_inertias(system)
    carried = carrying(inertias, _of_contacts(system))
    hold = holding_command(
        system, ranges, period, (q, v), (rows, carried), actuator_inertias(system)
    )
    return ca.vertcat(*hold)


def _of_contacts(system: System) -> NDArray[np.bool_]:
    """Return whether each row (nc,) is one of contacts, which own it; others own themselves."""
    named = zip(system.row_names, system.row_owners, strict=True)
    own = [name not in owners for name, owners in named]
    return np.array([False] * (system.nc - len(own)) + own, dtype=bool)


def hold_of_mechanism(system: System, limits: Array, period: float, u_0: Array, q_0: Array) -> Hold:
    """Return the hold of a mechanism, all rows of its initial mask on.

    Args:
        system: the mechanism.
        limits: (nu, 2) of the command.
        period: sample time, s.
        u_0: (nu,) control at the command zero.
        q_0: (nq,) pose before the first measurement.
    """
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    on = np.ones(system.nc) if system.mask is None else np.asarray(system.mask)
    column = hold_at(system, q, v, ca.SX(on), period) - np.append(u_0, np.zeros(system.nu))
    command = ca.Function("hold", [q, v], [ca.densify(column)], ["q", "v"], ["hold"], {"cse": True})
    start, ends = command(q_0, np.zeros(system.nv)), (limits[:, 0], limits[:, 1])
    return Hold(SafeOutput.of(system, "safe", ends, start, period), command)


def hold_of_controls(limits: Array, period: float, u_0: Array) -> Hold:
    """Return the hold of a plant of which no actuator is known: a constant command.

    Args:
        limits: (nu, 2) of the command.
        period: sample time, s.
        u_0: (nu,) the command.
    """
    names = tuple(f"u{i}" for i in range(u_0.size))
    start = np.append(u_0, np.zeros(u_0.size))
    motors = np.ones(u_0.size)
    safe = SafeOutput("safe", names, limits[:, 0], limits[:, 1], motors, start, period)
    return Hold(safe, None)
