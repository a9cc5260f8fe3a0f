"""Inputs of the inverse-dynamics controller: symbols, the guard in front of the equations."""

from collections.abc import Mapping

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.tick import inputs as tick_inputs
from mbcasadi.control.tick.inputs import is_state, is_tuning, rows_of
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.tuning import Tuned, tuned_values
from mbcasadi.description.controller import defaults_of
from mbcasadi.qp.input_guard import MASK_ON, is_bounded, normalise_quaternions, replace_invalid
from mbcasadi.system.closing import close_state
from mbcasadi.system.coordinates import initial_pose, quaternion_places
from mbcasadi.system.parameter_inputs import configuration_of

Array = NDArray[np.float64]

MEASURED = ("q", "v", "act")
COMMANDED = ("ref", "tuning", "mask")
"""Inputs beside p, which is checked with the pose (a mechanism at rest has both), and parts'."""


def further_inputs(setup: Setup) -> dict[str, int]:
    """Return the sizes of the inputs of parts, by name."""
    return {signal.name: len(signal.components) for each in setup.bound for signal in each.inputs}


def input_symbols(setup: Setup, m: int | None) -> dict[str, ca.SX]:
    """Return the controller's inputs as symbols, in order.

    Args:
        setup: the options.
        m: number of inequalities; None where it is not known yet: z is then its last part, what it
            remembers of servos and for the observer.
    """
    return tick_inputs.input_symbols(
        setup.system,
        further_inputs(setup),
        ref=setup.nref,
        tuning=len(setup.tuning),
        mask=len(setup.mask_names),
        z=setup.memory_size if m is None else state_size(setup, m),
    )


def state_size(setup: Setup, m: int) -> int:
    """Return the size of z: the active sets, then what is remembered for the next tick."""
    return m * setup.problems + setup.safe_output_size + setup.memory_size


def with_active_set(setup: Setup, memory: ca.SX, m: int) -> ca.SX:
    """Return z, where its last part is known already.

    Args:
        setup: the options.
        memory: symbols of the last part.
        m: number of inequalities.
    """
    return ca.vertcat(ca.SX.sym("z", state_size(setup, m) - memory.numel()), memory)


def guard_inputs(setup: Setup, symbols: Mapping[str, ca.SX]) -> tuple[Instant, ca.SX]:
    """Return inputs that are safe to compute with, and 1 where they are those of the caller.

    A bad measurement (NaN, infinite, degenerate quaternions) is replaced by the model's authored
    configuration at rest, a bad reference, tuning or mask by that of this configuration, with
    default values and all contacts on.
    A state whose loops are too far open is bad as well.
    """
    pose = {"q": configuration_of(symbols)}
    measured = {name: x for name, x in (dict(symbols) | pose).items() if name in MEASURED}
    further = further_inputs(setup)
    named = (*further, *COMMANDED)
    commanded = {name: symbols[name] for name in named if name in symbols}
    quaternions, nominal = quaternion_places(setup.system), nominal_inputs(setup)
    is_measured = is_state(setup.system, symbols)
    if "act" in measured:
        is_measured = ca.logic_and(is_measured, is_bounded(measured["act"]))
    is_commanded = is_bounded(*commanded.values())
    if setup.tuning:
        is_commanded = ca.logic_and(is_commanded, is_tuning(commanded["tuning"], setup.tuning))
        is_commanded = ca.logic_and(is_commanded, _tuned_at(setup, commanded["tuning"]).valid)
        entries, ordered = _entries(setup, commanded["tuning"]), [ca.SX(1)]
        pairs = [pair for each in setup.bound for pair in each.ordered]
        ordered += [entries[lower] <= entries[upper] for lower, upper in pairs]
        if pairs:
            is_commanded = ca.logic_and(is_commanded, ca.mmin(ca.vertcat(*ordered)))
    safe = replace_invalid(is_measured, measured, nominal)
    safe |= replace_invalid(is_commanded, commanded, nominal)
    q, on = normalise_quaternions(safe["q"], quaternions), safe["mask"] > MASK_ON
    on_rows = rows_on(setup, on)
    state = close_state(setup.system, q, safe["v"], on_rows)
    tuned = _tuned_at(setup, safe.get("tuning"))
    now = Instant(
        q=state.q,
        v=state.v,
        measured=(q, safe["v"]),
        gap=state.gap,
        accepted=ca.logic_and(is_measured, state.closed),
        act=safe.get("act"),
        ref=safe["ref"],
        slices=setup.reference_slices,
        on=on,
        on_rows=on_rows,
        gains=tuned.gains,
        contacts=tuned.contacts,
        tuning=_entries(setup, safe.get("tuning")),
        inputs={name: safe[name] for name in further},
        memory=_sound_memory(setup, symbols),
    )
    return now, ca.logic_and(is_commanded, now.accepted)


def _sound_memory(setup: Setup, symbols: Mapping[str, ca.SX]) -> dict[str, ca.SX]:
    """Return what z remembers for each part, by its name; zero where not finite."""
    size = setup.memory_size
    memory = symbols["z"][symbols["z"].numel() - size :, 0] if size else ca.SX(0, 1)
    sound = ca.if_else(is_bounded(memory), memory, 0) if size else memory
    return {name: sound[place, 0] for name, place in setup.memory_places.items()}


def _tuned_at(setup: Setup, tuning: ca.SX | None) -> Tuned:
    """Return gains and contacts at the entries of `tuning`."""
    entries = _entries(setup, tuning)
    tasks = list(zip(setup.tasks, setup.gains, strict=True))
    contacts = list(zip(setup.contact_names, setup.contacts, strict=True))
    return tuned_values(entries, setup.system, tasks, contacts)


def _entries(setup: Setup, tuning: ca.SX | None) -> dict[str, ca.SX]:
    """Return the entries of `tuning` by name."""
    names = [parameter.name for parameter in setup.tuning]
    return {} if tuning is None else dict(zip(names, ca.vertsplit(tuning), strict=True))


def rows_on(setup: Setup, on: ca.SX) -> ca.SX:
    """Return (nc,) the entries of the mask that belong to equality constraints, by rows."""
    return rows_of(on, setup.equality_sizes, len(setup.contacts))


def default_inputs(setup: Setup) -> dict[str, Array]:
    """Return inputs beside pose and reference: at rest, nothing measured, all contacts on."""
    system = setup.system
    further = {name: np.zeros(size) for name, size in further_inputs(setup).items()}
    return further | {
        "v": np.zeros(system.nv),
        "act": np.zeros(system.na),
        "tuning": defaults_of(setup.tuning),
        "mask": np.ones(len(setup.mask_names)),
        "z": np.zeros(setup.memory_size),
    }


def nominal_inputs(setup: Setup) -> dict[str, ca.DM]:
    """Return inputs that hold the model's authored configuration at rest."""
    q0 = initial_pose(setup.system)
    values = default_inputs(setup) | {"q": np.asarray(q0), "ref": setup.reference_at(q0)}
    return {name: ca.DM(value) for name, value in values.items()}
