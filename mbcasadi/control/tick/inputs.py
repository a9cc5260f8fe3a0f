"""Inputs that every controller has: their guard, the rows that a mask keeps, names and units."""

from collections.abc import Iterable, Mapping, Sequence

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Signal, TuningParameter
from mbcasadi.qp.input_guard import is_within, quaternion_validity, state_validity
from mbcasadi.shapes import require_name
from mbcasadi.system import System
from mbcasadi.system.coordinates import (
    coordinates,
    quaternion_places,
    rates,
    state_sizes,
    unitless_signal,
)
from mbcasadi.system.parameter_inputs import configuration_of, is_physical
from mbcasadi.system.pulling_inputs import activation_names


def input_symbols(
    system: System,
    further: Mapping[str, int],
    *,
    ref: int,
    tuning: int,
    mask: int | None,
    z: int,
) -> dict[str, ca.SX]:
    """Return the symbol of each input by name, in the Function's order.

    Args:
        system: the mechanism.
        further: sizes of inputs of this controller alone.
        ref, tuning, mask, z: sizes; None where there is no mask. What is empty of `act`, `tuning`
            and p is left out.
    """
    count = len(system.parameters)
    optional = {name: n for name, n in (("tuning", tuning), ("p", count)) if n}
    sizes = {"q": system.nq - count, "v": system.nv} | ({"act": system.na} if system.na else {})
    sizes |= {**further, "ref": ref, **optional, **({} if mask is None else {"mask": mask})}
    return {name: ca.SX.sym(name, size) for name, size in (sizes | {"z": z}).items()}


def is_state(system: System, symbols: Mapping[str, ca.SX]) -> ca.SX:
    """Return 1 where q, v and the parameters p are finite, quaternions not degenerate, p physical.

    Args:
        system: the mechanism.
        symbols: inputs by name.
    """
    valid = ca.logic_and(
        state_validity((symbols["q"], symbols["v"]), state_sizes(system)),
        quaternion_validity(configuration_of(symbols), quaternion_places(system)),
    )
    if "p" in symbols:
        valid = ca.logic_and(valid, is_physical(system.parameters, symbols["p"]))
    return valid


def is_tuning(tuning: ca.SX, parameters: Sequence[TuningParameter]) -> ca.SX:
    """Return 1 where the entries of `tuning` are inside their bounds."""
    lower, upper = ([getattr(x, end) for x in parameters] for end in ("lower", "upper"))
    return is_within(tuning, lower, upper)


def rows_of(on: Sequence[ca.SX] | ca.SX, sizes: Iterable[int], first: int = 0) -> ca.SX:
    """Return (nc,) the entries of a mask from `first` on, each as often as it has rows."""
    entries = [on[first + k] for k, size in enumerate(sizes) for _ in range(size)]
    return ca.vertcat(ca.SX(0, 1), *entries)


def tuning_values(
    parameters: Sequence[TuningParameter], given: Mapping[str, float] | None
) -> NDArray[np.float64]:
    """Return the input `tuning` with these entries, defaults elsewhere.

    Raises:
        UnknownNameError: no such entry.
    """
    entries = {parameter.name: parameter.default for parameter in parameters}
    for name, value in (given or {}).items():
        require_name("entry of tuning", name, list(entries))
        entries[name] = value
    return np.array([*entries.values()], dtype=float)


def input_signals(
    system: System,
    reference: Signal,
    tuning: Sequence[TuningParameter],
    mask_names: Sequence[str],
    state: Sequence[str],
) -> dict[str, Signal]:
    """Return names and units of the inputs that controllers have in common, by name.

    Args:
        system: the mechanism.
        reference: the signal `ref`.
        tuning: entries of the input `tuning`.
        mask_names: entries of the mask.
        state: entries of z.
    """
    names, units = (tuple(getattr(x, key) for x in tuning) for key in ("name", "unit"))
    return {
        "q": coordinates(system),
        "v": rates(system),
        "act": unitless_signal("act", activation_names(system)),
        "ref": reference,
        "tuning": Signal("tuning", names, units),
        "p": system.parameters.signal,
        "mask": unitless_signal("mask", tuple(mask_names)),
        "z": unitless_signal("z", tuple(state)),
    }
