"""One run: smooth pieces between ticks of the controller, switches and events."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mbcasadi.simulation import tableau
from mbcasadi.simulation.call import Array
from mbcasadi.simulation.closing import Closing
from mbcasadi.simulation.events import Event, Switch, Watch
from mbcasadi.simulation.flow import Flow
from mbcasadi.simulation.law import Held
from mbcasadi.simulation.recorder import Recorder
from mbcasadi.simulation.stepper import Now, Stepper

Progress = Callable[[str, float], None]

REPORTS = 100  # calls of `progress` in one run

ROUNDING = 1e-10
"""Share of a period within which two times count as one."""


@dataclass(frozen=True)
class Plan:
    """What a run is asked for.

    Attributes:
        start, end: s.
        times: (nt,) sorted times at which samples are kept; None keeps every accepted step.
        switches: sorted by time.
        events: what is looked for in every step.
        law: a controller, or None.
        progress: called with what is being done and a share from 0 to 1.
    """

    start: float
    end: float
    times: Array | None
    switches: Sequence[Switch]
    events: Sequence[Event]
    law: Held | None
    progress: Progress | None


class Runner:
    """Carries a state from the start to the end of a plan.

    Attributes:
        flow: the motion between two ticks.
        recorder: what was reached, also if an error ends the run.
    """

    def __init__(self, flow: Flow, stepper: Stepper, closing: Closing, plan: Plan) -> None:
        self.recorder = Recorder()
        self.flow, self._stepper, self._closing, self._plan = flow, stepper, closing, plan
        self._watch = Watch(plan.events)
        self._left = list(plan.switches)
        self._ticks = self._told = self._sampled = 0

    def run(self, now: Now) -> None:
        """Run to the end.

        Raises:
            SimulationError: the motion could not go on.
        """
        end = self._plan.end
        now = self._switch(now)
        self._tick(now)
        self._keep(now)
        self._watch.restart(now.t, now.q, now.v, self.flow.manifold.mask)
        while now.t < end and not self.recorder.stopped:
            now = self._switch(self._piece(now, self._stop()))
            self._tick(now)
        if self._plan.progress:
            self._plan.progress("simulating", 1.0)

    def _stop(self) -> float:
        """Return when the next smooth piece ends."""
        stops = [self._plan.end] + [switch.time for switch in self._left[:1]]
        if self._plan.law is not None:
            stops.append(self._plan.start + self._ticks * self._plan.law.period)
        return min(stops)

    def _tick(self, now: Now) -> None:
        """Ask the controller where one of its periods begins."""
        law = self._plan.law
        if law is None:
            return
        if now.t >= self._plan.start + (self._ticks - ROUNDING) * law.period:
            self.flow.u = law.tick(now.t, now.q, now.v, now.act)
            self._ticks += 1
            self._stepper.restart()

    def _switch(self, now: Now) -> Now:
        while self._left and now.t >= self._left[0].time and not self.recorder.stopped:
            now = self._happen(now, self._left.pop(0))
        return now

    def _piece(self, now: Now, stop: float) -> Now:
        """Return the state at `stop`, or behind the first event before it."""
        while now.t < stop:
            after, step = self._stepper.step(now, stop)
            state = self._between(step)
            hit = self._watch.first(now.t, after.t, state)
            if hit is not None:
                reached = Now(hit[0], *state(hit[0]))
                self._sample(now.t, reached, state)
                return self._happen(reached, hit[1])
            self._sample(now.t, after, state)
            self._tell(after.t)
            now = after
        return now

    def _between(self, step: tableau.Step) -> Callable[[float], tuple[Array, Array, Array]]:
        """Return t → (q, v, act) within the step; its cost is paid when it is first asked."""
        interpolants: list[Callable[[float], Array]] = []

        def state(t: float) -> tuple[Array, Array, Array]:
            if not interpolants:
                interpolants.append(tableau.dense(self.flow.rate, step))
            return self.flow.state(t, interpolants[0](t))

        return state

    def _sample(
        self,
        start: float,
        after: Now,
        state: Callable[[float], tuple[Array, Array, Array]],
    ) -> None:
        """Keep the samples that are due in `(start, after.t]`."""
        times = self._plan.times
        if times is None:
            self._keep(after)
            return
        first, last = np.searchsorted(times, [start, after.t], side="right")
        for t in times[first:last]:
            at_end = t == after.t
            self._keep(after if at_end else Now(float(t), *state(float(t))))

    def _happen(self, now: Now, event: Event | Switch) -> Now:
        """Carry out an event or a switch; the states before and after it are kept."""
        if not self.recorder.samples or self.recorder.samples[-1].t < now.t:
            self._keep(now)
        q, v, happening = self._closing.carry_out(event, now.t, now.q, now.v)
        self.recorder.happenings.append(happening)
        after = Now(now.t, q, v, now.act)
        self._keep(after)
        handled = event if isinstance(event, Event) else None
        self._watch.restart(now.t, q, v, self.flow.manifold.mask, handled)
        self._stepper.restart()
        if isinstance(event, Event) and event.stop:
            self.recorder.stopped = event.name
        return after

    def _keep(self, now: Now) -> None:
        self.recorder.add(self.flow, now.t, now.q, now.v, now.act)

    def _tell(self, t: float) -> None:
        plan = self._plan
        share = (t - plan.start) / (plan.end - plan.start)
        if plan.progress and int(share * REPORTS) > self._told:
            self._told = int(share * REPORTS)
            plan.progress("simulating", share)
