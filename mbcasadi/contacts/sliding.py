"""The force of a contact that slides: Coulomb's, against the velocity of the material."""

from typing import NamedTuple

import casadi as ca


class Sliding(NamedTuple):
    """What the friction of a sliding contact follows from.

    Attributes:
        friction: Coulomb coefficient mu.
        speed: v_s, m/s, above which the friction is that of Coulomb.
        velocity: (3,) that a task prescribes, world axes, or None for the measured one.
    """

    friction: float | ca.SX
    speed: float
    velocity: ca.SX | None


def sliding_force(slip: ca.SX, sliding: Sliding) -> ca.SX:
    """Return the force (n, t1, t2) (3,) of a sliding contact for a normal force of 1 N.

    Args:
        slip: (2,) velocity along the tangents, m/s.
        sliding: its friction.
    """
    return ca.vertcat(1, -sliding.friction * slip / ca.sqrt(ca.sumsqr(slip) + sliding.speed**2))
