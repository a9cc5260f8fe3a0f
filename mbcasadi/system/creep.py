"""How fast a contact of MuJoCo creeps along the ground under a force, below its friction.

Friction is a soft row without stiffness: where nothing accelerates it is a damper, and a force
f_t along the ground, however small, moves the contact at `v = c f_t`,

    c = R / (b impratio),   R = (1 - d)/d A,

A = 1/m of a point of the body, times `1 + mu²` for a pyramid. The impedance d is that of the depth
r to which the load presses the contact: `N = k d r / R` of an elliptic cone, and of a pyramid's
`2 (condim - 1)` rows `N = (condim - 1) k d r impratio / (mu² R)`. See `softness.py`.
"""

from typing import NamedTuple

import numpy as np
import scipy

from mbcasadi.description import CollisionRules, RigidTree
from mbcasadi.description.softness import SoftRow, soft_row
from mbcasadi.system.geom_pairs import TouchingPair, is_static, touching_pairs

DEEPEST = 1.0
"""m, a depth at which every foot is fully loaded."""


class Ground(NamedTuple):
    """A contact of a body with what is fixed to the world.

    Attributes:
        pair: the geoms.
        mobility: A, 1/kg.
        row: of its normal direction.
        rules: cone and `impratio`.
    """

    pair: TouchingPair
    mobility: float
    row: SoftRow
    rules: CollisionRules

    def regularisation(self, depth: float) -> float:
        """Return R, 1/kg, at a depth, m."""
        friction = 0.0 if self.rules.elliptic else float(self.pair.friction[0])
        return self.row.softness(depth) * self.mobility * (1 + friction**2)

    def load(self, depth: float) -> float:
        """Return the normal force at rest at a depth, N."""
        force = self.row.stiffness * self.row.impedance(depth) * depth / self.regularisation(depth)
        if self.rules.elliptic:
            return force
        rows, friction = self.pair.condim - 1, float(self.pair.friction[0])
        return rows * self.rules.impratio / friction**2 * force

    def creep(self, load: float) -> float:
        """Return c, m/s for each N, under a normal force, N."""
        depth = DEEPEST
        if self.load(DEEPEST) > load:
            depth = scipy.optimize.brentq(lambda r: self.load(r) - load, 0.0, DEEPEST)
        return self.regularisation(depth) / (self.row.damping * self.rules.impratio)


def creep_of_bodies(tree: RigidTree, load: float) -> dict[int, float]:
    """Return c, m/s for each N, of all bodies that may touch what is fixed to the world.

    The keys are the first bodies of rigid groups; of several contacts it is the largest c.

    Args:
        tree: the model.
        load: normal force of a contact, N.
    """
    found: dict[int, float] = {}
    for ground in grounds(tree):
        moving = next(g for g in (ground.pair.first, ground.pair.second) if not is_static(tree, g))
        root = tree.bodies[moving.body].weld_root
        if ground.pair.condim > 1 and ground.row.damping > 0 and ground.mobility > 0:
            found[root] = max(found.get(root, 0.0), ground.creep(load))
    return found


def grounds(tree: RigidTree) -> list[Ground]:
    """Return the contacts of moving bodies with what is fixed to the world."""
    rules, found = tree.collision_rules, []
    for pair in touching_pairs(tree):
        geoms = (pair.first, pair.second)
        if sum(is_static(tree, geom) for geom in geoms) == 1:
            mobility = float(np.sum([tree.bodies[geom.body].mobility for geom in geoms]))
            row = soft_row(pair.surface.solref, pair.surface.solimp, rules.least_time)
            found.append(Ground(pair, mobility, row, rules))
    return found
