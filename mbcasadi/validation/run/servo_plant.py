"""The plant of a run, as the servos of its controller have to know it."""

from dataclasses import replace

import mujoco

from mbcasadi.control import InverseDynamicsQP
from mbcasadi.control.inverse_dynamics.actuator_delay import ticks_of
from mbcasadi.control.inverse_dynamics.parts.servos import ServoPlant, servo_note
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.plant import Plant
from mbcasadi.system.actuator_model import servo_indices
from mbcasadi.validation.closed_loop import Runnable

Controlled = Controller | HasController | Runnable


def integrator_of(plant: Plant) -> str:
    """Return the name of a plant's integrator, as the option `servo_plant` has it."""
    name = str(mujoco.mjtIntegrator(plant.model.opt.integrator).name)
    return name.removeprefix("mjINT_").lower()


def delay_ticks(plant: Plant, period: float) -> int:
    """Return by how many ticks controls act later by the plant's own actuators."""
    return ticks_of(plant.actuator_delay, period)


def fitted_to_plant(controller: Controlled, plant: Plant, delay: int) -> Controlled:
    """Return the controller with the delay, and the map of its servos in this plant.

    What the controller was given stays: a `servo_plant` other than "model", a `delay`.

    Args:
        controller: of the run.
        plant: its integrator and time step.
        delay: ticks from a measurement to the moment at which its control acts.
    """
    if not isinstance(controller, InverseDynamicsQP):
        return controller
    if not servo_indices(controller.system):
        counts = controller.observer, controller.joint_limits, controller.force_feedback
        predicted = any(counts) and controller.delay is None and delay > 0
        return replace(controller, delay=delay) if predicted else controller
    if controller.servo_plant == "start":
        return controller
    delay, given = (delay if controller.delay is None else controller.delay), controller.delay or 0
    known, tree = controller.plant_of_servos, controller.system.tree
    if controller.servo_plant != "model" or controller.servo_timestep is not None or tree is None:
        return controller if delay == given else replace(controller, delay=delay)
    rule = integrator_of(plant)
    if (tree.integration.rule, known.timestep, given) == (rule, plant.timestep, delay):
        return controller
    same = rule == tree.integration.rule
    return replace(
        controller,
        servo_plant="model" if same else rule,
        servo_timestep=plant.timestep,
        delay=delay,
    )


def servo_notes(controller: Controller, plant: Plant, delay: int) -> list[str]:
    """Return a note where a controller's servos were made for another plant or delay."""
    made_for = controller.notes.get("servos", "")
    late = delay + delay_ticks(plant, controller.period)
    here = ServoPlant(integrator_of(plant), plant.timestep, controller.period, late)
    if not made_for or made_for == servo_note(here):
        return []
    return [f"The law's servos are those of {made_for}; the plant is {servo_note(here)}."]
