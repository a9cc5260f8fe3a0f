"""The end of a run whose robot has fallen.

Ticks behind a fall are slow and say little: QPs have no solution, and most shapes of the robot
touch the ground. A run ends a second after a fall that its criteria do not allow, where that is
known by a metric that can only become worse.
"""

from collections.abc import Callable

import mujoco

from mbcasadi.description import Controller
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import OuterLaw, Recording
from mbcasadi.validation.metrics.criteria import DEFAULTS, Criteria, Verdict, judge
from mbcasadi.validation.metrics.metric import base_name
from mbcasadi.validation.metrics.plant_metrics import HEIGHT, JOINT_BEYOND, TILT
from mbcasadi.validation.metrics.run_statistics import run_statistics
from mbcasadi.validation.metrics.standing import LANDING, Poses, Upright, standing_bases
from mbcasadi.validation.metrics.status_metrics import outer_law_run

AFTER = 1.0
"""Time that a run goes on behind a fall, s: what it shows of how the robot fell."""

LASTING = (HEIGHT, TILT, JOINT_BEYOND, "torque.excess", "tracking.max")
"""Metrics of what was worst in a run: what is missed stays missed."""


def upright_of(recording: Recording, model: mujoco.MjModel, criteria: Criteria) -> Upright:
    """Return what robots that stand at the start have to keep, by the criteria or the defaults."""
    limits = DEFAULTS | dict(criteria.limits or {})
    bases = tuple(standing_bases(Poses(recording, model)))
    return Upright(bases, limits[HEIGHT], limits[TILT])


class EndAfterFall:
    """Whether a run ends at a tick: `until` of `run_loop`, for one run."""

    def __init__(
        self,
        controller: Controller,
        make_plant: Callable[[], Plant],
        criteria: Criteria,
        outer: OuterLaw | None,
    ) -> None:
        """Watch a run that these criteria judge.

        Args:
            controller, criteria, outer: of the run.
            make_plant: a plant like that of the run, for its metrics.
        """
        self._controller, self._make_plant = controller, make_plant
        self._criteria, self._outer = criteria, outer
        self._tick = 0
        self._fell: int | None = None
        self._upright: Upright | None = None
        self._is_decided = False

    def __call__(self, data: mujoco.MjData, recorded: Callable[[], Recording]) -> str:
        """Return why the run ends at this tick; empty where it goes on."""
        tick, period = self._tick, self._controller.period
        self._tick += 1
        if self._is_decided or tick * period <= LANDING:
            return ""
        if self._upright is None:
            self._upright = upright_of(recorded(), self._make_plant().model, self._criteria)
            self._is_decided = not self._upright.bases
        if self._fell is None and self._upright.is_lost(data):
            self._fell = tick
        if self._fell is None or (tick - self._fell) * period < AFTER:
            return ""
        self._is_decided = True
        missed = self._missed(recorded())
        if missed is None:
            return ""
        return (
            f"the robot has fallen at {self._fell * period:.3g} s, and the run ended {AFTER:g} s "
            f"later: {missed.metric} is {missed.value:.3g}, limit {missed.limit:.3g}"
        )

    def _missed(self, recording: Recording) -> Verdict | None:
        """Return a criterion that is missed whatever comes."""
        period = self._controller.period
        above = None if self._outer is None else outer_law_run(self._outer, period, timed=False)
        plant, criteria = self._make_plant(), self._criteria
        found = run_statistics(self._controller, recording, plant, criteria, outer=above)
        for verdict in judge(found.metrics, criteria, finished=True):
            if base_name(verdict.metric) in LASTING and verdict.passed is False:
                return verdict
        return None
