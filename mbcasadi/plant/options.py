"""How a plant differs from its model: a recipe for rigid constraints, and parameter errors."""

import math
from collections.abc import Mapping

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import SimulationError
from mbcasadi.plant.model_attributes import forget_common_frames
from mbcasadi.plant.named_parameters import (
    is_single_parameter,
    scale_parameter,
    update_constants,
)
from mbcasadi.unknown_names import unknown_name

# The stiffest impedance that MuJoCo admits (it clamps to 0.9999), constant over all depths.
RIGID_IMPEDANCE = (0.9999, 0.9999, 0.001, 0.5, 2.0)
ROUNDING = 1e-9  # of a number of parts of a step
RIGID_STEP = 1e-3  # s; above it RK4's error over a second exceeds the softness that is left
RIGID_ITERATIONS = 50

_SCALED = {
    "mass": ("body_mass", "body_inertia"),
    "friction": ("geom_friction",),
    "damping": ("dof_damping",),
    "armature": ("dof_armature",),
    "stiffness": ("jnt_stiffness",),
    "gain": ("actuator_gainprm", "actuator_biasprm"),
}
COM = "com"
NAMES = (*_SCALED, COM)
LINEAR_GAINS = {int(mujoco.mjtGain.mjGAIN_FIXED), int(mujoco.mjtGain.mjGAIN_AFFINE)}
LINEAR_BIASES = {int(mujoco.mjtBias.mjBIAS_NONE), int(mujoco.mjtBias.mjBIAS_AFFINE)}
LINEAR_TERMS = 3  # of gain and bias: constant, length, velocity


@checked
def make_rigid(model: mujoco.MjModel) -> None:
    """Make equality constraints as rigid as MuJoCo can, with a suitable integrator.

    `solimp = .9999 .9999 .001`, `solref = 2 dt, 1` on every equality; dense Newton solver with
    tolerance 0; RK4 with the model's step, or a whole part of it of at most 1 ms. Contacts, limits
    and friction keep their own softness. What remains on a four-bar: 2e-5 relative in the
    acceleration (median).
    """
    model.opt.timestep /= max(1, math.ceil(model.opt.timestep / RIGID_STEP - ROUNDING))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    soften(model, 2 * model.opt.timestep, RIGID_IMPEDANCE[0])


@checked
def soften(model: mujoco.MjModel, time_constant: float, impedance: float) -> None:
    """Give every equality `solref = (time_constant, 1)` and a constant impedance.

    MuJoCo reads `solref` with `time_constant >= 2 dt` and clamps the impedance to 0.9999. Its
    solver is made to converge: at high impedance, the default tolerance stops it at an error of
    about 1e-2.
    """
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    model.opt.tolerance = 0.0
    model.opt.iterations = max(model.opt.iterations, RIGID_ITERATIONS)
    model.eq_solref[:] = (time_constant, 1.0)
    model.eq_solimp[:] = (impedance, impedance, *RIGID_IMPEDANCE[2:])


