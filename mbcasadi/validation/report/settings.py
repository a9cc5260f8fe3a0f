"""The settings of a run as text."""

from collections.abc import Iterator, Mapping

import numpy as np

from mbcasadi.description import Controller
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import Recording, Runnable, Scenario, steps_per_tick
from mbcasadi.validation.metrics.text import tick_count
from mbcasadi.validation.run import PlantFactory


def run_settings(
    law: Runnable, plant: Plant, plants: PlantFactory, scenario: Scenario, recording: Recording
) -> dict[str, object]:
    """Return name → text or number, in the order of the report.

    Args:
        law: what ran.
        plant: of the run.
        plants: its options and parameter errors.
        scenario, recording: of the run.
    """
    controller = law.controller
    steps = steps_per_tick(controller.period, plant)
    return {
        "model": plant.name,
        "degrees of freedom": plant.nv,
        "motors": plant.nu,
        "controller": controller.name,
        "what ran": law.kind,
        "control period": f"{1e3 * controller.period:g} ms",
        "plant's time step": f"{1e3 * plant.timestep:g} ms ({steps} in a period)",
        "duration": f"{scenario.duration:g} s",
        "delay": _delay_text(scenario, controller, plant),
        "plant's parameter errors": _error_text(plants.perturb, plants.seed),
        "disturbance": _disturbance_text(scenario, recording, controller.period),
        "plant's equality constraints": _softness_text(plant, plants.rigid),
        **law.facts(),
    }


def _delay_text(scenario: Scenario, controller: Controller, plant: Plant) -> str:
    own = plant.actuator_delay
    actuators = f" and {1e3 * own:g} ms of the model's actuators" if own else ""
    expected = f", the law accounts for {controller.delay}" if controller.delay else ""
    return tick_count(scenario.delay) + actuators + expected


def _disturbance_text(scenario: Scenario, recording: Recording, period: float) -> str:
    if scenario.pushes:
        return "; ".join(map(str, scenario.pushes))
    return "none" if scenario.disturbance is None else disturbance_text(recording, period)


def _error_text(perturb: Mapping[str, float], seed: int | None) -> str:
    if not perturb:
        return "none"
    errors = ", ".join(f"{name} {100 * error:+.3g} %" for name, error in perturb.items())
    return errors if seed is None else f"{errors} (drawn for each, seed {seed})"


def _softness_text(plant: Plant, rigid: bool) -> str:
    if not plant.model.neq:
        return "none"
    return "as stiff as MuJoCo allows" if rigid else "the model's own softness"


def disturbance_text(recording: Recording, period: float) -> str:
    """Return the largest forces of a disturbance, by unit, and when it acts.

    Args:
        recording: of the run.
        period: s, of a tick; the force of a tick acts until the next one.
    """
    acting = np.flatnonzero(np.any(recording.disturbance, axis=1))
    if not acting.size:
        return "a generalised force, zero during the run"
    first, last = recording.t[acting[0]], recording.t[acting[-1]] + period
    pauses = ", with pauses" if np.any(np.diff(acting) > 1) else ""
    return f"up to {' and '.join(_largest(recording))}, from {first:.4g} s to {last:.4g} s{pauses}"


def _largest(recording: Recording) -> Iterator[str]:
    """Yield the largest force of each unit, with the coordinate that it acts on."""
    columns = recording.columns["disturbance"]
    size = np.abs(recording.disturbance).max(axis=0)
    for unit in dict.fromkeys(columns.units):
        of_unit = [k for k, each in enumerate(columns.units) if each == unit]
        k = max(of_unit, key=lambda index: size[index])
        if size[k]:
            yield f"{size[k]:.3g} {unit} on {columns.names[k]}"
