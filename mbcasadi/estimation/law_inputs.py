"""Where the inputs of an estimator, its observers and its law come from, in one law of all.

What one of them gives, another takes by its name: q and v of the estimator, the law's mask and the
last u. All else is measured or given from outside.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller, Signal
from mbcasadi.description.controller import INPUTS
from mbcasadi.description.safe_command import safe_command
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.estimator import Estimator, in_order, require_same_period
from mbcasadi.estimation.memory import Memory
from mbcasadi.system.coordinates import unitless_signal

Array = NDArray[np.float64]

STATE = ("q", "v")
PROBABILITY, SCHEDULE, FORCES, MEASURED_FORCES = "probability", "schedule", "f", "f_measured"
OWN = ("z_next", "status", "flags")
"""Outputs of an observer that stay inside."""


@dataclass(frozen=True)
class LawInputs:
    """Who gives what; see `with_estimator`.

    Attributes:
        law, estimator, observers: the parts.
        delay: ticks from u to the moment at which it acts.
        renamed: names in the whole of inputs that the estimator calls otherwise.
    """

    law: Controller
    estimator: Estimator
    observers: tuple[ca.Function, ...]
    delay: int
    renamed: dict[str, str]

    @cached_property
    def found(self) -> tuple[str, ...]:
        """What estimator and observers give that is no memory."""
        given = [name for name in self.estimator.function.name_out() if name not in OWN]
        for observer in self.observers:
            given += [name for name in observer.name_out() if name not in OWN]
        return tuple(dict.fromkeys(given))

    def source_of(self, name: str) -> str:
        """Return the output of estimator or observers that an input of the law is, or ""."""
        name = FORCES if name == MEASURED_FORCES else name
        return name if name in (*STATE, *self._of_law) and name in self.found else ""

    @cached_property
    def _of_law(self) -> tuple[str, ...]:
        names = [FORCES if n == MEASURED_FORCES else n for n in self.law.function.name_in()]
        return tuple(name for name in names if name not in ("residual", "covariance", *INPUTS))

    @property
    def supplied(self) -> tuple[str, ...]:
        """Inputs of the law that come from inside."""
        return tuple(name for name in self.law.function.name_in() if self.source_of(name))

    @cached_property
    def signals(self) -> tuple[Signal, ...]:
        """Inputs of the whole: what is measured first, then those of `INPUTS`; z last."""
        inside = {"z", "u", *(("mask",) if self.takes_mask else ())}
        signals = [
            Signal(self.renamed.get(s.name, s.name), s.components, s.units)
            for s in self.estimator.inputs
            if s.name not in inside
        ]
        for observer in self.observers:
            known = {*STATE, *self.found, *inside, SCHEDULE}
            signals += [
                nameless(name, observer.numel_in(name))
                for name in observer.name_in()
                if name not in known
            ]
        signals += [s for s in self.of_law.values() if s.name not in ("z", *self.supplied)]
        joined: dict[str, Signal] = {}
        for signal in signals:
            name = signal.name
            first = joined.setdefault(name, signal)
            if len(first.components) != len(signal.components):
                raise ProblemError(
                    f"estimator and law both take {name!r}, of {len(first.components)} and of "
                    f"{len(signal.components)} numbers; expected the same"
                )
            if not any(first.components):
                joined[name] = signal
        state = unitless_signal("z", (*self.memory.components, *self._law_state))
        return in_order((*joined.values(), state))

    @cached_property
    def of_law(self) -> dict[str, Signal]:
        """Inputs of the law by name, with a component for each entry."""
        given, f = {s.name: s for s in self.law.inputs}, self.law.function
        own = {name: nameless(name, f.numel_in(name)) for name in f.name_in()}
        return own | {name: s for name, s in given.items() if s.components}

    @property
    def _law_state(self) -> tuple[str, ...]:
        return self.of_law["z"].components if "z" in self.of_law else ()

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of entries of each input of the whole."""
        return {signal.name: len(signal.components) for signal in self.signals}

    @property
    def takes_mask(self) -> bool:
        """Whether the estimator's mask is that of the law's contacts, or their probability."""
        probable = any(PROBABILITY in each.name_out() for each in self.observers)
        return probable or bool(self.law.contacts)

    @cached_property
    def stands(self) -> tuple[int, ...]:
        """Place in the law's mask of each contact of the estimator; -1 for one without."""
        signal = next((s for s in self.estimator.inputs if s.name == "mask"), None)
        frames = [contact.frame for contact in self.law.contacts]
        names = () if signal is None or not self.takes_mask else signal.components
        return tuple(frames.index(name) if name in frames else -1 for name in names)

    @cached_property
    def memory(self) -> Memory:
        """What is remembered beside the states of the law."""
        nu = self.law.u_min.size
        sizes = {"estimate": self.estimator.z0.size}
        for k, observer in enumerate(self.observers):
            sizes[f"observer{k}_"] = observer.numel_in("z") if "z" in observer.name_in() else 0
        return Memory(sizes | {"stands": len(self.stands), "u": nu * (1 + self.delay), "unsure": 1})

    @cached_property
    def z0(self) -> Array:
        """(nz,) the first memory, that of the law behind."""
        rests = np.tile(safe_command(self.law), 1 + self.delay)
        observers = sum(n for name, n in self.memory.sizes.items() if name.startswith("observer"))
        parts = [self.estimator.z0, np.zeros(observers), np.ones(len(self.stands)), rests, [0.0]]
        return np.concatenate([*parts, self.law.z0])


