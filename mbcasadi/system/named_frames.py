"""The frames of a model by their names."""

from collections.abc import Sequence

from mbcasadi.description import RigidTree
from mbcasadi.shapes import require_name
from mbcasadi.system.contact_frames import contact_frame, plane_spots
from mbcasadi.system.frames import FrameFunctions
from mbcasadi.system.names_of_tree import names_of_tree
from mbcasadi.system.tree_frames import frame_functions, frame_of_model


def functions_of_name(
    tree: RigidTree | None, name: str, kind: str, others: Sequence[tuple[str, str]]
) -> FrameFunctions:
    """Build the Functions of a site, body, geom or contact of a model.

    Args:
        tree: of the model; None for a system that is given by equations.
        name, kind: of the frame.
        others: kind and name of frames that the system has besides.

    Raises:
        UnknownNameError: no such kind or name; the message lists the valid ones.
    """
    if kind == "contact":
        places = {} if tree is None else plane_spots(tree)
        elsewhere = {} if tree is None else names_of_tree(tree)
        require_name(kind, name, [*places], elsewhere=elsewhere)
        assert tree is not None  # without one there are no places
        return contact_frame(tree, places[name])
    frame = frame_of_model(tree, name, kind, others)
    assert tree is not None  # without a tree, all names are those of `with_frame`
    return frame_functions(tree, frame)
