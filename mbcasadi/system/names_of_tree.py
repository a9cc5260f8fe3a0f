"""The names of what a model holds, by kind."""

from collections.abc import Mapping

from mbcasadi.description import RigidTree


def names_of_tree(tree: RigidTree) -> Mapping[str, tuple[str, ...]]:
    """Return the names of what a model holds, by kind."""
    frames = {
        kind: tuple(frame.name for frame in tree.frames if frame.kind == kind)
        for kind in ("site", "body", "camera")
    }
    return {
        "joint": tuple(joint.name for joint in tree.joints),
        **frames,
        "geom": tuple(geom.name for geom in tree.geoms),
        "tendon": tuple(tendon.name for tendon in tree.tendons),
        "key frame": tuple(tree.keyframes),
    }
