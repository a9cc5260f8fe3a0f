"""A linear model with a constant disturbance: its estimator and its steady states."""

from dataclasses import dataclass
from typing import Generic

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.regulators.innovation_gate import (
    Gate,
    InnovationGate,
    innovation_gate,
    wrap_angles,
)
from mbcasadi.control.regulators.riccati import stationary_filter
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.linear.model import Array, LinearModel
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.qp.input_guard import is_bounded
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import weight

STEADY_STATE_RANK_TOL = 1e-9
"""Singular value, relative to the largest, below which a matrix has lost a rank."""


@readable_fields
@dataclass(frozen=True)
class Noise:
    """Covariances of the noise of a model with an estimated disturbance.

    Their ratios determine the gain: more noise of the disturbance gives a faster estimate. Their
    size determines what the gate rejects.

    Attributes:
        state: of x in one sample; (nx, nx), (nx,) or a number.
        disturbance: of d in one sample; (nd, nd), (nd,) or a number.
        measurement: of y; (ny, ny), (ny,) or a number, positive definite.
    """

    state: ArrayLike = 1.0
    disturbance: ArrayLike = 0.1
    measurement: ArrayLike = 0.1

    def __post_init__(self) -> None:
        require_fields(self)


@dataclass(frozen=True)
class DisturbanceModel:
    """A model with its disturbance, estimator and target, in numbers.

    Attributes:
        model: of the state (x, d).
        C: (ny, nx + nd) measurement `y = C (x, d)`.
        L: (nx + nd, ny) gain of the correction.
        gate: of the innovation, or None.
        wrap: rows of y that are angles, equal to themselves plus 2 π.
        target, target_0: `(x_s, u_s) = target (r, s, d) + target_0`.
    """

    model: LinearModel
    C: Array
    L: Array
    target: Array
    target_0: Array
    gate: InnovationGate | None = None
    wrap: tuple[int, ...] = ()


@dataclass(frozen=True)
class Corrected(Generic[Sym]):
    """The estimate (x, d) after a measurement.

    Attributes:
        now: corrected (x, d), infinite where an input is bad or the sensor has failed.
        before_prediction: the same, finite whatever came in.
        memory: of the gate.
        gated, doubted: whether the measurement was rejected; whether it is doubted.
    """

    now: Sym
    before_prediction: Sym
    memory: Sym
    gated: Sym
    doubted: Sym


@dataclass(frozen=True)
class Estimation:
    """What an estimator of x and d is made of.

    Attributes:
        C: (ny, nx) measured rows.
        tracked, disturbances, noise: as in `offset_free_lti`.
        gate: options of the gate; None for none.
        innovation: (ny, ny) covariance for the gate; the filter's by default.
        wrap: rows of y that are angles known up to 2 π.
    """

    C: Array
    tracked: ArrayLike
    disturbances: ArrayLike | None
    noise: Noise
    gate: Gate | None
    innovation: Array | None = None
    wrap: tuple[int, ...] = ()


def augment_with_disturbance(problem: LinearProblem, estimation: Estimation) -> DisturbanceModel:
    """Return the model of (x, d), its estimator, and the target.

    Args:
        problem: without disturbances.
        estimation: of x and d.

    Raises:
        ProblemError: an unobservable disturbance; no steady state has every tracked value.
        ShapeError: a wrong shape, or NaN.
    """
    C, noise = estimation.C, estimation.noise
    B_d = matrix(
        "disturbances", estimation.disturbances, np.eye(problem.model.nx), rows=problem.model.nx
    )
    H = matrix("tracked", estimation.tracked, None, columns=problem.model.nx)
    W_x = weight("noise.state", noise.state, problem.model.nx)
    W_d = weight("noise.disturbance", noise.disturbance, B_d.shape[1])
    V = weight("noise.measurement", noise.measurement, C.shape[0], definite=True)
    A, B, drift = problem.model.interval(0)
    (nx, nu), nd = B.shape, B_d.shape[1]
    steady = np.block([[A - np.eye(nx), B_d], [C, np.zeros((C.shape[0], nd))]])
    if nd and np.linalg.matrix_rank(steady, _tolerance(steady)) < nx + nd:
        raise ProblemError(
            f"{nd} disturbances and {C.shape[0]} measured numbers: a disturbance, or a state that "
            "integrates, is not observable; expected at most one disturbance for each "
            "measured number, in `disturbances`"
        )
    model = LinearModel.of(
        np.block([[A, B_d], [np.zeros((nd, nx)), np.eye(nd)]]),
        np.vstack([B, np.zeros((nd, nu))]),
        problem.model.period,
        np.concatenate([drift, np.zeros(nd)]),
    )
    C_all = np.hstack([C, np.zeros((C.shape[0], nd))])
    gains = stationary_filter(model.A, C_all, block_diagonal(W_x, W_d), V)
    S = gains.innovation if estimation.innovation is None else estimation.innovation
    gate, target = innovation_gate(estimation.gate, S), _target(problem, B_d, H)
    return DisturbanceModel(model, C_all, gains.L, *target, gate, estimation.wrap)


