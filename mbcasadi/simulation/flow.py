"""The right-hand side of a simulation, in coordinates that fit one step.

A step that starts at `q_base` has the state `y = (xi, v, act)` with `q = q_base ⊕ xi`, a vector
space even where q holds quaternions: `xi' = v` but for the exponential map's own derivative,
`v' = a`. With projection at every stage the right-hand side is `F(Π(y))`, where Π leads back
to the manifold: a smooth function near it that equals F on it, so an integrator keeps its order.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.shapes import column
from mbcasadi.simulation.call import Array, Call
from mbcasadi.simulation.functions import Rule, rate_fun
from mbcasadi.simulation.manifold import Manifold, Node, OffManifoldError, Settled, limit
from mbcasadi.system import System

Force = Callable[[float, Array, Array], ArrayLike]

PROJECTIONS = ("stage", "step", "none")


class Flow:
    """The motion of one mechanism between two ticks.

    Attributes:
        manifold: the way back to the constraints.
        u: (nu,) control, held.
        base: (nq,) configuration at which the step starts.
        spacing: s, size of the step, a scale for limits at singular poses.
        evaluations: how often the equations of motion were asked.
    """

    def __init__(
        self, system: System, rule: Rule, manifold: Manifold, project: str, force: Force | None
    ) -> None:
        self.system, self.manifold = system, manifold
        self.u = np.zeros(system.nu)
        self.base = np.zeros(system.nq)
        self.spacing = 0.0
        self.evaluations = 0
        self._every_stage, self._every_step = project == "stage", project != "none"
        self._rate = Call(rate_fun(system, rule))
        self._force = force

    def state(self, t: float, y: Array) -> tuple[Array, Array, Array]:
        """Return (q, v, act) of a local state, projected unless that is switched off.

        Raises:
            OffManifoldError: no state of the mechanism is near.
        """
        q, v, act = self._split(y)
        if not self._every_step:
            return q, v, act
        if not self._every_stage:
            state = self.manifold.settle(q, v, t)
            return state.q, state.v, act
        state, nodes = self._settle(q, v, t)
        if nodes:
            return *self.manifold.middle(q, nodes), act
        self.manifold.learn(state)
        return state.q, state.v, act

    def local(self, v: Array, act: Array) -> Array:
        """Return the local state at the base."""
        return np.concatenate([np.zeros(self.system.nv), v, act])

    def rate(self, t: float, y: Array) -> Array:
        """Return `y'`.

        Raises:
            OffManifoldError: no state of the mechanism is near.
        """
        q, v, act = self._split(y)
        if not self._every_stage:
            return np.concatenate(self._evaluate(t, q, v, act))
        state, nodes = self._settle(q, v, t)
        if not nodes:
            return np.concatenate(self._evaluate(t, state.q, state.v, act))
        xi_dot, _, act_dot = self._evaluate(t, *self.manifold.middle(q, nodes), act)
        return np.concatenate([xi_dot, self._limit(nodes, act), act_dot])

    def acceleration(self, t: float, q: Array, v: Array, act: Array) -> Array:
        """Return a at a state of the mechanism, as a limit where the rank is in doubt."""
        self.base = q
        nv = self.system.nv
        return self.rate(t, self.local(v, act))[nv : 2 * nv]

    def applied(self, t: float, q: Array, v: Array) -> Array:
        """Return the applied force f (nv,)."""
        if self._force is None:
            return np.zeros(self.system.nv)
        return column("force(t, q, v)", np.asarray(self._force(t, q, v)), self.system.nv)

    def _split(self, y: Array) -> tuple[Array, Array, Array]:
        nv = self.system.nv
        return self.manifold.integrate(self.base, y[:nv])[0], y[nv : 2 * nv], y[2 * nv :]

    def _settle(self, q: Array, v: Array, t: float) -> tuple[Settled, list[Node]]:
        """Return the state, and nodes around it where its rank is in doubt."""
        try:
            state = self.manifold.settle(q, v, t)
        except OffManifoldError:
            nodes = self.manifold.nodes(q, v, t, self.spacing)
            if not nodes:
                raise
            return nodes[0].state, nodes
        if self.manifold.clear(state):
            return state, []
        return state, self.manifold.nodes(q, v, t, self.spacing)

    def _limit(self, nodes: list[Node], act: Array) -> Array:
        return limit(nodes, lambda n: self._evaluate(n.t, n.state.q, n.state.v, act)[1])

    def _evaluate(self, t: float, q: Array, v: Array, act: Array) -> list[Array]:
        self.evaluations += 1
        f, mask = self.applied(t, q, v), self.manifold.mask
        return self._rate(self.base, q, v, t, act, self.u, f, mask)
