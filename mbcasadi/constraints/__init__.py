"""Bilateral constraints: of a `RigidTree` (connect, weld, couplings) and written by a user."""

from mbcasadi.constraints.points_of_bodies import (
    PointsOfBody,
    independent_rows,
    other_rows,
    points_of_bodies,
)
from mbcasadi.constraints.rows import bias, jacobian, residual
from mbcasadi.constraints.user import UserRows, stabilised_bias, user_rows
from mbcasadi.constraints.wrenches import constraint_wrenches

__all__ = [
    "PointsOfBody",
    "UserRows",
    "bias",
    "constraint_wrenches",
    "independent_rows",
    "jacobian",
    "other_rows",
    "points_of_bodies",
    "residual",
    "stabilised_bias",
    "user_rows",
]
