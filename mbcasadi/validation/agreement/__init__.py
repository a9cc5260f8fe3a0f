"""A `System` against MuJoCo, quantity by quantity, at random states."""

from mbcasadi.validation.agreement.agreement import Agreement, compare

__all__ = ["Agreement", "compare"]
