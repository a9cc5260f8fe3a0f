"""Joints that their damping stops within a tick, and the observer that they bear.

Of an acceleration that is asked for, a tick h leaves the share s of a joint with damping D,

    s = [(M + h D)⁻¹]_ii / [M⁻¹]_ii,

and an observer of bandwidth L takes the rest for a disturbance. The error of its task then follows
`x''' + s kd x'' + s kp x' + (1 - s) L kp x = 0`, which grows where `(1 - s) L > s kd`.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mbcasadi.control import ProposedGains
from mbcasadi.system import System

Array = NDArray[np.float64]

RESERVE = 0.5
"""Of the bandwidth at which the error would grow."""


def left_by_damping(system: System, q: Array, joints: Sequence[str], period: float) -> float:
    """Return the least share s of some joints at rest in a pose; 1 for none.

    Args:
        system: of the model.
        q: (nq,) pose.
        joints: hinges and slides.
        period: of a tick, s.
    """
    assert system.tree is not None
    M, rest = np.array(system.mass_matrix(q)), np.zeros(system.nv)
    still = np.array(system.passive_force(q, rest)).ravel()
    moving = [np.array(system.passive_force(q, v)).ravel() for v in np.eye(system.nv)]
    damping = np.array([still[k] - force[k] for k, force in enumerate(moving)])
    free, left = (np.diag(np.linalg.inv(each)) for each in (M, M + period * np.diag(damping)))
    dofs = [joint.dof for joint in system.tree.joints if joint.name in joints]
    return float(min((left / free)[dofs], default=1.0))


def with_calm_observer(gains: ProposedGains, left: float) -> ProposedGains:
    """Return gains whose observer is slow enough for joints of a share; the same where it is."""
    if gains.observer is None or (1 - left) * gains.observer.bandwidth <= left * gains.kd:
        return gains
    slower = RESERVE * left * gains.kd / (1 - left)
    return replace(gains, observer=replace(gains.observer, bandwidth=slower))
