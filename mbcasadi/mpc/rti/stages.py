"""The stages of a real-time iteration around its QP: prepare, build, finish.

`prepare` uses the guess only: it linearises, and a Riccati recursion whitens the cost. With the
measured state, `build` runs forward once and gives the bounds of the least-distance problem.
`finish` updates the guess, checks the solution in the problem with states (motion forward,
costates backward), and passes the guess on, shifted by one interval.

A guess is a motion where its gaps `F(x_k, u_k) - x_{k+1}` are small beside its steps. A motion that
meets infeasible rows is followed to its end. Every other guess that no QP solves is replaced:

    x_k = x_0, u_k = the last control of the first guess        a rest at the measured state,

or by the first guess itself where the measured state is within one of its steps.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.description import LeastDistanceStages
from mbcasadi.description.status import Status
from mbcasadi.description.tolerance import tolerance
from mbcasadi.mpc.lq.tick import flags_of, outputs_of
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.rti.line_search import LineSearch, Slope
from mbcasadi.mpc.rti.memory import Guess, GuessMemory, repeated
from mbcasadi.qp.input_guard import LARGEST_INPUT, clamp, is_bounded, is_within
from mbcasadi.qp.kkt_residuals import judge

GAP_SHARE = 0.2
"""Sum of the gaps, relative to that of the steps, up to which a guess is a motion."""

GAP_FLOOR = tolerance(1e-6)
"""The same relative to the size of the states: a guess at rest has no steps."""


class GuessedPlan(NamedTuple):
    """The plan after a tick.

    Attributes:
        X, U: states and controls.
        control: the control of this tick, before its bounds.
        is_planned: whether it belongs to a plan, made in this tick or in one before.
        unsolved: ticks in a row without a solution.
        kept: whether it is the guess of before, with or without its step.
    """

    X: ca.MX
    U: ca.MX
    control: ca.MX
    is_planned: ca.MX
    unsolved: ca.MX
    kept: ca.MX


class Found(NamedTuple):
    """What a QP has found from a state x0.

    Attributes:
        x0: the state; `valid` tells whether it and all other inputs are good.
        step: deviations of X (·, N + 1) and changes of U (nu, N).
        slope: of the cost along the step, with multipliers.
        slack: of soft rows.
        active: what the next tick begins with, for each row.
        residual, flag: of the QP.
    """

    x0: ca.MX
    valid: ca.MX
    step: tuple[ca.MX, ca.MX]
    slope: Slope
    slack: ca.MX
    active: ca.MX
    residual: ca.MX
    flag: ca.MX


@dataclass(frozen=True)
class RtiStages(ABC):
    """A tick around its QP: what does not depend on how the QP is solved.

    Attributes:
        ocp: the problem.
        memory: the layout of z.
        z0: initial z, also used in place of an invalid one.
        shift: whether a tick passes on the guess for the next one.
        tolerance: bound of each residual for a solution to be accepted.
        line_search: largest number of times that a step is halved.
    """

    ocp: OptimalControlProblem
    memory: GuessMemory
    z0: Array
    shift: bool
    tolerance: float
    line_search: int

    @abstractmethod
    def stages(self) -> LeastDistanceStages:
        """Return the Functions."""

    @property
    @abstractmethod
    def moved(self) -> ca.Function:
        """(x, deviation) → the state moved by it."""

    @property
    @abstractmethod
    def contradicts(self) -> bool:
        """Whether hard rows can be infeasible; those of controls alone cannot."""

    @property
    @abstractmethod
    def later(self) -> list[int]:
        """Index of the same row at the next sample, for each row of the QP."""

    @property
    @abstractmethod
    def row_names(self) -> list[str]:
        """Names of the rows of the QP."""

    def outputs(
        self, inputs: dict[str, ca.MX], before: tuple[Guess, ca.MX], found: "Found"
    ) -> dict[str, ca.MX]:
        """Return the outputs of a tick by name.

        Args:
            inputs: of the controller.
            before: the guess and its gaps (nx, N).
            found: by the QP.
        """
        guess, x0, valid = before[0], found.x0, found.valid
        status = self._status(found.residual, found.flag, valid)
        beyond = ca.logic_and(status <= Status.SUBOPTIMAL, self._closes_from_afar(x0, guess))
        status = ca.if_else(beyond, Status.INFEASIBLE, status)
        solved = status <= Status.SUBOPTIMAL
        plan = self._plan(before, self._change(guess, found), x0, status)
        active = ca.if_else(solved, found.active, ca.DM(self.memory.resting))
        free, held = self._safe_step(inputs, guess, plan)
        u = self._control(free, guess)
        pending = self.memory.next_pending(guess, u)
        if self.memory.force.size:
            held = ca.vertcat(self.memory.next_learned(inputs, guess, valid, u), held)
        return outputs_of(
            u,
            self._next_memory(plan, pending, active, guess.P, held),
            status,
            flags_of((free, u), solved, found.slack, self.tolerance),
            (found.residual, valid),
        )

    def _change(self, guess: Guess, found: "Found") -> tuple[ca.MX, ca.MX]:
        """Return changes of X and U by the step, shortened where the search says so."""
        dX, dU = found.step
        if self.line_search:
            search = LineSearch(self.ocp, self.moved, self.line_search)
            alpha = search.length(guess, found.step, found.x0, found.slope)
            dX, dU = ca.horzcat(dX[:, 0], alpha * dX[:, 1:]), alpha * dU
        return self.moved.map(self.ocp.horizon + 1)(guess.X, dX) - guess.X, dU

    def _status(self, residual: ca.MX, flag: ca.MX, valid: ca.MX) -> ca.MX:
        """Return the status; infeasible only where rows can contradict each other.

        Otherwise a solver that finds no solution has failed on a bad guess, which is replaced.
        """
        status = judge(residual, flag=flag, valid=valid, tolerance=self.tolerance)
        infeasible = status == Status.INFEASIBLE
        return status if self.contradicts else ca.if_else(infeasible, Status.FAILED, status)

    def _next_state(self, x: ca.MX, u: ca.MX, p: ca.MX) -> ca.MX:
        """Return the state at the next sample."""
        x_next: ca.MX = self.ocp.dynamics(x, u, p)
        return x_next

    def _path(self, x: ca.MX, u: ca.MX, p: ca.MX) -> ca.MX:
        """Return rows of the path; those of a schedule are read."""
        g: ca.MX = self.ocp.path(x, u, p)
        return g

    def _closes_from_afar(self, x0: ca.MX, guess: Guess) -> ca.MX:
        """Return whether a row of the schedule is violated at the given state."""
        limits = self.ocp.given_bounds
        if limits is None:
            return ca.MX(0)
        value = self._path(x0, guess.U[:, 0], guess.P[:, 0])[list(self.ocp.given_rows), 0]
        return ca.logic_not(is_within(value, limits[:, 0].tolist(), limits[:, 1].tolist()))

    def _control(self, u: ca.MX, guess: Guess) -> ca.MX:
        """Return u within its bounds, and within the bounds of its change from the last one."""
        rates = self.ocp.du_bounds
        if rates is not None:
            last = guess.pending[: self.ocp.nu, -1]
            low, high = (np.clip(rates[:, i], -LARGEST_INPUT, LARGEST_INPUT) for i in (0, 1))
            u = ca.fmin(ca.fmax(u, last + ca.DM(low)), last + ca.DM(high))
        return clamp(u, *self.ocp.u_bounds.T)

    def _plan(
        self, before: tuple[Guess, ca.MX], step: tuple[ca.MX, ca.MX], x0: ca.MX, status: ca.MX
    ) -> GuessedPlan:
        """Return the plan after this tick: with its step where that is a solution.

        Without one a motion is followed to its end; any other guess is replaced, see `recovery`.
        """
        (guess, gaps), N = before, self.ocp.horizon
        solved, bad = status <= Status.SUBOPTIMAL, status == Status.BAD_INPUT
        first = self.memory.split(ca.DM(self.z0))
        fresh = _fresh_guess((first.X, first.U), x0)
        X, U = (part + ca.if_else(solved, d, 0) for part, d in zip(guess[:2], step, strict=True))
        count = ca.fmin(ca.fmax(guess.unsolved, 0), N)
        count = ca.if_else(solved, 0, ca.fmin(count, N) + 1)
        motion = ca.logic_and(_is_motion(guess.X, gaps), count <= N)
        kept = ca.logic_or(solved, ca.logic_or(bad, motion))
        is_planned = ca.logic_and(kept, count <= N)
        kept = ca.logic_and(kept, status != Status.FAILED)
        kept = ca.logic_and(kept, is_bounded(ca.vec(X), ca.vec(U)))
        count = ca.if_else(ca.logic_or(kept, bad), count, N)  # a fresh guess is no plan
        control = U[:, 0]
        X, U = (ca.if_else(kept, old, new) for old, new in zip((X, U), fresh, strict=True))
        return GuessedPlan(X, U, control, is_planned, count, kept)

    def _safe_step(
        self, inputs: dict[str, ca.MX], guess: Guess, plan: GuessedPlan
    ) -> tuple[ca.MX, ca.MX]:
        """Return the control before its limits, and what the safe output remembers."""
        hold, state = self.memory.hold, (inputs["q"], inputs["v"])
        measured = self.memory.is_measured(*state)
        offered = ca.MX(ca.DM(hold.safe.start)) if hold.command is None else hold.command(*state)
        free, _, held = hold.safe.step(guess.held, offered, measured, plan.is_planned, plan.control)
        return free, held

    def _next_memory(
        self, plan: GuessedPlan, pending: ca.MX, active: ca.MX, P: ca.MX, held: ca.MX
    ) -> ca.MX:
        """Return z_next: the plan, shifted by a sample where it is kept.

        Where intervals have given lengths the next tick moves it: it knows its own lengths.
        """
        X, U, moving, of_times = plan.X, plan.U, self.memory.moving, list[ca.MX]()
        end = self.ocp.horizon - 1
        if moving is not None:
            p = moving.for_a_tick(P[:, end + 1])
            x_after = self._next_state(X[:, end + 1], U[:, end], p)
            x_after = ca.if_else(is_bounded(x_after), x_after, X[:, end + 1])
            of_times = [moving.remembered(P, x_after, plan.kept, self.shift)]
        elif self.shift:
            x_after = self._next_state(X[:, end + 1], U[:, end], P[:, end + 1])
            moved = ca.horzcat(X[:, 1:], x_after), ca.horzcat(U[:, 1:], U[:, end])
            moves = ca.logic_and(plan.kept, is_bounded(x_after))  # else the last state is kept
            X, U = (ca.if_else(moves, *pair) for pair in zip(moved, (X, U), strict=True))
            active = active[self.later, 0] if self.later else active
        active = ca.if_else(plan.kept, active, ca.DM(self.memory.resting))
        return ca.vertcat(
            *(ca.vec(block) for block in (X, U, pending, plan.unsolved, active, held, *of_times))
        )


def _is_motion(X: ca.MX, gaps: ca.MX) -> ca.MX:
    """Return whether the states follow from each other; false for NaN.

    Args:
        X: (nx, N + 1) states of the guess.
        gaps: (nx, N).
    """
    steps = _sum_of_lengths(X[:, 1:] - X[:, :-1])
    return _sum_of_lengths(gaps) <= GAP_SHARE * steps + GAP_FLOOR * (1 + _sum_of_lengths(X))


def _fresh_guess(first: tuple[ca.DM, ca.DM], x0: ca.MX) -> tuple[ca.MX, ca.MX]:
    """Return states and controls to begin with at a measured state.

    Args:
        first: (nx, N + 1) states and (nu, N) controls of the first guess.
        x0: (nx,) measured state.
    """
    X, U = first
    nearby = float(np.linalg.norm(np.diff(X.full(), axis=1), axis=0).max())
    is_near = ca.norm_2(x0 - X[:, 0]) <= nearby
    at_rest = ca.repmat(x0, 1, X.shape[1]), ca.repmat(ca.MX(U[:, -1]), 1, U.shape[1])
    pairs = zip((repeated(X), repeated(U)), at_rest, strict=True)
    X_0, U_0 = (ca.if_else(is_near, *pair) for pair in pairs)
    return X_0, U_0


def _sum_of_lengths(columns: ca.MX) -> ca.MX:
    """Return the sum of the lengths of the columns."""
    return ca.sum2(ca.sqrt(ca.sum1(ca.densify(columns) ** 2)))
