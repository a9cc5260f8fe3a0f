"""Riccati equations on plain matrices: the regulator, its finite horizon, and the filter.

    dx/dt = dfdx x + dfdu u,    cost = ∫ (xᵀ Q x + 2 xᵀ N u + uᵀ R u) dt,    u = -K x

With a sample time the control is held and the cost is still the integral, computed exactly: as
the period tends to zero, the gain tends to the continuous one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.errors import ProblemError
from mbcasadi.short_text import summarised

Poles = NDArray[np.complex128]


STILL = 1e-10
"""Least distance of a sampled pole from one; less is rounding, of a mode that does not decay."""

NO_SOLUTION = (
    "the Riccati equation has no stabilising solution; expected an unstable part that the control "
    "reaches and that the weights see"
)

NO_FILTER = (
    "there is no stationary filter; expected noise W that reaches, and a measurement y that sees, "
    "every mode that does not decay"
)


@summarised
@dataclass(frozen=True)
class Regulator:
    """`u = -K x`, optimal over an infinite horizon.

    Attributes:
        K: (nu, nx) gain.
        S: (nx, nx) cost to go, `xᵀ S x`.
        poles: (nx,) of the closed loop: 1/s, or of one sample where there is a period.
        period: s, or None for a continuous loop.
    """

    K: Array
    S: Array
    poles: Poles
    period: float | None

    def _summary(self) -> dict[str, object]:
        return {
            "K": self.K,
            "poles": [f"{pole:.3g}" for pole in self.poles],
            "period": self.period,
        }


@summarised
@dataclass(frozen=True)
class Filter:
    """`x ← x + L (y - C x)` at every sample, optimal after its transients.

    Attributes:
        L: (nx, ny) gain of the correction.
        before, after: (nx, nx) covariance of the error before and after the correction.
        poles: (nx,) of the error from one sample to the next.
        innovation: (ny, ny) covariance of `y - C x`, `C P Cᵀ + V`.
    """

    L: Array
    before: Array
    after: Array
    poles: Poles
    innovation: Array


class SampledStage(NamedTuple):
    """One sample: `x_next = A x + B u`, with the cost `xᵀ Q x + 2 xᵀ N u + uᵀ R u`."""

    A: Array
    B: Array
    Q: Array
    R: Array
    N: Array


def regulator(dfdx: Array, dfdu: Array, Q: Array, R: Array, N: Array | None = None) -> Regulator:
    """Return the continuous gain `K = R⁻¹ (dfduᵀ S + Nᵀ)`, `S` of the algebraic Riccati equation.

    One step of Newton's method after SciPy's Schur form removes rounding errors.

    Args:
        dfdx, dfdu: (nx, nx), (nx, nu) of the system.
        Q, R, N: (nx, nx), (nu, nu), (nx, nu) of the integral cost; N is zero by default.

    Raises:
        ProblemError: no stabilising solution.
    """
    cross = np.zeros(dfdu.shape) if N is None else N
    try:
        S = scipy.linalg.solve_continuous_are(dfdx, dfdu, Q, R, s=cross)
        K = np.linalg.solve(R, dfdu.T @ S + cross.T)
        A_closed = dfdx - dfdu @ K
        S = scipy.linalg.solve_continuous_lyapunov(A_closed.T, -_quadratic(K, Q, R, cross))
    except np.linalg.LinAlgError as error:
        raise ProblemError(f"{NO_SOLUTION} (SciPy: {error})") from error
    K = np.linalg.solve(R, dfdu.T @ S + cross.T)
    poles = np.linalg.eigvals(dfdx - dfdu @ K).astype(complex)
    if not np.all(poles.real < 0):
        raise ProblemError(f"{NO_SOLUTION}; the closed loop has the poles {poles}")
    return Regulator(K, (S + S.T) / 2, poles, None)


def sampled_regulator(
    dfdx: Array, dfdu: Array, Q: Array, R: Array, period: float, N: Array | None = None
) -> Regulator:
    """Return the gain `K = (R_d + Bᵀ S B)⁻¹ (Bᵀ S A + N_dᵀ)` of the system under exact hold.

    Args:
        dfdx, dfdu: (nx, nx), (nx, nu) of the continuous system.
        Q, R, N: (nx, nx), (nu, nu), (nx, nu) of the integral cost; N is zero by default.
        period: sample time, s.

    Raises:
        ProblemError: no stabilising solution.
    """
    return tick_regulator(sample_cost(dfdx, dfdu, Q, R, period, N), period)


def tick_regulator(tick: SampledStage, period: float) -> Regulator:
    """Return the gain of a discrete system and its cost; see `sampled_regulator`."""
    try:
        S = scipy.linalg.solve_discrete_are(tick.A, tick.B, tick.Q, tick.R, s=tick.N)
        K = _gain(tick, S)
        cost = _quadratic(K, tick.Q, tick.R, tick.N)
        S = scipy.linalg.solve_discrete_lyapunov((tick.A - tick.B @ K).T, cost)
    except np.linalg.LinAlgError as error:
        raise ProblemError(f"{NO_SOLUTION} (SciPy: {error})") from error
    K = _gain(tick, S)
    poles = np.linalg.eigvals(tick.A - tick.B @ K).astype(complex)
    if not np.all(np.abs(poles) < 1 - STILL):
        raise ProblemError(f"{NO_SOLUTION}; the closed loop has the poles {poles}")
    return Regulator(K, (S + S.T) / 2, poles, period)


def sample_cost(
    dfdx: Array, dfdu: Array, Q: Array, R: Array, period: float, N: Array | None = None
) -> SampledStage:
    """Return the exact hold of one period and its cost.

        [Q_d N_d; N_dᵀ R_d] = ∫₀ᵀ e^(Fᵀs) [Q N; Nᵀ R] e^(Fs) ds,    F = [dfdx dfdu; 0 0]

    Both from one matrix exponential [C. F. Van Loan, IEEE TAC 23 (1978), 395-404].

    Args:
        dfdx, dfdu: (nx, nx), (nx, nu) of the continuous system.
        Q, R, N: (nx, nx), (nu, nu), (nx, nu) of the integral cost; N is zero by default.
        period: sample time, s.
    """
    nx, nu = dfdu.shape
    cross = np.zeros((nx, nu)) if N is None else N
    F = np.zeros((nx + nu, nx + nu))
    F[:nx] = np.hstack([dfdx, dfdu])
    flow, cost = _flow_and_integral(F, np.block([[Q, cross], [cross.T, R]]), period)
    return SampledStage(
        flow[:nx, :nx], flow[:nx, nx:], cost[:nx, :nx], cost[nx:, nx:], cost[:nx, nx:]
    )


def backward_riccati(
    ticks: Sequence[SampledStage], S_end: Array
) -> tuple[list[Array], list[Array]]:
    """Return gains K_k and costs to go S_k of a finite horizon, k from the start.

        K_k = (R + Bᵀ S_{k+1} B)⁻¹ (Bᵀ S_{k+1} A + Nᵀ),
        S_k = (A - B K)ᵀ S_{k+1} (A - B K) + Q - N K - (N K)ᵀ + Kᵀ R K

    The second form keeps S_k symmetric and positive semidefinite under rounding.

    Args:
        ticks: from sample k to k + 1.
        S_end: (nx, nx) weight of the last state.
    """
    gains: list[Array] = []
    costs = [S_end]
    for tick in reversed(ticks):
        K = _gain(tick, costs[-1])
        A_closed = tick.A - tick.B @ K
        S = A_closed.T @ costs[-1] @ A_closed + _quadratic(K, tick.Q, tick.R, tick.N)
        gains.append(K)
        costs.append((S + S.T) / 2)
    return gains[::-1], costs[::-1]


def sampled_noise(dfdx: Array, W: Array, period: float) -> Array:
    """Return `∫₀ᵀ e^(dfdx s) W e^(dfdxᵀ s) ds`, the covariance of noise W over one sample."""
    return _flow_and_integral(dfdx.T, W, period)[1]


def stationary_filter(A: Array, C: Array, W: Array, V: Array) -> Filter:
    """Return `L = P Cᵀ (C P Cᵀ + V)⁻¹`, P of the dual Riccati equation.

    Args:
        A: (nx, nx) of one sample.
        C: (ny, nx) `y = C x + noise`.
        W: (nx, nx) covariance of the disturbance of the state in one sample.
        V: (ny, ny) covariance of the noise of one measurement.

    Raises:
        ProblemError: a mode that does not decay and is unobservable in y, or not excited by W.
    """
    try:
        P = scipy.linalg.solve_discrete_are(A.T, C.T, W, V)
    except np.linalg.LinAlgError as error:
        raise ProblemError(f"{NO_FILTER} (SciPy: {error})") from error
    S = C @ P @ C.T + V
    S = (S + S.T) / 2
    L = np.linalg.solve(S, C @ P).T
    correction = np.eye(A.shape[0]) - L @ C
    poles = np.linalg.eigvals(A @ correction).astype(complex)
    if not np.all(np.abs(poles) < 1 - STILL):
        raise ProblemError(f"{NO_FILTER}; its error has the poles {poles}")
    after = correction @ P @ correction.T + L @ V @ L.T
    return Filter(L, P, after, poles, S)


def _gain(tick: SampledStage, S: Array) -> Array:
    inertia = tick.R + tick.B.T @ S @ tick.B
    return np.asarray(np.linalg.solve(inertia, tick.B.T @ S @ tick.A + tick.N.T))


def _quadratic(K: Array, Q: Array, R: Array, N: Array) -> Array:
    cross = N @ K  # of x, where `u = -K x`
    return Q - cross - cross.T + K.T @ R @ K


def _flow_and_integral(F: Array, W: Array, period: float) -> tuple[Array, Array]:
    """Return `e^(FT)` and `∫₀ᵀ e^(Fᵀs) W e^(Fs) ds`."""
    n = F.shape[0]
    block = scipy.linalg.expm(np.block([[-F.T, W], [np.zeros((n, n)), F]]) * period)
    flow = block[n:, n:]
    integral = flow.T @ block[:n, n:]
    return flow, (integral + integral.T) / 2
