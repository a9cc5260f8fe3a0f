"""The same robot written otherwise, in another size, or with other actuators."""

from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
from support.actuator_variants import motors_for_servos, servos_for_motors, weak
from support.model_variants import renamed, reversed_bodies, turned_base, turned_roots
from support.scaled_models import scaled

from mbcasadi.validation.spec import build_experiment, read_spec

RIGHT = 0.5 * np.pi


def _scaled(path: Path, s: float) -> str:
    spec = scaled(path, s).spec
    spec.compile()
    return spec.to_xml()


def _turned(path: Path) -> str:
    free = mujoco.mjtJoint.mjJNT_FREE in mujoco.MjModel.from_xml_path(str(path)).jnt_type
    return (turned_base if free else turned_roots)(path, RIGHT)


MADE: dict[str, Callable[[Path], str]] = {
    "renamed": renamed,
    "reversed": reversed_bodies,
    "turned": _turned,
    "half": lambda path: _scaled(path, 0.5),
    "double": lambda path: _scaled(path, 2.0),
    "motors": motors_for_servos,
    "servos": servos_for_motors,
}
"""Text of a variant's model."""

VARIANTS = ("", *MADE, "weak")


def static_load(model: Path, spec_file: Path) -> np.ndarray:
    """Return the forces (nu,) of MuJoCo's actuators at the start of a controller's file, at rest.

    The controls are those of the controller: they carry the robot, on its feet if it has some.

    Raises:
        ValueError: a plan above the controller.
        MbcasadiError: as `build_experiment`.
    """
    spec = read_spec(spec_file)
    experiment = build_experiment(spec, model)
    law, q = experiment.controller, experiment.q0
    if experiment.reference is None:
        raise ValueError("the load is that of inverse dynamics; expected a task without a plan")
    source = spec.model(model)
    plant = mujoco.MjModel.from_xml_path(source) if isinstance(source, str) else source.compile()
    data = mujoco.MjData(plant)
    data.qpos = q
    data.ctrl = law.solve(q, np.zeros(plant.nv), experiment.reference(0.0)).u
    mujoco.mj_forward(plant, data)
    return np.array(data.actuator_force)


def write(variant: str, model: Path, folder: Path, spec_file: Path | None = None) -> Path:
    """Write a variant of a model into a folder, under its own name, and return its path."""
    path = folder / model.name
    if variant == "weak":
        assert spec_file is not None, "the load is that of a controller"
        path.write_text(weak(model, static_load(model, spec_file)))
    else:
        path.write_text(MADE[variant](model))
    return path
