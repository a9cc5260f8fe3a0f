"""The closed loop: MuJoCo steps the model, the generated C computes the control."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError, SimulationError
from mbcasadi.plant import Measurement, Plant
from mbcasadi.shapes import column
from mbcasadi.validation.closed_loop.compiled_law import Caller, CompiledLaw
from mbcasadi.validation.closed_loop.outer_law import OuterLaw
from mbcasadi.validation.closed_loop.recording import Recorder, Recording

Array = NDArray[np.float64]
Signal = Callable[[float], ArrayLike] | ArrayLike | None
Progress = Callable[[str, float], None]
Switch = Callable[[float], Mapping[str, bool]]

# A period that is a multiple of the time step up to this relative rounding is meant as one.
STEP_ROUNDING = 1e-6
REPORTS = 100  # calls of `progress` in one run


class Teller:
    """Passes progress on; notes of the compiler keep the share that was reached."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._share = 0.0

    def __call__(self, text: str, share: float) -> None:
        """Say what is being done, and how much is done."""
        self._share = share
        if self._progress is not None:
            self._progress(text, share)

    def note(self, text: str) -> None:
        """Say something at the share that was reached last."""
        self(text, self._share)


@dataclass(frozen=True)
class Scenario:
    """What happens to the loop from outside.

    Attributes:
        duration: s.
        reference: (nref,), or a function of time; None where the controller needs none.
        mask: (nmask,), or a function of time; None for all ones.
        q0, v0: start; the plant's own `qpos0` and rest by default.
        delay: ticks between a measurement and the moment when its control acts.
        disturbance: (nv,) generalised force on the plant that no one tells the controller of, or a
            function of time; none by default.
        switch: time → {name: whether this equality constraint of the plant holds}; those it does
            not name stay as they are.
        outer: a slower law that gives reference and mask in place of the above, or None.
    """

    duration: float
    reference: Signal = None
    mask: Signal = None
    q0: ArrayLike | None = None
    v0: ArrayLike | None = None
    delay: int = 0
    disturbance: Signal = None
    switch: Switch | None = None
    outer: OuterLaw | None = None


def steps_per_tick(controller: Controller, plant: Plant) -> int:
    """Return how many time steps of the plant one control period has.

    Raises:
        ProblemError: the period is no multiple of the time step.
    """
    ratio = controller.period / plant.timestep
    steps = round(ratio)
    if steps < 1 or abs(ratio - steps) > STEP_ROUNDING * ratio:
        raise ProblemError(
            f"the control period {controller.period:g} s is not a multiple of the plant's time "
            f"step {plant.timestep:g} s; give validate(..., timestep={controller.period:g}) or a "
            "divisor of it"
        )
    return steps


