"""The memory of a real-time iteration, and its state at the beginning of a tick.

    z = (x_0..x_N, u_0..u_{N-1}, pending, unsolved, active set, learned force,
         what the safe output remembers, [times of the plan])

Sample 0 is the moment at which the tick's control acts. `pending` holds one column for each pending
control, newest last, with those parameters that the dynamics read, except times, which are
counted. `unsolved` is the number of ticks in a row without a solution. Over a delay of d ticks the
measured state is predicted with the pending controls,

    x_0 = F(... F(x(q, v), u_{-d}, p_{-d}) ..., u_{-1}, p_{-1}).

Every input may be NaN or huge: then the guess replaces the state, the nominal parameters replace
the given ones, and the first guess replaces z. A disturbance is that of the moment at which u acts,
and the learned force is added to it at all samples.
"""

from dataclasses import dataclass
from typing import Generic, NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.control.safe_output.mechanism_hold import Hold
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.ocp.problem import STEP, Array, OptimalControlProblem
from mbcasadi.mpc.ocp.solution import OcpSolution
from mbcasadi.mpc.ocp.stage import DISTURBANCE
from mbcasadi.mpc.ocp.stage_tuning import TUNING, is_tuned
from mbcasadi.mpc.rti.learned_force import LearnedForce
from mbcasadi.mpc.rti.moving_plan import SHORTEST, MovingPlan
from mbcasadi.qp.input_guard import is_bounded, state_validity
from mbcasadi.short_text import summarised
from mbcasadi.system.coordinates import state_sizes
from mbcasadi.system.parameter_inputs import is_physical


class MemoryContents(NamedTuple, Generic[Sym]):
    """The parts of z: guessed X (nx, N + 1) and U (nu, N), and the rest, as listed above."""

    X: Sym
    U: Sym
    pending: Sym
    unsolved: Sym
    active: Sym
    learned: Sym
    held: Sym
    moving: Sym


class Guess(NamedTuple):
    """The inputs before the measurement: `MemoryContents`, and p of all samples, (np, N + 1).

    `ref_is_finite` is one where ref holds finite numbers, and the tuning valid ones.
    """

    X: ca.MX
    U: ca.MX
    pending: ca.MX
    unsolved: ca.MX
    active: ca.MX
    learned: ca.MX
    held: ca.MX
    moving: ca.MX
    P: ca.MX
    ref_is_finite: ca.MX


