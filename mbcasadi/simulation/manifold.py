"""Projection onto the manifold: poses, velocities, and limits where the rank is in doubt.

Newton's steps `q ⊕ (-A⁺ phi)` [A05, eq. 39] and `v - A⁺ psi` make every state that a Runge-Kutta
stage proposes a state of the mechanism, so the equations of motion are only evaluated where they
hold. Very close to a singular pose the direction of a vanishing row consists of rounding errors.
There the state and the acceleration are limits along the motion: from states before and after
the pose, where the rank is clear, by even interpolation.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mbcasadi.errors import SimulationError
from mbcasadi.simulation.active_rows import has_nonlinear_rates
from mbcasadi.simulation.buffered_function import Array, BufferedFunction
from mbcasadi.simulation.functions import (
    jump_fun,
    newton_fun,
    tangent_fun,
)
from mbcasadi.simulation.options import EquationOptions
from mbcasadi.system import System

SMALL_STEP = 1e-10
"""Rad, or share of a length. After a Newton step as small as this, the residual is below rounding
errors, also where a row is a thousandth of its usual length. Of velocities: relative to the rate of
the motion."""

LARGEST_GAP = 1e-9
"""Residual, over its size, that a converged pose may have; more means that rows contradict each
other."""

NEWTON_LIMIT = 20
"""Newton's steps from a stage take two or three."""

CLEARANCE_SHARE = 1e-3
"""Share of the usual clearance below which the rank is in doubt: a row as short as x turns
rounding errors of 1e-16 into 1e-16 / x² in its direction."""

CROSSING_GAP = 1e-10
"""Residual, over its size, that the limit at a pose may have. With more, two branches do not meet
there but pass each other, as those of a crank and a rod that differ in length by this much do: no
limit then."""

LIMIT_STENCIL = ((1, 0.75), (2, -0.3), (3, 0.05))
"""Places and weights of the limit, on both sides: exact up to the fifth power of time."""

FIRST_NODE = 0.1
"""Place of the first node, as a share of the step; it doubles until the rank is clear."""

FIRST_LENGTH, LAST_LENGTH = 0.01, 0.05
"""Rad, or shares of a length, along the path: bounds of the first node's place, in the first and
the last trial."""

PROBE_LENGTHS = (0.05, -0.05, 0.1, -0.1)
"""Rad, or shares of a length, along the velocity, where the usual rank is probed around a start."""


class OffManifoldError(SimulationError):
    """No state of the mechanism was found near a proposed one; a shorter step may find one."""


class ManifoldState(NamedTuple):
    """A state on the manifold, and how well it is known.

    Fields: `q`, `v`; `gap`, `slip` worst residual of phi and psi before the last correction of
    v, over their sizes; `clearance` shortest remainder of a kept row, infinite without rows;
    `rank`.
    """

    q: Array
    v: Array
    gap: float
    slip: float
    clearance: float
    rank: int


class LimitNode(NamedTuple):
    """A state near a pose where the rank is in doubt, with its weight in the limit."""

    weight: float
    t: float
    state: ManifoldState


