"""The safe output around a law's equations: see `control/safe_output/safe_output.py`.

A law consists of a core, its equations behind the guard, and of what it puts out where they give
no command. The core knows nothing of the latter, so another safe output needs no new equations:

    core   (inputs of the law, z of its own states) → `CORE`
    law    (inputs, z = (own states, memory)) → (u, z_next, status, flags, residual)
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import casadi as ca
import numpy as np

from mbcasadi.control.safe_output.safe_output import SafeOutput, finite_start
from mbcasadi.description.status import OUTPUTS
from mbcasadi.linalg.symbols import Sym
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.coordinates import initial_pose, moving_size
from mbcasadi.system.ranges import require_ranges

CORE = (*OUTPUTS, "usable", "accepted", "hold", "no_force", "state")
"""Outputs of a core. u is the command without limits, z_next that of the own states; `usable`:
whether there is a command; `accepted`: whether the measured state is finite and closed; `hold`
(2 nu,): load and own of the `HoldingCommand`; `no_force` (nu,): the control of zero actuator force;
`state`: q, v and ref, finite whatever was measured."""


LEFT_OUT = {"tuning": np.nan, "mask": 1.0}
"""What the Function takes for an input that is left out: bad input, and all on; zeros elsewhere."""


@summarised
@dataclass(frozen=True)
class Core:
    """The equations of a law, and what its safe output needs to know.

    Attributes:
        function: (inputs of the law) → `CORE`, z without the memory.
        safe: the safe output.
        fallback: (q, v, ref) → (u) in place of it, or None.
    """

    function: ca.Function
    safe: SafeOutput
    fallback: ca.Function | None = None

    @property
    def nz(self) -> int:
        """Number of the law's own states."""
        return int(self.function.numel_in("z"))

    def complete(self, name: str) -> ca.Function:
        """Return the law with this core and its safe output."""
        inputs = self.inputs()
        core = dict(zip(CORE, self.function.call(self.own(inputs)), strict=True))
        u, memory = self.step(core, inputs["z"][self.nz :, 0], core["usable"], core["u"])
        outputs = core | {"u": u, "z_next": ca.vertcat(core["z_next"], memory)}
        absent = [LEFT_OUT.get(key, 0.0) for key in inputs]
        options = {"default_in": absent} | ({"cse": True} if self.is_scalar else {})
        return ca.Function(
            name,
            list(inputs.values()),
            [ca.densify(outputs[key]) for key in OUTPUTS],
            list(inputs),
            list(OUTPUTS),
            options,
        )

    @property
    def is_scalar(self) -> bool:
        """Whether the equations are scalars; else they read a table."""
        return bool(self.function.is_a("SXFunction"))

    def inputs(self) -> dict[str, ca.SX]:
        """Return symbols of the law's inputs, z with the memory."""
        f, kind = self.function, ca.SX if self.is_scalar else cast(type[ca.SX], ca.MX)
        sizes = {name: f.numel_in(name) for name in f.name_in()}
        sizes["z"] += self.safe.size
        return {name: kind.sym(name, size) for name, size in sizes.items()}

    def own(self, inputs: Mapping[str, ca.SX]) -> list[ca.SX]:
        """Return the inputs of the core."""
        return [*(dict(inputs) | {"z": inputs["z"][: self.nz, 0]}).values()]

    def step(
        self, core: Mapping[str, ca.SX], memory: ca.SX, solved: ca.SX, u: ca.SX
    ) -> tuple[ca.SX, ca.SX]:
        """Return u within its limits, and the next memory.

        Args:
            core: outputs of the core by name, those behind `residual`.
            memory: of the safe output.
            solved: whether u is a command.
            u: (nu,) the command.
        """
        offered = {"safe": core["hold"], "zero": core["no_force"], "hold": core["hold"][:0, 0]}
        if self.fallback is not None:
            offered["law"] = self.fallback(*_split_state(self.fallback, core["state"]))
        _, limited, memory_next = self.safe.step(
            memory, offered[self.safe.kind], core["accepted"], solved, u
        )
        return limited, memory_next

    def with_safe(self, kind: str, fallback: ca.Function | None) -> "Core":
        """Return the core with a safe output of `FALLBACKS`, or "law" and its Function."""
        f = self.function
        at_nan = f.call([ca.DM.nan(f.numel_in(i), 1) for i in range(f.n_in())])
        core = dict(zip(CORE, at_nan, strict=True))  # at the initial pose at rest
        start = core["hold"]
        if kind == "zero":
            start = ca.vertcat(core["no_force"], ca.DM.zeros(self.safe.nu))
        if fallback is not None:
            command = fallback.call(_split_state(fallback, core["state"]))[0]
            start = ca.vertcat(command, ca.DM.zeros(self.safe.nu))
        safe = replace(self.safe, kind=kind, start=finite_start(start))
        return replace(self, safe=safe, fallback=fallback)


def no_force_at(system: System, q: ca.SX, v: ca.SX, period: float) -> ca.SX:
    """Return the control (nu,) of zero actuator force."""
    model = actuator_model(system, require_ranges(system, None, None), period, q, v, None)
    return ca.densify(model.controls(ca.SX.zeros(system.nu)))


def start_of(system: System, hold: ca.Function) -> ca.DM:
    """Return load and own at the initial pose at rest, of a Function (inputs) → (hold)."""
    pose, p = np.split(initial_pose(system), [moving_size(system)])
    others = {"q": ca.DM(pose), "mask": ca.DM(1.0), "p": ca.DM(p)}
    given = {name: value for name, value in others.items() if name in hold.name_in()}
    return hold(**given)["hold"]


def _split_state(fallback: ca.Function, state: Sym) -> list[Sym]:
    """Return q, v and ref of a Function."""
    ends = np.cumsum([0, *(fallback.numel_in(i) for i in range(3))]).tolist()
    return list(ca.vertsplit(state, ends))


def with_memory(function: ca.Function, own: int, before: int, after: int) -> ca.Function:
    """Return a Function of a law's inputs whose z has a memory of another size.

    The memory has no effect on it; an output `z_next` passes it on.

    Args:
        function: with an input z of own states and memory.
        own: number of own states.
        before, after: sizes of the memory.
    """
    kind = ca.SX if function.is_a("SXFunction") else cast(type[ca.SX], ca.MX)
    inputs = {name: kind.sym(name, function.numel_in(name)) for name in function.name_in()}
    if "z" not in inputs:
        return function
    inputs["z"] = kind.sym("z", own + after)
    state = inputs["z"][:own, 0]
    given = inputs | {"z": ca.vertcat(state, kind.zeros(before))}
    outputs = function.call(list(given.values()))
    names = function.name_out()
    if "z_next" in names:
        place = names.index("z_next")
        outputs[place] = ca.vertcat(outputs[place][:own, 0], inputs["z"][own:, 0])
    options = {"allow_duplicate_io_names": True}
    return ca.Function(function.name(), [*inputs.values()], outputs, [*inputs], names, options)
