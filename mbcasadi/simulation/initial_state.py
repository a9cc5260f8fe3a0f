"""The initial state of a run: its active rows, and its place on the manifold."""

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.errors import ProblemError, SimulationError
from mbcasadi.shapes import column
from mbcasadi.simulation.assembly import assemble
from mbcasadi.simulation.buffered_function import Array
from mbcasadi.simulation.manifold import ManifoldState
from mbcasadi.simulation.right_hand_side import RightHandSide
from mbcasadi.simulation.stepper import MotionState
from mbcasadi.system import System, evaluate
from mbcasadi.system.sizes import residual_sizes

START_GAP = 1e-8
"""Residual, over its size, that a start may have which is not to be assembled."""

CONTRADICTION = 1e-6
"""Share of `c`, or of the accelerations of the mechanism's own motion, by which `A a + c` may miss
zero; more means that v0 leads off the manifold."""


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
    return column("mask", mask, system.nc)


def initial_state(
    right_hand_side: RightHandSide, start: MotionState, *, assembled: bool, projected: bool
) -> MotionState:
    """Return the start on the manifold, or as it is; the manifold's usual rank is set.

    Args:
        right_hand_side: the motion, with the manifold.
        start: the start that the user gave.
        assembled: whether it is moved onto the manifold.
        projected: whether the motion is projected, so that it must start on the manifold.

    Raises:
        AssemblyError: no pose near q0 closes the constraints.
        SimulationError: the start is off the manifold and must not be moved, or its velocity
            lies on no branch of a singular pose.
    """
    system, manifold, t = right_hand_side.system, right_hand_side.manifold, start.t
    q = assemble(system, start.q, t=t, mask=manifold.mask) if assembled else start.q
    state = manifold.admissible(q, start.v, t)
    manifold.update_usual_rank(state)
    manifold.probe_usual_rank(q, start.v, t)
    if assembled:
        return MotionState(t, q, _branch_velocity(right_hand_side, state, t, start.act), start.act)
    if projected:
        require_on_manifold(state)
    return start


def require_on_manifold(state: ManifoldState) -> None:
    """Raise `SimulationError` where a start that is not to be assembled is off the manifold."""
    if max(state.gap, state.slip) > START_GAP:
        raise SimulationError(
            f"the start is off the manifold: residual {state.gap:.3g} of the constraints, "
            f"{state.slip:.3g} of their rates, over their sizes; give "
            "initial=InitialConditions(assemble=True), or "
            "integration=IntegrationOptions(project='none')"
        )


def _branch_velocity(
    right_hand_side: RightHandSide, start: ManifoldState, t: float, act: Array
) -> Array:
    """Return the admissible velocity; at a singular pose, that of the branch along v0.

    Raises:
        SimulationError: no branch leaves the pose along v0.
    """
    manifold, q, v = right_hand_side.manifold, start.q, start.v
    if not manifold.has_usual_rank(start):
        nodes = manifold.limit_nodes(q, v, t, np.inf)
        if nodes:
            return manifold.limit_state(q, nodes)[1]
    a = right_hand_side.acceleration(t, q, v, act)
    _require_branch(right_hand_side.system, manifold.mask, {"q": q, "v": v, "t": t}, a)
    return v


def _require_branch(system: System, mask: Array, state: dict[str, Array | float], a: Array) -> None:
    """Raise `SimulationError` where the rows require accelerations that do not exist."""
    c = mask * evaluate(system.loop_bias, state).full().ravel()
    A = mask[:, None] * evaluate(system.loop_jacobian, state).full()
    residual, size = np.abs(A @ a + c), residual_sizes(system)
    usual = max(system.scales.rate**2, np.abs(c / size).max(initial=0.0))
    if np.any(residual > CONTRADICTION * usual * size):
        worst = int(np.argmax(residual / size))
        raise SimulationError(
            f"the start has no motion: row {worst} ({system.constraint_names[worst]}) would keep "
            f"an acceleration of {residual[worst]:.3g}. Either rows contradict each other, or q0 "
            "is a singular pose and v0 lies along none of its branches: give a v0 along a branch"
        )
