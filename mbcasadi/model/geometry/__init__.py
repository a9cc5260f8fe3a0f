"""Where two geoms are nearest to each other, as expressions of their poses.

A `Witness` is what MuJoCo reports of a contact: the signed distance, the point half way between the
surfaces, and the normal from the first geom to the second.
"""

from mbcasadi.model.geometry.convex_pairs import convex_witness
from mbcasadi.model.geometry.mesh_points import MeshPoints, mesh_points
from mbcasadi.model.geometry.nearest_pairs import DistanceRows, bounds_fun, nearest_rows
from mbcasadi.model.geometry.normal_axes import axes_of_normal
from mbcasadi.model.geometry.pair_gaps import pair_gaps
from mbcasadi.model.geometry.plane import (
    ContactSpot,
    facing_spots,
    lowest_of_rim,
    plane_witness,
    rolling_offset,
    spot_of,
    spots,
)
from mbcasadi.model.geometry.relative_motion import relative_bias, relative_jacobian
from mbcasadi.model.geometry.round_shapes import PAIRS, round_witness
from mbcasadi.model.geometry.summands import summands
from mbcasadi.model.geometry.witness import Placed, Witness

__all__ = [
    "PAIRS",
    "ContactSpot",
    "DistanceRows",
    "MeshPoints",
    "Placed",
    "Witness",
    "axes_of_normal",
    "bounds_fun",
    "convex_witness",
    "facing_spots",
    "lowest_of_rim",
    "mesh_points",
    "nearest_rows",
    "pair_gaps",
    "plane_witness",
    "relative_bias",
    "relative_jacobian",
    "rolling_offset",
    "round_witness",
    "spot_of",
    "spots",
    "summands",
]
