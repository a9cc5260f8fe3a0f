"""Records of ticks whose QPs are solved: a quadruped, a humanoid, linear MPC."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench import mpc, tick
from bench.tick_cases import QUADRUPED
from mbcasadi import models
from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.system import read_mjcf

Array = NDArray[np.float64]

SOLES = tuple(f"{side}_foot_{i}" for side in ("left", "right") for i in range(1, 5))
SPREAD, PERIOD, FREQUENCY = 0.05, 1e-3, 0.5  # rad or m; s; Hz


@dataclass(frozen=True)
class Case:
    """A record of ticks.

    Attributes:
        name: of the mechanism.
        problems: A (ticks, m, n), lower and upper (ticks, m).
        controller, inputs: of inverse dynamics.
    """

    name: str
    problems: tuple[Array, Array, Array]
    controller: InverseDynamicsQP | None = None
    inputs: dict[str, Array] = field(default_factory=dict)


def cases(ticks: int) -> Iterator[Case]:
    """Yield the records, each of so many ticks."""
    yield _inverse_dynamics("quadruped", QUADRUPED.controller(), QUADRUPED.sway(ticks))
    humanoid = humanoid_controller()
    yield _inverse_dynamics("humanoid", humanoid, swing(humanoid, ticks))
    for horizon in mpc.HORIZONS:
        for box in (False, True):
            yield _linear_mpc(horizon, ticks, box=box)


def humanoid_controller() -> InverseDynamicsQP:
    """Return the whole-body controller of a humanoid on two feet of four points."""
    return InverseDynamicsQP(
        read_mjcf(models.path("humanoid")),
        [FrameTask("pelvis", kind="body", weight=10.0, name="base"), PostureTask(kp=50.0)],
        [Contact(name, sides=4) for name in SOLES],
    )


def swing(controller: InverseDynamicsQP, ticks: int) -> tuple[Array, Array]:
    """Return (ticks, nq) and (ticks, nv): all coordinates swing about the standing pose."""
    system = controller.system
    assert system.tree is not None
    stand, rng = system.tree.keyframes["stand"], np.random.default_rng(0)
    phase, rate = rng.uniform(0, 2 * np.pi, system.nv), 2 * np.pi * FREQUENCY
    q, v = np.zeros((ticks, system.nq)), np.zeros((ticks, system.nv))
    for k in range(ticks):
        angle = rate * k * PERIOD + phase
        q[k] = np.array(system.integrate(stand, SPREAD * np.sin(angle))).ravel()
        v[k] = SPREAD * rate * np.cos(angle)
    return q, v


def _inverse_dynamics(
    name: str, controller: InverseDynamicsQP, states: tuple[Array, Array]
) -> Case:
    stages = controller.controller.stages
    assert stages is not None
    ref = np.array(controller.reference_at(states[0][0]), dtype=float).ravel()
    mask = np.ones(len(controller.mask_names))
    inputs = {"q": states[0], "v": states[1], "ref": ref, "mask": mask}
    problems = tick.record_problems(stages, controller.controller.z0, inputs)
    return Case(name, problems, controller, inputs)


def _linear_mpc(horizon: int, ticks: int, *, box: bool) -> Case:
    law = mpc.double_integrator(horizon, box=box)
    with tempfile.TemporaryDirectory(prefix="mbcasadi-qp-") as folder:
        program = export_c(law, Path(folder) / "c").load()
        record = mpc.closed_loop(law, program, ticks)[0]
    name = f"double integrator, N = {horizon}{', bounded states' if box else ''}"
    return Case(name, mpc.least_distance_problems(law.controller, record))
