"""What a controller is designed from: the mechanism, its timing, and all of its parts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.control.tasks.task import Gains, Slot, Task, gains_of
from mbcasadi.description import Contact
from mbcasadi.shapes import unique
from mbcasadi.system import System
from mbcasadi.system.coordinates import equality_groups
from mbcasadi.system.ranges import Ranges

Array = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True)
class Tick:
    """How a tick advances a coordinate: `v + h a`, `q + h v + c h² a`.

    Attributes:
        length: h, s.
        share: c.
    """

    length: float
    share: float = 0.5


class WeighedForce(NamedTuple):
    """A component of a contact force, or a force of an equality constraint, in the cost.

    Attributes:
        name: `FL.n`, `pin.x`.
        weight: r of `½ r (f - f_ref)²`, zero or more.
        owner: ("contact", name) or ("loop", name).
        unit: of the force.
        place: index of the contact, or of the multiplier.
        row: of the contact, n, t1, t2; or of its equality constraint.
    """

    name: str
    weight: float
    owner: tuple[str, str]
    unit: str
    place: int
    row: int


class Design(ABC):
    """What the parts of a controller may know of it when they are bound.

    Attributes:
        system: the mechanism.
        tasks: desired motions.
        contacts: of the mechanism with its surroundings.
        period: sample time, s.
        tunable: what may change between ticks, see `tuning.py`.
        levels: names of tasks, level by level; none without strict levels.
        force_reference: whether the forces in the cost have a reference.
        lowers: whether limits of positions are lowered to accelerations; over a horizon they bound
            its samples, and need no braking.
    """

    system: System
    tasks: Sequence[Task]
    contacts: Sequence[Contact]
    period: float
    tunable: Sequence[str]
    levels: Sequence[Sequence[str]]
    force_reference: bool
    lowers = True

    @property
    @abstractmethod
    def delay_ticks(self) -> int:
        """Ticks from a measurement to the moment at which its control acts, by the model too."""

    @property
    @abstractmethod
    def tick(self) -> Tick:
        """How a tick of the plant advances coordinates."""

    @property
    @abstractmethod
    def ranges(self) -> Ranges:
        """Ranges of controls and actuator forces."""

    @property
    @abstractmethod
    def slots(self) -> tuple[Slot, ...]:
        """Slices of the reference, in order."""

    @property
    @abstractmethod
    def given(self) -> tuple[object, ...]:
        """All parts that a user has given."""

    @property
    @abstractmethod
    def held_joints(self) -> tuple[str, ...]:
        """Joints, by name, whose rates other parts hold: nothing brakes them."""

    @property
    @abstractmethod
    def added_inertia(self) -> Callable[[Array], Array] | None:
        """From a pose (nq,) to the inertia (nv, nv) of a tick; None for the mechanism's own."""

    @property
    @abstractmethod
    def weighed_forces(self) -> tuple[WeighedForce, ...]:
        """All components of contact forces, then the forces of equality constraints in the cost."""

    @property
    @abstractmethod
    def held_rows(self) -> Array:
        """(k, nv) constant rows S that parts hold, `S a + bias = 0`, behind those of equalities."""

    @cached_property
    def gains(self) -> tuple[Gains, ...]:
        """Gains and weights of each task."""
        return tuple(gains_of(task, self.system) for task in self.tasks)

    @cached_property
    def contact_names(self) -> tuple[str, ...]:
        """A unique name for each contact."""
        return unique([contact.frame for contact in self.contacts])

    @property
    def equality_names(self) -> tuple[str, ...]:
        """Name of each equality constraint."""
        return equality_groups(self.system)[0]

    @cached_property
    def equality_sizes(self) -> tuple[int, ...]:
        """Rows of each equality constraint."""
        return equality_groups(self.system)[1]

    @cached_property
    def mask_names(self) -> tuple[str, ...]:
        """Name of each entry of `mask`: contacts, then equality constraints."""
        return unique([*self.contact_names, *self.equality_names])

    @cached_property
    def reference_slices(self) -> dict[str, slice]:
        """Slices of `ref`, by `<task>.<quantity>`."""
        return slot_slices(self.slots)

    @property
    def nref(self) -> int:
        """Size of the reference."""
        return sum(slot.size for slot in self.slots)


def parts_of(design: Design, kind: type[T]) -> list[T]:
    """Return the parts of a kind that a user has given."""
    return [each for each in design.given if isinstance(each, kind)]


def forces_on(design: Design, on: ca.SX, on_rows: ca.SX) -> ca.SX:
    """Return (k,) one for each weighed force whose contact or equality constraint is on.

    Args:
        design: of the controller.
        on, on_rows: as in `Instant`.
    """
    loops = [each.place for each in design.weighed_forces if each.owner[0] == "loop"]
    contacts = ca.kron(on[: len(design.contacts), 0], ca.SX.ones(3))
    return ca.vertcat(contacts, on_rows[loops, 0]) if loops else contacts
