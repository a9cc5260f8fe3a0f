"""How a plant differs from its model: a recipe for rigid constraints, and parameter errors."""

from collections.abc import Mapping

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import SimulationError
from mbcasadi.unknown_names import unknown_name

# The stiffest impedance that MuJoCo admits (it clamps to 0.9999), constant over all depths.
RIGID_IMPEDANCE = (0.9999, 0.9999, 0.001, 0.5, 2.0)
RIGID_STEP = 1e-3  # s; above it RK4's error over a second exceeds the softness that is left
RIGID_ITERATIONS = 50

_SCALED = {
    "mass": ("body_mass", "body_inertia"),
    "friction": ("geom_friction",),
    "damping": ("dof_damping",),
    "armature": ("dof_armature",),
    "stiffness": ("jnt_stiffness",),
}


@checked
def make_rigid(model: mujoco.MjModel) -> None:
    """Make equality constraints as rigid as MuJoCo can, with a suitable integrator.

    `solimp = .9999 .9999 .001`, `solref = 2 dt, 1` on every equality; dense Newton solver with
    tolerance 0; RK4 with a step of at most 1 ms. Contacts, limits and friction keep their own
    softness. What remains on a four-bar: 2e-5 relative in the acceleration (median).
    """
    model.opt.timestep = min(model.opt.timestep, RIGID_STEP)
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
            "armature", "stiffness". 0.1 is +10 %.
        seed: None gives every element the same factor `1 + error`; a number draws one factor
            for each body, geom, joint or dof, uniformly from `1 ± |error|`.

    Raises:
        UnknownNameError: an unknown parameter.
        SimulationError: a factor would not be positive.
    """
    if seed is not None and seed < 0:
        raise SimulationError(f"seed = {seed}; expected a whole number, at least 0")
    rng = None if seed is None else np.random.default_rng(seed)
    factors = {}
    for name, error in errors.items():
        if name not in _SCALED:
            raise unknown_name("perturbation", name, _SCALED)
        if not abs(error) < 1:
            raise SimulationError(f"perturb {name!r}: {error} is not between -1 and 1")
        size = len(getattr(model, _SCALED[name][0]))
        draw = np.ones(size) if rng is None else rng.uniform(-1.0, 1.0, size)
        factor = 1.0 + error * draw
        for field in _SCALED[name]:
            values = getattr(model, field)
            if name == "friction":  # slide only: spin and roll are lengths
                values[:, 0] *= factor
            else:
                values *= factor if values.ndim == 1 else factor[:, None]
        factors[name] = factor
    if "friction" in errors and model.npair:
        model.pair_friction[:, :2] *= 1.0 + errors["friction"]
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return factors
