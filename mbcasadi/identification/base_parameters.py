"""Base parameters: the combinations of θ that forces depend on.

With `W` the equations of many states and R its triangular factor, a column that depends on the
columns before it, `W_j = Σ K_ij W_i`, adds `K_ij θ_j` to their parameters:

    W θ = W_1 β,   β = θ_1 + K θ_2     [M. Gautier, W. Khalil, *Direct calculation of minimum set of
    inertial parameters of serial robots*, IEEE Trans. Robotics and Automation 6, 1990]
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.description.parameters import Parameters
from mbcasadi.dynamics.regressor import parameter_sizes
from mbcasadi.errors import ProblemError
from mbcasadi.identification.equations import (
    StackedEquations,
    all_parameters,
    stacked_equations,
)
from mbcasadi.identification.free_motion import FreeMotion
from mbcasadi.identification.samples import Samples, closed_samples
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.closed_poses import closed_poses
from mbcasadi.system.natural_sizes import natural_sizes
from mbcasadi.system.parametric import at_model_values

Array = NDArray[np.float64]

STRUCTURE_TOL = 1e-8
"""Remainder of a column, over the longest column, below which it depends on those before it: states
at random are exact, and motions that differ by more are seen."""

NEGLIGIBLE = 1e-8
"""Coefficient of a combination, in sizes, that is rounding."""

POSES = 4
"""Sets of closed poses at random; each has 8."""

MOTIONS = 4
"""Velocities and accelerations at each pose."""

DIGITS = 4
"""Significant digits of a coefficient in a name."""


@summarised
@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The identifiable combinations `β = G θ` of a mechanism.

    Attributes:
        parameters: θ.
        names: of each combination, "body:arm:mass + 0.5 body:hand:mass".
        matrix: G (nb, nθ).
        independent: index in θ of the parameter that stands for each combination; `W θ = W_1 β`
            with the columns W_1 of these.
        without_effect: entries of θ that no motion depends on.
    """

    parameters: Parameters
    names: tuple[str, ...]
    matrix: Array
    independent: tuple[int, ...]
    without_effect: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of combinations."""
        return len(self.names)

    def _summary(self) -> dict[str, object]:
        counts: dict[str, object] = {"parameters": len(self.parameters), "combinations": len(self)}
        return counts | {"without_effect": len(self.without_effect)}


@checked
@at_model_values
def base_parameters(system: System, parameters: Sequence[str] = ("*",)) -> BaseParameters:
    """Return the combinations of θ that the mechanism's motions depend on.

    From states at random on the constraints; in a mechanism with loops only forces along null(A)
    count. Bodies without mass are left out. Each combination is named after the first parameter in
    it, in the order of `linear_parameters`.

    Args:
        system: read from a model.
        parameters: patterns of names, as in `linear_parameters`.

    Raises:
        UnknownNameError, ProblemError: as `linear_parameters`; or nothing of these has an effect.
    """
    theta = all_parameters(system, list(parameters))
    stacked = stacked_equations(system, theta, random_samples(system))
    return _grouped(theta, stacked, parameter_sizes(system, theta))


def random_samples(system: System, seed: int = 0) -> Samples:
    """Return closed states at random, in the mechanism's own sizes; forces are zero."""
    rng = np.random.default_rng(seed)
    size = natural_sizes(system)
    closed = [q for _ in range(POSES) for q in closed_poses(system, rng, size)]
    poses = [q for q in closed for _ in range(MOTIONS)]
    motion, rate = FreeMotion(system), system.scales.rate
    v, a = [], []
    for q in poses:
        Z = motion.basis(q, np.zeros(system.nv))
        v.append(rate * Z @ rng.standard_normal(Z.shape[1]))
        a.append(rate**2 * Z @ rng.standard_normal(Z.shape[1]))
    rates = np.array(v)
    return closed_samples(system, Samples(np.array(poses), rates, np.array(a), 0 * rates))


def _grouped(theta: Parameters, stacked: StackedEquations, sizes: Array) -> BaseParameters:
    R = np.asarray(np.linalg.qr(stacked.W * sizes, mode="r"))
    independent, directions = _independent_columns(R)
    if not independent:
        raise ProblemError(
            "no motion of the mechanism depends on these parameters: "
            f"{', '.join(theta.names)}; choose others"
        )
    K = np.linalg.lstsq(R[:, independent], R, rcond=None)[0]
    K[np.abs(K) < NEGLIGIBLE * max(1.0, np.abs(K).max())] = 0.0
    G = K / sizes * sizes[independent][:, None]
    effect = (
        np.linalg.norm(directions.T @ R, axis=0) > STRUCTURE_TOL * np.linalg.norm(R, axis=0).max()
    )
    return BaseParameters(
        parameters=theta,
        names=tuple(_name(theta.names, row) for row in G),
        matrix=G,
        independent=tuple(independent),
        without_effect=tuple(n for n, on in zip(theta.names, effect, strict=True) if not on),
    )


def _independent_columns(R: Array) -> tuple[list[int], Array]:
    """Return the columns that do not depend on those before them, and a basis of their span."""
    least = STRUCTURE_TOL * np.linalg.norm(R, axis=0).max(initial=0.0)
    chosen: list[int] = []
    basis = np.zeros((R.shape[0], 0))
    for j, column in enumerate(R.T):
        remainder = column
        for _ in range(2):  # the second pass removes the rounding errors of the first
            remainder = remainder - basis @ (basis.T @ remainder)
        length = np.linalg.norm(remainder)
        if length > least:
            chosen.append(j)
            basis = np.column_stack([basis, remainder / length])
    return chosen, basis


def _name(names: tuple[str, ...], coefficients: Array) -> str:
    text = ""
    for name, x in zip(names, coefficients, strict=True):
        if x:
            factor = "" if abs(abs(x) - 1) < NEGLIGIBLE else f"{abs(x):.{DIGITS}g} "
            sign = ("- " if x < 0 else "") if not text else (" - " if x < 0 else " + ")
            text += f"{sign}{factor}{name}"
    return text
