"""Newton and Euler: the joint forces that a motion demands.

`F = m a + U s`, `N = s × a + ∫ r × U r dm` for each link in its own axes, with the acceleration
`a` of its origin and `U = [dω]× + [ω]×[ω]×`; wrenches are summed from the leaves.
"""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.description import Actuator, RigidTree
from mbcasadi.linalg.arithmetic import matrix_of, minus, plus, times
from mbcasadi.model.chain import WORLD, Chain, chain_of
from mbcasadi.model.inertia import armature_matrix
from mbcasadi.model.motion import Wrench, steps_of, wrench_before, wrench_on_dofs
from mbcasadi.model.recursion import LinkMotion, link_motions, rows_times
from mbcasadi.model.tendon_armature import tendon_bias_force
from mbcasadi.spatial import Mat3, Moments, Scalar, Step, Vec3, add, cross, scale

Pair = tuple[Scalar, Scalar]


def bias_force(tree: RigidTree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return h, the Coriolis, centrifugal and gravity force: `qfrc_bias` of MuJoCo.

    Args:
        tree: the mechanism.
        q: (nq, 1) configuration.
        v: (nv, 1) velocity.

    Returns:
        (nv, 1) bias force.
    """
    chain = chain_of(tree)
    forces = _joint_forces(chain, q, link_motions(chain, q, v))
    return ca.sparsify(forces + tendon_bias_force(tree, q, v))


def inverse_dynamics(
    tree: RigidTree, q: ca.SX, v: ca.SX, a: ca.SX, actuators: Sequence[Actuator] = ()
) -> ca.SX:
    """Return `M a + h` without forming M; its derivatives are much shorter than those of M.

    Args:
        tree: the mechanism.
        q: (nq, 1) configuration.
        v: (nv, 1) velocity.
        a: (nv, 1) acceleration.
        actuators: those whose armature counts.

    Returns:
        (nv, 1) generalised force.
    """
    chain = chain_of(tree)
    forces = _joint_forces(chain, q, link_motions(chain, q, v, a))
    forces += tendon_bias_force(tree, q, v)
    return forces + armature_matrix(tree, q, actuators) @ a


def _joint_forces(chain: Chain, q: ca.SX, motions: dict[int, LinkMotion]) -> ca.SX:
    """Return (nv, 1) what the joints must do to move the links so."""
    steps = [steps_of(link, q) for link in chain.links]
    forces: dict[tuple[int, int], Scalar] = {}
    for i, (wrench, _) in enumerate(carried_wrenches(chain, steps, motions)):
        for row, value in wrench_on_dofs(chain.links[i], wrench, steps[i]):
            forces[row, 0] = value
    return ca.sparsify(matrix_of((chain.tree.nv, 1), forces))


def carried_wrenches(
    chain: Chain, steps: list[tuple[Step, ...]], motions: dict[int, LinkMotion]
) -> list[tuple[Wrench, Wrench]]:
    """Return for each link the wrench that moves all that it carries.

    Args:
        chain: the links.
        steps: of each link at the configuration.
        motions: of the links.

    Returns:
        Wrenches in the frame of the link, and in its frame before the joint's motion.
    """
    wrenches = [newton_euler(link.moments, motions[i]) for i, link in enumerate(chain.links)]
    before_joint = list(wrenches)
    for i in reversed(range(len(chain.links))):
        link, fixed = chain.links[i], len(chain.links[i].before)
        before_joint[i] = wrench_before(steps[i][fixed:], wrenches[i])
        if link.parent == WORLD:
            continue
        force, moment = wrench_before(steps[i][:fixed], before_joint[i])
        below = wrenches[link.parent]
        wrenches[link.parent] = (add(below[0], force), add(below[1], moment))
    return list(zip(wrenches, before_joint, strict=True))


def newton_euler(moments: Moments, motion: LinkMotion) -> Wrench:
    """Return the wrench on a link's own mass, about its origin, in its axes."""
    m, s = moments.mass, moments.first
    force = add(scale(m, motion.a), rows_times(motion.U, s))
    x2, y2, z2 = (times(c, c) for c in motion.w)
    spread = (minus(z2, y2), minus(x2, z2), minus(y2, x2))
    spin = moment_of_field(motion.U, spread, moments.second)
    return force, add(cross(s, motion.a), spin)


def moment_of_field(U: Mat3, spread: Vec3, second: tuple[Scalar, ...]) -> Vec3:
    """Return `∫ r × U r dm`.

    Args:
        U: rows of the field.
        spread: `U_zz - U_yy`, `U_xx - U_zz`, `U_yy - U_xx`.
        second: mass moments as (xx, yy, zz, xy, xz, yz), kg m².
    """
    xx, yy, zz, xy, xz, yz = second
    (_, a, b), (c, _, d), (e, f, _) = U
    return (
        plus(_difference(((e, xy), (f, yy)), ((c, xz), (d, zz))), times(spread[0], yz)),
        plus(_difference(((a, yz), (b, zz)), ((e, xx), (f, xy))), times(spread[1], xz)),
        plus(_difference(((c, xx), (d, xz)), ((a, yy), (b, yz))), times(spread[2], xy)),
    )


def _difference(added: tuple[Pair, Pair], subtracted: tuple[Pair, Pair]) -> Scalar:
    """Return the products of the pairs, two of them added and two subtracted."""
    total = plus(times(*added[0]), times(*added[1]))
    for pair in subtracted:
        total = minus(total, times(*pair))
    return total
