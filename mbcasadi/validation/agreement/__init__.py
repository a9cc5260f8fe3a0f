"""A `System` against MuJoCo, quantity by quantity, at random states."""

from mbcasadi.validation.agreement.agreement import Agreement, compare
from mbcasadi.validation.agreement.verdict import AgreementVerdict, judge

__all__ = ["Agreement", "AgreementVerdict", "compare", "judge"]
