"""The output of a tick without a solution: one definition for all controllers.

    u = the command of the last solved tick    while it is younger than `LAST_COMMAND` seconds,
    u = load + own                             afterwards, see `holding_command.py`,

clipped to the limits. Both terms come from the last accepted measurement (finite, quaternions not
degenerate, loops closed), before the first one from the initial pose at rest:

- `load` follows the measured pose as long as it is accepted,
- `own` of a servo is the length measured last while the command was still fresh: afterwards the
  servo holds still there, it does not follow,
- `own` of a motor is its damping of the measured speed; without a measurement the speed is taken
  to fade at the rate of the damping.

A floating base has no actuator. Its weight is in the load as far as feet that are on carry it;
in a law without contacts the legs carry themselves only.

The state is `(last, load, own, age)`: the last command, and the tick that comes since it was
solved, from 1 on. It is finite and harmless whatever its content; nothing branches. An age below 1
is that of no tick: zeros count as the initial state.

`emergency` gives the same output where nothing of a tick could be computed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.control.safe_output.holding_command import damping_rate, motors_of
from mbcasadi.control.safe_output.static_load import Array
from mbcasadi.description import Emergency
from mbcasadi.description.controller import ticks_of_last_command
from mbcasadi.linalg.symbols import Sym
from mbcasadi.qp.input_guard import LARGEST_CONTROL, clamp
from mbcasadi.short_text import summarised
from mbcasadi.system import System

FALLBACKS = ("safe", "hold", "zero")
"""Names of safe outputs: the definition above; the last command; zero actuator force."""

UNSEEN = 1e6
"""Age that stands for: nothing was measured yet."""

DESCRIPTIONS = {
    "safe": "the last solved command while it is young, then each actuator holds",
    "hold": "the last solved command",
    "zero": "zero actuator force, at the initial pose after bad input",
    "law": "that of a Function",
}


def memory_size(kind: str, nu: int) -> int:
    """Return the number of entries of the state for nu controls."""
    return {"safe": 3 * nu + 1, "hold": nu}.get(kind, 0)


@summarised
@dataclass(frozen=True)
class SafeOutput:
    """What a controller puts out without a solution, and what its state remembers for it.

    Attributes:
        kind: one of `FALLBACKS`, or "law": a Function of the inputs.
        names: of the actuators.
        u_min, u_max: (nu,) limits.
        motors: (nu,) one where `own` is a damping, zero where it is a length.
        start: (2 nu,) load and own at the initial pose; of the kinds "zero" and "law" their
            command there, and zeros.
        period: sample time, s.
    """

    kind: str
    names: tuple[str, ...]
    u_min: Array
    u_max: Array
    motors: Array
    start: Array
    period: float

    @classmethod
    def of(
        cls, system: System, kind: str, limits: tuple[Array, Array], start: ca.DM, period: float
    ) -> "SafeOutput":
        """Return that of a system's controller; `start` need not be finite."""
        names, motors = system.actuator_names, motors_of(system)
        return cls(kind, names, limits[0], limits[1], motors, finite_start(start), period)

    @property
    def nu(self) -> int:
        """Number of controls."""
        return len(self.names)

    @property
    def ticks(self) -> int:
        """Ticks without a solution in which the last command is used."""
        return ticks_of_last_command(self.period)

    @property
    def components(self) -> tuple[str, ...]:
        """Name of each entry of the state."""
        last = tuple(f"u.{name}" for name in self.names)
        if self.kind == "hold":
            return last
        if self.kind != "safe":
            return ()
        parts = [f"{part}.{name}" for part in ("load", "own") for name in self.names]
        return (*last, *parts, "age")

    @property
    def size(self) -> int:
        """Number of entries of the state."""
        return memory_size(self.kind, self.nu)

    @property
    def offers(self) -> int:
        """Number of entries that a tick offers to `step`."""
        return {"safe": 2 * self.nu, "hold": 0}.get(self.kind, self.nu)

    @property
    def z0(self) -> Array:
        """The state before the first tick."""
        return np.concatenate([self.constant, self.start, [UNSEEN]])[: self.size]

    @property
    def constant(self) -> Array:
        """The command (nu,) at the initial pose at rest."""
        load, own = np.split(self.start, 2)
        return np.asarray(np.clip(load + own, self.u_min, self.u_max))

    def step(
        self, z: Sym, offered: Sym, measured: Sym, solved: Sym, u: Sym
    ) -> tuple[Sym, Sym, Sym]:
        """Return u before and behind its limits, and the next state.

        Args:
            z: the state, of any content.
            offered: `HoldingCommand` of this tick's measurement, load then own; for "zero" and a
                Function the safe output itself; no rows for "hold". Where it is not finite, or
                "zero" lacks a measurement, it is that of the initial pose.
            measured: whether the measurement is accepted.
            solved: whether the tick has a solution.
            u: (nu,) its command, of any content where it has none.
        """
        if isinstance(u, ca.MX):  # entry by entry in scalars, short in C
            return self._scalar_step(z, offered, measured, solved, u)
        if self.kind not in ("safe", "hold"):
            known = _is_finite(offered)
            if self.kind == "zero":
                known = ca.logic_and(known, measured)
            otherwise = ca.if_else(known, offered, ca.DM(self.constant))
            u_free = ca.if_else(solved, u, otherwise)
            return u_free, clamp(u_free, self.u_min, self.u_max), z
        z = self._sound(z)
        last = z[: self.nu, 0]
        if self.kind == "hold":
            u_free = ca.if_else(solved, u, last)
            u_out = clamp(u_free, self.u_min, self.u_max)
            return u_free, u_out, u_out
        # A degenerate quaternion that a guard lets pass, or a singular inertia, offers NaN.
        measured = ca.logic_and(measured, _is_finite(offered))
        memory = self._split(z)
        load, own = self._holding(memory, offered, measured, solved)
        is_young = memory.age <= self.ticks
        u_free = ca.if_else(solved, u, ca.if_else(is_young, last, load + own))
        u_out = clamp(u_free, self.u_min, self.u_max)
        # Before the first measurement the age stays: what is measured then is accepted as it is.
        older = ca.fmin(memory.age, self.ticks) + 1
        unseen = ca.logic_and(memory.age >= UNSEEN, ca.logic_not(measured))
        age = ca.if_else(solved, 1, ca.if_else(unseen, UNSEEN, older))
        return u_free, u_out, ca.vertcat(ca.if_else(solved, u_out, last), load, own, age)

    def _scalar_step(self, *given: ca.MX) -> tuple[ca.MX, ca.MX, ca.MX]:
        """Return what `step` does of matrices."""
        names = ("memory", "offered", "measured", "solved", "u")
        s = [ca.SX.sym(name, *x.shape) for name, x in zip(names, map(ca.MX, given), strict=True)]
        made = [ca.densify(x) for x in self.step(*s)]
        free, u, memory = ca.Function("safe_output", s, made, {"cse": True}).call([*given])
        return free, u, memory

    def emergency(
        self,
        first: int,
        send: Callable[[ca.SX], ca.SX] | None = None,
    ) -> Emergency:
        """Return the output of ticks of which nothing could be computed.

        Args:
            first: row of z at which this state begins.
            send: from the command of the state to that of the actuators, where they differ.
        """
        z, missed = ca.SX.sym("memory", self.size), ca.SX.sym("missed")
        if self.kind == "safe":
            u, memory_next = self._after(self._split(self._sound(z)), ca.fmax(missed, 1))
        elif self.kind == "hold":
            u = memory_next = clamp(self._sound(z), self.u_min, self.u_max)
        else:
            u, memory_next = ca.SX(ca.DM(self.constant)), z
        outputs = [ca.densify(u if send is None else send(u)), ca.densify(memory_next)]
        names = ["memory", "missed"], ["u", "memory_next"]
        return Emergency(ca.Function("emergency", [z, missed], outputs, *names), first)

    def _after(self, memory: "_Memory[ca.SX]", missed: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return u of the last of `missed` ticks, and the next state: so many times `step`."""
        seen, last = memory.age < UNSEEN, memory.last
        begin = ca.fmin(memory.age, self.ticks + 1)
        age = ca.fmin(begin + missed - 1, self.ticks + 1)  # of the last tick
        expired = seen * ca.fmax(begin + missed - 1 - self.ticks, 0)
        fades = ca.exp(-damping_rate(self.period) * self.period * expired)
        own = memory.own * ca.if_else(ca.DM(self.motors), fades, 1)
        is_young = ca.logic_and(seen, age <= self.ticks)
        u = clamp(ca.if_else(is_young, last, memory.load + own), self.u_min, self.u_max)
        age_next = ca.if_else(seen, ca.fmin(age, self.ticks) + 1, UNSEEN)
        return u, ca.vertcat(last, memory.load, own, age_next)

    def _sound(self, z: Sym) -> Sym:
        """Return the state, the initial one where it is not finite or its age is below 1."""
        is_sound = _is_finite(z)
        if self.kind == "safe":
            is_sound = ca.logic_and(is_sound, z[self.size - 1] >= 1)
        return ca.if_else(is_sound, z, ca.DM(self.z0))

    def _split(self, z: Sym) -> "_Memory[Sym]":
        return _Memory(*ca.vertsplit(z, np.cumsum([0, self.nu, self.nu, self.nu, 1]).tolist()))

    def _holding(
        self, memory: "_Memory[Sym]", offered: Sym, measured: Sym, solved: Sym
    ) -> tuple[Sym, Sym]:
        """Return load and own of this tick."""
        expired = ca.logic_and(memory.age > self.ticks, memory.age < UNSEEN)
        follows = ca.logic_or(solved, ca.logic_not(expired))
        load = ca.if_else(measured, offered[: self.nu, 0], memory.load)
        fades = ca.if_else(expired, np.exp(-damping_rate(self.period) * self.period), 1.0)
        own = []
        for i in range(self.nu):
            is_motor = bool(self.motors[i])
            takes = measured if is_motor else ca.logic_and(measured, follows)
            kept = fades * memory.own[i] if is_motor else memory.own[i]
            own.append(ca.if_else(takes, offered[self.nu + i], kept))
        return load, ca.vertcat(*own)


def finite_start(start: ca.DM) -> Array:
    """Return load and own (2 nu,), zero where the initial pose gives none."""
    column = np.asarray(start.full()).ravel()
    return np.where(np.isfinite(column), column, 0.0)


def _is_finite(column: Sym) -> Sym:
    """Return whether all entries are finite, whatever their units."""
    return ca.sum1(ca.fabs(column)) <= LARGEST_CONTROL


class _Memory(NamedTuple, Generic[Sym]):
    """The parts of the state."""

    last: Sym
    load: Sym
    own: Sym
    age: Sym
