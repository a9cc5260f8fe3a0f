"""Inputs of the inverse-dynamics controller: symbols, the guard in front of the equations."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.qp.input_guard import (
    MASK_ON,
    input_validity,
    normalise_quaternions,
    replace_invalid,
)
from mbcasadi.system.coordinates import quaternion_places


@dataclass(frozen=True)
class Inputs:
    """The controller's inputs: all finite, quaternions unit.

    Attributes:
        q, v: (nq,), (nv,).
        act: (na,) activations, or None.
        ref: (nref,) reference.
        on: (nc + ne,) one for each contact and equality constraint that is on, else zero.
    """

    q: ca.SX
    v: ca.SX
    act: ca.SX | None
    ref: ca.SX
    on: ca.SX


def input_symbols(setup: Setup, m: int) -> dict[str, ca.SX]:
    """Return the controller's inputs as symbols, in order; `m` is the number of inequalities."""
    system = setup.system
    sizes = {"q": system.nq, "v": system.nv, "act": system.na, "ref": setup.nref}
    sizes |= {"mask": len(setup.mask_names), "z": state_size(setup, m)}
    if not system.na:
        del sizes["act"]
    return {name: ca.SX.sym(name, size) for name, size in sizes.items()}


def state_size(setup: Setup, m: int) -> int:
    """Return the size of z: the active set, then the last control where it is held."""
    return m + (setup.system.nu if setup.holds_last_control else 0)


def guard_inputs(setup: Setup, symbols: Mapping[str, ca.SX]) -> tuple[Inputs, ca.SX]:
    """Return inputs that are safe to compute with, and 1 where they are those of the caller.

    Bad inputs (NaN, infinite, degenerate quaternions) are replaced by the model's authored
    configuration at rest, all contacts on.
    """
    measured = {name: value for name, value in symbols.items() if name != "z"}
    quaternions = quaternion_places(setup.system)
    valid = input_validity(measured.values(), measured["q"], quaternions)
    safe = replace_invalid(valid, measured, nominal_inputs(setup))
    q = normalise_quaternions(safe["q"], quaternions)
    return Inputs(q, safe["v"], safe.get("act"), safe["ref"], safe["mask"] > MASK_ON), valid


def nominal_inputs(setup: Setup) -> dict[str, ca.DM]:
    """Return inputs that hold the model's authored configuration at rest."""
    system = setup.system
    q0 = np.zeros(system.nq) if system.tree is None else np.asarray(system.tree.q0, dtype=float)
    return {
        "q": ca.DM(q0),
        "v": ca.DM.zeros(system.nv),
        "act": ca.DM.zeros(system.na),
        "ref": ca.DM(setup.reference_at(q0)),
        "mask": ca.DM.ones(len(setup.mask_names)),
    }
