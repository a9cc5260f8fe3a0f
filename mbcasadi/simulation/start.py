"""The start of a run: which rows are active, and where on the manifold it stands."""

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.errors import ProblemError, SimulationError
from mbcasadi.shapes import column
from mbcasadi.simulation.assembly import assemble
from mbcasadi.simulation.call import Array
from mbcasadi.simulation.flow import Flow
from mbcasadi.simulation.manifold import Manifold, Settled
from mbcasadi.simulation.stepper import Now
from mbcasadi.system import System, evaluate

START_GAP = 1e-8
"""Residual that a start may have which is not to be assembled."""

CONTRADICTION = 1e-6
"""Share of `c` by which `A a + c` may miss zero; more means that v0 leads off the manifold."""


def initial_mask(system: System, mask: ArrayLike | None) -> Array:
    """Return the activity (nc,) of the rows at the start.

    Raises:
        ProblemError: a mask is given for a system that has none.
        ShapeError: it has a wrong shape.
    """
    if mask is None:
        return np.ones(system.nc) if system.mask is None else np.array(system.mask, dtype=float)
    if system.mask is None:
        raise ProblemError(
            f"'{system.name}' has no mask: its rows cannot be switched; give system.with_mask()"
        )
    return column("mask", np.asarray(mask), system.nc)


def start_state(
    system: System, manifold: Manifold, flow: Flow, now: Now, *, move: bool, tolerant: bool
) -> Now:
    """Return the start on the manifold, or as it is; the manifold learns its usual rank.

    Raises:
        AssemblyError: no pose near q0 closes the constraints.
        SimulationError: the start is off the manifold and must not be moved, or its velocity
            lies on no branch of a singular pose.
    """
    q = assemble(system, now.q, t=now.t, mask=manifold.mask) if move else now.q
    start = manifold.admissible(q, now.v, now.t)
    manifold.learn(start)
    manifold.scout(q, now.v, now.t)
    if move:
        return Now(now.t, q, _velocity(system, manifold, flow, start, now), now.act)
    if not tolerant and max(start.gap, start.slip) > START_GAP:
        raise SimulationError(
            f"the start is off the manifold: residual {start.gap:.3g} of the constraints, "
            f"{start.slip:.3g} of their rates; give assemble=True, or project='none'"
        )
    return now


def _velocity(system: System, manifold: Manifold, flow: Flow, start: Settled, now: Now) -> Array:
    """Return the admissible velocity; at a singular pose, that of the branch along v0.

    Raises:
        SimulationError: no branch leaves the pose along v0.
    """
    q, v = start.q, start.v
    if not manifold.clear(start):
        nodes = manifold.nodes(q, v, now.t, np.inf)
        if nodes:
            return manifold.middle(q, nodes)[1]
    _require_branch(system, manifold, q, v, now.t, flow.acceleration(now.t, q, v, now.act))
    return v


def _require_branch(
    system: System, manifold: Manifold, q: Array, v: Array, t: float, a: Array
) -> None:
    """Raise `SimulationError` where the rows ask for accelerations that do not exist."""
    known = {"q": q, "v": v, "t": t}
    c = manifold.mask * evaluate(system.loop_bias, known).full().ravel()
    A = manifold.mask[:, None] * evaluate(system.loop_jacobian, known).full()
    missed = np.abs(A @ a + c)
    if np.any(missed > CONTRADICTION * max(1.0, np.abs(c).max(initial=0.0))):
        worst = int(np.argmax(missed))
        raise SimulationError(
            f"the start has no motion: row {worst} ({system.constraint_names[worst]}) would keep "
            f"an acceleration of {missed[worst]:.3g}. Either rows contradict each other, or q0 is "
            "a singular pose and v0 lies along none of its branches: give a v0 along a branch"
        )
