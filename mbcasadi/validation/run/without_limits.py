"""A law and a plant whose actuators and joints have far larger ranges."""

from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control import InverseDynamicsQP
from mbcasadi.errors import MbcasadiError
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import Runnable, Tick
from mbcasadi.validation.closed_loop.compiled_law import Caller
from mbcasadi.validation.run.preparation import PlantFactory
from mbcasadi.validation.run.servo_plant import Controlled

Array = NDArray[np.float64]

STRONGER = 10.0
"""Factor of the actuators' ranges in the run without saturation."""


class EvaluatedLaw(Runnable):
    """A law that CasADi evaluates: for one repetition, C is not worth its compilation.

    Attributes:
        controller: as data.
    """

    def __init__(self, law: InverseDynamicsQP) -> None:
        self.controller = law.controller

    @property
    def kind(self) -> str:
        """What runs, in words."""
        return "CasADi's Function of the law"

    def start(self, plant: Plant) -> Tick:  # noqa: ARG002  # the interface's
        """Return what calls the Function."""
        return Caller(self.controller.function)


def stronger_law(given: Controlled, law: Runnable) -> Runnable | None:
    """Return the law for far stronger actuators, or None.

    A law of ours keeps to limits of its own, and only an `InverseDynamicsQP` can be made again
    with larger ones. A controller of others is clipped by the plant alone.
    """
    if "limits" in law.controller.unreported:
        return law
    if not isinstance(given, InverseDynamicsQP):
        return None
    ranges = given.ranges
    try:
        return EvaluatedLaw(
            replace(given, ctrl_limits=wider(ranges.ctrl), force_limits=wider(ranges.force))
        )
    except MbcasadiError:  # other options hold only with the ranges as they are
        return None


def stronger_plant(plants: PlantFactory, *, stops: bool = True) -> Plant:
    """Return the plant with far stronger actuators, with the stops of its joints or without."""
    plant = plants.make()
    model = plant.model
    for ranges in (
        model.actuator_ctrlrange,
        model.actuator_forcerange,
        model.jnt_actfrcrange,
        model.tendon_actfrcrange,
    ):
        ranges[:] = wider(ranges)
    if not stops:
        model.jnt_limited[:] = 0
    return plant


def wider(ranges: Array) -> Array:
    """Return ranges (n, 2) that are larger about their middles; infinite ends stay."""
    low, high = ranges.T
    width = high - low
    more = np.where(np.isfinite(width), (STRONGER - 1) / 2 * np.nan_to_num(width, posinf=0.0), 0.0)
    return np.stack([low - more, high + more], axis=1)


def joints_at_stops(model: mujoco.MjModel, q: Array) -> list[str]:
    """Return the names of the hinges and slides that come to a stop in a run, q (nt, nq)."""
    single = {int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)}
    names = []
    for j in range(model.njnt):
        if not model.jnt_limited[j] or int(model.jnt_type[j]) not in single:
            continue
        low, high = model.jnt_range[j]
        place = q[:, int(model.jnt_qposadr[j])]
        margin = model.jnt_margin[j]
        at_stop = (place < low + margin) | (place > high - margin)
        if at_stop.any() and not at_stop.all():  # as an open gripper is all the time
            names.append(model.joint(j).name or str(j))
    return names