def require_fit(inputs: LawInputs) -> None:
    """Raise `ProblemError` where law, estimator and observers do not fit together."""
    law, estimator = inputs.law, inputs.estimator
    if not set(STATE) & set(law.function.name_in()):
        raise ProblemError(
            f"law {law.name!r} takes {', '.join(law.function.name_in())}; expected one of q and v, "
            "which an estimator gives"
        )
    require_same_period(estimator, law.period)
    of_estimator = {s.name: s.components for s in estimator.outputs}
    for signal in inputs.of_law.values():
        given, named = of_estimator.get(signal.name, ()), any(signal.components)
        differs = given != signal.components if named else len(given) != len(signal.components)
        if signal.name in STATE and differs:
            raise ProblemError(
                f"the estimator gives {signal.name} of {len(given)} coordinates, "
                f"{_few(given)}, law {law.name!r} takes {len(signal.components)}, "
                f"{_few(signal.components)}; expected those of one model"
            )
    _require_observers(inputs)
    _require_parameters(law, estimator)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + ("…" if len(names) > 3 else "")


def _require_observers(inputs: LawInputs) -> None:
    contacts = len(inputs.law.contacts)
    for observer in inputs.observers:
        if "mask" in observer.name_in():
            raise ProblemError(
                f"observer {observer.name()!r} takes a mask of the system's rows; expected one of "
                "a system without"
            )
        for name, size in ((SCHEDULE, contacts), ("u", inputs.law.u_min.size)):
            if name in observer.name_in() and observer.numel_in(name) != size:
                raise ProblemError(
                    f"observer {observer.name()!r} takes {name} of {observer.numel_in(name)} "
                    f"numbers, law {inputs.law.name!r} has {size}; expected the same"
                )
        if PROBABILITY in observer.name_out() and observer.numel_out(PROBABILITY) != contacts:
            raise ProblemError(
                f"observer {observer.name()!r} gives the probability of "
                f"{observer.numel_out(PROBABILITY)} contacts, law {inputs.law.name!r} has "
                f"{contacts}; expected the same"
            )
    taken = next((len(s.components) for s in inputs.estimator.inputs if s.name == "u"), None)
    if taken is not None and taken != inputs.law.u_min.size:
        raise ProblemError(
            f"the estimator takes u of {taken} controls, law {inputs.law.name!r} has "
            f"{inputs.law.u_min.size}; expected those of one model"
        )


def _require_parameters(law: Controller, estimator: Estimator) -> None:
    names = {
        kind: signal.components
        for kind, signals in (("law", law.inputs), ("estimator", estimator.inputs))
        for signal in signals
        if signal.name == "p"
    }
    if len(names) == 2 and names["law"] != names["estimator"]:
        raise ProblemError(
            f"law {law.name!r} has the physical parameters {_few(names['law'])}, the estimator "
            f"{_few(names['estimator'])}; expected the same in both"
        )


def symbols_of(sizes: dict[str, int], names: Iterable[str]) -> dict[str, ca.MX]:
    """Return MX symbols of these names."""
    return {name: ca.MX.sym(name, sizes[name]) for name in names}


def nameless(name: str, size: int) -> Signal:
    """Return a signal of entries without names."""
    return Signal(name, ("",) * size, ("",) * size)
