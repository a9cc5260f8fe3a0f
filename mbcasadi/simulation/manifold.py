"""The way back to the manifold: poses, velocities, and what to do where the rank is in doubt.

Newton's steps `q ⊕ (-A⁺ phi)` [A05, eq. 39] and `v - A⁺ psi` make every state that a Runge-Kutta
stage proposes a state of the mechanism, so the equations of motion are only asked where they
hold. Within a hair of a singular pose the direction of a vanishing row is made of rounding
errors. There the state and the acceleration are taken as limits along the motion: from states
before and behind the pose, where the rank is clear, by even interpolation.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mbcasadi.errors import SimulationError
from mbcasadi.simulation.call import Array, Call
from mbcasadi.simulation.functions import (
    Rule,
    jump_fun,
    newton_fun,
    nonlinear_rates,
    tangent_fun,
)
from mbcasadi.system import System

SMALL_STEP = 1e-10
"""Rad or m. After a Newton step as small as this, what is left is below rounding errors, also
where a row is a thousandth of its usual length."""

LARGEST_GAP = 1e-9
"""Residual that a converged pose may have; more means that rows contradict each other."""

NEWTON_LIMIT = 20
"""Newton's steps from a stage take two or three."""

DOUBT = 1e-3
"""Share of the usual clearance below which the rank is in doubt: a row as short as x turns
rounding errors of 1e-16 into 1e-16 / x² in its direction."""

CROSSING_GAP = 1e-10
"""Residual that the limit at a pose may have. With more, two branches do not meet there but pass
each other, as those of a crank and a rod that differ in length by this much do: no limit then."""

NODES = ((1, 0.75), (2, -0.3), (3, 0.05))
"""Places and weights of the limit, on both sides: exact up to the fifth power of time."""

FIRST_NODE = 0.1
"""Place of the first node, as a share of the step; it doubles until the rank is clear."""

FIRST_LENGTH, LAST_LENGTH = 0.01, 0.05
"""Rad or m along the path: bounds of the first node's place, when it is tried first and last."""

SCOUTED = (0.05, -0.05, 0.1, -0.1)
"""Rad or m along the velocity, where a start looks for its usual rank."""


class OffManifoldError(SimulationError):
    """No state of the mechanism was found near a proposed one; a shorter step may find one."""


class Settled(NamedTuple):
    """A state on the manifold, and how well it is known.

    Fields: `q`, `v`; `gap`, `slip` worst residual of phi and psi before the last correction of
    v; `clearance` shortest remainder of a kept row, infinite without rows; `rank`.
    """

    q: Array
    v: Array
    gap: float
    slip: float
    clearance: float
    rank: int


class Node(NamedTuple):
    """A state near a pose in doubt, with its weight in the limit."""

    weight: float
    t: float
    state: Settled


