"""The frames of a model by their names."""

from collections.abc import Callable, Sequence

import casadi as ca

from mbcasadi.description import RigidTree
from mbcasadi.system.contact_frames import contact_frame, plane_spot, plane_spots
from mbcasadi.system.frames import FrameFunctions
from mbcasadi.system.missing_ground import require_contact_name
from mbcasadi.system.pair_frames import convex_pairs, pair_frame
from mbcasadi.system.tree_frames import frame_functions, frame_of_model
from mbcasadi.unknown_names import unknown_name


def functions_of_name(
    tree: RigidTree | None,
    name: str,
    kind: str,
    others: Sequence[tuple[str, str]],
    at: Callable[[ca.SX], RigidTree] | None = None,
) -> FrameFunctions:
    """Build the Functions of a site, body, geom or contact of a model.

    Args:
        tree: of the model; None for a system that is given by equations.
        name, kind: of the frame.
        others: kind and name of frames that the system has besides.
        at: the tree with the parameters that a configuration carries; itself by default.

    Raises:
        UnknownNameError: no such kind or name; the message lists the valid ones.
    """
    if kind == "contact":
        if tree is None:
            raise unknown_name(kind, name, ())
        place = plane_spot(tree, name)
        if place is not None:
            return contact_frame(tree, place)
        pairs = convex_pairs(tree)
        require_contact_name(tree, name, [*plane_spots(tree), *pairs])
        return pair_frame(pairs[name])
    frame = frame_of_model(tree, name, kind, others)
    assert tree is not None  # without a tree, all names are those of `with_frame`
    return frame_functions(tree, frame, at)
