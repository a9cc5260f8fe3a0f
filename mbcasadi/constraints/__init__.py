"""Bilateral constraints of a `RigidTree`: connect, weld, joint and tendon couplings."""

from mbcasadi.constraints.rows import bias, jacobian, residual

__all__ = ["bias", "jacobian", "residual"]
