"""Where a frame of a mechanism is."""

from typing import Literal

from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.motion.pose import Pose
from mbcasadi.system import System
from mbcasadi.system.coordinates import pose_of


@checked
def frame_pose(
    system: System, frame: str, q: ArrayLike, *, kind: Literal["site", "body", "geom"] = "site"
) -> Pose:
    """Return the pose of a site, body or geom in the world at a configuration.

    Args:
        system: the mechanism.
        frame: its name.
        q: (nq,) configuration.
        kind: "site", "body" or "geom".

    Raises:
        UnknownNameError: no such frame; the message lists those there are.
        ShapeError: a wrong shape, NaN or infinity.
        ProblemError: a frame without a rotation.
    """
    functions, pose = system.frame(frame, kind), pose_of(system, "q", q)
    return Pose(functions.pose(pose)[0].full(), functions.quaternion(pose).full())
