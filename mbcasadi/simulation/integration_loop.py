"""One run: smooth pieces between control steps, switches and events."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mbcasadi.errors import SimulationError
from mbcasadi.progress import Progress
from mbcasadi.simulation import dormand_prince
from mbcasadi.simulation.buffered_function import Array
from mbcasadi.simulation.events import Event, EventDetector, StateAt, Switch
from mbcasadi.simulation.recorder import Recorder
from mbcasadi.simulation.right_hand_side import RightHandSide
from mbcasadi.simulation.sampled_law import SampledController
from mbcasadi.simulation.stepper import MotionState, Stepper
from mbcasadi.simulation.topology_change import TopologyChange

REPORTS = 100  # calls of `progress` in one run

TIME_ROUNDING = 1e-10
"""Share of a period within which two times count as one."""


@dataclass(frozen=True)
class StepPlan:
    """Time, samples, events and controller of a run.

    Attributes:
        start, end: s.
        times: (nt,) sorted times at which samples are kept; None keeps every accepted step.
        switches: sorted by time.
        events: looked for in every step.
        controller: a sampled controller, or None.
        progress: called with a text and a share from 0 to 1.
    """

    start: float
    end: float
    times: Array | None
    switches: Sequence[Switch]
    events: Sequence[Event]
    controller: SampledController | None
    progress: Progress | None


class IntegrationLoop:
    """Carries a state from the start to the end of a plan.

    Attributes:
        right_hand_side: the motion between two control steps.
        recorder: the samples, also those before an error that ends the run.
    """

    def __init__(
        self,
        right_hand_side: RightHandSide,
        stepper: Stepper,
        topology: TopologyChange,
        plan: StepPlan,
    ) -> None:
        """Start before the first sample.

        Args:
            right_hand_side: the motion.
            stepper: takes its steps.
            topology: applies events and switches.
            plan: when the run ends and what happens on the way.
        """
        self.recorder = Recorder()
        self.right_hand_side = right_hand_side
        self._stepper, self._topology, self._plan = stepper, topology, plan
        self._detector = EventDetector(plan.events)
        self._pending = list(plan.switches)
        self._control_steps = self._reports = 0

    def run(self, state: MotionState) -> None:
        """Run to the end.

        Raises:
            SimulationError: the motion could not go on.
        """
        try:
            self._run(state)
        except SimulationError:
            if not self.recorder.samples:
                self._record(state)
            raise
        finally:
            self.recorder.steps = self._stepper.accepted
            self.recorder.rejected = self._stepper.rejected
        if self._plan.progress:
            self._plan.progress("simulating", 1.0)

    def _run(self, state: MotionState) -> None:
        state = self._apply_switches(state)
        self._update_control(state)
        self._record_start(state)
        self._detector.restart(state.t, state.q, state.v, self.right_hand_side.manifold.mask)
        while state.t < self._plan.end and not self.recorder.stopped:
            state = self._apply_switches(self._integrate(state, self._next_stop()))
            self._update_control(state)

    def _record_start(self, state: MotionState) -> None:
        """Keep the start, once for each sample that is due then."""
        times = self._plan.times
        due = 1 if times is None else np.count_nonzero(times <= self._plan.start)
        for _ in range(due):
            self._record(state)

    def _next_stop(self) -> float:
        """Return when the next smooth piece ends."""
        stops = [self._plan.end] + [switch.time for switch in self._pending[:1]]
        if self._plan.controller is not None:
            stops.append(self._plan.start + self._control_steps * self._plan.controller.period)
        return min(stops)

    def _update_control(self, state: MotionState) -> None:
        """Evaluate the controller where one of its periods begins."""
        controller = self._plan.controller
        if controller is None:
            return
        if state.t >= self._plan.start + (self._control_steps - TIME_ROUNDING) * controller.period:
            self.right_hand_side.u = controller.control(state.t, state.q, state.v, state.act)
            self._control_steps += 1
            self._stepper.restart()

    def _apply_switches(self, state: MotionState) -> MotionState:
        while self._pending and state.t >= self._pending[0].time and not self.recorder.stopped:
            state = self._apply(state, self._pending.pop(0))
        return state

    def _integrate(self, state: MotionState, stop: float) -> MotionState:
        """Return the state at `stop`, or after the first event before it."""
        while state.t < stop:
            after, step = self._stepper.step(state, stop)
            state_at = self._state_within(step)
            crossing = self._detector.first_crossing(state.t, after.t, state_at)
            if crossing is not None:
                time, event = crossing
                reached = MotionState(time, *state_at(time))
                self._record_samples(state.t, reached, state_at)
                return self._apply(reached, event)
            self._record_samples(state.t, after, state_at)
            self._report_progress(after.t)
            state = after
        return state

    def _state_within(self, step: dormand_prince.Step) -> StateAt:
        """Return t → (q, v, act) within the step; its interpolant is built on first use."""
        interpolants: list[Callable[[float], Array]] = []

        def state(t: float) -> tuple[Array, Array, Array]:
            if not interpolants:
                interpolants.append(dormand_prince.interpolant(self.right_hand_side.rate, step))
            return self.right_hand_side.state(t, interpolants[0](t))

        return state

    def _record_samples(self, start: float, after: MotionState, state_at: StateAt) -> None:
        """Keep the samples that are due in `(start, after.t]`."""
        times = self._plan.times
        if times is None:
            self._record(after)
            return
        first, last = np.searchsorted(times, [start, after.t], side="right")
        for t in times[first:last]:
            at_end = t == after.t
            self._record(after if at_end else MotionState(float(t), *state_at(float(t))))

    def _apply(self, state: MotionState, event: Event | Switch) -> MotionState:
        """Apply an event or a switch; the states before and after it are kept."""
        if not self.recorder.samples or self.recorder.samples[-1].t < state.t:
            self._record(state)
        q, v, record = self._topology.apply(event, state.t, state.q, state.v)
        self.recorder.events.append(record)
        after = MotionState(state.t, q, v, state.act)
        self._record(after)
        handled = event if isinstance(event, Event) else None
        self._detector.restart(state.t, q, v, self.right_hand_side.manifold.mask, handled)
        self._stepper.restart()
        if isinstance(event, Event) and event.stop:
            self.recorder.stopped = event.name
        return after

    def _record(self, state: MotionState) -> None:
        self.recorder.add(self.right_hand_side, state.t, state.q, state.v, state.act)

    def _report_progress(self, t: float) -> None:
        plan = self._plan
        share = (t - plan.start) / (plan.end - plan.start)
        if plan.progress and int(share * REPORTS) > self._reports:
            self._reports = int(share * REPORTS)
            plan.progress("simulating", share)
