"""What observers do with bad input: nominal numbers in its place."""

from collections.abc import Mapping

import casadi as ca

from mbcasadi.dynamics.terms import state_symbols
from mbcasadi.errors import ProblemError
from mbcasadi.linalg import Sym
from mbcasadi.qp.input_guard import (
    is_bounded,
    normalise_quaternions,
    quaternion_validity,
    replace_invalid,
    state_validity,
)
from mbcasadi.system import System
from mbcasadi.system.coordinates import quaternion_places, start_pose, state_sizes

CLEAN = "clean_"
"""Prefix of outputs of a guard: a Function has no output with the name of an input."""

LARGEST_GAP = 10
"""Periods between two samples from which on nothing is concluded from their difference."""


def require_observable_dynamics(system: System) -> None:
    """Raise `ProblemError` for dynamics that take more than a state, controls and a mask."""
    if len(system.parameters):
        raise ProblemError(
            f"'{system.name}' has physical parameters; expected a system with numbers: "
            "read_mjcf without parameters=, or System.at"
        )
    if system.at_end is not None:
        raise ProblemError(
            f"'{system.name}' has forces at the end of a step; expected continuous dynamics"
        )


def known_inputs(system: System) -> dict[str, ca.SX]:
    """Return symbols of u, [act], [t], [mask], dt: what is known without a measured state."""
    last = state_symbols(system, ca.SX).last
    act = {"act": ca.SX.sym("act", system.na)} if system.na else {}
    return {"u": ca.SX.sym("u", system.nu), **act, **last, "dt": ca.SX.sym("dt")}


def known_guard(system: System, period: float) -> ca.Function:
    """Return (u, [act], [t], [mask], dt) → (valid, clean_u, …).

    Where one of them is bad all are zero, with the mask as it is in the model, and dt the period.

    Args:
        system: the mechanism.
        period: s, the usual dt; the largest one is `LARGEST_GAP` of it.
    """
    given = known_inputs(system)
    return _guard(system, given, _known_validity(given, period), period)


def dynamics_guard(system: System, period: float) -> ca.Function:
    """Return (q, v, u, [act], [t], [mask], dt) → (valid, clean_q, …).

    Where one of them is bad they are as in `known_guard`, at the start pose at rest.
    """
    given = {"q": ca.SX.sym("q", system.nq), "v": ca.SX.sym("v", system.nv)}
    places, known = quaternion_places(system), known_inputs(system)
    valid = ca.logic_and(
        state_validity((given["q"], given["v"]), state_sizes(system)),
        ca.logic_and(quaternion_validity(given["q"], places), _known_validity(known, period)),
    )
    return _guard(system, given | known, valid, period)


def _known_validity(known: Mapping[str, ca.SX], period: float) -> ca.SX:
    in_time = ca.logic_and(known["dt"] > 0, known["dt"] <= LARGEST_GAP * period)
    return ca.logic_and(is_bounded(*known.values()), in_time)


def _guard(system: System, given: Mapping[str, ca.SX], valid: ca.SX, period: float) -> ca.Function:
    nominal = {key: ca.DM.zeros(x.shape) for key, x in given.items()} | {"dt": ca.DM(period)}
    nominal |= {} if system.mask is None else {"mask": ca.DM(system.mask)}
    nominal |= {"q": ca.DM(start_pose(system))}
    clean = replace_invalid(valid, given, nominal)
    if "q" in clean:
        clean["q"] = normalise_quaternions(clean["q"], quaternion_places(system))
    names = ["valid", *(f"{CLEAN}{key}" for key in clean)]
    return ca.Function(
        "guard", [*given.values()], [valid, *clean.values()], [*given], names, {"cse": True}
    )


def guarded(guard: ca.Function, inputs: Mapping[str, Sym]) -> dict[str, Sym]:
    """Return the clean inputs by name, and `valid`."""
    return {key.removeprefix(CLEAN): x for key, x in guard(**inputs).items()}
