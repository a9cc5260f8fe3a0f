"""The supervision as its guide describes it, in NumPy around the bare C of the law.

It shares no code with the generated supervision: the law is called by `CProject.step` with a state
of its own.
"""

from dataclasses import dataclass, field

import numpy as np

from mbcasadi.codegen import TickEvent

OPTIONAL = ("ref", "tuning", "p", "t", "mask")
INTERRUPTED = TickEvent.NOT_FINITE | TickEvent.OUT_OF_RANGE | TickEvent.JUMP | TickEvent.STALE


@dataclass
class Model:
    """State of a supervised controller.

    `limits`: input → (lower, upper, jump), each a number or (size,). `quaternions`: input → first
    entries. `step`: (inputs with z) → outputs of the law. `safe_law`: inputs → u.
    """

    step: object
    z: np.ndarray
    u_safe: np.ndarray
    u_limits: tuple
    safe_statuses: tuple
    spoiled: str | None
    limits: dict
    quaternions: dict = field(default_factory=dict)
    rate: object = np.inf  # in one tick
    stale_after: int | None = None
    trip_after: int = 1
    recover_after: int | None = None
    fade_ticks: int = 0
    safe_law: object = None
    source: str = "law"

    def __post_init__(self):
        self.last, self.has_last = self.u_safe.copy(), False
        self.accepted, self.since = {}, {}
        self.sample, self.age = None, 0
        self.failed = self.good = self.fade = 0
        self.tripped = self.pending = False
        self.offset = np.zeros_like(self.last)

    def start(self, u):
        self.last, self.has_last, self.pending = np.clip(u, *self.u_limits), True, True

    def reset(self):
        self.tripped, self.failed = False, 0

    def tick(self, inputs, sample):
        events, seen = self._examine(inputs, sample)
        implausible = bool(events & INTERRUPTED)
        safe = None
        if self.tripped and self.safe_law is not None and not implausible:
            safe = self.safe_law(seen)
            safe = safe if np.isfinite(safe).all() else None
        if self.tripped and self.spoiled:
            seen[self.spoiled] = np.full(np.size(seen[self.spoiled]), np.nan)
        outputs = self.step(seen | {"z": self.z})
        status = int(outputs["status"][0])
        sees_it = status in self.safe_statuses or not implausible
        if sees_it:
            self.z = outputs["z_next"]
        u, source = outputs["u"], "law"
        if self.tripped:
            events |= TickEvent.SAFE
            source = "its safe output"
            if safe is not None:
                u, source = safe, "safe law"
            elif status not in self.safe_statuses:
                u, source = self.u_safe, "constant"
        else:
            if not sees_it:
                u = self.last
            if implausible or status in self.safe_statuses:
                events |= TickEvent.FAILED_TICK
        u, shaping = self._shape(np.array(u), source)
        events |= shaping
        return u, events | self._watch(events), outputs

    def _examine(self, inputs, sample):
        events, seen = TickEvent(0), dict(inputs)
        new = self.stale_after is None or sample != self.sample
        self.age = 0 if new else self.age + 1
        self.sample = sample
        for name, (lower, upper, jump) in self.limits.items():
            x = np.asarray(inputs[name], float)
            fault = TickEvent(0)
            finite = np.isfinite(x)
            if not finite.all():
                fault |= TickEvent.NOT_FINITE
            in_range = (x >= lower) & (x <= upper)
            in_range[self._no_rotations(name, x)] = False
            if (finite & ~in_range).any():
                fault |= TickEvent.OUT_OF_RANGE
            if name in self.accepted:
                near = x.copy()
                for k in self.quaternions.get(name, ()):
                    part = slice(k, k + 4)
                    if x[part] @ self.accepted[name][part] < 0:
                        near[part] = -x[part]
                change = np.abs(near - self.accepted[name])
                if (finite & in_range & (change > jump * self.since[name])).any():
                    fault |= TickEvent.JUMP
            if not fault and (new or name in OPTIONAL):
                self.accepted[name], self.since[name] = x, 1
            elif name in self.since:
                self.since[name] += 1
            if fault:
                seen[name] = np.full(x.size, np.nan)
            events |= fault
        for name in set(inputs) - set(self.limits):
            x = np.asarray(inputs[name], float)
            wrong = np.isnan(x) if name in OPTIONAL and name != "ref" else ~np.isfinite(x)
            if wrong.any():
                events |= TickEvent.NOT_FINITE
                seen[name] = np.full(x.size, np.nan)
        if self.stale_after is not None and self.age > self.stale_after:
            events |= TickEvent.STALE
            for name in inputs:
                if name not in OPTIONAL:
                    seen[name] = np.full(np.size(inputs[name]), np.nan)
        return events, seen

    def _no_rotations(self, name, x):
        """First entries of quaternions that are none."""
        starts = self.quaternions.get(name, ())
        return [k for k in starts if not 0.5 < np.linalg.norm(x[k : k + 4]) < 2]

    def _shape(self, u, source):
        events = TickEvent(0)
        if (self.pending or source != self.source) and self.fade_ticks:
            self.offset, self.fade = self.last - u, self.fade_ticks
        self.pending, self.source = False, source
        if self.fade:
            u = u + self.offset * (self.fade / self.fade_ticks)
            self.fade -= 1
            events |= TickEvent.FADING
        if self.has_last:
            limited = np.clip(u, self.last - self.rate, self.last + self.rate)
            if np.any(limited != u):
                events |= TickEvent.RATE_LIMITED
            u = limited
        self.last, self.has_last = np.clip(u, *self.u_limits), True
        return self.last, events

    def _watch(self, events):
        if self.tripped:
            self.good = 0 if events & INTERRUPTED else self.good + 1
            if self.recover_after is None or self.good < self.recover_after:
                return TickEvent(0)
            self.tripped, self.failed = False, 0
            return TickEvent.RECOVERED
        self.failed = self.failed + 1 if events & TickEvent.FAILED_TICK else 0
        if self.failed < self.trip_after:
            return TickEvent(0)
        self.tripped, self.good = True, 0
        return TickEvent.TRIPPED
