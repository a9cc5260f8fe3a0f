"""What an export of two rates is made of: four laws in C, and the signals of `plan` and `tick`."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen.c_interface import DIGITS, STATES, CLaw, Port, find_port
from mbcasadi.codegen.common_functions import CommonFunctions
from mbcasadi.codegen.law_of_controller import law_from_controller, law_from_function
from mbcasadi.codegen.names import require_export_name
from mbcasadi.codegen.two_rates.watch import Watch
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.description.two_rates import TwoRates
from mbcasadi.errors import ExportError
from mbcasadi.shapes import column, require_positive, require_whole

Array = NDArray[np.float64]

PLAN, AGE, TIME, REFERENCE = "plan", "age", "t", "ref"
OPTIONAL = ("ref", "tuning", "p", "mask")
"""Inputs that mean something else in a plan and in a tick; all others are the same in both."""

PARTS = ("plan", "law", "references", "follow")
"""The laws of which there is C, by their names behind that of the export."""

FUNCTIONS = "functions"
"""End of the name of the C file with the Functions of all laws."""

FIRST = "first_"
"""Prefix of outputs of `references` that have the name of one of its inputs and go to the plan."""

SAME_PERIOD = 1e-6
"""Share by which the plan's period may differ from a multiple of the law's."""


@dataclass(frozen=True)
class Interface:
    """What the C of two rates needs to know.

    Attributes:
        name: prefix of every C symbol.
        plan, law, references, follow: the laws.
        plan_inputs, tick_inputs: of the two functions that the user calls.
        u0, z0: as in `TwoRates`.
        every, delay: as there.
        latest: age at which a plan is left, s.
        watch: the supervision; None where there is none.
    """

    name: str
    plan: CLaw
    law: CLaw
    references: CLaw
    follow: CLaw
    plan_inputs: tuple[Port, ...]
    tick_inputs: tuple[Port, ...]
    u0: Array
    z0: Array
    every: int
    delay: int
    latest: float
    watch: Watch | None = None

    @property
    def parts(self) -> dict[str, CLaw]:
        """The laws, by their names behind that of the export."""
        return {name: getattr(self, name) for name in PARTS}

    @property
    def common(self) -> CommonFunctions:
        """The Functions of the laws."""
        assert self.plan.common is not None
        return self.plan.common

    @property
    def plan_outputs(self) -> tuple[Port, ...]:
        """Outputs of the function that plans."""
        return without(self.plan.outputs, STATES)

    @property
    def tick_outputs(self) -> tuple[Port, ...]:
        """Outputs of a tick: those of the law, and the age of the plan that it follows."""
        age = Port(AGE, ca.Sparsity.dense(1), (AGE,), ("s",))
        return (*without(self.law.outputs, STATES), age)

    @property
    def returned(self) -> tuple[Port, ...]:
        """Outputs of a tick that the next plan takes."""
        return _returned(self.references, self.law)

    @property
    def periods(self) -> tuple[float, float]:
        """Of the plan and of the law, s."""
        assert self.plan.period is not None
        assert self.law.period is not None
        return self.plan.period, self.law.period

    @property
    def signature(self) -> str:
        """Hash of what callers rely on: names, sizes and units of the signals, periods."""
        sides = (self.plan_inputs, self.plan_outputs, self.tick_inputs, self.tick_outputs)
        signals = [[(p.name, p.size, p.components, p.units) for p in side] for side in sides]
        key = [self.name, self.periods, self.delay, signals]
        text = json.dumps(key + ["supervised"] * (self.watch is not None), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def without(ports: Iterable[Port], names: Iterable[str]) -> tuple[Port, ...]:
    """Return the ports of other names."""
    return tuple(port for port in ports if port.name not in names)


def interface_of(parts: TwoRates, name: str | None, latest: float | None) -> Interface:
    """Return the laws under their names in C, after checking that they fit together.

    Raises:
        ExportError: illegal name, signals, sizes or periods that do not fit, a plan whose length
            is not known where there is no `latest`.
        ShapeError: a wrong size of u0 or z0.
        ProblemError: a `latest` that is not positive, `every` or `delay` that are no counts.
    """
    plan, law = controller_of(parts.plan), controller_of(parts.law)
    symbol = require_export_name(plan.name.removesuffix("_plan") if name is None else name)
    require_whole(1, every=parts.every)
    require_whole(0, delay=parts.delay)
    if abs(law.period * parts.every - plan.period) > SAME_PERIOD * plan.period:
        raise ExportError(
            f"the plan's period is {plan.period:g} s, {parts.every} of the law's are "
            f"{law.period * parts.every:g} s; expected the same"
        )
    laws = {
        "plan": law_from_controller(plan, f"{symbol}_plan", "mbcasadi"),
        "law": law_from_controller(law, f"{symbol}_law", "mbcasadi"),
        "references": law_from_function(parts.references, f"{symbol}_references"),
        "follow": law_from_function(parts.follow, f"{symbol}_follow"),
    }
    _require_signals(laws)
    generated = tuple(function for law in laws.values() for function in law.generated)
    common = CommonFunctions(f"{symbol}_{FUNCTIONS}", generated)
    laws = {key: replace(law, common=common) for key, law in laws.items()}
    asked = without(laws["references"].outputs, STATES)
    followed = laws["follow"].outputs
    learned = [port.name for port in _returned(laws["references"], laws["law"])]
    of_plan = (
        *laws["references"].inputs,
        *without(laws["plan"].inputs, [asked_name(port) for port in asked]),
    )
    of_tick = (*without(laws["law"].inputs, _names(followed)), *laws["follow"].inputs)
    _joined(without((*of_plan, *of_tick), (*OPTIONAL, *STATES, PLAN, AGE)))
    return Interface(
        name=symbol,
        plan=laws["plan"],
        law=laws["law"],
        references=laws["references"],
        follow=laws["follow"],
        plan_inputs=_joined(without(of_plan, (*STATES, PLAN, AGE, *learned))),
        tick_inputs=_joined(without(of_tick, (*STATES, PLAN, AGE))),
        u0=column("u0", parts.u0, _of(laws["plan"].outputs, PLAN).size),
        z0=column("z0", parts.z0, _state_size(laws["references"])),
        every=int(parts.every),
        delay=int(parts.delay),
        latest=_latest(plan, latest),
    )


def _returned(references: CLaw, law: CLaw) -> tuple[Port, ...]:
    """Return the inputs of `references` that the law gives."""
    return tuple(port for port in references.inputs if find_port(law.outputs, port.name))


def controller_of(law: Controller | HasController) -> Controller:
    """Return the data of a law."""
    return law if isinstance(law, Controller) else law.controller


def _names(ports: Iterable[Port]) -> list[str]:
    return [port.name for port in ports]


def asked_name(port: Port) -> str:
    """Return the name of the plan's input that an output of `references` is."""
    return port.name.removeprefix(FIRST)


