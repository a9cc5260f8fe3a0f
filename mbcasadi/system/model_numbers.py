"""The numbers that the equations of a model are made from."""

from dataclasses import dataclass, replace
from typing import Any

from mbcasadi.description import Actuator, Equality, RigidTree
from mbcasadi.description.parameters import ElementKind
from mbcasadi.short_text import summarised


@summarised
@dataclass(frozen=True)
class ModelNumbers:
    """What the equations of a model are made from.

    Attributes:
        tree: bodies, joints, frames, tendons.
        actuators: in the order of the controls.
        equalities: those that have rows.
    """

    tree: RigidTree
    actuators: tuple[Actuator, ...]
    equalities: tuple[Equality, ...]

    def count(self, kind: ElementKind) -> int:
        """Return the number of elements of a kind."""
        return len(self._elements(kind))

    def element(self, kind: ElementKind, index: int) -> Any:
        """Return one element of a kind; the tree itself for an option."""
        return self._elements(kind)[index]

    def with_element(self, kind: ElementKind, index: int, element: Any) -> "ModelNumbers":
        """Return the numbers with another element in the place of one."""
        if kind == "option":
            return replace(self, tree=element)
        if kind == "equality":
            return replace(self, equalities=_put(self.equalities, index, element))
        if kind == "actuator":
            return replace(self, actuators=_put(self.actuators, index, element))
        fields = {"body": "bodies", "mocap": "bodies", "site": "frames"}
        fields |= {"joint": "joints", "tendon": "tendons"}
        changed: dict[str, Any] = {fields[kind]: _put(self._elements(kind), index, element)}
        return replace(self, tree=replace(self.tree, **changed))

    def _elements(self, kind: ElementKind) -> tuple[Any, ...]:
        tree = self.tree
        elements: dict[str, tuple[Any, ...]] = {
            "option": (tree,),
            "body": tree.bodies,
            "mocap": tree.bodies,
            "site": tree.frames,
            "actuator": self.actuators,
            "joint": tree.joints,
            "tendon": tree.tendons,
            "equality": self.equalities,
        }
        return elements[kind]


def _put(elements: tuple[Any, ...], index: int, element: Any) -> tuple[Any, ...]:
    return (*elements[:index], element, *elements[index + 1 :])
