"""Inputs of a law: the guard that makes them safe to compute with."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi.control.law_interface.law import Array, LawInputs
from mbcasadi.control.tasks.task import Slot
from mbcasadi.control.tick.inputs import is_state, is_tuning, rows_of
from mbcasadi.description import TuningParameter
from mbcasadi.qp.input_guard import MASK_ON, is_bounded, normalise_quaternions, replace_invalid
from mbcasadi.system import System
from mbcasadi.system.closing import close_state
from mbcasadi.system.coordinates import equality_groups, quaternion_places
from mbcasadi.system.parameter_inputs import configuration_of


def safe_inputs(
    system: System,
    symbols: Mapping[str, ca.SX],
    slots: Sequence[Slot],
    tuning: Sequence[TuningParameter],
    initial: Mapping[str, Array],
) -> tuple[LawInputs, ca.SX, ca.SX]:
    """Return inputs that are safe to compute with, and which of them are those of the caller.

    The second output is one where all are, the third where the measured q and v are.

    Args:
        system: the mechanism.
        symbols: of the inputs, by name.
        slots: slices of the reference.
        tuning: parameters with their bounds.
        initial: initial value of each state, by name.
    """
    quaternions = quaternion_places(system)
    measured = {"q": configuration_of(symbols), "v": symbols["v"]}
    others = {name: x for name, x in symbols.items() if name not in ("q", "v", "p")}
    is_measured, valid = is_state(system, symbols), is_bounded(*others.values())
    nominal = {name: ca.DM.zeros(x.numel()) for name, x in (others | measured).items()}
    if tuning:
        valid = ca.logic_and(valid, is_tuning(symbols["tuning"], tuning))
        nominal["tuning"] = ca.DM([parameter.default for parameter in tuning])
    if system.tree is not None:
        nominal["q"] = ca.DM(np.asarray(system.tree.q0, dtype=float))
    if "mask" in symbols:
        nominal["mask"] = ca.DM.ones(symbols["mask"].numel())
    safe = replace_invalid(valid, others, nominal)
    safe |= replace_invalid(is_measured, measured, nominal)
    inputs = LawInputs(
        q=normalise_quaternions(safe["q"], quaternions),
        v=safe["v"],
        ref=_split(safe["ref"], {slot.name: slot.size for slot in slots}),
        z=_split(safe["z"], {name: value.size for name, value in initial.items()}),
        rows=_rows_on(system, safe.get("mask")),
        f_c=safe.get("f_c", ca.SX.zeros(system.nv)),
        act=safe.get("act", ca.SX(0, 1)),
        tuning=_split(safe.get("tuning", ca.SX(0, 1)), {parameter.name: 1 for parameter in tuning}),
    )
    return inputs, ca.logic_and(valid, is_measured), is_measured


def close_inputs(system: System, at: LawInputs) -> tuple[LawInputs, ca.SX]:
    """Return the inputs with the state moved onto the constraint manifold, and whether it was near.

    Args:
        system: the mechanism.
        at: inputs as measured.
    """
    state = close_state(system, at.q, at.v, at.rows)
    return replace(at, q=state.q, v=state.v, gap=state.gap), state.closed


def finite_state(z: ca.SX, z0: Array) -> ca.SX:
    """Return the state as it came in, the initial one where it holds NaN or huge numbers."""
    return ca.if_else(is_bounded(z), z, ca.DM(z0)) if z0.size else z


def _split(column: ca.SX, sizes: Mapping[str, int]) -> dict[str, ca.SX]:
    parts, first = {}, 0
    for name, size in sizes.items():
        parts[name] = column[first : first + size, 0]
        first += size
    return parts


def _rows_on(system: System, mask: ca.SX | None) -> ca.SX:
    if mask is None:
        return ca.SX.ones(system.nc)
    return rows_of(mask > MASK_ON, equality_groups(system)[1])
