"""Inputs of the inverse-dynamics controller: symbols, the guard in front of the equations."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca

from mbcasadi.control.inverse_dynamics.limits.tuned_limits import limits_in_order
from mbcasadi.control.inverse_dynamics.memory.observer import Observed, observed
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.tuning import Tuned, tuned_values
from mbcasadi.qp.input_guard import (
    MASK_ON,
    is_bounded,
    is_within,
    normalise_quaternions,
    quaternion_validity,
    replace_invalid,
    state_validity,
)
from mbcasadi.system.closing import close_state
from mbcasadi.system.coordinates import (
    initial_pose,
    moving_size,
    quaternion_places,
    state_sizes,
)
from mbcasadi.system.parameter_inputs import configuration_of, is_physical

MEASURED = ("q", "v", "act")
COMMANDED = ("f_measured", "ref", "tuning", "mask")
"""Inputs beside p, which is checked with the pose: a mechanism at rest has both."""


@dataclass(frozen=True)
class Inputs:
    """The controller's inputs: all finite, quaternions unit, loops closed.

    Attributes:
        q, v: (nq,), (nv,) the state on the constraint manifold next to the measured one.
        measured: q, v as they were measured.
        gap: scaled residual that closing has left; see `system/closing.py`.
        act: (na,) activations, or None.
        ref: (nref,) reference.
        on: (nc + ne,) one for each contact and equality constraint that is on, else zero.
        tuned: gains and contacts, with the entries of `tuning`.
        tuning: entries of `tuning`, by name.
        memory: what z remembers of servos and actuator forces; zero where it is not finite.
        accepted: one where the measured state is finite and its loops are closed, whatever the
            other inputs hold.
        observed: the state of the observer, or None without one.
        f_measured: measured forces in the order of `force_costs`, or None without feedback.
    """

    q: ca.SX
    v: ca.SX
    measured: tuple[ca.SX, ca.SX]
    gap: ca.SX
    act: ca.SX | None
    ref: ca.SX
    on: ca.SX
    tuned: Tuned
    tuning: dict[str, ca.SX]
    memory: ca.SX
    accepted: ca.SX
    observed: Observed | None
    f_measured: ca.SX | None

    def on_rows(self, setup: Setup) -> ca.SX:
        """Return (nc,) one for each row of an equality constraint that is on, else zero."""
        return rows_on(setup, self.on)


def input_symbols(setup: Setup, m: int | None) -> dict[str, ca.SX]:
    """Return the controller's inputs as symbols, in order.

    Args:
        setup: the options.
        m: number of inequalities; None where it is not known yet: z is then its last part, what it
            remembers of servos and for the observer.
    """
    system = setup.system
    sizes = {"q": moving_size(system), "v": system.nv, "act": system.na}
    if setup.force_feedback is not None:
        sizes["f_measured"] = setup.force_costs.size
    sizes["ref"] = setup.nref
    sizes |= {"tuning": len(setup.tuning)} if setup.tuning else {}
    sizes |= {"p": len(system.parameters)} if system.parameters else {}
    sizes |= {
        "mask": len(setup.mask_names),
        "z": setup.memory_size if m is None else state_size(setup, m),
    }
    if not system.na:
        del sizes["act"]
    return {name: ca.SX.sym(name, size) for name, size in sizes.items()}


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


def guard_inputs(setup: Setup, symbols: Mapping[str, ca.SX]) -> tuple[Inputs, ca.SX]:
    """Return inputs that are safe to compute with, and 1 where they are those of the caller.

    A bad measurement (NaN, infinite, degenerate quaternions) is replaced by the model's authored
    configuration at rest, a bad reference, tuning or mask by that of this configuration, with
    default values and all contacts on.
    A state whose loops are too far open is bad as well.
    """
    pose = {"q": configuration_of(symbols)}
    measured = {name: x for name, x in (dict(symbols) | pose).items() if name in MEASURED}
    commanded = {name: symbols[name] for name in COMMANDED if name in symbols}
    quaternions, nominal = quaternion_places(setup.system), nominal_inputs(setup)
    is_measured = ca.logic_and(
        state_validity((symbols["q"], symbols["v"]), state_sizes(setup.system)),
        quaternion_validity(measured["q"], quaternions),
    )
    if "p" in symbols:
        is_physical_p = is_physical(setup.system.parameters, symbols["p"])
        is_measured = ca.logic_and(is_measured, is_physical_p)
    if "act" in measured:
        is_measured = ca.logic_and(is_measured, is_bounded(measured["act"]))
    is_commanded = is_bounded(*commanded.values())
    if setup.tuning:
        ends = ([getattr(x, end) for x in setup.tuning] for end in ("lower", "upper"))
        is_commanded = ca.logic_and(is_commanded, is_within(commanded["tuning"], *ends))
        is_commanded = ca.logic_and(is_commanded, _tuned_at(setup, commanded["tuning"]).valid)
        if "limits" in setup.tunable:
            ordered = limits_in_order(_entries(setup, commanded["tuning"]))
            is_commanded = ca.logic_and(is_commanded, ordered)
    safe = replace_invalid(is_measured, measured, nominal)
    safe |= replace_invalid(is_commanded, commanded, nominal)
    q, on = normalise_quaternions(safe["q"], quaternions), safe["mask"] > MASK_ON
    state = close_state(setup.system, q, safe["v"], rows_on(setup, on))
    memory, learned = _sound_memory(setup, symbols)
    inputs = Inputs(
        q=state.q,
        v=state.v,
        measured=(q, safe["v"]),
        gap=state.gap,
        act=safe.get("act"),
        ref=safe["ref"],
        on=on,
        tuned=_tuned_at(setup, safe.get("tuning")),
        tuning=_entries(setup, safe.get("tuning")),
        memory=memory,
        accepted=ca.logic_and(is_measured, state.closed),
        observed=None if setup.observer is None else observed(learned, setup.system.nv),
        f_measured=safe.get("f_measured"),
    )
    return inputs, ca.logic_and(is_commanded, inputs.accepted)


def _sound_memory(setup: Setup, symbols: Mapping[str, ca.SX]) -> tuple[ca.SX, ca.SX]:
    """Return what z remembers of servos and forces, and of the observer; zero where not finite."""
    size = setup.memory_size
    if not size:
        return ca.SX(0, 1), ca.SX(0, 1)
    memory = symbols["z"][symbols["z"].numel() - size :, 0]
    sound = ca.if_else(is_bounded(memory), memory, 0)
    first = setup.memory_places["observer"].start
    return sound[:first, 0], sound[first:, 0]


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
    first = len(setup.contacts)
    entries = [on[first + k] for k, size in enumerate(setup.equality_sizes) for _ in range(size)]
    return ca.vertcat(ca.SX(0, 1), *entries)


def nominal_inputs(setup: Setup) -> dict[str, ca.DM]:
    """Return inputs that hold the model's authored configuration at rest."""
    system = setup.system
    q0 = initial_pose(system)
    return {
        "q": ca.DM(q0),
        "v": ca.DM.zeros(system.nv),
        "act": ca.DM.zeros(system.na),
        "f_measured": ca.DM.zeros(setup.force_costs.size),
        "ref": ca.DM(setup.reference_at(q0)),
        "tuning": ca.DM([parameter.default for parameter in setup.tuning]),
        "mask": ca.DM.ones(len(setup.mask_names)),
        "z": ca.DM.zeros(setup.memory_size),
    }
