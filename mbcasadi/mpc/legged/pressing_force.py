"""The force by which a swinging foot presses on the ground, and when it counts as touching.

A foot that is to be at the depth d below the ground, and is stopped by it, presses with

    F = m kp d,    1/m = n J M⁻¹ Jᵀ nᵀ,

m its mass as the joints feel it, n the normal, J of the mean of its contacts, kp of their tasks.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.control.tasks.task import gains_of
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.legged.rigid_body import Array
from mbcasadi.mpc.legged.touch_down import TouchDown

TOUCHED = 0.005
"""m, a depth at which a foot that presses touches for sure."""

OFF_SHARE = 0.5
"""Of the force from which on a foot touches, that below which it has left the ground."""


def touch_down_of(
    rule: TouchDown, law: InverseDynamicsQP, feet: Sequence[Sequence[int]], q0: Array
) -> TouchDown:
    """Return the rule with its forces: those of the lightest foot where none are given.

    Args:
        rule: of the planner.
        law: with a task of each contact.
        feet: the contacts of each foot.
        q0: (nq,) nominal pose.

    Raises:
        ProblemError: `on_force` is more than a foot that searches the ground can press with.
    """
    stiffness = min(_pressing_stiffness(law, foot, q0) for foot in feet)
    usual, most = stiffness * TOUCHED, stiffness * rule.depth
    on = usual if rule.on_force is None else rule.on_force
    if on > most and rule.on_force is not None:
        raise ProblemError(
            f"TouchDown(on_force={on:.3g}): a foot that searches the ground presses with "
            f"{most:.3g} N at depth = {rule.depth:g} m and would never touch; expected about "
            f"{usual:.2g} N, the default, a larger depth, or a larger kp of the feet's tasks"
        )
    return replace(rule, on_force=on, off_force=rule.off_force or OFF_SHARE * on)


def _pressing_stiffness(law: InverseDynamicsQP, foot: Sequence[int], q0: Array) -> float:
    """Return m kp of a foot, N/m."""
    contacts = [law.contacts[i] for i in foot]
    rows = []
    for contact in contacts:
        J = np.array(law.system.frame(contact.frame, contact.kind).jacobian(q0))[:3]
        normal = np.asarray(contact.normal, dtype=float)
        rows.append(normal @ J / np.linalg.norm(normal))
    row = np.mean(rows, axis=0)
    mobility = float(row @ np.linalg.solve(np.array(law.system.mass_matrix(q0)), row))
    tasks = {task.name: task for task in law.tasks}
    gains = [gains_of(tasks[c.frame], law.system).kp for c in contacts if c.frame in tasks]
    return float(np.min(np.concatenate(gains))) / mobility if gains else np.inf