def run_loop(
    law: CompiledLaw, plant: Plant, scenario: Scenario, progress: Progress | None = None
) -> Recording:
    """Run the loop and return everything that was measured, tick by tick.

    The delay line starts filled with the first control. A controller with an input `f_c` gets
    the force of the equality constraints under the control that still acts. A plant that
    diverges ends the run; the recording says so in its events.

    Raises:
        ProblemError: the controller and the plant do not fit together.
        ShapeError: reference or mask have a wrong size.
        UnknownNameError: the plant has no equality constraint of a name that `switch` gives.
    """
    controller = law.controller
    caller, monitor = Caller(law.function), _monitor(controller)
    _require_fit(controller, caller, plant)
    steps = steps_per_tick(controller, plant)
    ticks = round(scenario.duration / controller.period)
    if ticks < 1:
        raise ProblemError(f"duration {scenario.duration:g} s is shorter than one period")
    plant.reset(scenario.q0, scenario.v0)
    recorder, z = Recorder(), column("z0", controller.z0, controller.z0.size)
    events: tuple[str, ...] = ()
    line: deque[Array] = deque()
    applied = np.zeros(plant.nu)
    if scenario.outer is not None:
        scenario.outer.begin()
    for k in range(ticks):
        t = k * controller.period
        push = _at("disturbance", scenario.disturbance, t, plant.nv, 0.0)
        plant.push(push)
        plant.switch(scenario.switch(t) if scenario.switch else {})
        given = {"q": plant.q, "v": plant.v, "act": plant.act, "z": z, "t": np.array([t])}
        if caller.size("f_c"):
            given["f_c"] = plant.measure(applied).equality_force
        told = {"ref": scenario.reference, "mask": scenario.mask}
        told |= scenario.outer(given) if scenario.outer is not None else {}
        given["ref"] = _at("reference", told["ref"], t, caller.size("ref"), None)
        given["mask"] = _at("mask", told["mask"], t, caller.size("mask"), 1.0)
        answer = caller(given)
        line.append(answer["u"])
        while len(line) <= scenario.delay:
            line.append(answer["u"])
        applied = line.popleft()
        try:
            measured = plant.measure(applied)
            row = _row(controller, plant, given, answer, measured)
            row |= {"u_applied": applied, "disturbance": push}
            recorder.add(row, monitor(given | {"u": answer["u"]}) if monitor else {})
            z = answer.get("z_next", z)
            plant.step(applied, steps)
        except SimulationError as error:
            events = (str(error),)
            break
        if progress and k % max(1, ticks // REPORTS) == 0:
            progress("simulating", k / ticks)
    return recorder.finish(tuple(c.frame for c in controller.contacts), events)


def _require_fit(controller: Controller, caller: Caller, plant: Plant) -> None:
    sizes = {"q": plant.nq, "v": plant.nv, "act": plant.na, "z": controller.z0.size}
    sizes["f_c"] = plant.nv
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


def _monitor(controller: Controller) -> Caller | None:
    return None if controller.monitor is None else Caller(controller.monitor)


def _at(name: str, signal: Signal, t: float, size: int, default: float | None) -> Array:
    """Return the value of a signal at time t."""
    if signal is None:
        if default is None and size:
            raise ProblemError(
                f"the controller follows a {name} of size {size}; give one, for example "
                "reference=controller.reference_at(q0)"
            )
        return np.full(size, default or 0.0)
    return column(name, signal(t) if callable(signal) else signal, size)


def _row(
    controller: Controller,
    plant: Plant,
    given: dict[str, Array],
    answer: dict[str, Array],
    measured: Measurement,
) -> dict[str, Array]:
    residual = answer.get("residual", np.zeros(1))
    return {
        "t": given["t"][0],
        **{name: given[name] for name in ("q", "v", "act", "ref", "mask", "z")},
        "a": measured.a,
        "u": answer["u"],
        "status": answer.get("status", np.zeros(1))[0],
        "check": np.abs(residual).max(initial=0.0),
        "actuator_force": measured.actuator_force,
        "equality_on": np.array(plant.data.eq_active),
        "equality_force": measured.equality_force,
        "other_force": measured.constraint_force - measured.equality_force,
        "closure": np.array(measured.closure),
        "residual": np.array(measured.residual),
        "energy": np.array(measured.energy),
        **_contacts(controller, plant),
    }


def _contacts(controller: Controller, plant: Plant) -> dict[str, Array]:
    """Return what the plant does to each contact that the controller counts on."""
    count = len(controller.contacts)
    force, place = np.zeros((count, 3)), np.zeros((count, 3))
    normal, tangential, margin = np.zeros(count), np.zeros(count), np.zeros(count)
    for kind in ("site", "body"):
        mine = [k for k, contact in enumerate(controller.contacts) if contact.kind == kind]
        names = [controller.contacts[k].frame for k in mine]
        for k, touch in zip(mine, plant.contact_forces(names, kind).values(), strict=True):
            force[k], place[k] = touch.force, plant.place(controller.contacts[k].frame, kind)
            normal[k], tangential[k], margin[k] = touch.normal, touch.tangential, touch.margin
    return {
        "contact_force": force,
        "contact_normal": normal,
        "contact_tangential": tangential,
        "contact_margin": margin,
        "contact_place": place,
    }
