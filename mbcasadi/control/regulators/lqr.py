"""The linear-quadratic regulator on the constraint manifold.

Weights refer to the coordinates of the model: the deviations `(δq, δv)` of all coordinates
(rad, m, per second), and the controls. The manifold determines which of them are free:

    cost = ∫ (zᵀ Q z + 2 zᵀ N δu + δuᵀ R δu) dt,    z = (δq, δv) = T x,    T = (to_dq; to_dv)

so the cost, and with it the gain on `(δq, δv)`, does not depend on the basis Z. Rows may be
redundant: they are eliminated before the Riccati equation is formed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Law
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions
from mbcasadi.control.regulators.controllability import require_stabilisable, require_weighted
from mbcasadi.control.regulators.feedback import feedback, finite_matrix, require_continuous
from mbcasadi.control.regulators.linear_action import integrated_rows, with_sums
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.modes import relative_drift
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.control.regulators.riccati import (
    Regulator,
    SampledStage,
    regulator,
    sample_cost,
    sampled_regulator,
    tick_regulator,
)
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import matrix, require_positive, weight

AT_REST = 1e-6
"""Largest drift of an equilibrium, relative to the rate of the linear system or the mechanism."""


@dataclass(frozen=True)
class Weights:
    """The cost in the coordinates x of a linear system: `xᵀ Q x + 2 xᵀ N δu + δuᵀ R δu`."""

    Q: Array
    R: Array
    N: Array


@checked
def lqr(
    linear: Linearization,
    Q: ArrayLike,
    R: ArrayLike,
    *,
    N: ArrayLike | None = None,
    integral: Mapping[str, float] | None = None,
    delay: int = 0,
    track_reference: bool = False,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return `u = u_0 - K x` with the K of least cost under exact hold; see `lqr_gain`.

    Near the equilibrium the closed loop of the rigid mechanism is stable, also with passive
    joints. The law is linear: its region of attraction must be tested, for example with
    `mb.validate`. Without `integral` an error of the model leaves an offset. `margins` says how
    wrong gains and delays may be.

    Args:
        linear: from `linearize` at an equilibrium.
        Q, R, N, integral: weights, as in `lqr_gain`.
        delay: ticks from a measurement to the moment at which its control acts; see
            `linear_action.py`.
        track_reference: take the setpoint from the reference; see `feedback`.
        options: see `LawOptions`.

    Raises:
        ShapeError, ProblemError: as in `lqr_gain`.
    """
    period = options.sample_time
    solution = lqr_gain(linear, Q, R, N=N, integral=integral, period=period)
    rate = f"{np.log(np.abs(solution.poles).max()) / period:.3g} 1/s"
    return feedback(
        linear,
        solution.K,
        integral=tuple(integral or ()),
        delay=delay,
        track_reference=track_reference,
        options=replace(options, name=options.name or "lqr"),
        notes={"law": "LQR on the constraint manifold, exact hold", "slowest pole": rate},
    )


@checked
def lqr_gain(
    linear: Linearization,
    Q: ArrayLike,
    R: ArrayLike,
    *,
    N: ArrayLike | None = None,
    integral: Mapping[str, float] | None = None,
    period: float | None = None,
) -> Regulator:
    """Return gain, cost to go and poles in the coordinates x of `linear`.

    Args:
        linear: from `linearize` at an equilibrium.
        Q: (2 nv, 2 nv) weight of (δq, δv), not negative; (2 nv,) for a diagonal one. With
            activation states (2 nv + na), of (δq, δv, δact).
        R: (nu, nu) weight of δu, positive; (nu,) or a number for a diagonal one.
        N: (2 nv [+ na], nu) cross weight; zero by default.
        integral: weight of `(∫ δq dt)²` of some coordinates, by the names of their rates; they
            return to the setpoint whatever the model lacks. The gain is then on (x, s), s their
            integrals, and with a period their sums `s_next = s + period δq`.
        period: s, of a control that is held; None for a continuous one.

    Raises:
        ShapeError: a wrong shape, or NaN.
        ProblemError: no equilibrium; a mode that grows or drifts and that no control acts on, or
            a mode on the border of stability without weight (both are named); weights that
            are not symmetric or not (semi)definite.
    """
    require_continuous(linear)
    require_equilibrium(linear)
    weights = manifold_weights(linear, Q, R, N)
    require_stabilisable(linear)
    require_weighted(linear, weights.Q - weights.N @ np.linalg.solve(weights.R, weights.N.T))
    system = (linear.dfdx, linear.dfdu, weights.Q, weights.R)
    if period is not None:
        require_positive(period=period)
    if integral:
        return _with_integrals(linear, weights, integral, period)
    if period is None:
        return regulator(*system, weights.N)
    return sampled_regulator(*system, period, weights.N)


