"""The mechanism at one instant, as expressions of a controller's inputs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca

from mbcasadi.control.tasks.task import Gains
from mbcasadi.control.tick.tuning import ContactValues
from mbcasadi.system.actuator_model import ActuatorModel


@dataclass(frozen=True)
class Instant:
    """What parts of a controller read: all finite, quaternions unit, loops closed.

    Attributes:
        q, v: (nq,), (nv,) the state on the constraint manifold next to the measured one.
        measured: q, v as they were measured.
        gap: scaled residual that closing has left; see `system/closing.py`.
        accepted: one where the measured state is finite and its loops are closed, whatever the
            other inputs hold.
        act: (na,) activations, or None.
        ref: (nref,) reference.
        slices: where each slice of it is.
        on: (nc + ne,) one for each contact and equality constraint that is on, else zero.
        on_rows: (m,) one for each row of an equality constraint that is on, else zero.
        gains: of the tasks.
        contacts: values of the contacts.
        tuning: entries of `tuning`, by name.
        inputs: further inputs of parts, by name.
        memory: what z remembers for each part, by its name; zero where it is not finite.
        plans: (nv,) accelerations that act until the control of this tick does, the first one
            first; zero where nothing remembers them.
        ahead: change of length and speed (nu,) of the actuators until then, or None.
        actuators: gains, biases and ranges.
        M, f: (nv, nv) inertia; (nv,) forces that depend on neither actuators nor constraints.
        p_ref: (nu,) reference of the actuator forces in the cost.
        f_ref: reference of the contact forces in the cost, then of the loop forces.
        known: what parts have found in this tick, by their names.
    """

    q: ca.SX
    v: ca.SX
    measured: tuple[ca.SX, ca.SX]
    gap: ca.SX
    accepted: ca.SX
    act: ca.SX | None
    ref: ca.SX
    slices: Mapping[str, slice]
    on: ca.SX
    on_rows: ca.SX
    gains: tuple[Gains, ...]
    contacts: tuple[ContactValues, ...]
    tuning: Mapping[str, ca.SX]
    inputs: Mapping[str, ca.SX]
    memory: Mapping[str, ca.SX]
    plans: tuple[ca.SX, ...] = ()
    ahead: tuple[ca.SX, ca.SX] | None = None
    actuators: ActuatorModel = field(default=None)  # type: ignore[assignment]
    M: ca.SX = field(default=None)  # type: ignore[assignment]
    f: ca.SX = field(default=None)  # type: ignore[assignment]
    p_ref: ca.SX = field(default=None)  # type: ignore[assignment]
    f_ref: ca.SX = field(default=None)  # type: ignore[assignment]
    known: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def planned(
        cls, state: tuple[ca.SX, ca.SX], ref: ca.SX, slices: Mapping[str, slice], **known: Any
    ) -> "Instant":
        """Return the mechanism at a sample of a plan: nothing to guard, measured or remembered.

        Args:
            state: q, v.
            ref, slices: the reference.
            known: further attributes.
        """
        nothing: dict[str, Any] = {
            "measured": state,
            "gap": ca.SX(0),
            "accepted": ca.SX(1),
            "act": None,
            "on": ca.SX(0, 1),
            "on_rows": ca.SX(0, 1),
            "gains": (),
            "contacts": (),
            "tuning": {},
            "inputs": {},
            "memory": {},
        }
        return cls(*state, ref=ref, slices=slices, **(nothing | known))

    @property
    def contacts_on(self) -> ca.SX:
        """(nc,) one for each contact that is on, else zero."""
        return self.on[: len(self.contacts), 0]

    def slice(self, name: str, size: int) -> ca.SX:
        """Return a slice of the reference by name, zero where there is none."""
        return self.ref[self.slices[name], 0] if name in self.slices else ca.SX(size, 1)

    def pushed(self, force: ca.SX) -> "Instant":
        """Return the instant with a further generalised force (nv,)."""
        return replace(self, f=self.f + force)

    def knowing(self, part: str, value: Any) -> "Instant":
        """Return the instant with what a part has found."""
        return replace(self, known={**self.known, part: value})
