"""One closed loop of a legged robot, and what became of it."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP
from mbcasadi.mpc import CaptureStep
from mbcasadi.validation import Recording, Runnable, ScenarioOptions, Sensing, reaction
from robots.ground import Array
from robots.references import Reference
from robots.stops import beyond_stops
from robots.whole_body.sensed import REST, estimate_cells, sensing_below

PUSH = (2.0, 2.1)  # s
SETTLED = 0.5  # s, at the end of a run or of a second after the push
FALLEN = 0.8  # of the height at the start
TRUNK, COM = 3.0, 10.0  # mm


@dataclass(frozen=True)
class Trial:
    """One closed loop: the law, its plant and start, what it follows, what acts on it.

    Attributes:
        robot, task, condition: what it does, for the table.
        follows: the slice of positions that is judged.
        goal: mm, of their error.
        push: axis and force on the base, N.
        compiled: the law as C.
        sensing: how its state is estimated, where an estimator is in the loop.
    """

    robot: str
    task: str
    condition: str
    law: InverseDynamicsQP
    model: mujoco.MjSpec
    q0: Array
    reference: Reference
    follows: str = "trunk.position"
    goal: float = TRUNK
    mask: Reference | None = None
    push: tuple[int, float] | None = None
    duration: float = 6.0
    step: CaptureStep | None = None
    compiled: Runnable | None = None
    sensing: Sensing | None = None

    def force(self, t: float) -> Array:
        """Return the push on the base at t, s."""
        axis, newton = self.push or (0, 0.0)
        return newton * np.eye(self.law.system.nv)[axis] * (PUSH[0] <= t < PUSH[1])

    def sensed(self) -> "Trial":
        """Return the same with an estimator in the loop."""
        if self.sensing is not None:
            return self
        return replace(self, sensing=sensing_below(self.law, self.model, self.q0))


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        trial: what was done.
        steady: largest error in the last half second, mm; infinite after a fall.
        after: largest error from 2 s after the push on, mm; NaN without one.
        solved: share of ticks.
        beyond: largest excess of a joint over its range, rad.
        estimate: errors of the estimate as cells, where an estimator was in the loop.
    """

    trial: Trial
    steady: float
    after: float
    solved: float
    beyond: float
    estimate: str = ""

    @property
    def reached(self) -> bool:
        """Return whether the goal is reached."""
        pushed = np.isnan(self.after) or self.after <= COM or self.trial.goal < COM
        return bool(self.steady <= self.trial.goal and pushed)

    def __str__(self) -> str:
        """Return the line in Markdown."""
        trial, after = self.trial, "" if np.isnan(self.after) else f"{self.after:.2f}"
        numbers = f"{self.steady:.2f} | {trial.goal:g} | {after} | {self.solved:.1%}"
        verdict = "yes" if self.reached else "no"
        names = f"{trial.robot} | {trial.task} | {trial.condition}"
        cells = f"{names} | {numbers} | {1e3 * self.beyond:.2f} | {verdict}"
        return f"| {cells}{self.estimate and ' | '}{self.estimate} |"


def rests(trial: Trial) -> float:
    """Return for how long a robot stands still before, s, which shows what its gyroscope adds."""
    return 0.0 if trial.sensing is None else REST


def recorded(trial: Trial) -> Recording:
    """Return the recording of a trial."""
    begins = rests(trial)

    def delayed(signal: Callable[[float], Array]) -> Callable[[float], Array]:
        return lambda t: signal(max(t - begins, 0.0))

    with nullcontext() if trial.step is None else reaction(*trial.step) as react:
        options = ScenarioOptions(mask=trial.mask and delayed(trial.mask), reaction=react)
        report = mb.validate(
            trial.compiled or trial.law, trial.model, begins + trial.duration,
            reference=delayed(trial.reference), q0=trial.q0, perturb={"mass": 0.1}, delay=1,
            disturbance=delayed(trial.force), scenario=options, sensors=trial.sensing,
        )  # fmt: skip
    return report.runs[0].recording


def judged(trial: Trial, found: Recording) -> Row:
    """Return the row of a trial that was recorded."""
    t = found.t - rests(trial)
    wanted = np.array(
        [trial.reference(max(s, 0.0))[trial.law.reference_slices[trial.follows]] for s in t]
    )
    error = 1e3 * np.linalg.norm(places(trial, found.q) - wanted, axis=1)
    fell = found.q[-1, 2] < FALLEN * trial.q0[2] or bool(found.events)
    error = np.where(fell, np.inf, error)
    after = error[t > PUSH[1] + 2.0].max() if trial.push else np.nan
    steady = error[t > t[-1] - SETTLED].max()
    solved = float(np.mean(found.status == 0))
    model = trial.model.compile()
    estimate = estimate_cells(found, model) if trial.sensing else ""
    beyond = max(0.0, beyond_stops(model, trial.law, found.q).max())
    return Row(trial, steady, after, solved, beyond, estimate)


def places(trial: Trial, q: Array) -> Array:
    """Return the base's positions (n, 3), or those of the centre of mass."""
    if not trial.follows.startswith("com"):
        return q[:, :3]
    system = trial.law.system
    rest = np.zeros(system.nv)
    return np.array([np.array(system.center_of_mass(each, rest)[0]).ravel() for each in q])