def sound_estimate(estimate: Sym) -> tuple[Sym, Sym]:
    """Return (x, d), zero where it holds NaN or huge numbers, and whether it is sound."""
    sound = is_bounded(estimate)
    return ca.if_else(sound, estimate, 0), sound


def correct(model: DisturbanceModel, y: Sym, estimate: Sym, memory: Sym) -> Corrected[Sym]:
    """Return `(x, d) + L (y - C x)`; where the measurement is bad or rejected, (x, d).

    Args:
        model: the model and its filter.
        y: (ny,) measurement.
        estimate: (nx + nd,) predicted (x, d).
        memory: of the gate.
    """
    start, sound = sound_estimate(estimate)
    measured = is_bounded(y)
    e = wrap_angles(y - ca.DM(model.C) @ start, model.wrap)
    e = ca.if_else(measured, e, 0)
    valid = ca.logic_and(sound, measured)
    if model.gate is None:
        corrected = start + ca.DM(model.L) @ e
        now, never = ca.if_else(valid, corrected, np.inf), 0 * valid
        return Corrected(now, corrected, memory, never, never)
    known = ca.if_else(sound, memory, ca.DM(model.gate.start))
    decision = model.gate.decide(e, known)
    corrected = start + ca.DM(model.L) @ ca.if_else(decision.used, e, 0)
    valid = ca.logic_and(valid, ca.logic_not(decision.failed))
    return Corrected(
        now=ca.if_else(valid, corrected, np.inf),
        before_prediction=corrected,
        memory=ca.if_else(measured, decision.memory, known),
        gated=ca.logic_not(decision.used),
        doubted=decision.doubted,
    )


def _target(problem: LinearProblem, B_d: Array, H: Array) -> tuple[Array, Array]:
    """Return the map of (r, s, d) to the steady state nearest to (r, s) that tracks.

    min ½ |x_s - r|²_Q + ½ |u_s - s|²_R   subject to   E (x_s, u_s) = e

    solved through the null space N of E.
    """
    A, B, drift = problem.model.interval(0)
    (nx, nu), nd = B.shape, B_d.shape[1]
    E = np.block([[A - np.eye(nx), B], [H, np.zeros((H.shape[0], nu))]])
    if np.linalg.matrix_rank(E, _tolerance(E)) < E.shape[0]:
        raise ProblemError(
            f"{H.shape[0]} tracked rows and {nu} controls: no steady state has every tracked "
            "value; expected at most one row for each control, of which no two say the same, and "
            "none of a speed"
        )
    desired = np.zeros((E.shape[0], nx + nu + nd))
    desired[:nx, nx + nu :] = -B_d
    desired[nx:, :nx] = H
    W, inverse = block_diagonal(problem.Q, problem.R), np.linalg.pinv(E)
    N = np.linalg.svd(E)[2][E.shape[0] :].T
    to_near = N @ np.linalg.pinv(N.T @ W @ N) @ N.T @ W
    near = np.hstack([np.eye(nx + nu), np.zeros((nx + nu, nd))])
    steady = (np.eye(nx + nu) - to_near) @ inverse
    rest = steady @ np.concatenate([-drift, np.zeros(H.shape[0])])
    return steady @ desired + to_near @ near, rest


def block_diagonal(first: Array, second: Array) -> Array:
    """Return one matrix with both on its diagonal."""
    corner = np.zeros((len(first), second.shape[1]))
    return np.block([[first, corner], [np.zeros((len(second), first.shape[1])), second]])


def _tolerance(matrix: Array) -> float:
    return STEADY_STATE_RANK_TOL * float(np.linalg.norm(matrix, 2))


def matrix(
    name: str,
    value: ArrayLike | None,
    default: Array | None,
    *,
    rows: int | None = None,
    columns: int | None = None,
) -> Array:
    """Return a finite matrix of the given size.

    Args:
        name: for messages.
        value: (rows, columns), or None for the default.
        default: used where there is no value.
        rows, columns: expected size; None for any.

    Raises:
        ShapeError: another shape, or NaN.
    """
    array = np.atleast_2d(np.asarray(default if value is None else value, dtype=float))
    fits = array.ndim == 2 and all(
        expected in (None, size)
        for expected, size in zip((rows, columns), array.shape, strict=True)
    )
    if not fits or not np.all(np.isfinite(array)):
        expected = f"({rows or 'any'}, {columns or 'any'})"
        raise ShapeError(f"{name} has shape {array.shape}, expected {expected}, without NaN")
    return array
