"""Constraint rows that are independent at all poses but isolated ones, known from the mechanism.

Bodies that a free base carries, each on a limb of its own and held to the world, by equality
constraints or at the points of contacts: wherever the base
is, a limb can follow while its own columns have full rank, and poses where they have not are
isolated in the manifold. Rows depend on each other there at most, where no derivative by q exists;
those of forces and along v do, and hold. Loops are another matter: the rows of Bricard's are
independent off its manifold and dependent on it.
"""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Connect, Weld
from mbcasadi.dynamics.reduced_rows import bodies_held_at_points, reduced_matrix_fun
from mbcasadi.model.chain import WORLD, Chain, chain_of
from mbcasadi.system import System

SEED = 1
POSES = 3
SPREAD = 0.5
"""Of the poses about the authored one, m and rad."""

RANK_TOL = 1e-6
"""Least singular value of a regular limb at some usual pose, beside its largest one."""


def rows_are_independent(system: System) -> bool:
    """Return whether the reduced rows of a system depend on each other at isolated poses at most.

    False in doubt: for loops, rows of users, and limbs with more rows than joints of their own.
    """
    held = _held_links(system)
    if system.tree is None or not held:
        return False
    matrix = reduced_matrix_fun(system)
    rows = {link: [i for i, other in enumerate(held) if other == link] for link in held}
    touched = np.array([_entries(matrix.sparsity_out("A_r"))[i].any(axis=0) for i in rows.values()])
    own = [np.flatnonzero(part & (touched.sum(axis=0) == 1)) for part in touched]
    limbs = list(zip(rows.values(), own, strict=True))
    if any(len(i) > j.size for i, j in limbs):
        return False
    rng, least = np.random.default_rng(SEED), np.zeros(len(rows))
    for _ in range(POSES):
        q = system.integrate(system.tree.q0, SPREAD * rng.standard_normal(system.nv))
        A = matrix(q).full()
        sizes = [np.linalg.svd(A[i][:, j], compute_uv=False) for i, j in limbs]
        least = np.maximum(least, [s[-1] / max(s[0], np.finfo(float).tiny) for s in sizes])
    return bool(np.all(least > RANK_TOL))


def _entries(pattern: ca.Sparsity) -> NDArray[np.bool_]:
    return np.array(ca.DM(pattern, 1), dtype=bool).reshape(pattern.shape)


def _is_carried(chain: Chain, link: int) -> bool:
    """Return whether a free joint carries a link."""
    return link != WORLD and chain.links[chain.path(link)[0]].joint.kind == "free"


def _held_links(system: System) -> list[int] | None:
    """Return the link of each reduced row, None where some row is not of a link held to the world.

    Links are carried by a free joint.
    """
    if system.tree is None or system.nc == 0 or system.timed:
        return None
    chain = chain_of(system.tree)
    links: list[int] = []
    for equality in system.equalities:
        if not isinstance(equality, Connect | Weld):
            return None
        pair = {chain.body_link[equality.body1], chain.body_link[equality.body2]} - {WORLD}
        if len(pair) != 1:
            return None
        if WORLD not in {chain.body_link[equality.body1], chain.body_link[equality.body2]}:
            return None
        links += [pair.pop()] * equality.size
    of_points = {row.row: chain.body_link[row.body] for row in system.point_rows}
    links += [of_points.get(row, WORLD) for row in range(len(links), system.nc)]
    if not all(_is_carried(chain, link) for link in links):  # rows of a user too
        return None
    groups = bodies_held_at_points(system)
    if groups and system.mask is not None:
        return None
    grouped = {row for group in groups for row in group.rows}
    of_groups = [links[group.rows[0]] for group in groups for _ in range(group.size)]
    return [link for row, link in enumerate(links) if row not in grouped] + of_groups
