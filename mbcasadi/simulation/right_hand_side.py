"""The right-hand side of a simulation, in coordinates that fit one step.

A step that starts at `q_base` has the state `y = (xi, v, act)` with `q = q_base ⊕ xi`, a vector
space even where q holds quaternions: `xi' = v` but for the exponential map's own derivative,
`v' = a`. With projection at every stage the right-hand side is `F(Π(y))`, where Π projects
onto the manifold: a smooth function near it that equals F on it, so an integrator keeps its order.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.shapes import column
from mbcasadi.simulation.buffered_function import Array, BufferedFunction
from mbcasadi.simulation.functions import rate_fun
from mbcasadi.simulation.manifold import (
    LimitNode,
    Manifold,
    ManifoldState,
    OffManifoldError,
    limit_of,
)
from mbcasadi.simulation.options import EquationOptions

Force = Callable[[float, Array, Array], ArrayLike]


class RightHandSide:
    """The motion of one mechanism between two control steps.

    Attributes:
        manifold: the projection onto the constraints.
        u: (nu,) control, constant between control steps.
        base: (nq,) configuration at which the step starts.
        spacing: s, size of the step, a scale for limits at singular poses.
        evaluations: how often the equations of motion were evaluated.
    """

    def __init__(
        self,
        manifold: Manifold,
        formulation: str,
        equations: EquationOptions,
        *,
        project: str = "stage",
        force: Force | None = None,
    ) -> None:
        """Build the equations of motion.

        Args:
            manifold: the projection, with the mechanism and its active rows.
            formulation: one of `dynamics.FORMULATIONS`.
            equations: how the equations are written.
            project: one of `options.PROJECTIONS`.
            force: (t, q, v) → (nv,) applied force.
        """
        system = manifold.system
        self.system, self.manifold = system, manifold
        self.u = np.zeros(system.nu)
        self.base = np.zeros(system.nq)
        self.spacing = 0.0
        self.evaluations = 0
        self._every_stage, self._every_step = project == "stage", project != "none"
        rate = rate_fun(system, formulation, equations, derivatives=False)
        self._rate = BufferedFunction(rate)
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
            state = self.manifold.project(q, v, t)
            return state.q, state.v, act
        state, nodes = self._project(q, v, t)
        if nodes:
            return *self.manifold.limit_state(q, nodes), act
        self.manifold.update_usual_rank(state)
        return state.q, state.v, act

    def local_state(self, v: Array, act: Array) -> Array:
        """Return the local state y at the base."""
        return np.concatenate([np.zeros(self.system.nv), v, act])

    def rate(self, t: float, y: Array) -> Array:
        """Return `y'`.

        Raises:
            OffManifoldError: no state of the mechanism is near.
        """
        q, v, act = self._split(y)
        if not self._every_stage:
            return np.concatenate(self._evaluate(t, q, v, act))
        state, nodes = self._project(q, v, t)
        if not nodes:
            return np.concatenate(self._evaluate(t, state.q, state.v, act))
        xi_dot, _, act_dot = self._evaluate(t, *self.manifold.limit_state(q, nodes), act)
        a = limit_of(nodes, lambda n: self._evaluate(n.t, n.state.q, n.state.v, act)[1])
        return np.concatenate([xi_dot, a, act_dot])

    def acceleration(self, t: float, q: Array, v: Array, act: Array) -> Array:
        """Return a at a state of the mechanism, as a limit where the rank is in doubt.

        Args:
            t: s.
            q, v, act: (nq,), (nv,), (na,) state.
        """
        self.base = q
        nv = self.system.nv
        return self.rate(t, self.local_state(v, act))[nv : 2 * nv]

    def applied_force(self, t: float, q: Array, v: Array) -> Array:
        """Return the applied force f (nv,)."""
        if self._force is None:
            return np.zeros(self.system.nv)
        return column("force(t, q, v)", self._force(t, q, v), self.system.nv)

    def _split(self, y: Array) -> tuple[Array, Array, Array]:
        nv = self.system.nv
        return self.manifold.integrate(self.base, y[:nv])[0], y[nv : 2 * nv], y[2 * nv :]

    def _project(self, q: Array, v: Array, t: float) -> tuple[ManifoldState, list[LimitNode]]:
        """Return the state, and nodes around it where its rank is in doubt."""
        try:
            state = self.manifold.project(q, v, t)
        except OffManifoldError:
            nodes = self.manifold.limit_nodes(q, v, t, self.spacing)
            if not nodes:
                raise
            return nodes[0].state, nodes
        if self.manifold.has_usual_rank(state):
            return state, []
        return state, self.manifold.limit_nodes(q, v, t, self.spacing)

    def _evaluate(self, t: float, q: Array, v: Array, act: Array) -> list[Array]:
        self.evaluations += 1
        f, mask = self.applied_force(t, q, v), self.manifold.mask
        return self._rate(self.base, q, v, t, act, self.u, f, mask)
