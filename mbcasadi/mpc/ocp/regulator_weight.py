"""Cost at the end of a horizon: that of the problem's own regulator at rest.

At a rest the interval of a problem, along the motions that its rows allow, is

    ξ⁺ = A ξ + B υ,    cost = ½ |J (υ, ξ)|²,    (δq, δv) = Z ξ,

with Z a basis of the null space of the rows that the mask has on. The Riccati equation gives the
cost `½ ξᵀ P ξ` of all that comes behind the horizon. In the coordinates of the model it is
`Zᵀ⁺ P Z⁺`, which no basis changes, and zero for deviations that the rows exclude.

Along a motion that repeats itself after K samples the cost does as well, `P_0 = P_K`.
"""

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.operating_point import numbers, place_of, rows_fun
from mbcasadi.control.regulators.riccati import (
    NO_SOLUTION,
    SampledStage,
    backward_riccati,
    tick_regulator,
)
from mbcasadi.control.regulators.tangent import (
    TANGENT_RANK_TOL,
    coordinates_of,
    free_directions_of,
)
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.motion_form import charts
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.shapes import column, matrix

AT_REST = 1e-6
"""Largest change of the state in an interval at rest, relative to 1 + its size."""

PERIODS, SAME = 2000, 1e-9
"""Periods of a backward recursion at most, and the share of the cost that the last one changes."""


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
    _require_mechanism(ocp)
    state, control = column("x", x, ocp.nx), column("u", u, ocp.nu)
    sample = ocp.parameters()[0] if p is None else column("p", p, ocp.np_)
    stage, drift = _stage(ocp, _about_fun(ocp).call([state, control, sample]))
    if np.abs(drift).max() > AT_REST * (1 + np.abs(state).max()):
        raise ProblemError(
            f"'{ocp.name}': x and u are no rest: an interval changes the state by "
            f"{np.abs(drift).max():.1e}; expected those of mb.equilibrium"
        )
    Z, inverse = _free(ocp, state, sample)
    free = SampledStage(
        inverse @ stage.A @ Z, inverse @ stage.B, Z.T @ stage.Q @ Z, stage.R, Z.T @ stage.N
    )
    P = tick_regulator(free, ocp.period).S
    return np.asarray(inverse.T @ P @ inverse)


@checked
def periodic_weights(ocp: OptimalControlProblem, x: ArrayLike, u: ArrayLike, p: ArrayLike) -> Array:
    """Return `Q_end` (K, 2 nv, 2 nv) at each sample of a motion that repeats itself after K.

    The backward recursion over the samples is repeated until the cost at the first one stays: the
    periodic Riccati equation. Masks in p switch rows between samples, a step that closes some takes
    velocities onto them, and deviations need no coordinates of their own. Inequalities and the
    soft rows of landings do not count.

    Args:
        ocp: of a mechanism, in its states alone, with equal intervals.
        x, u: (K, nx), (K, nu) states and controls about which deviations are small.
        p: (K, np) parameters of the samples.

    Raises:
        ProblemError: changes of controls in the problem, or no regulator: a motion without control
            or cost that does not decay.
        ShapeError: a wrong shape, or NaN.
    """
    _require_mechanism(ocp)
    count = max(len(np.atleast_1d(x)), 1)
    columns = [
        matrix(key, value, (count, size))
        for key, value, size in (("x", x, ocp.nx), ("u", u, ocp.nu), ("p", p, ocp.np_))
    ]
    about = _about_fun(ocp)
    stages = [_stage(ocp, about.call(row))[0] for row in zip(*columns, strict=True)]
    S, change = np.zeros(stages[0].A.shape), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(PERIODS):
            try:
                costs = backward_riccati(stages, S)[1]
            except np.linalg.LinAlgError as error:
                raise ProblemError(f"{NO_SOLUTION} (NumPy: {error})") from error
            change, S = np.abs(costs[0] - S).max(), costs[0]
            if change <= SAME * np.abs(S).max():
                return np.array(costs[:-1])
            if not np.isfinite(change):
                break
    raise ProblemError(f"{NO_SOLUTION}; the last of {PERIODS} periods changed it by {change:.1e}")


def _require_mechanism(ocp: OptimalControlProblem) -> None:
    """Raise `ProblemError` unless states and controls are those of a mechanism alone."""
    if ocp.system is None or ocp.has_rates or ocp.nu != ocp.system.nu:
        raise ProblemError(
            f"'{ocp.name}': expected a problem of a mechanism in its states and controls alone, "
            "without S, du or StageForces"
        )


def _stage(ocp: OptimalControlProblem, about: Sequence[ca.DM]) -> tuple[SampledStage, Array]:
    """Return an interval with its cost, and its drift, from the values of `_about_fun`."""
    A, B, J, drift = (part.full() for part in about)
    H, nu = J.T @ J, ocp.nu
    return SampledStage(A, B, H[nu:, nu:], H[:nu, :nu], H[nu:, :nu]), drift.ravel()


def _about_fun(ocp: OptimalControlProblem) -> ca.Function:
    """Return (x, u, p) → A, B along tangents, J of the residual by (u, x), and the drift.

    A and B are of deviations from (x, u) at the beginning, and from `F(x, u)` at the end.
    """
    assert ocp.system is not None
    moved, gap, _ = charts(ocp.system, 0)
    x, u, p = (ca.MX.sym(key, n) for key, n in (("x", ocp.nx), ("u", ocp.nu), ("p", ocp.np_)))
    d, w = ca.MX.sym("d", moved.size1_in(1)), ca.MX.sym("w", ocp.nu)
    here = moved(x, d), u + w, p
    x_next = ocp.dynamics(x, u, p)
    step = gap(x_next, ocp.dynamics(*here))
    slopes = [ca.jacobian(step, d), ca.jacobian(step, w)]
    slopes += [ca.jacobian(ocp.residual(*here), ca.vertcat(w, d))]
    at = ca.Function("at", [x, u, p, d, w], [*slopes, gap(x, x_next)])
    return ca.Function("about", [x, u, p], at.call([x, u, p, 0, 0]))


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
