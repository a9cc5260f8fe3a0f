"""What control laws, regulators and MPC have in common: a controller and the names of its inputs.

All of them have `controller`, `period`, `z0` and `function`, a reference by names and by a pose
(`reference`, `reference_at`), and `solve`, which evaluates the Function at one state.
`InverseDynamicsQP` has the same members.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.control.tasks.reference import Slices, slot_slices
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Controller

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ControlLaw(ABC):
    """A controller with the slices of its reference.

    Attributes:
        controller: as data, for `export_c` and `validate`.
        slots: the slices of the reference, in order.
    """

    controller: Controller
    slots: tuple[Slot, ...]

    @final
    @property
    def function(self) -> ca.Function:
        """The controller as one named Function."""
        return self.controller.function

    @final
    @property
    def period(self) -> float:
        """Sample time, s."""
        return self.controller.period

    @final
    @property
    def z0(self) -> Array:
        """State (nz,) to start from."""
        return self.controller.z0

    @final
    @property
    def nref(self) -> int:
        """Size of the reference."""
        return sum(slot.size for slot in self.slots)

    @final
    @property
    def reference_slices(self) -> dict[str, slice]:
        """Slice of the reference by its name."""
        return slot_slices(self.slots)

    @property
    @abstractmethod
    def nominal_reference(self) -> Array | None:
        """Reference (nref,) that the controller was designed about; None where there is none."""

    @abstractmethod
    def example_inputs(self) -> dict[str, Array]:
        """Return inputs from which an example can start: a state, and the reference that holds it.

        Inputs that are left out have their defaults, else zeros.
        """

    @abstractmethod
    def reference(self, values: Slices | None = None, /, **slices: ArrayLike) -> Array:
        """Return the reference (nref,) with these slices, the default elsewhere.

        Args:
            values: by name, `{"base.acceleration": [0, 0, 1]}`.
            slices: the same as keywords, with `_` for dots: `base_acceleration=[0, 0, 1]`.

        Raises:
            UnknownNameError: no such slice; the message lists those there are.
            ShapeError: a slice of a wrong size.
        """

    @abstractmethod
    def reference_at(self, q: ArrayLike, values: Slices | None = None) -> Array:
        """Return the reference (nref,) that holds the pose q at rest, with these slices changed.

        Args:
            q: (nq,) pose.
            values: slices with another value, by name.

        Raises:
            ProblemError: the law has no reference that holds a pose.
            UnknownNameError, ShapeError: as in `reference`.
        """