@summarised
@dataclass(frozen=True)
class GuessMemory:
    """The layout of z.

    Attributes:
        ocp: the problem.
        resting: initial active set of the QP.
        delay: ticks between measurement and action.
        read: rows of p that the dynamics read, stored over the delay.
        hold: the safe output.
        force: how a force that the model lacks is learned.
        tick: time between two ticks, s.
        moving: how a plan moves on where intervals have given lengths, else None.
    """

    ocp: OptimalControlProblem
    resting: Array
    delay: int
    read: tuple[int, ...]
    hold: Hold
    force: LearnedForce
    tick: float
    moving: MovingPlan | None = None

    @property
    def rows(self) -> int:
        """Number of rows of the QP."""
        return self.resting.size

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of X, U, pending controls, count, active set, learned force with safe output.

        The last one is of the times of the plan, where intervals have given lengths.
        """
        ocp, N = self.ocp, self.ocp.horizon
        ends = self.rows, self.force.size + self.hold.safe.size
        times = () if self.moving is None else (self.moving.size,)
        return ocp.nx * (N + 1), ocp.nu * N, self.width * self.columns, 1, *ends, *times

    @property
    def columns(self) -> int:
        """Number of controls that are stored beside the guess."""
        return max(self.delay, int(self.ocp.has_rates))

    @property
    def width(self) -> int:
        """Size of a stored control with its parameters."""
        return self.ocp.nu + len(self.read)

    def split(self, z: Sym) -> MemoryContents[Sym]:
        """Return the parts of z."""
        ocp, N = self.ocp, self.ocp.horizon
        flat = ca.vertsplit(z, np.cumsum([0, *self.sizes]).tolist())
        X, U = ca.reshape(flat[0], ocp.nx, N + 1), ca.reshape(flat[1], ocp.nu, N)
        pending = ca.reshape(flat[2], self.width, self.columns)
        learned, held, n = flat[5][:0], flat[5], self.force.size
        if n:
            learned, held = ca.vertsplit(held, [0, n, held.shape[0]])
        moving = flat[5][:0] if self.moving is None else flat[6]
        return MemoryContents(X, U, pending, flat[3], flat[4], learned, held, moving)

    def first(self, guess: OcpSolution, pending: Array, is_plan: bool) -> Array:
        """Return z of a guess, with the pending controls (columns, nu).

        One that is no plan counts as one that has ended: its controls are never put out.
        """
        unsolved = np.array([0.0 if is_plan else self.ocp.horizon])
        before = np.repeat(self.ocp.parameters()[:1], self.columns, axis=0)
        columns = np.hstack([pending, before[:, list(self.read)]])
        contents = [guess.x, guess.u, columns, unsolved, self.resting]
        contents += [np.zeros(self.force.size), self.hold.safe.z0]
        contents += [] if self.moving is None else [self.moving.first(guess.x[-1])]
        return np.concatenate([part.ravel() for part in contents])

    def predict_state(self, ticks: int | None = None) -> ca.Function:
        """Return (q, v, pending, p) → (x0), the state at the moment at which u acts.

        p is that of this moment: times are counted back from it. With `ticks`, the state after so
        many of the pending controls.
        """
        ocp, places = self.ocp, slot_slices(self.ocp.slots)
        clock, disturbance = places.get("t"), places.get(DISTURBANCE)
        q, v = (ca.MX.sym(key, ocp.state.numel_in(key)) for key in ("q", "v"))
        pending, p_0 = ca.MX.sym("pending", self.width, self.columns), ca.MX.sym("p", ocp.np_)
        measurement = [q, v, pending[: ocp.nu, -1]] if ocp.has_rates else [q, v]
        x = ocp.state(*measurement)
        for k in range(self.delay if ticks is None else ticks):
            p = ca.MX.zeros(ocp.np_)
            p[list(self.read)] = pending[ocp.nu :, k]
            if clock is not None:
                p[clock] = p_0[clock] - (self.delay - k) * self.tick
            p = p if self.moving is None else self.moving.for_a_tick(p)
            if disturbance is not None:
                p[disturbance] = p_0[disturbance]
            x = ocp.dynamics(x, pending[: ocp.nu, k], p)
        names = ["q", "v", "pending", "p"]
        return ca.Function("predict_state", [q, v, pending, p_0], [x], names, ["x0"])

    def inputs(self) -> dict[str, ca.MX]:
        """Return symbols of the controller's inputs."""
        ocp = self.ocp
        sizes = {"q": ocp.state.numel_in("q"), "v": ocp.state.numel_in("v")}
        sizes |= {"ref": ocp.n_ref * (ocp.horizon + 1)}
        sizes |= {TUNING: len(ocp.tuning)} if ocp.tuning else {}
        sizes |= {"z": sum(self.sizes)}
        return {key: ca.MX.sym(key, size) for key, size in sizes.items()}

    def inputs_before(self) -> dict[str, ca.MX]:
        """Return symbols of those inputs that are known before the measurement."""
        return {key: value for key, value in self.inputs().items() if key not in ("q", "v")}

    def guess(self, inputs: dict[str, ca.MX], z0: Array) -> Guess:
        """Return the contents of z, ref and tuning, finite whatever they hold."""
        ocp = self.ocp
        first = self.split(ca.DM(z0))
        fallback = ca.vertcat(*(ca.vec(repeated(part)) for part in first))
        contents = self.split(ca.if_else(is_bounded(inputs["z"]), inputs["z"], fallback))
        is_finite = ca.logic_and(is_bounded(inputs["ref"]), self.is_physical(inputs["ref"]))
        P = ca.reshape(inputs["ref"], ocp.n_ref, ocp.horizon + 1)
        if ocp.tuning:
            tuning = inputs[TUNING]
            is_finite = ca.logic_and(is_finite, is_tuned(tuning, ocp.tuning, ocp.tuning_order))
            P = ca.vertcat(P, ca.repmat(tuning, 1, ocp.horizon + 1))
        P = ca.if_else(is_finite, P, repeated(ca.DM(ocp.parameters().T)))
        if self.force.size:
            place = slot_slices(ocp.slots)[DISTURBANCE]
            P[place, :] += ca.repmat(self.force.split(contents.learned).d, 1, ocp.horizon + 1)
        if self.moving is not None:
            u_last = contents.pending[: ocp.nu, -1] if ocp.has_rates else ca.MX(0, 1)
            plan = contents.X, contents.U, contents.active
            X, U, active = self.moving.guess(plan, contents.moving, P, u_last)
            contents = contents._replace(X=X, U=U, active=active)
        return Guess(*contents, P, is_finite)

    def start(self, inputs: dict[str, ca.MX], guess: Guess) -> tuple[ca.MX, ca.MX]:
        """Return x0, the guessed one where the measurement is bad, and whether it is good."""
        x0 = self.predict_state()(inputs["q"], inputs["v"], guess.pending, guess.P[:, 0])
        valid = ca.logic_and(guess.ref_is_finite, self.is_measured(inputs["q"], inputs["v"]))
        # A state that becomes huge in the prediction counts as NaN.
        valid = ca.logic_and(valid, is_bounded(x0))
        return ca.if_else(valid, x0, guess.X[:, 0]), valid

    def is_measured(self, q: ca.MX, v: ca.MX) -> ca.MX:
        """Return whether a measured state is finite, and not too far away."""
        system = self.ocp.system
        if system is None:
            return is_bounded(q, v)
        return state_validity((q, v), state_sizes(system))

    def is_physical(self, ref: ca.MX) -> ca.MX:
        """Return whether the parameters of a mechanism, and lengths of intervals, can be those."""
        ocp = self.ocp
        if self.moving is not None:
            lengths = self.moving.lengths(ca.reshape(ref, ocp.n_ref, ocp.horizon + 1))
            return ca.logic_and(ca.mmin(lengths) > SHORTEST, self._is_mechanism(ref))
        return self._is_mechanism(ref)

    def _is_mechanism(self, ref: ca.MX) -> ca.MX:
        """Return whether the physical parameters of all samples are those of a mechanism."""
        ocp, place = self.ocp, slot_slices(self.ocp.slots).get("physical")
        if place is None or not ocp.physical:
            return ca.MX(1)
        p = ca.SX.sym("p", len(ocp.physical))
        valid = ca.Function("is_physical", [p], [is_physical(ocp.physical, p)])
        samples = ca.reshape(ref, ocp.n_ref, ocp.horizon + 1)[place, :]
        return ca.sum2(valid.map(ocp.horizon + 1)(samples)) == ocp.horizon + 1

    def next_learned(self, inputs: dict[str, ca.MX], guess: Guess, valid: ca.MX, u: ca.MX) -> ca.MX:
        """Return what the next tick remembers of the learned force.

        Args:
            inputs: of the controller.
            guess: of this tick.
            valid: whether its inputs are good.
            u: its control.
        """
        q, v, p = inputs["q"], inputs["v"], guess.P[:, 0]
        p = p if self.moving is None else self.moving.for_a_tick(p)
        x, before = self.predict_state(0)(q, v, guess.pending, p), self.force.split(guess.learned)
        force = self.force.missed(before, x, v, p)
        pushed = ca.MX(p)
        pushed[slot_slices(self.ocp.slots)[DISTURBANCE], 0] += force
        if self.delay:
            step = self.predict_state(1)
            plain, moved = (step(q, v, guess.pending, at) for at in (p, pushed))
        else:
            plain, moved = (self.ocp.dynamics(x, u, at) for at in (p, pushed))
        rates = slice(q.shape[0], q.shape[0] + v.shape[0])
        valid = ca.logic_and(valid, is_bounded(plain, moved))
        return self.force.next(before, (x, p), (plain[rates, 0], moved[rates, 0]), valid)

    def next_pending(self, guess: Guess, u: ca.MX) -> ca.MX:
        """Return the pending controls of the next tick."""
        newest = ca.vertcat(u, guess.P[list(self.read), 0])
        return ca.horzcat(guess.pending, newest)[:, 1:] if self.columns else guess.pending


def repeated(columns: ca.DM) -> ca.MX:
    """Return a constant matrix; where its columns are equal, the C has one of them."""
    if columns.shape[1] < 2 or np.any(np.diff(columns.full(), axis=1)):
        return ca.MX(columns)
    return ca.repmat(ca.MX(columns[:, 0]), 1, columns.shape[1])


def memory_of(
    ocp: OptimalControlProblem,
    resting: Array,
    delay: int,
    hold: Hold,
    force: LearnedForce,
    moving: MovingPlan | None = None,
) -> GuessMemory:
    """Return the layout of z."""
    read, places = ocp.dynamics.jac_sparsity(0, ocp.dynamics.index_in("p")), slot_slices(ocp.slots)
    stored = set(read.get_col()) if delay else set[int]()
    for name in ("t", DISTURBANCE, *(() if moving is None else (STEP,))):
        place = places.get(name, slice(0, 0))
        stored -= set(range(place.start, place.stop))
    tick = ocp.period if moving is None else moving.tick
    return GuessMemory(ocp, resting, delay, tuple(sorted(stored)), hold, force, tick, moving)
