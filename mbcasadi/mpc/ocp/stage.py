"""One stage of an optimal control problem: its symbols, and Functions of (x, u, p) made of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.signals import deviations
from mbcasadi.control.regulators.feedback import setpoint_slots
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description.controller import defaults_of
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.mpc.ocp.problem import STEP, Array
from mbcasadi.mpc.ocp.stage_tuning import TUNING, StageTuning
from mbcasadi.shapes import require_shape, require_whole
from mbcasadi.system import System
from mbcasadi.system.coordinates import coordinates, rates
from mbcasadi.system.end_of_step import EndOfStep
from mbcasadi.system.over_steps import actuator_change


@dataclass(frozen=True)
class StageSymbols:
    """Symbols of costs and constraints.

    Attributes:
        q, v, u: (nq, 1), (nv, 1), (nu, 1) symbols.
        parameters: own ones by name; each becomes a slice of p.
        mask, t: activity (nc, 1) of the system's rows at this sample, and its time, s, where the
            system has them; else of size 0. They are the slices `mask` and `t` of p.
        physical: (np, 1) the system's parameters, the slice `physical` of p; else of size 0.
        a, lam: (nv, 1), (nc, 1) acceleration and multipliers under u; not at the last sample.
    """

    q: ca.SX
    v: ca.SX
    u: ca.SX
    parameters: Mapping[str, ca.SX] = field(default_factory=dict)
    mask: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    t: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    physical: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    a: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    lam: ca.SX = field(default_factory=lambda: ca.SX(0, 1))

    @property
    def carried_q(self) -> ca.SX:
        """Q with the system's parameters behind it, for members of `system.carried`."""
        return ca.vertcat(self.q, self.physical)


@checked
def stage_symbols(system: System, **parameters: int) -> StageSymbols:
    """Return symbols for costs and constraints; `parameters` are own ones by size.

    Raises:
        ProblemError: an own parameter has the name of a slice that the system has: mask, t,
            physical.
    """
    own_of_system = {"mask": system.mask is not None, "t": system.timed}
    own_of_system["physical"] = len(system.parameters) > 0
    for name, size in parameters.items():
        require_whole(0, **{f"size of {name}": size})
        if own_of_system.get(name):
            raise ProblemError(
                f"parameter {name!r}: '{system.name}' has a {name} of its own at each sample; use "
                f"the symbol stage_symbols(system).{name}, or another name"
            )
    symbols = {name: ca.SX.sym(name, size) for name, size in parameters.items()}
    return StageSymbols(
        q=ca.SX.sym("q", system.nq),
        v=ca.SX.sym("v", system.nv),
        u=ca.SX.sym("u", system.nu),
        parameters=symbols,
        mask=ca.SX.sym("mask", 0 if system.mask is None else system.nc),
        t=ca.SX.sym("t", int(system.timed)),
        physical=ca.SX.sym("physical", len(system.parameters)),
        a=ca.SX.sym("a", system.nv),
        lam=ca.SX.sym("lam", system.nc),
    )


OF_SYSTEM = ("physical", "t", "mask")
"""Slices of p that a step of the system takes, in its order."""

DISTURBANCE = "disturbance"
"""Slice of p behind them and `STEP`, of a problem with the part `Disturbance`."""


class StageMotion(NamedTuple):
    """How a sample leads to the next one.

    Fields: `function` makes (q, v, u, [t], [mask], [step], [d]) → (a, lam); `at_end` is what it
    adds over a step, `disturbed` whether it has the input d. `period` is the length of an interval,
    s; where p has its own for each, `given`, the nominal one of the first.
    """

    function: Callable[[], ca.Function] | None = None
    at_end: EndOfStep | None = None
    disturbed: bool = False
    period: float = 1.0
    given: bool = False


NO_MOTION = StageMotion()


