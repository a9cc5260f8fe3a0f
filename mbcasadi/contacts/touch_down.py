"""The mask of contacts from their measured normal forces and a schedule.

A foot that is scheduled to stand may still be in the air, and one that is scheduled to swing may
already have hit a stone. With hysteresis, a contact touches from `on_force` until its force falls
below `off_force`; then

    scheduled to stand: it is used while it touches (a late touch-down waits),
    scheduled to swing: it is used where it touches again after it has been in the air (an early
    one counts); until it has left, it is off as scheduled.
"""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.qp.input_guard import MASK_ON
from mbcasadi.shapes import require_identifier, require_positive


class Touch(NamedTuple):
    """Entries for each contact: whether it is used, touches, and has left since its swing began."""

    mask: ca.SX
    touches: ca.SX
    has_left: ca.SX

    @property
    def memory(self) -> ca.SX:
        """What the next tick needs: (2 nc,)."""
        return ca.vertcat(self.touches, self.has_left)


def touch_rule(stands: ca.SX, pressure: ca.SX, z: ca.SX, on: float, off: float) -> Touch:
    """Return which contacts are used, by the rule above.

    Args:
        stands: (nc,) whether each is scheduled to stand.
        pressure: (nc,) what grows where it touches: its normal force, or the probability of it.
        z: (2 nc,) of the last tick; see `Touch.memory`.
        on: from which on a contact touches.
        off: below which it does not touch any more.
    """
    count = stands.numel()
    touched, left = z[:count, 0] > MASK_ON, z[count:, 0] > MASK_ON
    touches = ca.if_else(pressure >= on, 1, ca.logic_and(pressure >= off, touched))
    has_left = ca.logic_and(ca.logic_not(stands), ca.logic_or(left, ca.logic_not(touches)))
    return Touch(ca.logic_and(touches, ca.logic_or(stands, has_left)), touches, has_left)


@checked
def touch_down(
    contacts: Sequence[str], on_force: float, off_force: float, *, name: str = "touch_down"
) -> ca.Function:
    """Return (schedule, normal_force, z) → (mask, z_next), for `export_c` as well.

    `schedule`, `normal_force` and `mask` have one entry for each contact; z is (2 nc,): whether
    each touches, then whether it has left since its swing began. A force that is not a number
    is none.

    Args:
        contacts: their names, for messages and the size.
        on_force: N, from which on a contact touches.
        off_force: N, below which it does not touch any more.
        name: a C identifier.

    Raises:
        ProblemError: no contacts, or forces that are not `0 < off_force <= on_force`.
    """
    require_identifier("name", name)
    require_positive(on_force=on_force, off_force=off_force)
    if not contacts or off_force > on_force:
        raise ProblemError(
            f"{len(contacts)} contacts, off_force = {off_force} N, on_force = {on_force} N; "
            "expected contacts, and off_force <= on_force"
        )
    count = len(contacts)
    schedule, force = ca.SX.sym("schedule", count), ca.SX.sym("normal_force", count)
    z = ca.SX.sym("z", 2 * count)
    touch = touch_rule(schedule > MASK_ON, force, z, on_force, off_force)
    return ca.Function(
        name,
        [schedule, force, z],
        [ca.densify(touch.mask), touch.memory],
        ["schedule", "normal_force", "z"],
        ["mask", "z_next"],
    )
