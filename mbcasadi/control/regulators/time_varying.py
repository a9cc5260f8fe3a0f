"""Linear systems along a motion, with bases that vary smoothly.

Near a motion `(q_r, v_r, u_r)` the coordinates are `ξ = Z_qᵀ W (q ⊖ q_r)`, `η = Z_vᵀ W (v - v_r)`,
with bases that turn, orthonormal in the metric W of `linearization.py`. Each basis is the one
nearest to that of the sample before (Procrustes): in the limit `Zᵀ W Ż = 0`, `Ż = -A⁺ Ȧ Z`. Then,
with `Y_q = Z_qᵀ W`, `Y_v = Z_vᵀ W` and Ω the spin of ball and free joints,

    dξ/dt = Y_q (slope - Ω Z_q) ξ + Y_q Z_v η
    dη/dt = (Y_v (∂a/∂q Z_q + ∂a/∂v slope) - Z_vᵀ Ȧᵀ A⁺ᵀ W slope) ξ + Y_v (∂a/∂v Z_v η + ∂a/∂u δu)
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.discrete import hold_matrices
from mbcasadi.control.regulators.linearization import Linearization, assemble_state
from mbcasadi.control.regulators.operating_point import (
    Array,
    Place,
    motion_fun,
    place_of,
    require_linear,
    require_no_activations,
)
from mbcasadi.control.regulators.tangent import (
    TANGENT_RANK_TOL,
    Tangent,
    coordinates_of,
    project_state,
    require_regular,
    spin,
    tangent,
)
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.shapes import real_array, require_positive, require_share
from mbcasadi.system import System
from mbcasadi.system.parametric import at_model_values


@checked
@at_model_values
def linearize_along(
    system: System,
    q: ArrayLike,
    v: ArrayLike,
    u: ArrayLike,
    *,
    t: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    rank_tol: float = TANGENT_RANK_TOL,
) -> tuple[Linearization, ...]:
    """Return the linear system at each sample of a motion, in coordinates that move with it.

    `drift` is zero: (q, v) must be a motion of the mechanism under u, for example of `mb.simulate`.

    Args:
        system: the mechanism.
        q, v, u: (nt, nq), (nt, nv), (nt, nu), one row for each sample.
        t: (nt,) s, for constraints that depend on time.
        mask: (nc,) rows that are on, the same for all samples.
        rank_tol: as in `linearize`.

    Raises:
        ShapeError: wrong shapes, or NaN.
        ProblemError: as `linearize`; or the rank of the constraints changes along the motion.
    """
    if system.nc and "v" in system.loop_jacobian.name_in():
        raise ProblemError(f"'{system.name}' has rows nonlinear in v; linearise single states")
    require_share(rank_tol=rank_tol)
    require_no_activations(system, "a linear system that varies with time")
    places = _places(system, q, v, u, t, mask)
    first = project_state(system, places[0], rank_tol)
    require_regular(system, first, tangent(system, first, rank_tol), rank_tol)
    places = [project_state(system, place, rank_tol) for place in places]
    motions = _motions(system, places, rank_tol)
    systems: list[Linearization] = []
    bases: Tangent | None = None
    for k, (place, motion) in enumerate(zip(places, motions, strict=True)):
        bases = _next(system, place, rank_tol, bases, k)
        require_linear(system, place, motion["clip"])
        linear = assemble_state(system, place, bases, motion, -spin(system, place.v) @ bases.Z_q)
        leaning = coordinates_of(system, bases.slope).T  # W slope
        turned = bases.Z_v.T @ bases.moving.T @ bases.A_pinv.T @ leaning
        linear.dfdx[linear.n_q :, : linear.n_q] -= turned
        systems.append(replace(linear, drift=np.zeros(linear.nx)))
    return tuple(systems)


@checked
def discretize_along(linear: Sequence[Linearization], period: float) -> tuple[Linearization, ...]:
    """Return the steps from each sample to the next, one fewer than there are samples.

    The control is constant over a step and the matrices are the mean of both ends: the error of a
    step is of third order in the period (Magnus' expansion).

    Args:
        linear: continuous systems of `linearize_along`, one period apart.
        period: s.

    Raises:
        ProblemError: a system that is discrete already, or a period that is not positive.
    """
    require_positive(period=period)
    if any(start.period is not None for start in linear):
        raise ProblemError("a linear system is discrete already; expected linearize_along's")
    steps = []
    for start, end in pairwise(linear):
        dfdx, dfdu = (start.dfdx + end.dfdx) / 2, (start.dfdu + end.dfdu) / 2
        dfdx, dfdu, drift = hold_matrices(dfdx, dfdu, (start.drift + end.drift) / 2, period)
        steps.append(replace(start, dfdx=dfdx, dfdu=dfdu, drift=drift, period=period))
    return tuple(steps)


def _places(
    system: System,
    q: ArrayLike,
    v: ArrayLike,
    u: ArrayLike,
    t: ArrayLike | None,
    mask: ArrayLike | None,
) -> list[Place]:
    rows = {"q": real_array("q", q), "v": real_array("v", v), "u": real_array("u", u)}
    sizes = {"q": system.nq, "v": system.nv, "u": system.nu}
    count = len(rows["q"]) if rows["q"].ndim else 0
    for name, array in rows.items():
        if array.shape != (count, sizes[name]) or count == 0:
            raise ShapeError(
                f"{name} has shape {array.shape}, expected ({count}, {sizes[name]}), one row for "
                "each sample"
            )
    times = np.zeros(count) if t is None else real_array("t", t)
    if times.shape != (count,):
        raise ShapeError(f"t has shape {times.shape}, expected ({count},)")
    return [
        place_of(system, rows["q"][k], rows["v"][k], rows["u"][k], float(times[k]), mask)
        for k in range(count)
    ]


def _motions(system: System, places: Sequence[Place], rank_tol: float) -> list[dict[str, Array]]:
    """Return the accelerations and their derivatives at all samples, by one mapped call."""
    motion = motion_fun(system, rank_tol)
    columns = {
        name: np.column_stack([np.atleast_1d(place.values[name]) for place in places])
        for name in motion.name_in()
    }
    out = {name: np.array(x) for name, x in motion.map(len(places))(**columns).items()}
    split = {name: np.split(x, len(places), axis=1) for name, x in out.items()}
    return [{name: x[k] for name, x in split.items()} for k in range(len(places))]


def _next(
    system: System, place: Place, rank_tol: float, previous: Tangent | None, k: int
) -> Tangent:
    """Return the bases nearest to the last ones."""
    bases = tangent(system, place, rank_tol)
    if previous is not None and (bases.Z_q.shape, bases.Z_v.shape) != (
        previous.Z_q.shape,
        previous.Z_v.shape,
    ):
        ranks = [system.nv - each.Z_v.shape[1] for each in (previous, bases)]
        raise ProblemError(
            f"'{system.name}': the rank of the constraints changes from {ranks[0]} to {ranks[1]} "
            f"at sample {k}; expected a motion that passes no singular pose"
        )
    return bases if previous is None else tangent(system, place, rank_tol, previous)