@checked
def perturb(
    model: mujoco.MjModel, errors: Mapping[str, float], seed: int | None = None
) -> dict[str, NDArray[np.float64]]:
    """Scale parameters of `model` in place; return the factors that were used.

    Args:
        model: the plant's own model.
        errors: relative error by name: "mass" (with inertia), "friction" (sliding), "damping",
            "armature", "stiffness", "gain" (force of motors and servos). 0.1 is +10 %. "com" shifts
            the centre of mass of each body along the axes of its inertia, in half-lengths of the
            box that has this mass and inertia. Other names are those of single parameters, as in
            `read_mjcf(parameters=)`: "body:forearm:mass", "joint:*:damping", "gravity"; they are
            not drawn.
        seed: None gives every element the same factor `1 + error`; a number draws one factor
            for each body, geom, joint, dof or actuator, uniformly from `1 ± |error|`.

    Raises:
        UnknownNameError: an unknown parameter.
        SimulationError: a factor would not be positive, "gain" of an actuator whose force is not
            linear in control, length and velocity, "com" of a body that MuJoCo simplified.
    """
    if seed is not None and seed < 0:
        raise SimulationError(f"seed = {seed}; expected a whole number, at least 0")
    require_errors(errors, drawn=seed is not None)
    rng = None if seed is None else np.random.default_rng(seed)
    factors = {}
    for name, error in errors.items():
        if is_single_parameter(name):
            scale_parameter(model, name, 1.0 + error)
            factors[name] = np.array([1.0 + error])
            continue
        if name == COM:
            factors[name] = _shift_centres(model, error, rng)
            continue
        size = len(getattr(model, _SCALED[name][0]))
        draw = np.ones(size) if rng is None else rng.uniform(-1.0, 1.0, size)
        factor = 1.0 + error * draw
        for field in _SCALED[name]:
            values = getattr(model, field)
            if name == "friction":  # slide only: spin and roll are lengths
                values[:, 0] *= factor
            elif name == "gain":
                _require_linear_actuators(model)
                values[:, :LINEAR_TERMS] *= factor[:, None]
            else:
                values *= factor if values.ndim == 1 else factor[:, None]
        factors[name] = factor
    if "friction" in errors and model.npair:
        model.pair_friction[:, :2] *= 1.0 + errors["friction"]
    update_constants(model)
    return factors


def require_errors(errors: Mapping[str, float], *, drawn: bool) -> None:
    """Raise unless all factors of `perturb` are positive.

    Args:
        errors: relative error by name.
        drawn: each element draws its own error of both signs; else all have just this error.

    Raises:
        UnknownNameError: an unknown parameter.
        SimulationError: an error of which a factor would not be positive, or no finite one.
    """
    for name, error in errors.items():
        single = is_single_parameter(name)
        if name not in NAMES and not single:
            raise unknown_name("perturbation", name, NAMES)
        if drawn and not single and not abs(error) < 1:
            raise SimulationError(
                f"perturb {name!r}: {error} is not between -1 and 1, and errors of both signs "
                "are drawn"
            )
        if not -1 < error < np.inf:
            raise SimulationError(f"perturb {name!r}: {error} is not a finite number above -1")


def _require_linear_actuators(model: mujoco.MjModel) -> None:
    """Raise unless a factor on gain and bias is one on the force of each actuator."""
    for i in range(model.nu):
        if (
            int(model.actuator_gaintype[i]) not in LINEAR_GAINS
            or int(model.actuator_biastype[i]) not in LINEAR_BIASES
        ):
            raise SimulationError(
                f"perturb 'gain': the force of actuator {model.actuator(i).name!r} is not linear "
                "in control, length and velocity; leave 'gain' out"
            )


def _shift_centres(
    model: mujoco.MjModel, error: float, rng: np.random.Generator | None
) -> NDArray[np.float64]:
    """Shift the centre of mass of each body; return the shifts (nbody, 3) in its frame, m.

    A box of mass m with half-lengths a has the inertias `I_x = m (a_y² + a_z²) / 3`.
    """
    shape = (model.nbody, 3)
    draw = np.ones(shape) if rng is None else rng.uniform(-1.0, 1.0, shape)
    mass = np.where(model.body_mass > 0, model.body_mass, np.inf)[:, None]
    inertia = np.array(model.body_inertia)
    squares = 1.5 * (inertia.sum(axis=1, keepdims=True) - 2 * inertia) / mass
    shifts = np.array(error * draw * np.sqrt(np.maximum(squares, 0.0)), dtype=float)
    for body in range(model.nbody):
        mujoco.mju_rotVecQuat(shifts[body], shifts[body].copy(), model.body_iquat[body])
    for body in range(1, model.nbody):
        forget_common_frames(model, body, COM)
    model.body_ipos[:] += shifts
    return shifts
