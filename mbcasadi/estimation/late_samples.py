"""Samples that come late, applied at their own time: the last ticks are kept and run again.

The memory keeps for each of the last N ticks its inputs and the memory before it. A sample of age
a belongs to the tick in which `t - a` lies, with the rest of its age inside that tick. It is put
there, and that tick and all after it run again, once for all samples that come together. What
comes out is what the filter would know had each sample come at its time: to the last digit, with
gates, linearisations and modes of contact as they would have been.

Why not otherwise: the cross-covariance `P Φᵀ` of now and then with an innovation of then is optimal
with nothing in between only; clones of the last N states are optimal, but on each tick correct
N times as many entries, and with fixed linearisations; a filter that runs late by N ticks predicts
N ticks on every one. This costs a copy of the ring on a tick without late samples, and at most
N + 1 ticks on one with them, of N (nz + nu) numbers; none of it where no delay is asked for.

An age that is no number, negative, older than what is kept, or of a tick that has a sample of the
sensor is refused: the sample is not used, and the flag OVERDUE says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Signal
from mbcasadi.description.status import Flag
from mbcasadi.estimation.estimator import LONGEST, Estimator
from mbcasadi.estimation.memory import is_sound
from mbcasadi.estimation.split_tick import LateSensor, at_their_times, if_needed
from mbcasadi.qp.input_guard import MASK_ON
from mbcasadi.system.coordinates import unitless_signal

Array = NDArray[np.float64]

LARGEST_SAMPLE = 1e9
"""A larger entry of a sample is no number."""

BAD = 2 * LARGEST_SAMPLE
"""Stands for entries that are no numbers in what is kept."""

SNAP = 1e-4
"""Share of a period by which a sample before the end of a tick counts as one at its end."""


def with_late_samples(
    estimator: Estimator, delays: Mapping[int, float], ahead: int = 0
) -> Estimator:
    """Return an estimator with the input `age` for sensors that may be late; itself without such.

    Args:
        estimator: whose Function has ages of less than dt, or is a prediction where nothing is
            valid.
        delays: s, the longest one of each entry of `valid`.
        ahead: by which an entry of the residual is ahead of that of `valid`.
    """
    entries = [k for k, delay in delays.items() if delay]
    if not entries:
        return estimator
    late = tuple(
        LateSensor(
            tuple(r for s in estimator.sensors if s.valid == k for r in s.rows), k, k + ahead
        )
        for k in entries
    )
    tick = estimator.function
    tick = tick if "age" in tick.name_in() else at_their_times(tick, late)
    nominal = {"p": np.array(estimator.parameters)}
    past = Past(tick, estimator.z0, late, nominal, max(delays.values()), estimator.period)
    names = next(s.components for s in estimator.inputs if s.name == "valid")
    age = Signal("age", tuple(names[k] for k in entries), ("s",) * len(entries))
    known = {s.name: s for s in (*estimator.inputs, *estimator.outputs)} | {"age": age}
    for key in ("z", "z_next"):
        known[key] = unitless_signal(key, (*known[key].components, *past.components))
    function = past.function
    return replace(
        estimator,
        function=function,
        inputs=tuple(known[key] for key in function.name_in()),
        outputs=tuple(known[key] for key in function.name_out()),
        z0=past.first,
    )


@dataclass(frozen=True)
class Past:
    """A tick that keeps its past.

    Attributes:
        tick: (y, valid, …, age, dt, z) → (…); ages of late sensors are less than dt.
        z0: (nz,) its first memory.
        late: sensors that may be late.
        nominal: what stands for inputs other than samples that are no numbers.
        longest: s, the longest delay.
        period: s, the usual dt.
    """

    tick: ca.Function
    z0: Array
    late: tuple[LateSensor, ...]
    nominal: Mapping[str, Array]
    longest: float
    period: float

    @property
    def count(self) -> int:
        """Number of ticks that are kept."""
        return int(np.ceil(self.longest / self.period - SNAP))

    @property
    def given(self) -> dict[str, int]:
        """Sizes of the inputs without z."""
        return {k: self.tick.numel_in(k) for k in self.tick.name_in() if k != "z"}

    @property
    def first(self) -> Array:
        """First memory, with an empty past."""
        size = self.count * (len(self.z0) + sum(self.given.values()))
        return np.append(self.z0, np.zeros(size))

    @property
    def components(self) -> tuple[str, ...]:
        """A name for each entry of the past."""
        return tuple(f"past{k}" for k in range(len(self.first) - len(self.z0)))

    @cached_property
    def function(self) -> ca.Function:
        """The tick with ages of at most `longest`, its memory with the past behind."""
        s = {k: ca.MX.sym(k, n) for k, n in (self.given | {"z": len(self.first)}).items()}
        sound = is_sound(s["z"])
        empty = ca.vertcat(ca.DM(self.z0), ca.DM.zeros(len(self.first) - len(self.z0)))
        z = ca.if_else(sound, s["z"], ca.MX(ca.sparsify(empty)), True)
        nz, nw, N = len(self.z0), sum(self.given.values()), self.count
        now, Z, W = ca.vertsplit(z, [0, nz, nz * (1 + N), (nz + nw) * N + nz])
        given = {k: s[k] for k in self.given}
        at = self._arrived(**given, W=ca.reshape(W, nw, N))
        kept = (at["W_next"], ca.reshape(Z, nz, N), at["new"], now)
        again = if_needed(self._again, (3, 1, None, None))
        now, Z, residual, gated = again(ca.sum2(ca.sum1(at["new"])) > 0, *kept)
        out = self.tick(**given | {"valid": at["valid_now"], "age": at["age_now"], "z": now})
        ring = (ca.vec(Z)[nz:], now, ca.vec(at["W_next"])[nw:], at["w"])
        arrived, rows = ca.sum2(at["new"]) > 0, [sensor.residual for sensor in self.late]
        out["residual"][rows] = ca.if_else(arrived, residual, out["residual"][rows])
        gated = ca.logic_or(out["flags"] > 0, gated)
        out["flags"] = Flag.GATED * gated + Flag.OVERDUE * at["refused"]
        out["status"] = ca.if_else(sound, out["status"], 4)
        out["z_next"] = ca.vertcat(out["z_next"], *ring)
        outputs = [out[key] for key in self.tick.name_out()]
        return ca.Function(self.tick.name(), [*s.values()], outputs, [*s], self.tick.name_out())

    @cached_property
    def _arrived(self) -> ca.Function:
        """(inputs, W) → (w, W_next, valid_now, age_now, new, refused).

        w is what is kept of this tick, W (nw, N) what was of others, oldest first; `new` (nl, N)
        says in which of these ticks samples lie that came with this one.
        """
        s = {k: ca.SX.sym(k, n) for k, n in self.given.items()}
        W = ca.SX.sym("W", sum(self.given.values()), self.count)
        clean, W_next, places = self._clean(s), ca.SX(W), self._places
        new, refused = ca.SX(len(self.late), self.count), ca.SX(0)
        for k, sensor in enumerate(self.late):
            rows = [places["y"] + row for row in sensor.rows]
            rows += [places["valid"] + sensor.valid, places["age"] + k]
            came, age = clean["valid"][sensor.valid] > MASK_ON, s["age"][k]
            start, snap = clean["dt"], SNAP * self.period
            now = ca.logic_and(age >= 0, age < start - snap)
            for j in reversed(range(self.count)):
                dt, free = W[places["dt"], j], W[rows[-2], j] <= MASK_ON
                inside = ca.logic_and(age >= start - snap, age < start + dt - snap)
                new[k, j] = ca.logic_and(came, ca.logic_and(inside, free))
                sample = ca.vertcat(clean["y"][list(sensor.rows)], 1, ca.fmax(age - start, 0))
                W_next[rows, j] = ca.if_else(new[k, j], sample, W[rows, j])
                start += dt
            lost = ca.logic_not(ca.logic_or(now, ca.sum2(new[k, :])))
            refused = ca.logic_or(refused, ca.logic_and(came, lost))
            clean["valid"][sensor.valid] = ca.logic_and(came, now)
            clean["age"][k] = ca.if_else(ca.logic_and(now, clean["dt"] == s["dt"]), age, 0)
        outputs = {"w": ca.vertcat(*clean.values()), "W_next": W_next, "valid_now": clean["valid"]}
        outputs |= {"age_now": clean["age"], "new": new, "refused": refused}
        dense = [ca.densify(x) for x in outputs.values()]
        names = ([*s, "W"], [*outputs])
        return ca.Function("arrived", [*s.values(), W], dense, *names, {"cse": True})

    @property
    def _places(self) -> dict[str, int]:
        """First entry of each input in what is kept of a tick."""
        ends = np.cumsum([0, *self.given.values()]).tolist()
        return dict(zip(self.given, ends, strict=False))

    def _clean(self, s: Mapping[str, ca.SX]) -> dict[str, ca.SX]:
        """Return inputs that are finite, valid late samples that are numbers, a dt that is used."""
        clean = dict[str, ca.SX]()
        for key, x in s.items():
            rest = self.nominal.get(key, 0 if key in ("valid", "mask", "age") else BAD)
            clean[key] = ca.densify(ca.if_else(ca.fabs(x) <= LARGEST_SAMPLE, x, ca.DM(rest)))
        for sensor in self.late:
            size = ca.sum1(ca.fabs(s["y"][list(sensor.rows)]))
            clean["valid"][sensor.valid] *= size <= LARGEST_SAMPLE  # false for NaN
        in_time = ca.logic_and(s["dt"] > 0, s["dt"] <= LONGEST)
        return clean | {"dt": ca.if_else(in_time, s["dt"], self.period)}

    @cached_property
    def _again(self) -> ca.Function:
        """(W, Z, new, z) → (z_now, Z_next, residual, gated): ticks from the first new sample on."""
        nz, nw, nl = len(self.z0), sum(self.given.values()), len(self.late)
        sizes = {"z": nz, "begun": 1, "residual": nl, "gated": 1, "past": nz, "w": nw, "new": nl}
        s = {key: ca.MX.sym(key, n) for key, n in sizes.items()}
        came = ca.sum1(s["new"]) > 0
        before = ca.if_else(s["begun"], s["z"], s["past"])
        begun = ca.logic_or(s["begun"], came)
        ran = if_needed(self._run, (1, None, None))(begun, s["w"], before)
        residual = s["residual"] + s["new"] * ran[1]
        gated = ca.logic_or(s["gated"], ca.logic_and(came, ran[2]))
        outputs = [ran[0], begun, residual, gated, before]
        step = ca.Function("again_step", [*s.values()], [ca.densify(x) for x in outputs])
        kept = [ca.MX.sym(k, *n) for k, n in (("W", (nw, self.count)), ("Z", (nz, self.count)))]
        kept += [ca.MX.sym("new", nl, self.count), ca.MX.sym("z", nz)]
        W, Z, new, z = kept
        loop = step.mapaccum("again_loop", self.count, 4)
        found = loop(z, 0, ca.MX.zeros(nl), 0, Z, W, new)
        last = [x[:, -1] for x in (found[0], found[2], found[3])]
        return ca.Function("run_again", kept, [last[0], found[4], *last[1:]])

    @cached_property
    def _run(self) -> ca.Function:
        """(w, z) → (z_next, residual, gated) of a tick that is kept."""
        w, z = ca.MX.sym("w", sum(self.given.values())), ca.MX.sym("z", len(self.z0))
        parts = ca.vertsplit(w, [*self._places.values(), w.numel()])
        out = self.tick(**dict(zip(self.given, parts, strict=True)), z=z)
        rows = [sensor.residual for sensor in self.late]
        return ca.Function("run", [w, z], [out["z_next"], out["residual"][rows], out["flags"] > 0])
