"""A law whose references, numbers or contacts come from a policy, as one law."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.tick.behind_front import BehindFront, Symbols, slices_of
from mbcasadi.description import Controller, Signal
from mbcasadi.description.controller import INPUTS, HasController, HasExample
from mbcasadi.errors import ProblemError
from mbcasadi.qp.input_guard import LARGEST_INPUT
from mbcasadi.shapes import require_identifier, require_whole
from mbcasadi.short_text import summarised
from mbcasadi.system.coordinates import unitless_signal

Array = NDArray[np.float64]

COMMANDED = ("ref", "tuning", "mask")
"""Inputs of a law that a policy may give."""
LAW = "law_"
"""Prefix of their names among the outputs of the policy."""
TICK = "policy.tick"


@summarised
@dataclass(frozen=True)
class PolicyLaw:
    """A law behind a policy; `with_policy` makes one.

    Attributes:
        controller: the whole as data: what `export_c` and `validate` take.
        law: the law that the policy commands.
        policy: its Function.
        every: ticks of the law for which an output of the policy is held.
    """

    controller: Controller
    law: Controller | HasController
    policy: ca.Function
    every: int

    @property
    def function(self) -> ca.Function:
        """The whole as one named Function."""
        return self.controller.function

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.controller.name,
            "policy": self.policy.name(),
            "gives": self.policy.name_out(),
            "every": self.every,
        }

    def example_inputs(self) -> dict[str, Array]:
        """Return inputs of the law from which it can run, where it knows any."""
        given = self.law.example_inputs() if isinstance(self.law, HasExample) else {}
        return {n: x for n, x in given.items() if n in self.function.name_in() and n != "z"}


@checked
def with_policy(
    law: Controller | HasController, policy: ca.Function, *, every: int = 1, name: str | None = None
) -> PolicyLaw:
    """Return a law that a policy commands; what the policy gave last is part of z.

    The policy is any Function, a network with its weights for example, of inputs of the law and
    of inputs of its own, by name:

        policy: any of (q, v, act, t, f_measured, ref, tuning, mask, command, …)
            → some of (law_ref, law_tuning, law_mask)

    What it gives takes the whole place of that input of the law: both together keep an input `ref`
    only where the policy reads it, to add to it for example. Limits, contacts and safe output of
    the law hold whatever the policy gives; numbers that are not finite are bad input.

    Args:
        law: any controller.
        policy: the Function, scalar or not.
        every: ticks of the law for which an output of the policy is held.
        name: a C identifier; that of the law with `_by_policy` by default.

    Raises:
        ProblemError: inputs or outputs that do not fit, all in one message; a law whose first
            phase takes what the policy gives.
    """
    inner = law if isinstance(law, Controller) else law.controller
    symbol = f"{inner.name}_by_policy" if name is None else name
    require_identifier("name", symbol)
    require_whole(1, every=every)
    _require_fit(inner, policy)
    whole = _Whole(inner, policy, every)
    gives = f"{policy.name()} gives {', '.join(whole.sizes)} every {every} ticks"
    data = whole.controller(symbol, {"policy": gives})
    tuning = data.tuning if "tuning" in whole.inputs else ()
    return PolicyLaw(replace(data, tuning=tuning), law, policy, every)


def _require_fit(law: Controller, policy: ca.Function) -> None:
    f, wrong = law.function, list[str]()
    commanded = [LAW + name for name in COMMANDED if name in f.name_in()]
    outputs = policy.name_out()
    if not outputs or not {*outputs} <= {*commanded}:
        wrong.append(
            f"it gives {', '.join(outputs) or 'nothing'}; expected some of "
            f"{', '.join(commanded) or 'nothing: the law takes no commands'}"
        )
    read = {name: policy.numel_in(name) for name in policy.name_in()}
    sizes = read | {name: policy.numel_out(name) for name in outputs}
    of_law = {name: f.numel_in(name.removeprefix(LAW)) for name in commanded}
    of_law |= {name: f.numel_in(name) for name in f.name_in()}
    wrong += [
        f"{name} has {size} numbers, expected {of_law[name]}"
        for name, size in sizes.items()
        if size != of_law.get(name, size)
    ]
    known = {*f.name_in(), *f.name_out()}
    wrong += [
        f"it reads {name}, which is no input of the law; expected another name"
        for name in read
        if name == "z" or (name in {*known, *INPUTS} - {"t"} and name not in f.name_in())
    ]
    prepare = None if law.stages is None else law.stages.prepare
    if prepare is not None and {LAW + name for name in prepare.name_in()} & {*outputs}:
        wrong.append("the law has a first phase, which takes what the policy gives")
    if wrong:
        text = "; ".join(wrong)
        raise ProblemError(f"the policy {policy.name()!r} does not fit {law.name!r}: {text}")


@dataclass(frozen=True)
class _Whole(BehindFront):
    """The law behind the policy."""

    inner: Controller
    policy: ca.Function
    every: int

    @property
    def law(self) -> Controller:
        """The law."""
        return self.inner

    @property
    def first(self) -> Array:
        """Ticks since the policy was asked, and what it gave."""
        return np.zeros(1 + sum(self.sizes.values()))

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of what the policy gives, by name."""
        f = self.policy
        return {name.removeprefix(LAW): f.numel_out(name) for name in f.name_out()}

    @cached_property
    def inputs(self) -> dict[str, Signal]:
        """Signals of the whole, by name, in their order."""
        law, read = {s.name: s for s in self.law.inputs}, self.policy.name_in()
        replaced = {*self.sizes} - {*read}
        own = {name: law[name] for name in self.law.function.name_in() if name not in replaced}
        for name in read:
            size = self.policy.numel_in(name)
            entries = tuple(f"{name}{k}" for k in range(size))
            seconds = Signal("t", ("t",), ("s",))
            own.setdefault(name, seconds if name == "t" else unitless_signal(name, entries))
        state = law["z"].components if "z" in law else ()
        held = [f"policy.{name}{k}" for name, size in self.sizes.items() for k in range(size)]
        own["z"] = unitless_signal("z", (TICK, *held, *state))
        last = {name: own.pop(name) for name in INPUTS if name in own}
        return own | last

    @property
    def output_signals(self) -> tuple[Signal, ...]:
        """Outputs of the whole: those of the law, with a longer state."""
        signals = {s.name: s for s in self.law.outputs}
        return tuple((signals | {"z_next": replace(self.inputs["z"], name="z_next")}).values())

    @property
    def input_signals(self) -> tuple[Signal, ...]:
        """Inputs of the whole."""
        return tuple(self.inputs.values())

    @cached_property
    def front(self) -> ca.Function:
        """(inputs of the policy, z) → (column): what the law is given, then the next memory."""
        s = {name: x for name, x in self.symbols().items() if name in self.policy.name_in()}
        z = ca.MX.sym("z", len(self.inputs["z"].components))
        tick, held = z[0], z[1 : self.first.size]
        asked = self.policy(**{name: s[name] for name in self.policy.name_in()})
        fresh = ca.vertcat(*(ca.densify(ca.vec(asked[LAW + name])) for name in self.sizes))
        holds = ca.logic_and(tick >= 1, tick < self.every)
        value = ca.if_else(ca.logic_and(holds, _is_sound(held)), held, fresh)
        passed = ca.if_else(ca.logic_and(holds, _is_sound(held)), tick + 1, 1)
        sound = _is_sound(value)
        memory = ca.vertcat(ca.if_else(sound, passed, 0), ca.if_else(sound, value, 0))
        column = ca.vertcat(value, memory)
        options = {"never_inline": True}
        return ca.Function(
            "front_of_policy", [*s.values(), z], [column], [*s, "z"], ["column"], options
        )

    def given(self, column: ca.MX) -> Symbols:
        """Return what the policy gives the law."""
        return slices_of(self.sizes, column)

    def joined(self, of_law: Mapping[str, ca.MX], column: ca.MX) -> Symbols:
        """Return the outputs of the whole from those of the law."""
        memory = column[-self.first.size :]
        z_next = ca.vertcat(memory, of_law.get("z_next", ca.MX(0, 1)))
        found = {**of_law, "z_next": z_next}
        return {s.name: ca.densify(found[s.name]) for s in self.output_signals}


def _is_sound(value: ca.MX) -> ca.MX:
    """Return whether all numbers are finite and of a size that laws take."""
    return ca.sum1(ca.fabs(value) <= LARGEST_INPUT) == value.numel()
