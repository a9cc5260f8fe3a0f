"""Physical parameters of a model that stay inputs of its equations."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.controller import Signal, TuningParameter
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]
ElementKind = Literal["option", "mocap", "body", "site", "joint", "tendon", "actuator", "equality"]


@summarised
@dataclass(frozen=True)
class Parameter:
    """One attribute of one element of a model, as an input of the equations.

    Attributes:
        name: as in `read_mjcf(parameters=)`: "body:forearm:com", "joint:elbow:damping", "gravity".
        kind: of the element, in MJCF's words.
        index: of the element among those of its kind in the description; 0 for an option.
        attribute: MJCF's word for it.
        components: name of each entry, () for a single number.
        unit: of all entries; "" where it depends on the element.
        value: the model's own numbers, one for each entry.
        least: entries below it are bad input.
    """

    name: str
    kind: ElementKind
    index: int
    attribute: str
    components: tuple[str, ...]
    unit: str
    value: tuple[float, ...]
    least: float = -np.inf

    @property
    def entries(self) -> tuple[str, ...]:
        """Name of each entry, "body:forearm:com.x"."""
        return tuple(f"{self.name}.{c}" for c in self.components) or (self.name,)


@summarised
@dataclass(frozen=True)
class Parameters:
    """The parameters of a system, in the order of the input `p`."""

    items: tuple[Parameter, ...] = ()

    def __len__(self) -> int:
        """Return the size of p."""
        return sum(len(item.value) for item in self.items)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each entry of p."""
        return tuple(entry for item in self.items for entry in item.entries)

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each entry of p."""
        return tuple(item.unit for item in self.items for _ in item.value)

    @property
    def values(self) -> Array:
        """(np,) the model's own numbers, the default of p."""
        return np.array([number for item in self.items for number in item.value], dtype=float)

    @property
    def least(self) -> Array:
        """(np,) entries below these are bad input."""
        return np.array([item.least for item in self.items for _ in item.value], dtype=float)

    @property
    def moves_frames(self) -> bool:
        """Whether frames of the model depend on them: poses of mocap bodies and sites do that."""
        return any(item.kind in ("mocap", "site") for item in self.items)

    @property
    def entries(self) -> tuple[TuningParameter, ...]:
        """The entries as those of a controller's input p."""
        of_each = zip(self.names, self.values, self.least, self.units, strict=True)
        return tuple(
            TuningParameter(name, default=float(value), lower=float(least), unit=unit)
            for name, value, least, unit in of_each
        )

    @property
    def slices(self) -> dict[str, slice]:
        """Place of each parameter in p, by its name."""
        ends = np.cumsum([0, *(len(item.value) for item in self.items)]).tolist()
        return {
            item.name: slice(first, end)
            for item, first, end in zip(self.items, ends[:-1], ends[1:], strict=True)
        }

    @property
    def signal(self) -> Signal:
        """Names and units of p, as of any input."""
        return Signal("p", self.names, self.units)


NO_PARAMETERS = Parameters()
"""Of a system without an input p."""
