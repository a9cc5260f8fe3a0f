"""A linear MPC problem as data, and the options from which it is made."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.linear.model import Array, LinearModel, Output, check_outputs
from mbcasadi.mpc.linear.terminal_set import TerminalSet, invariant_set
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import bounds, require_whole, weight
from mbcasadi.short_text import summarised

LASTING = 1e-8
"""Distance below one of an eigenvalue, and size of a singular value, of an uncontrollable mode."""


@summarised
@dataclass(frozen=True)
class LinearProblem:
    """A linear MPC problem as data.

        min  Σ_{k=1}^{N-1} ½ |x_k - r_k|²_Q + ½ |x_N - r_N|²_P + Σ_{k<N} ½ |u_k - s|²_R
             + Σ_{k<N} ½ |u_k - u_{k-1}|²_S + Σ soft (½ ρ₂ ε² + ρ₁ ε)
        s.t. x_{k+1} = A_k x_k + B_k u_k + d_k,   x_0, u_{-1} given,
             u_min <= u_k <= u_max,   du_min <= u_k - u_{k-1} <= du_max,
             y_min - ε <= C x_k + D u_k <= y_max + ε   for the rows of each output

    Attributes:
        model: `x_next = A x + B u + drift`.
        horizon: N.
        Q, P, R, S: weights; S is zero where rates have no cost.
        u_bounds, du_bounds: (nu, 2), infinite where there are none.
        outputs: rows of states and controls.
        blocks: (N,) index of the move that each u_k takes; `range(N)` for free moves.
        preview: the reference has a slice for each sample, else one for all.
        delay: samples from a measurement to the moment when its control acts; x_0 is the state
            at that moment, predicted with the pending controls.
        terminal: where (x_N, u_{N-1}) must end, or None.
    """

    model: LinearModel
    horizon: int
    Q: Array
    P: Array
    R: Array
    S: Array
    u_bounds: Array
    du_bounds: Array
    outputs: tuple[Output, ...] = ()
    blocks: tuple[int, ...] = ()
    preview: bool = False
    delay: int = 0
    terminal: TerminalSet | None = None

    @property
    def moves(self) -> int:
        """Number of free moves."""
        return max(self.blocks) + 1

    @property
    def has_rates(self) -> bool:
        """Whether the last control enters the problem."""
        return bool(np.any(self.S)) or bool(np.any(np.isfinite(self.du_bounds)))

    @property
    def past_controls(self) -> int:
        """Number of past controls in the state of the controller."""
        return max(self.delay, int(self.has_rates))


@readable_fields
@summarised
@dataclass(frozen=True)
class LinearOptions:
    """Cost, bounds and horizon of a linear MPC.

    Of a plain model x is its state. Of a mechanism the weights and rows are those of deviations
    (δq, δv) of all coordinates from the equilibrium, and u_bounds those of u itself.

    Attributes:
        horizon: N, number of samples, at least one.
        Q, R: weights of x, (nx, nx) or (nx,), and of u, (nu, nu), (nu,) or a number; of a mechanism
            Q is (2 nv, 2 nv) or (2 nv,), with activation states 2 nv + na.
        period: sample time of a mechanism, s; 0.01 by default. A plain model has its own.
        P: weight of x_N, of a mechanism in its free coordinates; the cost to go of the regulator
            without bounds by default.
        S: weight of the change of u from sample to sample.
        u_bounds: (nu, 2); those of the mechanism's model by default, none of a plain one.
        du_bounds: (nu, 2) of the change of u from sample to sample.
        outputs: bounded rows of states and controls; see `deviation_output`.
        blocks: lengths of the moves, which add up to N; all one by default.
        preview: the reference has a slice for each sample, else one for all.
        delay: samples from a measurement to the moment when its control acts.
        terminal_set: x_N must end where the regulator without bounds, from Q and R, satisfies all
            hard bounds at all later times: then a plan exists at the next sample too, if the model
            is right. The set contains x = 0, whatever the reference; it needs free moves.
        tolerance: bound of each residual for a solution to be accepted.
        form: "condensed", whose unknowns are the controls, for C; "sparse", whose unknowns include
            the states, for Python; of a mechanism also "multipliers", whose unknowns are all
            coordinates, accelerations and multipliers. All have the same solution.
        solver: of the Function in Python: "daqp" or "qrqp" for the condensed form, "proxqp",
            "piqp" or "qrqp" for the others; the C of the condensed form has its own.
        name: a C identifier; that of the function that makes the controller by default.
    """

    horizon: int
    Q: ArrayLike
    R: ArrayLike
    _: KW_ONLY
    period: float | None = None
    P: ArrayLike | None = None
    S: ArrayLike | None = None
    u_bounds: ArrayLike | None = None
    du_bounds: ArrayLike | None = None
    outputs: Sequence[Output] = ()
    blocks: Sequence[int] | None = None
    preview: bool = False
    delay: int = 0
    terminal_set: bool = False
    tolerance: float = 1e-6
    form: str = "condensed"
    solver: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        require_fields(self)

    def _summary(self) -> dict[str, object]:
        return {"horizon": self.horizon, "form": self.form, "delay": self.delay}


@checked
def linear_problem(model: LinearModel, options: LinearOptions) -> LinearProblem:
    """Return the checked problem of a plain model.

    Args:
        model: `x_next = A x + B u + drift`.
        options: cost, bounds and horizon.

    Raises:
        ProblemError: an invalid horizon, delay, weight or bound; no terminal cost exists.
        ShapeError: a wrong shape, or NaN.
    """
    horizon, delay = options.horizon, options.delay
    require_whole(1, horizon=horizon)
    require_whole(0, delay=delay)
    if delay and model.varies:
        raise ProblemError(
            f"delay = {delay} with a model that varies: it has no matrices for the samples before "
            "the horizon; expected a constant model, or no delay"
        )
    if model.varies and model.A.shape[0] != horizon:
        raise ProblemError(
            f"the model has matrices for {model.A.shape[0]} intervals, the horizon {horizon}; "
            "expected one set for each interval"
        )
    nx, nu = model.nx, model.nu
    Q, R = weight("Q", options.Q, nx), weight("R", options.R, nu, definite=True)
    problem = LinearProblem(
        model=model,
        horizon=int(horizon),
        Q=Q,
        P=cost_to_go(model, Q, R) if options.P is None else weight("P", options.P, nx),
        R=R,
        S=np.zeros((nu, nu)) if options.S is None else weight("S", options.S, nu),
        u_bounds=bounds("u_bounds", options.u_bounds, nu),
        du_bounds=bounds("du_bounds", options.du_bounds, nu),
        outputs=check_outputs(options.outputs, nx, nu),
        blocks=_blocks(options.blocks, int(horizon)),
        preview=options.preview,
        delay=int(delay),
    )
    return replace(problem, terminal=_terminal(problem)) if options.terminal_set else problem


def cost_to_go(model: LinearModel, Q: Array, R: Array) -> Array:
    """Return P of the regulator without bounds.

    Raises:
        ProblemError: there is none; the message has the uncontrollable modes.
    """
    A, B, _ = model.interval(-1)
    try:
        return np.asarray(scipy.linalg.solve_discrete_are(A, B, Q, R))
    except (np.linalg.LinAlgError, ValueError) as error:
        modes = ", ".join(f"{root:.4g}" for root in _uncontrollable_modes(A, B))
        modes_text = f" (out of reach: {modes} per sample)" if modes else ""
        raise ProblemError(
            "no terminal cost: the regulator without bounds does not exist, because a mode that "
            f"does not decay is not reached by the control{modes_text} or not seen by Q; give P, "
            f"or see control.regulators.controllability (SciPy: {error})"
        ) from error


def _uncontrollable_modes(A: Array, B: Array) -> list[complex]:
    """Return the eigenvalues of size one at least at which `[A - s I, B]` loses rank."""
    modes = []
    for root in np.linalg.eigvals(A):
        pencil = np.hstack([A - root * np.eye(len(A)), B])
        least, largest = np.linalg.svd(pencil, compute_uv=False)[[-1, 0]]
        if abs(root) >= 1 - LASTING and least <= LASTING * largest:
            modes.append(root if root.imag else root.real)
    return modes


def _terminal(problem: LinearProblem) -> TerminalSet:
    if len(set(problem.blocks)) < problem.horizon:
        raise ProblemError(
            "a terminal set with blocked moves: a plan that is shifted by one sample changes its "
            "moves at other samples, so nothing is promised; expected free moves"
        )
    model, R = problem.model, problem.R
    P = cost_to_go(model, problem.Q, R)
    A, B, _ = model.interval(-1)
    K = np.asarray(np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), dtype=np.float64)
    return invariant_set(model, K, problem.u_bounds, problem.du_bounds, problem.outputs)


def _blocks(lengths: Sequence[int] | None, horizon: int) -> tuple[int, ...]:
    if lengths is None:
        return tuple(range(horizon))
    if min(lengths, default=0) < 1 or sum(lengths) != horizon:
        raise ProblemError(
            f"blocks {tuple(lengths)} add up to {sum(lengths)}; expected lengths of at least 1 "
            f"that add up to the horizon {horizon}"
        )
    return tuple(move for move, length in enumerate(lengths) for _ in range(length))
