"""Springs that yield: where their rest goes once the stretch exceeds a bound.

Ideal plasticity, as MuJoCo's `springyield`: within the bound y a spring is elastic, beyond it its
rest r follows the coordinate x such that `|x - r| = y`. A dead band moves as a whole.
"""

from collections.abc import Iterator

import casadi as ca

from mbcasadi.description import Joint, RigidTree, Tendon
from mbcasadi.model.activation import clip
from mbcasadi.model.configuration import rotation_between
from mbcasadi.model.motion import quat_of
from mbcasadi.model.roots import smooth_root
from mbcasadi.model.transmission import tendon_length
from mbcasadi.spatial import Quat, dot, exponential, multiply, scale


def yielding(tree: RigidTree) -> Iterator[tuple[Joint | Tendon, tuple[str, ...]]]:
    """Yield each spring that yields, and the names of the entries of its rest."""
    for joint in tree.joints:
        if joint.spring_yield:
            name = f"joint:{joint.name}:spring"
            is_ball = joint.kind == "ball"
            yield joint, tuple(f"{name}quat.{c}" for c in "wxyz") if is_ball else (f"{name}ref",)
    for tendon in tree.tendons:
        if tendon.spring_yield:
            yield (
                tendon,
                tuple(f"tendon:{tendon.name}:springlength.{e}" for e in ("lower", "upper")),
            )


def next_rests(tree: RigidTree, q: ca.SX, rests: ca.SX) -> ca.SX:
    """Return the rests (n, 1) once the configuration q is reached.

    Args:
        tree: the mechanism.
        q: (nq, 1) configuration.
        rests: (n, 1) rests before, in the order of `yielding`.
    """
    later, first = [], 0
    for spring, names in yielding(tree):
        rest = rests[first : first + len(names), 0]
        first += len(names)
        if not isinstance(spring, Joint):
            stretch = tendon_length(tree, spring, q) - rest  # beyond the lower, the upper end
            later.append(
                rest + _beyond(ca.fmax(stretch[1], 0.0) + ca.fmin(stretch[0], 0.0), spring)
            )
        elif spring.kind == "ball":
            later.append(_turned_rest(spring, rest, quat_of(q, spring.qpos)))
        else:
            later.append(rest + _beyond(q[spring.qpos] - rest, spring))
    return ca.vertcat(ca.SX(0, 1), *later)


def _beyond(stretch: ca.SX, spring: Joint | Tendon) -> ca.SX:
    """Return by how much a stretch is beyond the bound, with its sign."""
    return stretch - clip(stretch, (-spring.spring_yield, spring.spring_yield))


def _turned_rest(joint: Joint, rest: ca.SX, orientation: Quat) -> ca.SX:
    """Return the rest (4, 1) of a ball, turned towards an orientation until the bound is kept."""
    start: Quat = (rest[0], rest[1], rest[2], rest[3])
    turn = rotation_between(start, orientation)
    angle = smooth_root(dot(turn, turn))
    share = _beyond(angle, joint) / ca.fmax(angle, joint.spring_yield)
    return ca.vertcat(*multiply(start, exponential(scale(share, turn))))
