"""The closed loop: MuJoCo steps the model, the generated C computes the control."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.description.safe_command import safe_command
from mbcasadi.errors import ProblemError, SimulationError
from mbcasadi.mjcf.pid import set_start
from mbcasadi.plant import Observer, Plant
from mbcasadi.progress import Progress
from mbcasadi.shapes import column, count_of_periods
from mbcasadi.validation.closed_loop.columns import columns_of
from mbcasadi.validation.closed_loop.compiled_law import Caller
from mbcasadi.validation.closed_loop.recording import Recorder, Recording
from mbcasadi.validation.closed_loop.runnable import Runnable, RunningLaw
from mbcasadi.validation.closed_loop.scenario import (
    Scenario,
    TimeSignal,
    body_forces,
    generalised_force,
    mocap_poses,
    require_reference,
    require_taken,
    signal_value,
)
from mbcasadi.validation.closed_loop.sensing import RunningEstimator, contact_mask
from mbcasadi.validation.closed_loop.tick_row import measured_forces, tick_row

Array = NDArray[np.float64]

# A period within this relative rounding of a multiple of the time step counts as that multiple.
STEP_ROUNDING = 1e-6
PROGRESS_CALLS = 100  # of one run

Until = Callable[[mujoco.MjData, Callable[[], Recording]], str | bool]
"""Whether a run ends after a tick, of MuJoCo's data at its state and what was recorded; or why."""


def divides(timestep: float, period: float) -> bool:
    """Whether a period is a multiple of a time step, up to rounding."""
    ratio = period / timestep
    return round(ratio) >= 1 and abs(ratio - round(ratio)) <= STEP_ROUNDING * ratio


def steps_per_tick(period: float, plant: Plant) -> int:
    """Return the number of time steps of the plant in one control period, s.

    Raises:
        ProblemError: the period is no multiple of the time step.
    """
    step = plant.timestep
    if not divides(step, period):
        multiple = step * max(1, round(period / step))
        raise ProblemError(
            f"the control period {period:g} s is not a multiple of the plant's time step {step:g} "
            f"s; give scenario=ScenarioOptions(timestep={period:g}) or a divisor of it, or make "
            f"the controller with period={multiple:g}"
        )
    return round(period / step)