class Manifold:
    """Newton's steps of one mechanism, with the rows that are active now.

    Attributes:
        mask: (nc,) one for each active row, else zero.
        tangent: see `functions.tangent_fun`.
        offset: (nc,) residual at which each row is held; zero unless a switch declared a gap.
    """

    def __init__(self, system: System, rule: Rule, mask: Array) -> None:
        self.system = system
        self.mask = mask
        self.offset = np.zeros(system.nc)
        self.integrate = Call(system.integrate)
        self.difference = Call(system.difference)
        self._newton = Call(newton_fun(system, rule))
        self.tangent = tangent_fun(system, rule)
        self._tangent = Call(self.tangent)
        self._rule = rule
        self._nonlinear = nonlinear_rates(system)
        self._rank, self._clearance = 0, 0.0

    def pose(self, q: Array, t: float) -> Array:
        """Return the pose on the manifold that Newton finds from q.

        Raises:
            OffManifoldError: none was found.
        """
        if not self.system.nc:
            return q
        for _ in range(NEWTON_LIMIT):
            q, length = self._newton(q, t, self.mask, self.offset)
            if length[0] <= SMALL_STEP:
                return q
        raise OffManifoldError("Newton's steps to the constraint manifold do not converge")

    def admissible(self, q: Array, v: Array, t: float) -> Settled:
        """Return the state with the velocity projected: `v - A⁺ psi`.

        Raises:
            OffManifoldError: rows nonlinear in v, and no velocity that fulfils them was found.
        """
        for _ in range(NEWTON_LIMIT):
            v_next, gap, slip, clearance, rank, _ = self._tangent(q, v, t, self.mask, self.offset)
            change = np.abs(v_next - v).max(initial=0.0)
            v = v_next
            if not self._nonlinear or change <= SMALL_STEP * (1.0 + np.abs(v).max()):
                break
        else:
            raise OffManifoldError("Newton's steps to an admissible velocity do not converge")
        return Settled(q, v, float(gap[0]), float(slip[0]), float(clearance[0]), int(rank[0]))

    def settle(self, q: Array, v: Array, t: float) -> Settled:
        """Return the state on the manifold nearest to a proposed one.

        Raises:
            OffManifoldError: none was found, or rows contradict each other.
        """
        settled = self.admissible(self.pose(q, t), v, t)
        if not settled.gap <= LARGEST_GAP:
            raise OffManifoldError(
                f"constraint rows contradict each other: a residual of {settled.gap:.1e} is left"
            )
        return settled

    def clear(self, state: Settled) -> bool:
        """Say whether the rank at a state is what it usually is, by a clear margin."""
        return state.rank >= self._rank and state.clearance >= DOUBT * self._clearance

    def learn(self, state: Settled) -> None:
        """Keep the rank and clearance of a state that was reached, as what is usual."""
        if state.rank > self._rank:
            self._rank, self._clearance = state.rank, 0.0
        if state.rank == self._rank and np.isfinite(state.clearance):
            self._clearance = max(self._clearance, state.clearance)

    def switch(self, mask: Array, offset: Array) -> None:
        """Change the active rows; what is usual is learnt anew."""
        self.mask, self.offset = mask, offset
        self._rank, self._clearance = 0, 0.0

    def jump(self, q: Array, v: Array, t: float) -> tuple[Array, Array]:
        """Return the velocity after an inelastic closure, and the impulse `Aᵀ Λ`."""
        jump, total = Call(jump_fun(self.system, self._rule)), np.zeros_like(v)
        for _ in range(NEWTON_LIMIT):
            v_next, impulse = jump(q, v, t, self.mask)
            change, v = np.abs(v_next - v).max(initial=0.0), v_next
            total += impulse
            if not self._nonlinear or change <= SMALL_STEP * (1.0 + np.abs(v).max()):
                return v, total
        raise OffManifoldError("Newton's steps to an admissible velocity do not converge")

    def scout(self, q: Array, v: Array, t: float) -> None:
        """Look a little ahead and back along v, and learn what rank is usual there."""
        speed = np.abs(v).max(initial=0.0)
        for length in SCOUTED if speed > 0 else ():
            try:
                self.learn(self._ahead(q, v, t, length / speed))
            except OffManifoldError:
                continue

    def nodes(self, q: Array, v: Array, t: float, spacing: float) -> list[Node]:
        """Return states before and behind a pose where the rank is in doubt.

        They lie at times `t ± k s` on the path that starts out along v, each settled. The list is
        empty where the motion does not leave the pose: at rest, or along no branch.
        """
        speed = np.abs(v).max(initial=0.0)
        s = min(FIRST_NODE * spacing, FIRST_LENGTH / speed) if speed > 0 else np.inf
        while 0 < s * speed <= LAST_LENGTH:
            try:
                found = [
                    Node(weight, t + side * k * s, self._ahead(q, v, t, side * k * s))
                    for k, weight in NODES
                    for side in (1, -1)
                ]
                if all(self.clear(node.state) for node in found):
                    middle = self.admissible(*self.middle(q, found), t)
                    return found if middle.gap <= CROSSING_GAP else []
            except OffManifoldError:
                pass
            s *= 2
        return []

    def middle(self, q: Array, nodes: list[Node]) -> tuple[Array, Array]:
        """Return pose and velocity of the limit that the nodes surround."""
        shift = limit(nodes, lambda node: self.difference(q, node.state.q)[0])
        return self.integrate(q, shift)[0], limit(nodes, lambda node: node.state.v)

    def _ahead(self, q: Array, v: Array, t: float, s: float) -> Settled:
        return self.settle(self.integrate(q, s * v)[0], v, t + s)


def limit(nodes: list[Node], value: Callable[[Node], Array]) -> Array:
    """Return the weighted sum of a quantity over the nodes."""
    return np.asarray(sum(node.weight * value(node) for node in nodes))