class Stage:
    """Symbols and parameters of one stage of a system.

    x holds the last control where `has_rates`; `further` are unknowns behind u. `system` has the
    model's numbers for its parameters; `members` are those of the system that carries its
    parameters behind q, of `variables.carried_q`. Parts take what is tunable from `tuning`;
    `close_tuning` makes a slice of p of it.
    """

    def __init__(
        self,
        system: System,
        slots: tuple[Slot, ...],
        variables: StageSymbols,
        has_rates: bool = False,
        further: Sequence[str] = (),
        motion: StageMotion = NO_MOTION,
        tunable: Sequence[str] = (),
    ) -> None:
        self.tuning = StageTuning(tunable)
        self.system, self.slots, self.variables = system.at(), slots, variables
        self.members, self.motion = system.carried, motion
        self.further = ca.SX.sym("further", len(further))
        self.further_names = tuple(further)
        self.u_last = ca.SX.sym("u_last", system.nu if has_rates else 0)
        symbols = dict(variables.parameters)
        own = {name: getattr(variables, name) for name in OF_SYSTEM}
        symbols |= {name: symbol for name, symbol in own.items() if symbol.numel()}
        self.ref = {
            slot.name: symbols.get(slot.name, ca.SX.sym(slot.name, slot.size)) for slot in slots
        }

    def close_tuning(self) -> None:
        """Append the slice of the tuning to p, when all parts have taken theirs."""
        self.slots += self.tuning.slots
        if self.tuning.entries:
            self.ref[TUNING] = ca.vertcat(*self.tuning.symbols.values())

    @property
    def step(self) -> ca.SX | float:
        """Length of the interval, s."""
        return self.ref[STEP] if self.motion.given else self.motion.period

    @property
    def length(self) -> ca.SX | float:
        """Length of the interval over the nominal one of the first."""
        return self.ref[STEP] / self.motion.period if self.motion.given else 1.0

    @property
    def x(self) -> ca.SX:
        """(nx,) the state."""
        return ca.vertcat(self.variables.q, self.variables.v, self.u_last)

    def function(
        self, name: str, output: str, expressions: Sequence[ca.SX], *, last: bool = False
    ) -> ca.Function:
        """Return (x, [u], p) → (output).

        Args:
            name: of the Function.
            output: name of its output.
            expressions: expressions, stacked into one column.
            last: whether it is of the last sample, without u.

        Raises:
            ShapeError: an expression depends on other symbols.
        """
        for each in expressions:
            require_shape(f"a part of {name}", each, (each.numel(), 1), "a column")
        if not last and self.motion.function is not None and self.needs_motion(expressions):
            return self._with_motion(name, output, expressions)
        x = self.x
        p = ca.vertcat(ca.SX(0, 1), *self.ref.values())
        unknowns = ca.vertcat(self.variables.u, self.further)
        inputs = {"x": x, "p": p} if last else {"x": x, "u": unknowns, "p": p}
        value = ca.densify(ca.vertcat(ca.SX(0, 1), *expressions))
        function = ca.Function(
            name, [*inputs.values()], [value], [*inputs], [output], {"allow_free": True}
        )
        if function.has_free():
            raise ShapeError(
                f"{name} depends on {', '.join(function.get_free())}; expected an expression of "
                f"the given symbols {'q, v' if last else 'q, v, u'} and own parameters"
            )
        return function

    def change_of_actuators(self) -> tuple[ca.SX, ca.SX]:
        """Return how the forces of actuators change over a step, (nu,), and on joints, (nv,)."""
        system, at = self.members, self.variables
        if self.motion.at_end is None:
            return ca.SX(system.nu, 1), ca.SX(system.nv, 1)
        return actuator_change(system, at.carried_q, (at.v, at.a), self.step)

    def inertia(self) -> ca.SX:
        """Return the inertia (nv, nv), with what springs and servos add to it over a step."""
        q, v = self.variables.carried_q, self.variables.v
        M = ca.SX(self.members.mass_matrix(q))
        at_end, step = self.motion.at_end, self.ref.get(STEP)
        return ca.densify(M if at_end is None else M + at_end.inertia(q, v, step))

    def needs_motion(self, expressions: Sequence[ca.SX]) -> bool:
        """Return whether expressions are of accelerations or multipliers."""
        motion = ca.vertcat(self.variables.a, self.variables.lam)
        return bool(ca.depends_on(ca.vertcat(ca.SX(0, 1), *expressions), motion))

    def of_motion(self, name: str, output: str, expressions: Sequence[ca.SX]) -> ca.Function:
        """Return (x, u, p, a, lam) → (output), where motion is given."""
        x, at, p = self.x, self.variables, ca.vertcat(ca.SX(0, 1), *self.ref.values())
        inputs = {"x": x, "u": ca.vertcat(at.u, self.further), "p": p, "a": at.a, "lam": at.lam}
        value = ca.densify(ca.vertcat(ca.SX(0, 1), *expressions))
        return ca.Function(name, [*inputs.values()], [value], [*inputs], [output])

    def _with_motion(self, name: str, output: str, expressions: Sequence[ca.SX]) -> ca.Function:
        """Return (x, u, p) → (output), the motion computed by implicit rules."""
        assert self.motion.function is not None
        of_motion, motion = self.of_motion(name, output, expressions), self.motion.function()
        x, u, p = (ca.MX.sym(key, of_motion.size1_in(key)) for key in ("x", "u", "p"))
        a, lam = motion.call([*self.motion_inputs(x, u, p, motion)])
        value = of_motion(x, u, p, a, lam)
        return ca.Function(name, [x, u, p], [value], ["x", "u", "p"], [output])

    def motion_inputs(self, x: ca.MX, u: ca.MX, p: ca.MX, motion: ca.Function) -> list[ca.MX]:
        """Return the inputs of (q, v, u, [p], [t], [mask], [step], [d]) at a sample."""
        nq, nv, places = self.system.nq, self.system.nv, slot_slices(self.slots)
        named = {"physical": "p", DISTURBANCE: "d"}
        given = {named.get(name, name): p[place, 0] for name, place in places.items()}
        given |= {"q": x[:nq, 0], "v": x[nq : nq + nv, 0], "u": u[: self.system.nu, 0]}
        return [given[name] for name in motion.name_in()]

    def dynamics(self, step: ca.Function) -> ca.Function:
        """Return the dynamics with the p of the problem."""
        nx, n_last = step.size1_in("x"), self.u_last.numel()
        x, u = ca.MX.sym("x", nx + n_last), ca.MX.sym("u", step.size1_in("u"))
        places = slot_slices(self.slots)
        p = ca.MX.sym("p", sum(slot.size for slot in self.slots))
        further = {STEP: self.motion.given, DISTURBANCE: self.motion.disturbed}
        taken = [*OF_SYSTEM, *(key for key, is_input in further.items() if is_input)]
        inputs = [p[places[key]] for key in taken if key in places]
        x_next = step(x[:nx], u, ca.vertcat(ca.MX(0, 1), *inputs))
        x_next = ca.vertcat(x_next, u) if n_last else x_next
        return ca.Function("dynamics", [x, u, p], [x_next], ["x", "u", "p"], ["x_next"])

    def dynamics_by(self, a: ca.SX) -> ca.Function:
        """Return the dynamics of a constant acceleration: `v + h a`, `q ⊕ (h v + ½ h² a)`."""
        q, v, u, h = self.variables.q, self.variables.v, self.variables.u, self.step
        q_next = self.system.integrate(q, h * v + h**2 / 2 * a)
        x_next = [q_next, v + h * a, *([u] if self.u_last.numel() else [])]
        return self.function("dynamics", "x_next", [ca.vertcat(*x_next)])

    def state(self) -> ca.Function:
        """Return (q, v, [u_last]) → (x)."""
        q, v = ca.SX.sym("q", self.system.nq), ca.SX.sym("v", self.system.nv)
        inputs = {"q": q, "v": v} | ({"u_last": self.u_last} if self.u_last.numel() else {})
        x = ca.vertcat(*inputs.values())
        return ca.Function("state", [*inputs.values()], [x], [*inputs], ["x"])

    def rest(self) -> Array:
        """Return x at rest in the initial pose, without control before."""
        tree = self.system.tree
        q = np.zeros(self.system.nq) if tree is None else np.ravel(tree.q0)
        return np.concatenate([q, np.zeros(self.system.nv + self.u_last.numel())])

    def tracking(self) -> ca.Function | None:
        """Return (q, p) → (target, error = target ⊖ q), or None without a setpoint.

        Where q holds quaternions the target is written as a tangent step from the initial pose.
        """
        if "setpoint.q" not in self.ref:
            return None
        system, q = self.system, ca.SX.sym("q", self.system.nq)
        p, desired = ca.vertcat(*self.ref.values()), self.ref["setpoint.q"]
        q_0 = ca.DM(self.rest()[: system.nq])
        target = desired if system.nq == system.nv else system.difference(q_0, desired)
        outputs = [target, system.difference(q, desired)]
        return ca.Function("tracking", [q, p], outputs, ["q", "p"], ["target", "error"])

    def labels(self) -> dict[str, tuple[str, ...]]:
        """Return names and units of the rows of x and of the setpoint's error, and names of u."""
        system, last = self.system, self.system.actuator_names[: self.u_last.numel()]
        q, v = coordinates(system), rates(system)
        x = [f"q.{name}" for name in q.components]
        x += [f"v.{name}" for name in v.components]
        x += [f"u_last.{name}" for name in last]
        units = (*q.units, *v.units, *("" for _ in last))
        tracked = [*zip(*deviations(system), strict=True)] or [(), ()]
        return {
            "x": tuple(x),
            "x_units": units,
            "u": (*system.actuator_names, *self.further_names),
            "tracked": tracked[0],
            "tracked_units": tracked[1],
        }

    def nominal(self, times: Array, own: Mapping[str, Array]) -> Array:
        """Return p: rest in the initial pose, time of each sample, the system's own mask.

        Args:
            times: (N + 1,) of the samples, s.
            own: slices of parts, by name.
        """
        system, places = self.system, slot_slices(self.slots)
        p = np.zeros((times.size, sum(slot.size for slot in self.slots)))
        if "setpoint.q" in places and system.tree is not None:
            p[:, places["setpoint.q"]] = np.ravel(system.tree.q0)
        if "t" in places:
            p[:, places["t"]] = times[:, None]
        if self.motion.given:
            lengths = np.diff(times)
            p[:, places[STEP]] = np.append(lengths, lengths[-1])[:, None]
        if system.mask is not None:
            p[:, places["mask"]] = system.mask
        for name, value in own.items():
            p[:, places[name]] = value
        if TUNING in places:
            p[:, places[TUNING]] = defaults_of(self.tuning.entries)
        if "physical" in places:
            p[:, places["physical"]] = self.members.parameters.values
        return p