def _with_integrals(
    linear: Linearization, weights: Weights, integral: Mapping[str, float], period: float | None
) -> Regulator:
    """Return the regulator of (x, s); see `linear_action.py`."""
    require_positive(**{f"integral of {name}": value for name, value in integral.items()})
    E, nu = integrated_rows(linear, tuple(integral)), linear.nu
    own = np.diag(list(integral.values()))
    N = np.vstack([weights.N, np.zeros((len(E), nu))])
    if period is None:
        A, B = with_sums(linear.dfdx, linear.dfdu, E)
        A[linear.nx :, linear.nx :] = 0.0  # a derivative, not a sum
        return regulator(A, B, scipy.linalg.block_diag(weights.Q, own), weights.R, N)
    tick = sample_cost(linear.dfdx, linear.dfdu, weights.Q, weights.R, period, weights.N)
    A, B = with_sums(tick.A, tick.B, period * E)
    Q = scipy.linalg.block_diag(tick.Q, period * own)
    N = np.vstack([tick.N, np.zeros((len(E), nu))])
    return tick_regulator(SampledStage(A, B, Q, tick.R, N), period)


def manifold_weights(
    linear: Linearization, Q: ArrayLike, R: ArrayLike, N: ArrayLike | None = None
) -> Weights:
    """Return `(Tᵀ Q T, R, Tᵀ N)`, the weights in the coordinates x.

    Args:
        linear: the linear system.
        Q, R, N: as in `lqr_gain`.

    Raises:
        ShapeError, ProblemError: not weights, or a cross weight too large for Q and R.
    """
    n, nu = 2 * linear.system.nv + linear.n_a, linear.nu
    natural, control = weight("Q", Q, n), weight("R", R, nu, definite=True)
    cross = np.zeros((n, nu)) if N is None else finite_matrix("N", N, (n, nu))
    joint_weight = np.block([[natural, cross], [cross.T, control]])
    if N is not None:
        weight("[Q N; Nᵀ R]", joint_weight, n + nu)
    T = np.vstack([linear.to_dq, linear.to_dv, linear.to_dact])
    return Weights(T.T @ natural @ T, control, T.T @ cross)


@checked
def gain_in_full_coordinates(linear: Linearization, K: Array) -> Array:
    """Return (nu, 2 nv [+ na]) `K (from_dq, from_dv, from_dact)`; it depends on no basis."""
    gain = matrix("K", K, (linear.nu, linear.nx))
    return np.asarray(gain @ np.hstack([linear.from_dq, linear.from_dv, linear.from_dact]))


def require_equilibrium(linear: Linearization) -> None:
    """Raise `ProblemError` unless the operating point of the linear system is at rest."""
    drift = float(np.abs(linear.drift).max(initial=0.0))
    if relative_drift(linear) > AT_REST:
        raise ProblemError(
            f"'{linear.system.name}' does not rest where it was linearised: x drifts at "
            f"{drift:.3g} per second; expected an equilibrium and its holding control: see "
            "equilibrium()"
        )
