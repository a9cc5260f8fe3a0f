"""Identification of physical parameters from measured motions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.description.parameters import Parameters
from mbcasadi.dynamics.regressor import parameter_sizes, regressor
from mbcasadi.errors import ProblemError
from mbcasadi.identification.base_parameters import BaseParameters, base_parameters
from mbcasadi.identification.consistent import consistent_parameters
from mbcasadi.identification.equations import (
    StackedEquations,
    stacked_equations,
)
from mbcasadi.identification.free_motion import FreeMotion
from mbcasadi.identification.samples import Samples, require_sizes
from mbcasadi.shapes import column, require_positive
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.parameter_attributes import INERTIA_PLACES
from mbcasadi.system.parametric import at_model_values

Array = NDArray[np.float64]

EXCITED = 1e-6
"""Singular value of the equations, over the largest one, below which nothing was moved."""

SHARED = 0.1
"""Share of a combination in directions that were not moved, from which it is undetermined."""

ROUNDING = 1e-12
"""Noise, over the forces of parameters of a usual size, that equations have at least."""


@summarised
@dataclass(frozen=True, eq=False)
class Identification:
    """What measured motions say of a model.

    Attributes:
        parameters: θ, with the model's own values.
        theta: (nθ,) those of real bodies that fit best, near the model's where forces do not tell.
        base: the combinations that forces depend on.
        beta, beta_std: (nb,) weighted least squares of the combinations and their standard
            deviations; NaN for those that are not determined. Errors of samples count as
            independent: filtered ones are not, so that the deviations are lower bounds.
        undetermined: names of combinations that the samples do not determine.
        noise: root mean square of what is left of the equations, N m in the sizes of the
            coordinates, or over the given noise.
    """

    parameters: Parameters
    theta: Array
    base: BaseParameters
    beta: Array
    beta_std: Array
    undetermined: tuple[str, ...]
    noise: float

    def _summary(self) -> dict[str, object]:
        return {
            "parameters": len(self.parameters),
            "combinations": len(self.base),
            "undetermined": len(self.undetermined),
            "noise": self.noise,
        }

    @property
    def physical(self) -> dict[str, Array]:
        """The values by the names of `read_mjcf(parameters=)`: mass, com, inertia about the com.

        For `system.at(...)` of a system with these parameters, or for the file of the model.
        """
        values: dict[str, Array] = {}
        for item, place in zip(self.parameters.items, self.parameters.slices.values(), strict=True):
            values[item.name] = self.theta[place]
        for name in [x.name for x in self.parameters.items if x.attribute == "first_moment"]:
            body = name.rpartition(":")[0]
            values |= _about_com(body, values)
        return values


def _about_com(body: str, values: dict[str, Array]) -> dict[str, Array]:
    """Return com and inertia about it; removes what they are made from."""
    m, com = values[f"{body}:mass"], values.pop(f"{body}:first_moment") / values[f"{body}:mass"]
    origin = values.pop(f"{body}:origin_inertia")
    steiner = m * ((com @ com) * np.eye(3) - np.outer(com, com))
    shift = np.array([steiner[place] for place in INERTIA_PLACES])
    return {f"{body}:com": com, f"{body}:inertia": origin - shift}


@checked
@at_model_values
def identify(
    system: System,
    samples: Samples,
    parameters: Sequence[str] = ("*",),
    *,
    noise: ArrayLike | None = None,
    spread: float | None = 1.0,
) -> Identification:
    """Return the parameters that explain measured forces best.

    The equations `Zᵀ (Y θ + y_0 - f) = 0`, Z on null(A): constraint forces, which nobody measures,
    are not in them. First the combinations `β = G θ` by weighted least squares, with their standard
    deviations; then θ of real bodies (`consistent.py`), near the model's values in directions
    that forces do not determine.

    Args:
        system: read from a model; its values are what θ stays near to.
        samples: of `filtered_samples`, or your own.
        parameters: patterns of names; a body with all its ten parameters, "body:forearm:*".
        noise: (nv,) standard deviation of each measured force, N or N m; by default equal for all
            torques, forces over a length of the model.
        spread: standard deviation of the model's values, as a share: how far θ may go from them
            where forces tell little. None: samples that do not determine all combinations are
            refused.

    Raises:
        ProblemError: too few samples, or motions that determine too little, with the combinations
            by name.
        UnknownNameError, ShapeError: parameters or samples that do not fit the system.
    """
    require_sizes(system, samples)
    if spread is not None:
        require_positive(spread=spread)
    deviations = None if noise is None else column("noise", noise, system.nv)
    if deviations is not None and deviations.min() <= 0:
        raise ProblemError(f"noise {deviations}; expected numbers above zero")
    base = base_parameters(system, parameters)
    theta, sizes = base.parameters, parameter_sizes(system, base.parameters)
    stacked = stacked_equations(system, theta, samples, deviations)
    beta, std, missing, left = _least_squares(base, stacked, sizes)
    undetermined = tuple(name for name, on in zip(base.names, missing, strict=True) if on)
    if undetermined and spread is None:
        raise ProblemError(
            f"the samples do not determine {len(undetermined)} of {len(base)} combinations: "
            f"{'; '.join(undetermined)}. Move the joints further and faster, or give a spread: "
            "they stay near the model's values then"
        )
    R = np.asarray(np.linalg.qr(np.column_stack([stacked.W, stacked.w]) / left, mode="r"))
    fitted = consistent_parameters(
        theta, sizes, R[:, :-1], R[:, -1], np.inf if spread is None else spread
    )
    return Identification(theta, fitted, base, beta, std, undetermined, left)


def _least_squares(
    base: BaseParameters, stacked: StackedEquations, sizes: Array
) -> tuple[Array, Array, Array, float]:
    """Return β, its standard deviation, which of it are undetermined, and the noise."""
    per_size = sizes[list(base.independent)]
    X = stacked.W[:, base.independent] * per_size
    freedom = X.shape[0] - X.shape[1]
    if freedom <= 0:
        raise ProblemError(
            f"{X.shape[0]} equations of the samples for {X.shape[1]} combinations of parameters; "
            "expected more samples"
        )
    U, values, right = np.linalg.svd(X, full_matrices=False)
    moved = values > EXCITED * values[0]
    inverse = right[moved].T / values[moved]
    beta = inverse @ (U[:, moved].T @ stacked.w)
    left = float(np.linalg.norm(stacked.w - X @ beta) / np.sqrt(freedom))
    left = max(left, ROUNDING * float(np.linalg.norm(X)) / np.sqrt(X.shape[0]))
    std = left * np.linalg.norm(inverse, axis=1)
    missing = np.linalg.norm(right[~moved], axis=0) > SHARED
    beta, std = (np.where(missing, np.nan, x * per_size) for x in (beta, std))
    return beta, std, missing, left


@checked
@at_model_values
def predicted_controls(
    system: System, samples: Samples, parameters: Parameters, theta: ArrayLike
) -> Array:
    """Return (n, nu) the controls that a model with other parameters needs for measured motions.

    `u = (Zᵀ B)⁺ Zᵀ (Y θ + y_0 - f_0)`, the least controls for the motion.

    Args:
        system: read from a model.
        samples: the motions; their forces are not used.
        parameters: θ by name, as in `Identification.parameters`.
        theta: (nθ,) values.
    """
    require_sizes(system, samples)
    values = column("theta", theta, len(parameters))
    Y_of, motion = regressor(system, [item.name for item in parameters.items]), FreeMotion(system)
    controls = []
    for q, v, a in zip(samples.q, samples.v, samples.a, strict=True):
        Y, rest = (x.full() for x in Y_of(q, v, a))
        Z = motion.basis(q, v)
        needed = Y @ values + rest.ravel() - system.actuator_bias(q, v).full().ravel()
        reach = Z.T @ system.actuation(q).full()
        controls.append(scipy.linalg.lstsq(reach, Z.T @ needed)[0])
    return np.array(controls)