class Manifold:
    """Newton's steps of one mechanism, with the rows that are active now.

    Attributes:
        mask: (nc,) one for each active row, else zero.
        tangent: see `functions.tangent_fun`.
        offset: (nc,) residual at which each row is held; zero unless a switch declared a gap.
    """

    def __init__(self, system: System, equations: EquationOptions, mask: Array) -> None:
        self.system = system
        self.mask = mask
        self.offset = np.zeros(system.nc)
        self.integrate = BufferedFunction(system.integrate)
        self.difference = BufferedFunction(system.difference)
        self._newton = BufferedFunction(newton_fun(system, equations))
        self.tangent = tangent_fun(system, equations)
        self._tangent = BufferedFunction(self.tangent)
        self._equations = equations
        self._nonlinear = has_nonlinear_rates(system)
        self._rank, self._clearance = 0, 0.0

    def pose(self, q: Array, t: float) -> Array:
        """Return the pose on the manifold to which Newton's steps lead from q.

        Raises:
            OffManifoldError: they do not converge.
        """
        if not self.system.nc:
            return q
        for _ in range(NEWTON_LIMIT):
            q, length = self._newton(q, t, self.mask, self.offset)
            if length[0] <= SMALL_STEP:
                return q
        raise OffManifoldError("Newton's steps to the constraint manifold do not converge")

    def admissible(self, q: Array, v: Array, t: float) -> ManifoldState:
        """Return the state with the velocity projected: `v - A⁺ psi`.

        Raises:
            OffManifoldError: rows nonlinear in v, and Newton's steps do not converge.
        """
        for _ in range(NEWTON_LIMIT):
            out = self._tangent(q, v, t, self.mask, self.offset)
            v_next, _, _, clearance, rank, _, off = out
            is_small = self._is_small_change(v_next - v, v_next)
            v = v_next
            if not self._nonlinear or is_small:
                break
        else:
            raise OffManifoldError("Newton's steps to an admissible velocity do not converge")
        return ManifoldState(q, v, float(off[0]), float(off[1]), float(clearance[0]), int(rank[0]))

    def project(self, q: Array, v: Array, t: float) -> ManifoldState:
        """Return the state on the manifold nearest to a proposed one.

        Raises:
            OffManifoldError: Newton's steps do not converge, or rows contradict each other.
        """
        state = self.admissible(self.pose(q, t), v, t)
        if not state.gap <= LARGEST_GAP:
            raise OffManifoldError(
                "constraint rows contradict each other: a residual of "
                f"{state.gap:.1e} of its size remains"
            )
        return state

    def has_usual_rank(self, state: ManifoldState) -> bool:
        """Return whether the rank at a state is what it usually is, by a clear margin."""
        return state.rank >= self._rank and state.clearance >= CLEARANCE_SHARE * self._clearance

    def update_usual_rank(self, state: ManifoldState) -> None:
        """Update the usual rank and clearance by a state of the motion."""
        if state.rank > self._rank:
            self._rank, self._clearance = state.rank, 0.0
        if state.rank == self._rank and np.isfinite(state.clearance):
            self._clearance = max(self._clearance, state.clearance)

    def set_active_rows(self, mask: Array, offset: Array) -> None:
        """Change the active rows; their usual rank is not known yet."""
        self.mask, self.offset = mask, offset
        self._rank, self._clearance = 0, 0.0

    def jump(self, q: Array, v: Array, t: float) -> tuple[Array, Array]:
        """Return the velocity after an inelastic closure, and the impulse `Aᵀ Λ`."""
        jump = BufferedFunction(jump_fun(self.system, self._equations))
        total = np.zeros_like(v)
        for _ in range(NEWTON_LIMIT):
            v_next, impulse = jump(q, v, t, self.mask)
            is_small = self._is_small_change(v_next - v, v_next)
            v = v_next
            total += impulse
            if not self._nonlinear or is_small:
                return v, total
        raise OffManifoldError("Newton's steps to an admissible velocity do not converge")

    def probe_usual_rank(self, q: Array, v: Array, t: float) -> None:
        """Update the usual rank by states shortly before and after this one on its path."""
        speed = self._speed(v)
        for length in PROBE_LENGTHS if speed > 0 else ():
            try:
                self.update_usual_rank(self._state_after(q, v, t, length / speed))
            except OffManifoldError:
                continue

    def limit_nodes(self, q: Array, v: Array, t: float, spacing: float) -> list[LimitNode]:
        """Return states before and after a pose where the rank is in doubt.

        They lie at times `t ± k s` on the path that starts out along v, each projected. The list
        is empty where the motion does not leave the pose: at rest, or along no branch.

        Args:
            q, v: (nq,), (nv,) state where the rank is in doubt.
            t: s, its time.
            spacing: s, size of the step that led there.
        """
        speed = self._speed(v)
        s = min(FIRST_NODE * spacing, FIRST_LENGTH / speed) if speed > 0 else np.inf
        while 0 < s * speed <= LAST_LENGTH:
            try:
                nodes = [
                    LimitNode(weight, t + side * k * s, self._state_after(q, v, t, side * k * s))
                    for k, weight in LIMIT_STENCIL
                    for side in (1, -1)
                ]
                if all(self.has_usual_rank(node.state) for node in nodes):
                    limit = self.admissible(*self.limit_state(q, nodes), t)
                    return nodes if limit.gap <= CROSSING_GAP else []
            except OffManifoldError:
                pass
            s *= 2
        return []

    def limit_state(self, q: Array, nodes: list[LimitNode]) -> tuple[Array, Array]:
        """Return pose and velocity of the limit that the nodes surround."""
        shift = limit_of(nodes, lambda node: self.difference(q, node.state.q)[0])
        return self.integrate(q, shift)[0], limit_of(nodes, lambda node: node.state.v)

    def _speed(self, v: Array) -> float:
        """Return the largest velocity over the size of its coordinate, 1/s."""
        return float(np.abs(v / self.system.scales.coordinates).max(initial=0.0))

    def _is_small_change(self, change: Array, v: Array) -> bool:
        rate = self.system.scales.rate + self._speed(v)
        return self._speed(change) <= SMALL_STEP * rate

    def _state_after(self, q: Array, v: Array, t: float, duration: float) -> ManifoldState:
        return self.project(self.integrate(q, duration * v)[0], v, t + duration)


def limit_of(nodes: list[LimitNode], value: Callable[[LimitNode], Array]) -> Array:
    """Return the weighted sum of a quantity over the nodes."""
    return np.asarray(sum(node.weight * value(node) for node in nodes))