def run_loop(
    law: Runnable,
    plant: Plant,
    scenario: Scenario,
    progress: Progress | None = None,
    observer: Observer | None = None,
    until: Until | None = None,
) -> Recording:
    """Run a `ClosedLoop` for the scenario's time, and return all measurements, tick by tick.

    A plant that diverges ends the run, and the recording has an event that says so. Under the very
    first control it has no tick to record.

    Args:
        law, plant, scenario, observer: of the loop.
        progress: called about `PROGRESS_CALLS` times.
        until: whether the run ends after a tick; a text says why, and is an event.

    Raises:
        ProblemError, ShapeError, UnknownNameError, ControllerError: see `ClosedLoop`.
        SimulationError: the plant diverges under the first control.
    """
    controller = law.controller
    ticks = count_of_periods("duration", scenario.duration, controller.period)
    monitor = None if controller.monitor is None else Caller(controller.monitor)
    loop = ClosedLoop(law, plant, scenario, observer)
    recorder, events = Recorder(ticks), tuple[str, ...]()
    contacts, estimator = tuple(c.frame for c in controller.contacts), scenario.estimator
    columns = columns_of(controller, plant) | ({} if estimator is None else estimator.columns)

    def recorded() -> Recording:
        return recorder.finish(contacts, events, columns)

    for k in range(ticks):
        try:
            row = loop.control()
            values = loop.inputs | {"u": loop.outputs["u"]}
            monitored = monitor(values) if monitor else {}
            recorder.add(row, monitored | loop.estimate)
            ends = until is not None and until(plant.data, recorded)
            if ends:
                events = (ends,) if isinstance(ends, str) else ()
                break
            loop.advance()
        except SimulationError as error:
            if recorder.is_empty:
                raise
            events = (str(error),)
            break
        if progress and k % max(1, ticks // PROGRESS_CALLS) == 0:
            progress("simulating", k / ticks)
    return recorded()


class ClosedLoop:
    """A controller and its plant, tick by tick: `control`, then `advance`.

    The first control acts at once and until the second is due. A controller with an input `f_c`
    gets the force of the equality constraints under the control that still acts, at first the safe
    output of the initial pose; one with an input `f_measured` those of its contacts which acted in
    the plant's last step, as do a planner and a reaction with such an input.

    Args:
        law: what answers measurements: a controller as compiled C, or one of `controllers/`.
        plant: is reset and stepped.
        scenario: what acts on the loop from outside.
        observer: called with MuJoCo's model and data at each tick, evaluated at its state.

    Attributes:
        tick: number of the tick, from 0 on.
        inputs, outputs: of the controller in the last tick, by name; `q` and `v` are the plant's.
        estimate: what the estimator made of the sensors, by name.

    Raises:
        ProblemError: controller and plant do not fit together.
        ShapeError: reference or mask have a wrong size.
        UnknownNameError: the plant has no equality constraint of a name that `switch` gives.
        ControllerError: a controller of a user raised, or gave no control.
    """

    def __init__(
        self, law: Runnable, plant: Plant, scenario: Scenario, observer: Observer | None = None
    ) -> None:
        self._controller, self._caller = law.controller, law.start(plant)
        self._plant, self._scenario, self._observer = plant, scenario, observer
        require_taken(scenario, self._controller, self._caller)
        require_reference(scenario, self._controller, self._caller, law.kind)
        _require_fit(self._controller, self._caller, plant)
        self._steps = steps_per_tick(self._controller.period, plant)
        plant.reset(scenario.q0, scenario.v0, mocap_poses=mocap_poses(scenario.options, 0.0))
        set_start(plant.model, plant.data)
        for source in (scenario.options.outer, scenario.options.reaction, scenario.estimator):
            if source is not None:
                source.reset()
        z0 = self._controller.z0
        self.tick, self._z = 0, column("z0", z0, z0.size)
        self.inputs: dict[str, Array] = {"mask": np.zeros(0)}
        self.outputs: dict[str, Array] = {}
        self.estimate: dict[str, Array] = {}
        self._pending: deque[Array] = deque()
        self._applied: Array = safe_command(self._controller)
        plant.measure(self._applied)

    def control(self) -> dict[str, Array]:
        """Compute the control of this tick, and return all that is measured, by name.

        Raises:
            SimulationError: the plant diverges.
        """
        controller, plant, scenario = self._controller, self._plant, self._scenario
        t = self.tick * controller.period
        _act_on_plant(plant, scenario, t, controller.period)
        unknown = self._estimates()
        before = _Before(
            self._applied, self.outputs, _no_state(plant) if unknown else self.estimate
        )
        inputs = _controller_inputs(self._caller, controller, plant, scenario, self._z, t, before)
        self.outputs = self._caller(inputs)
        self.inputs = inputs | {"q": plant.q, "v": plant.v}  # what is recorded and judged
        self._applied = _applied_control(self._pending, self.outputs["u"], scenario.delay)
        measured = plant.measure(self._applied)
        row = tick_row(controller, plant, self.inputs, self.outputs, measured)
        if self._observer is not None:
            self._observer(plant.model, plant.data)
        return row | {"u_applied": self._applied, "disturbance": plant.external_force}

    def advance(self) -> None:
        """Step the plant to the next tick.

        Raises:
            SimulationError: the plant diverges.
        """
        self._z = self.outputs.get("z_next", self._z)
        self._plant.step(self._applied, self._steps)
        self.tick += 1

    def _estimates(self) -> bool:
        """Run the estimator, and return whether the controller is not to use what it gives."""
        estimator, controller, plant = self._scenario.estimator, self._controller, self._plant
        if estimator is None:
            return False
        stands = _contacts_that_stand(estimator, controller, plant, self.inputs["mask"])
        self.estimate = estimator(plant, stands, controller.period)
        return estimator.is_blind


def _act_on_plant(plant: Plant, scenario: Scenario, t: float, period: float) -> None:
    """Apply disturbance, switches and mocap poses from time t on, during a control period."""
    force = generalised_force(scenario.disturbance)
    plant.apply_force(signal_value("disturbance", force, t, plant.nv))
    if scenario.pushes:
        plant.apply_body_forces(body_forces(scenario.pushes, t, period))
    if scenario.options.switch is not None:
        plant.switch_equalities(scenario.options.switch(t))
    if scenario.options.mocap:
        plant.move_mocap(mocap_poses(scenario.options, t))


class _Before(NamedTuple):
    """The control that acts, the outputs of the last tick, and the estimate of this one."""

    applied: Array
    outputs: Mapping[str, Array]
    estimate: Mapping[str, Array]


def _no_state(plant: Plant) -> dict[str, Array]:
    """Return what a law gets that is not to use the estimate."""
    return {"estimate_q": np.full(plant.nq, np.nan), "estimate_v": np.full(plant.nv, np.nan)}


def _contacts_that_stand(
    estimator: RunningEstimator, controller: Controller, plant: Plant, mask: Array
) -> dict[str, float]:
    """Return contact → whether it stands, for the estimator."""
    on_force = estimator.sensing.on_force
    forces = np.zeros(0) if on_force is None else measured_forces(controller, plant)
    return contact_mask(controller, mask, forces, on_force)


def _controller_inputs(
    caller: RunningLaw,
    controller: Controller,
    plant: Plant,
    scenario: Scenario,
    z: Array,
    t: float,
    before: _Before,
) -> dict[str, Array]:
    """Return all inputs that the controller may have, at the present state of the plant."""
    applied, outputs = before.applied, before.outputs
    options, reaction = scenario.options, scenario.options.reaction
    q, v = (before.estimate.get(f"estimate_{name}", getattr(plant, name)) for name in "qv")
    inputs = {"q": q, "v": v, "act": plant.act, "z": z, "t": np.array([t])}
    measures = options.outer is not None and options.outer.measures_forces
    measures = measures or (reaction is not None and "f_measured" in reaction.inputs)
    if caller.size("f_measured") or measures:
        inputs["f_measured"] = measured_forces(controller, plant)  # of the last step
    if caller.size("f_c"):
        inputs["f_c"] = plant.measure(applied).equality_force
    commands: dict[str, TimeSignal] = {"ref": scenario.reference, "mask": options.mask}
    if options.outer is not None:
        commands.update(options.outer(inputs, outputs))
    tuning = controller.default_tuning if options.tuning is None else options.tuning
    p = controller.default_parameters if options.p is None else options.p
    inputs["ref"] = signal_value("reference", commands["ref"], t, caller.size("ref"))
    inputs["mask"] = signal_value("mask", commands["mask"], t, caller.size("mask"), 1.0)
    inputs["tuning"] = signal_value("tuning", tuning, t, caller.size("tuning"))
    inputs["p"] = signal_value("p", p, t, caller.size("p"))
    if options.p is None and caller.size("p"):
        inputs["p"] = _with_rests(controller, plant, inputs["p"])
    return inputs | ({} if reaction is None else reaction(inputs))


def _with_rests(controller: Controller, plant: Plant, p: Array) -> Array:
    """Return the parameters with the present rest of each spring that yields."""
    names = [name for s in controller.inputs if s.name == "p" for name in s.components]
    rests = plant.spring_rests
    return np.array([rests.get(name, value) for name, value in zip(names, p, strict=True)])


def _applied_control(pending: deque[Array], u: Array, delay: int) -> Array:
    """Return the control that acts now: the one of `delay` ticks ago, or the first."""
    pending.append(u)
    while len(pending) <= delay:
        pending.append(u)
    return pending.popleft()


def _require_fit(controller: Controller, caller: RunningLaw, plant: Plant) -> None:
    sizes = {"q": plant.nq, "v": plant.nv, "act": plant.na, "z": controller.z0.size}
    sizes |= {
        "f_c": plant.nv,
        "f_measured": 3 * len(controller.contacts) + len(controller.loop_forces),
    }
    for name, size in sizes.items():
        if caller.size(name) not in {0, size}:
            raise ProblemError(
                f"controller {controller.name!r} takes {name} of size {caller.size(name)}, but "
                f"the plant has {size}; it was made for another model"
            )
    if controller.u_min.size != plant.nu:
        raise ProblemError(
            f"controller {controller.name!r} has {controller.u_min.size} outputs, but the plant "
            f"has {plant.nu} actuators"
        )