def _of(ports: tuple[Port, ...], name: str) -> Port:
    port = find_port(ports, name)
    assert port is not None
    return port


def _state_size(references: CLaw) -> int:
    port = find_port(references.inputs, STATES[0])
    return 0 if port is None else port.size


def _require_signals(laws: Mapping[str, CLaw]) -> None:
    """Raise `ExportError` where the laws do not fit together."""
    for name, law in laws.items():
        sparse = next((p.name for p in law.signals if not p.sparsity.is_dense()), None)
        if sparse is not None:
            raise ExportError(f"{sparse!r} of `{name}` has structural zeros; expected it dense")
    if find_port(laws["plan"].outputs, PLAN) is None:
        raise ExportError("the slow law has no output `plan`; expected one, as `follow` takes it")
    for source, target, hidden in (
        ("references", "plan", STATES),
        ("follow", "law", ()),
        ("plan", "follow", ("u", "status", "flags", "residual", *STATES)),
    ):
        of_source = without(laws[source].outputs, hidden)
        expected = {p.name: p.size for p in laws[target].inputs if p.name not in STATES}
        for port in of_source:
            name = asked_name(port) if source == "references" else port.name
            if expected.get(name) != port.size:
                raise ExportError(
                    f"`{source}` gives {port.name!r} of size {port.size}, `{target}` takes "
                    f"{expected}; expected one of these"
                )
    for name in ("plan", "law"):
        if find_port(laws[name].outputs, "status") is None:
            raise ExportError(f"`{name}` has no output `status`; expected one")
    state, then = (find_port(p, s) for p, s in zip(_sides(laws), STATES, strict=True))
    if (state.size if state else 0) != (then.size if then else 0):
        raise ExportError("`references` has other sizes of z and z_next; expected the same")


def _sides(laws: Mapping[str, CLaw]) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    return laws["references"].inputs, laws["references"].outputs


def _joined(ports: tuple[Port, ...]) -> tuple[Port, ...]:
    """Return each port once, and the time.

    Raises:
        ExportError: two of one name and different sizes.
    """
    found: dict[str, Port] = {}
    for port in (*ports, Port(TIME, ca.Sparsity.dense(1), (TIME,), ("s",))):
        first = found.setdefault(port.name, port)
        if first.size != port.size:
            raise ExportError(
                f"two inputs {port.name!r} have sizes {first.size} and {port.size}; expected one"
            )
        if port.components and not first.components:
            found[port.name] = port
    time = found.pop(TIME)
    return (*found.values(), time)


def _latest(plan: Controller, latest: float | None) -> float:
    """Return the age at which a plan is left, s."""
    if latest is not None:
        require_positive(latest=latest)
        return float(latest)
    if plan.prediction is None:
        raise ExportError(
            f"the length of the plans of {plan.name!r} is not known; expected latest=, the age in "
            "s at which a plan is left"
        )
    return float(plan.prediction.size2_out(1)) * plan.period
