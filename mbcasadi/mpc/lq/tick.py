"""The end of a tick of every MPC: its stages as Functions, its outputs, its `Controller`.

A state z of a stagewise controller ends with what the safe output remembers.
"""

from collections.abc import Mapping

import casadi as ca
import numpy as np

from mbcasadi.control.safe_output.safe_output import SafeOutput
from mbcasadi.description import Controller, LeastDistanceStages, Signal
from mbcasadi.description.status import OUTPUTS, QP_STATUS, Flag
from mbcasadi.description.tolerance import tolerance as marked_tolerance
from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.lq.rows import Array
from mbcasadi.qp.input_guard import is_saturated
from mbcasadi.qp.kkt_residuals import QP_RESIDUALS
from mbcasadi.system.coordinates import unitless_signal


def stage_function(name: str, inputs: Mapping[str, Sym], outputs: Mapping[str, Sym]) -> ca.Function:
    """Return a stage of a tick as a Function with dense outputs."""
    dense = [part if key == "A_qp" else ca.densify(part) for key, part in outputs.items()]
    return ca.Function(name, list(inputs.values()), dense, list(inputs), list(outputs))


def solver_results(kind: type[Sym], n: int, m: int, carry: int) -> dict[str, Sym]:
    """Return symbols of what `finish` takes from the stages before it.

    Args:
        kind: of the symbols.
        n, m: numbers of unknowns and rows.
        carry: number of entries that `build` passes on.
    """
    sizes = {"carry": carry, "x": n, "lam_a": m, "active": m, "flag": 1}
    return {key: kind.sym(key, size) for key, size in sizes.items()}


def flags_of(u: tuple[Sym, Sym], solved: Sym, e: Sym, tolerance: float) -> Sym:
    """Return the flags: whether u is saturated, and whether a solution needs slack.

    Args:
        u: before and behind its limits.
        solved: whether there is a solution.
        e: slacks; no rows without soft rows.
        tolerance: slack that counts as zero.
    """
    flags = Flag.SATURATED * is_saturated(*u)
    if not e.numel():
        return flags
    relaxed = ca.logic_and(solved, ca.mmax(e) > marked_tolerance(tolerance))
    return flags + Flag.RELAXED * relaxed


def outputs_of(
    u: Sym, z_next: Sym, status: Sym, flags: Sym, residual: tuple[Sym, Sym]
) -> dict[str, Sym]:
    """Return the outputs of a tick by name; `residual` comes with whether the inputs are good."""
    value, valid = residual
    outputs = (u, z_next, status, flags, ca.if_else(valid, value, np.inf))
    return dict(zip(OUTPUTS, outputs, strict=True))


def stagewise_controller(
    function: ca.Function,
    inputs: tuple[Signal, ...],
    control: Signal,
    safe: SafeOutput,
    z0: Array,
    notes: Mapping[str, str],
    stages: LeastDistanceStages | None = None,
) -> Controller:
    """Return a controller as data.

    Args:
        function: (inputs) → (u, z_next, status, flags, residual).
        inputs: names and units; z is the last one, and its last entries are those of the safe
            output.
        control: names and units of u.
        safe: the safe output, which has the limits of u and the period.
        z0: the first z.
        notes: what the controller is; "safe output" says what it puts out without a solution.
        stages: what the function is made of, for C.
    """
    z, counts = inputs[-1], {} if stages is None else {"unknowns, rows": f"{stages.n}, {stages.m}"}
    summary = QP_STATUS.summary(notes["safe output"])
    told = {key: text for key, text in notes.items() if key != "safe output"}
    return Controller(
        name=function.name(),
        function=function,
        inputs=inputs,
        outputs=(
            control,
            unitless_signal("z_next", z.components),
            unitless_signal("status", ("status",)),
            unitless_signal("flags", ("flags",)),
            unitless_signal("residual", QP_RESIDUALS),
        ),
        u_min=safe.u_min,
        u_max=safe.u_max,
        z0=z0,
        period=safe.period,
        stages=stages,
        notes=told | counts | {"status": summary},
        emergency=safe.emergency(len(z.components) - safe.size),
    )
