"""What was asked of a run, in words."""

from collections.abc import Mapping
from typing import Any

from mbcasadi.description import Controller
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop.closed_loop import Scenario, steps_per_tick
from mbcasadi.validation.report.text import ticks


def settings_of(
    plant: Plant,
    scenario: Scenario,
    controller: Controller,
    rigid: bool,
    perturb: Mapping[str, float] | None,
    seed: int | None,
) -> dict[str, Any]:
    """Return name → words or number, in the order of the report."""
    steps = steps_per_tick(controller, plant)
    errors = ", ".join(f"{name} {100 * error:+.3g} %" for name, error in (perturb or {}).items())
    drawn = f" (drawn for each, seed {seed})" if errors and seed is not None else ""
    counted = f", the law counts on {controller.delay}" if controller.delay else ""
    return {
        "model": plant.name,
        "degrees of freedom": plant.nv,
        "motors": plant.nu,
        "controller": controller.name,
        "control period": f"{1e3 * controller.period:g} ms",
        "plant's time step": f"{1e3 * plant.timestep:g} ms ({steps} in a period)",
        "duration": f"{scenario.duration:g} s",
        "delay": ticks(scenario.delay) + counted,
        "plant's parameter errors": errors + drawn if errors else "none",
        "disturbance": "none" if scenario.disturbance is None else "a force from outside",
        "plant's equality constraints": _softness_words(plant, rigid),
    }


def _softness_words(plant: Plant, rigid: bool) -> str:
    if not plant.model.neq:
        return "none"
    return "rigid recipe" if rigid else "the model's own softness"
