"""Bilateral constraints: of a `RigidTree` (connect, weld, couplings) and written by a user."""

from mbcasadi.constraints.rows import bias, jacobian, residual
from mbcasadi.constraints.user import UserRows, stabilised_bias, user_rows

__all__ = ["UserRows", "bias", "jacobian", "residual", "stabilised_bias", "user_rows"]
