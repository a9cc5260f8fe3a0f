"""Stiff springs between motors and loads: which joints the law holds, and the gains they permit.

A spring of the stiffness k has the resonance `ω² = k S W Sᵀ` against what is in front of it and
behind it, `W = N (Nᵀ M N)⁺ Nᵀ`, N a basis of the motions that loops and feet that stand allow. The
law holds it (`RigidSprings`) where a task well below ω still carries the robot, and takes that.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.description import Joint
from mbcasadi.system import GeometryContact, System

Array = NDArray[np.float64]

BELOW = 16.0
"""Resonance of a held spring by the bandwidth of the tasks, at least. `RigidSprings` requires twice
the bandwidth, and a delay, the observer and a heavier load take from it: Cassie, 10 % heavier and
one tick late, falls at 8 and stands at 16."""

RANK_TOL = 1e-9
"""Relative size of singular values that count as zero."""

SLOWEST = 5.0
"""1/s, of tasks that stand against gravity; softer springs are left as they are."""


PHASE = np.pi / 4
"""Rad, by which the law is late at the resonance of a held spring: half of what excites it."""

LATE = 1.5
"""Ticks by which a law is late whose control acts one tick after its measurement."""


class HeldSprings(NamedTuple):
    """Joints whose springs the law holds, and what they permit.

    Attributes:
        joints: their names.
        bandwidth: of tasks at most, 1/s.
        tick: of the law, s, where feet leave the ground.
    """

    joints: tuple[str, ...] = ()
    bandwidth: float = np.inf
    tick: float = np.inf


def springs_to_hold(system: System, feet: Sequence[GeometryContact], q: Array) -> HeldSprings:
    """Return the stiff springs of passive joints.

    Args:
        system: of a robot.
        feet: that stand.
        q: (nq,) the pose.
    """
    tree = system.tree
    assert tree is not None
    moved = {*system.joint_roles.driven, *system.joint_roles.dependent}
    sprung = [
        joint
        for joint in tree.joints
        if joint.kind in ("hinge", "slide") and joint.stiffness > 0 and joint.name not in moved
    ]
    if not sprung:
        return HeldSprings()
    stands = _resonances(system, sprung, feet, q)
    held = {name: omega for name, omega in stands.items() if omega > BELOW * SLOWEST}
    if not held:
        return HeldSprings()
    swings = _resonances(system, sprung, [], q)
    tick = PHASE / LATE / max(swings[name] for name in held)
    return HeldSprings(tuple(held), min(held.values()) / BELOW, tick)


def _resonances(
    system: System, sprung: Sequence[Joint], feet: Sequence[GeometryContact], q: Array
) -> dict[str, float]:
    """Return the resonance of each spring, 1/s, while feet stand."""
    A = [np.array(foot.jacobian(q)) for foot in feet]
    A += [np.array(system.constraint_jacobian(q))] if system.nc else []
    N = scipy.linalg.null_space(np.vstack(A), rcond=RANK_TOL) if A else np.eye(system.nv)
    M = N.T @ np.array(system.mass_matrix(q)) @ N
    mobility = N @ np.linalg.pinv(M, rcond=RANK_TOL, hermitian=True) @ N.T
    return {
        joint.name: float(np.sqrt(joint.stiffness * max(mobility[joint.dof, joint.dof], 0.0)))
        for joint in sprung
    }