def slots_of(
    system: System, has_setpoint: bool, of_parts: Sequence[Slot], variables: StageSymbols
) -> tuple[Slot, ...]:
    """Return the slices of p: setpoint, parts, own and physical parameters, t, mask.

    Args:
        system: the mechanism.
        has_setpoint: whether there is a setpoint of q, v and u.
        of_parts: slices that parts read.
        variables: symbols with own parameters.

    Raises:
        ProblemError: two slices have one name.
    """
    slots = [*(setpoint_slots(system) if has_setpoint else ())]
    slots += of_parts
    slots += [
        Slot(name, tuple(f"{i}" for i in range(symbol.numel())), ("",) * symbol.numel())
        for name, symbol in variables.parameters.items()
    ]
    if system.parameters:
        signal = system.parameters.signal
        slots.append(Slot("physical", signal.components, signal.units))
    slots += [Slot("t", ("t",), ("s",))] if system.timed else []
    if system.mask is not None:
        rows = tuple(f"{i}.{row}" for i, row in enumerate(system.constraint_names))
        slots += [Slot("mask", rows, ("",) * system.nc)]
    names = [slot.name for slot in slots]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ProblemError(
            f"two slices of the parameters are named {twice!r}; give the task or the own parameter "
            "another name"
        )
    return tuple(slots)
