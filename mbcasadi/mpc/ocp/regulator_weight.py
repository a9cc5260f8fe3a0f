"""Cost at the end of a horizon: that of the problem's own regulator at rest.

At a rest the interval of a problem, along the motions that its rows allow, is

    ξ⁺ = A ξ + B υ,    cost = ½ |J (υ, ξ)|²,    (δq, δv) = Z ξ,

with Z a basis of the null space of the rows that the mask has on. The Riccati equation gives the
cost `½ ξᵀ P ξ` of all that comes behind the horizon. In the coordinates of the model it is
`Zᵀ⁺ P Z⁺`, which no basis changes, and zero for deviations that the rows exclude.
"""

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.operating_point import numbers, place_of, rows_fun
from mbcasadi.control.regulators.riccati import SampledStage, tick_regulator
from mbcasadi.control.regulators.tangent import (
    TANGENT_RANK_TOL,
    coordinates_of,
    free_directions_of,
)
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.motion_form import charts
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.shapes import column

AT_REST = 1e-6
"""Largest change of the state in an interval at rest, relative to 1 + its size."""


@checked
def regulator_weight(
    ocp: OptimalControlProblem, x: ArrayLike, u: ArrayLike, p: ArrayLike | None = None
) -> Array:
    """Return `Q_end` (2 nv, 2 nv) of a `Cost`: what the regulator at a rest would still cost.

    Weights, integrator, actuators and rows are those of the problem; inequalities do not count.

    Args:
        ocp: of a mechanism, in its states alone.
        x, u: (nx,), (nu,) a state at rest, and the controls that hold it.
        p: (np,) parameters of a sample, the mask among them; those of the first by default.

    Raises:
        ProblemError: changes of controls in the problem, no rest, or no regulator: a motion without
            cost, or one that no control stops.
        ShapeError: a wrong shape, or NaN.
    """
    system = ocp.system
    if system is None or ocp.has_rates or ocp.nu != system.nu:
        raise ProblemError(
            f"'{ocp.name}': expected a problem of a mechanism in its states and controls alone, "
            "without S, du or StageForces"
        )
    state, control = column("x", x, ocp.nx), column("u", u, ocp.nu)
    sample = ocp.parameters()[0] if p is None else column("p", p, ocp.np_)
    A, B, J, drift = _about(ocp, state, control, sample)
    if np.abs(drift).max() > AT_REST * (1 + np.abs(state).max()):
        raise ProblemError(
            f"'{ocp.name}': x and u are no rest: an interval changes the state by "
            f"{np.abs(drift).max():.1e}; expected those of mb.equilibrium"
        )
    Z, inverse = _free(ocp, state, sample)
    nu = ocp.nu
    J = np.hstack([J[:, :nu], J[:, nu:] @ Z])
    H = J.T @ J
    stage = SampledStage(inverse @ A @ Z, inverse @ B, H[nu:, nu:], H[:nu, :nu], H[nu:, :nu])
    P = tick_regulator(stage, ocp.period).S
    return np.asarray(inverse.T @ P @ inverse)


def _about(ocp: OptimalControlProblem, x: Array, u: Array, p: Array) -> tuple[Array, ...]:
    """Return A, B along tangents, derivatives of the residual by (u, x), and the drift."""
    assert ocp.system is not None
    moved, gap, _ = charts(ocp.system, 0)
    d, w, at_p = ca.MX.sym("d", moved.size1_in(1)), ca.MX.sym("w", ocp.nu), ca.MX.sym("p", ocp.np_)
    here = moved(ca.DM(x), d), ca.DM(u) + w, at_p
    step = gap(ca.DM(x), ocp.dynamics(*here))
    slopes = [ca.jacobian(step, d), ca.jacobian(step, w)]
    of_cost = ca.jacobian(ocp.residual(*here), ca.vertcat(w, d))
    about = ca.Function("about", [d, w, at_p], [*slopes, of_cost, step])
    values = about(np.zeros(d.numel()), np.zeros(ocp.nu), p)
    A, B, J, drift = (part.full() for part in values)
    return A, B, J, drift.ravel()


def _free(ocp: OptimalControlProblem, x: Array, p: Array) -> tuple[Array, Array]:
    """Return Z of positions and rates, and its left inverse."""
    system = ocp.system
    assert system is not None
    places = slot_slices(ocp.slots)
    mask = p[places["mask"]] if "mask" in places else None
    t = float(p[places["t"]][0]) if "t" in places else 0.0
    at = place_of(system, x[: system.nq], t=t, mask=mask)
    rows = numbers(rows_fun(system), at.values)["A"]
    Z = free_directions_of(system, rows, TANGENT_RANK_TOL)
    return _twice(Z), _twice(coordinates_of(system, Z))


def _twice(block: Array) -> Array:
    """Return a block of positions and the same of rates."""
    return np.block([[block, np.zeros_like(block)], [np.zeros_like(block), block]])
