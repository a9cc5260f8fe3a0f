"""What to say where a contact's ground is not in the model, as in a file of the robot alone."""

from collections.abc import Sequence

from mbcasadi.description import RigidTree
from mbcasadi.errors import UnknownNameError
from mbcasadi.system.geom_pairs import is_static
from mbcasadi.system.names_of_tree import names_of_tree
from mbcasadi.unknown_names import unknown_name

GROUNDS = ("plane", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
"""Kinds of geoms that have gaps with others, and that can be fixed to the world."""

HOW_TO_GET_A_FLOOR = (
    "give the scene, which holds the robot and its floor, or add <geom "
    'name="floor" type="plane" size="0 0 0.05"/> to the worldbody of the model'
)


def require_ground_name(tree: RigidTree, name: str) -> None:
    """Raise `UnknownNameError` unless a geom has this name; the message lists possible grounds."""
    if any(geom.name == name for geom in tree.geoms):
        return
    grounds = [g.name for g in tree.geoms if g.kind in GROUNDS and is_static(tree, g)]
    if grounds:
        raise unknown_name("geom", name, grounds, elsewhere=names_of_tree(tree))
    raise UnknownNameError(
        f"the model has no geom {name!r}, and no other one that is fixed to the world "
        f"and could be the ground; {HOW_TO_GET_A_FLOOR}"
    )


def require_contact_name(tree: RigidTree, name: str, valid: Sequence[str]) -> None:
    """Raise `UnknownNameError` unless a contact has this name.

    Args:
        tree: of the model.
        name: `foot on floor`, or one of its points, `foot on floor, corner 3`.
        valid: names of contacts.
    """
    if name in valid:
        return
    _, on, ground = name.partition(" on ")
    without_label = ground.rpartition(", ")[0] or ground
    if on and all(geom.name != ground for geom in tree.geoms):
        try:
            require_ground_name(tree, without_label)
        except UnknownNameError as error:
            raise UnknownNameError(f"contact {name!r}: {error}") from error
    raise unknown_name("contact", name, valid, elsewhere=names_of_tree(tree))
