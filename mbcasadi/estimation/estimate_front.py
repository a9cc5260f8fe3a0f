"""What runs before a law: estimator and observers, and whether the law may use the estimate.

A counter says for how long not: up while the estimator works without its measurements, down
else. Where it is above the bound the law gets NaN for q and v: bad input, its own safe output.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from mbcasadi.description import Signal
from mbcasadi.description.status import Flag
from mbcasadi.estimation.law_inputs import (
    OWN,
    PROBABILITY,
    SCHEDULE,
    LawInputs,
    nameless,
    symbols_of,
)
from mbcasadi.estimation.memory import Memory
from mbcasadi.qp.input_guard import LARGEST_INPUT
from mbcasadi.system.coordinates import unitless_signal

BLIND, RESTARTED = 3, 4
"""Statuses of an estimator: predicted without its input, started anew."""

GATED, UNSURE = "gated", "unsure"


@dataclass(frozen=True)
class EstimateFront:
    """Estimator and observers in front of a law.

    Attributes:
        inputs: who gives what.
        blind: s without the estimator's input after which the law gets NaN.
    """

    inputs: LawInputs
    blind: float

    @property
    def names(self) -> list[str]:
        """Inputs of the whole that it takes."""
        return [s.name for s in self.inputs.signals if s.name != "ref"]

    @cached_property
    def reports(self) -> dict[str, Signal]:
        """Outputs of the whole beside those of the law: signals by where they come from."""
        law, inputs = {*self.inputs.law.function.name_out()}, self.inputs
        signals = {s.name: s for s in inputs.estimator.outputs}
        reports: dict[str, Signal] = {}
        for name, signal in signals.items():
            if name in (*OWN, "covariance", "residual"):
                continue
            reports[f"0 {name}"] = _named(signal, name if name not in law else f"estimate_{name}")
        reports["0 deviation"] = inputs.estimator.deviation
        reports["0 residual"] = _named(signals["residual"], "estimate_residual")
        reports["0 status"] = unitless_signal("estimate_status", ("estimate_status",))
        for k, observer in enumerate(inputs.observers, 1):
            taken = {*law, *(s.name for s in (*reports.values(), *inputs.signals))}
            for name in observer.name_out():
                if name not in OWN:
                    own = f"{observer.name()}_{name}" if name in taken else name
                    reports[f"{k} {name}"] = nameless(own, observer.numel_out(name))
        return reports

    @cached_property
    def column(self) -> Memory:
        """What it hands to what is behind the law: next memory, reports, whether one was gated."""
        sizes = {f"next {name}": size for name, size in self.inputs.memory.sizes.items()}
        sizes |= {key: len(signal.components) for key, signal in self.reports.items()}
        return Memory(sizes | {GATED: 1, UNSURE: 1})

    @cached_property
    def function(self) -> ca.Function:
        """(inputs of the whole) → (column)."""
        s = symbols_of(self.inputs.sizes, self.names)
        before = self._sound(self.inputs.memory.split(s["z"][: self.inputs.memory.size]))
        estimate = self._estimate(s, before)
        found, parts = self._observed(s, before, estimate)
        parts["next estimate"] = estimate["z_next"]
        parts["next stands"] = self._stands(s, before, found)
        parts["next u"] = before["u"]  # and that of this tick, behind the law
        parts["next unsure"] = unsure = self._unsure(before["unsure"], estimate["status"])
        parts[GATED] = ca.fmod(ca.floor(estimate["flags"] / Flag.GATED), 2)
        parts[UNSURE] = ca.logic_or(estimate["status"] > 0, unsure > 0)
        return ca.Function("estimate", [*s.values()], [self.column.join(parts)], [*s], ["column"])

    def given(self, parts: Mapping[str, ca.MX]) -> dict[str, ca.MX]:
        """Return what the law takes of a column, NaN where the estimate is not to be used."""
        blind, keys = parts["next unsure"] > self.blind, [*self.reports]
        places = {key.partition(" ")[2]: key for key in keys}  # of two, that of the later
        sources = {name: places[self.inputs.source_of(name)] for name in self.inputs.supplied}
        return {name: ca.if_else(blind, np.nan, parts[key]) for name, key in sources.items()}

    def _sound(self, parts: Mapping[str, ca.MX]) -> dict[str, ca.MX]:
        """Return the memory with its own numbers in place of those that are none."""
        firsts = self.inputs.memory.split(ca.DM(self.inputs.z0[: self.inputs.memory.size]))
        sound = dict(parts)
        for name in ("stands", "u"):
            ok = ca.fabs(parts[name]) <= LARGEST_INPUT
            sound[name] = ca.if_else(ok, parts[name], firsts[name])
        longest = 2 * self.blind
        within = ca.logic_and(parts["unsure"] >= 0, parts["unsure"] <= longest)
        sound["unsure"] = ca.if_else(within, parts["unsure"], longest)
        return sound

    def _estimate(self, s: Mapping[str, ca.MX], before: Mapping[str, ca.MX]) -> dict[str, ca.MX]:
        """Return the outputs of the estimator."""
        inputs, f = self.inputs, self.inputs.estimator.function
        values = {
            n: s[inputs.renamed.get(n, n)] for n in f.name_in() if n not in ("z", "u", "mask")
        }
        values["z"] = before["estimate"]
        if "u" in f.name_in():
            values["u"] = self._acted(before)
        if "mask" in f.name_in():
            own = inputs.renamed.get("mask", "mask")
            values["mask"] = before["stands"] if inputs.takes_mask else s[own]
        return dict(f(**values))

    def _acted(self, before: Mapping[str, ca.MX]) -> ca.MX:
        """Return the control that acted until now."""
        return before["u"][self.inputs.law.u_min.size * self.inputs.delay :, 0]

    def _observed(
        self, s: Mapping[str, ca.MX], before: Mapping[str, ca.MX], estimate: Mapping[str, ca.MX]
    ) -> tuple[dict[str, ca.MX], dict[str, ca.MX]]:
        """Return what estimator and observers give by name, and parts of the column."""
        size = len(self.inputs.law.contacts)
        side = estimate["covariance"].shape[0]
        variances = ca.diag(ca.reshape(estimate["covariance"], side, side))
        found = {name: x for name, x in estimate.items() if name not in OWN}
        reported = found | {"status": estimate["status"]}
        reported["deviation"] = ca.sqrt(ca.fmax(variances, 0))
        parts = {key: reported[key[2:]] for key in self.reports if key.startswith("0 ")}
        for k, observer in enumerate(self.inputs.observers):
            values = {**s, **found} | {"u": self._acted(before), "z": before[f"observer{k}_"]}
            values |= {SCHEDULE: s["mask"][:size]} if size else {}
            outputs = observer(**{name: values[name] for name in observer.name_in()})
            parts[f"next observer{k}_"] = outputs.get("z_next", ca.MX(0, 1))
            own = {name: x for name, x in outputs.items() if name not in OWN}
            parts |= {f"{k + 1} {name}": x for name, x in own.items()}
            found |= own
        return found, parts

    def _stands(
        self, s: Mapping[str, ca.MX], before: Mapping[str, ca.MX], found: Mapping[str, ca.MX]
    ) -> ca.MX:
        """Return the mask that the estimator takes in the next tick."""
        entries = []
        for k, place in enumerate(self.inputs.stands):
            if place < 0:
                entries.append(ca.MX(1))
                continue
            value = found[PROBABILITY][place] if PROBABILITY in found else s["mask"][place]
            entries.append(ca.if_else(ca.fabs(value) <= LARGEST_INPUT, value, before["stands"][k]))
        return ca.vertcat(ca.MX(0, 1), *entries)

    def _unsure(self, before: ca.MX, status: ca.MX) -> ca.MX:
        """Return the counter of s: up while the estimator is blind, to its end at a new start."""
        period, longest = self.inputs.law.period, 2 * self.blind
        counted = ca.if_else(
            status == BLIND, ca.fmin(before + period, longest), ca.fmax(before - period, 0)
        )
        return ca.if_else(status == RESTARTED, longest, counted)


def _named(signal: Signal, name: str) -> Signal:
    return Signal(name, signal.components, signal.units)
