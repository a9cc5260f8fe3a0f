"""The stacked equations `W θ = w` of many samples, constraint forces eliminated."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.parameters import Parameters
from mbcasadi.dynamics.regressor import linear_parameters, regressor
from mbcasadi.identification.free_motion import FreeMotion
from mbcasadi.identification.samples import Samples
from mbcasadi.system import System

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StackedEquations:
    """`W θ = w`: rows of all samples, along null(A) of each.

    Attributes:
        W: (n, nθ).
        w: (n,) measured side, `Zᵀ (f - y_0)`; over the noise, where it is given.
        force: (n,) `Zᵀ f` alone, for relative errors.
        sample: (n,) index of the sample that a row belongs to.
    """

    W: Array
    w: Array
    force: Array
    sample: Array


def stacked_equations(
    system: System, parameters: Parameters, samples: Samples, noise: Array | None = None
) -> StackedEquations:
    """Return the equations of samples.

    Args:
        system: the mechanism.
        parameters: θ.
        samples: on the constraints.
        noise: (nv,) standard deviation of the force of each coordinate; by default equal torques in
            the sizes of the coordinates.
    """
    names = [item.name for item in parameters.items]
    Y_of, motion = regressor(system, names), FreeMotion(system)
    W, w, force, places = [], [], [], []
    for k, (q, v, a, f) in enumerate(zip(samples.q, samples.v, samples.a, samples.f, strict=True)):
        Y, rest = (x.full() for x in Y_of(q, v, a))
        Z = motion.basis(q, v)
        if noise is not None:  # rows of unit variance
            Z = np.linalg.solve(np.linalg.cholesky(Z.T @ (noise[:, None] ** 2 * Z)), Z.T).T
        W.append(Z.T @ Y)
        w.append(Z.T @ (f - rest.ravel()))
        force.append(Z.T @ f)
        places.append(np.full(Z.shape[1], k))
    return StackedEquations(*(np.concatenate(x) for x in (W, w, force, places)))


def all_parameters(system: System, patterns: list[str]) -> Parameters:
    """Return θ of a system, without bodies that have no mass: those are frames."""
    chosen = linear_parameters(system, patterns)
    tree = system.tree
    assert tree is not None
    kept = [x for x in chosen.items if x.kind != "body" or tree.bodies[x.index].mass > 0]
    return Parameters(tuple(kept))
