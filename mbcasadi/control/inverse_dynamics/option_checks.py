"""Checks of a controller's options that concern several of them."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mbcasadi.control.inverse_dynamics.contacts.sliding_contacts import slide_task_of
from mbcasadi.control.inverse_dynamics.floating_base import doubt_of_base
from mbcasadi.control.inverse_dynamics.friction_loss import doubt_of_friction
from mbcasadi.control.tasks.task import Gains, Task
from mbcasadi.errors import ProblemError
from mbcasadi.system import System
from mbcasadi.system.coordinates import moving_size

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.options import Setup


CALLER = 4
"""Frames from `warn_of_doubts` to the line that builds an `InverseDynamicsQP`."""


def warn_of_doubts(setup: "Setup") -> None:
    """Warn of what is built all the same."""
    for doubt in (doubt_of_friction(setup), doubt_of_base(setup)):
        if doubt:
            warnings.warn(doubt, stacklevel=CALLER)


def require_system(system: System) -> None:
    """Raise for systems that inverse dynamics does not support."""
    if system.nu == 0:
        raise ProblemError(f"'{system.name}' has no actuators; expected at least one")
    if system.timed:
        raise ProblemError(
            f"'{system.name}' has constraints that depend on time; the controller has no clock. "
            "Make the moving quantity a task"
        )


def require_rows_of_levels(setup: "Setup") -> None:
    """Raise for levels together with what they do not know."""
    unknown = {
        "soft": bool(setup.soft),
        'Contact(cone="quadratic")': any(each.cone == "quadratic" for each in setup.contacts),
        "sharing or limits or weights of loop forces": setup.load_sharing is not None,
        "Contact(slides=True)": any(each.slides for each in setup.contacts),
        "a force_weight that differs by component": np.unique(setup.contact_weights).size > 1,
    }
    given = [name for name, is_given in unknown.items() if is_given]
    if setup.levels and given:
        raise ProblemError(
            f"levels with {', '.join(given)}; expected hard limits, pyramids and one weight "
            "of forces, or weights in place of levels"
        )


def require_tasks(tasks: Sequence[Task], gains: Sequence[Gains]) -> None:
    """Raise for no task, two with one name, or nothing with a positive weight."""
    if not tasks:
        raise ProblemError("no tasks; expected at least one, such as PostureTask()")
    names = [task.name for task in tasks]
    if len(set(names)) != len(names):
        raise ProblemError(f"tasks are named {', '.join(names)}; expected different names")
    if not any(np.any(each.weight > 0) for each in gains):
        raise ProblemError("all task weights are zero; expected at least one that is positive")


def require_slides(setup: "Setup") -> None:
    """Raise for sliding contacts whose loads are shared, or for a task that has no velocity.

    Loads of contacts that slide are not shared: friction follows them.
    """
    for contact in setup.contacts:
        if contact.slide_task:
            slide_task_of(setup, contact)
    slides = [contact.frame for contact in setup.contacts if contact.slides]
    if slides and setup.sharing is not None and setup.sharing.rows == "all":
        raise ProblemError(
            f"contact '{slides[0]}' slides, with LoadSharing(rows=\"all\"); expected "
            'rows="loops": the friction of a sliding contact follows its normal force'
        )


def require_fallback_law(setup: "Setup") -> None:
    """Raise unless a fallback law takes (q, v, ref, mask) and returns u."""
    law = setup.fallback_law
    if law is None:
        return
    system = setup.system
    sizes = tuple(law.size1_in(i) * law.size2_in(i) for i in range(law.n_in()))
    expected = (moving_size(system), system.nv, setup.nref, len(setup.mask_names))
    if sizes != expected or law.n_out() < 1 or law.numel_out(0) != system.nu:
        nq, nv, nref, nmask = expected
        raise ProblemError(
            f"fallback law {law}; expected (q[{nq}], v[{nv}], ref[{nref}], mask[{nmask}]) -> "
            f"(u[{system.nu}])"
        )
