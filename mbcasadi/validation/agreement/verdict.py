"""Whether a comparison with MuJoCo is passed."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from mbcasadi.argument_kinds import checked
from mbcasadi.shapes import require_name
from mbcasadi.validation.agreement.agreement import EXACT, Agreement


class AgreementVerdict(NamedTuple):
    """The outcome of a comparison.

    Attributes:
        passed: everything was compared, or may be missing, and agrees.
        differing: quantities whose error is above the tolerance.
        not_compared: quantities that have no value on one of the two sides, and may not be
            missing: members that the system refuses, or that MuJoCo gives no value of.
        allowed: those that may be missing.
    """

    passed: bool
    differing: tuple[str, ...]
    not_compared: tuple[str, ...]
    allowed: tuple[str, ...]


@checked
def judge(
    entries: Sequence[Agreement], tolerance: float = EXACT, allow_missing: Sequence[str] = ()
) -> AgreementVerdict:
    """Return the verdict on the entries of `compare`.

    A refused member is no agreement: the dynamics of a model whose `passive_force` is refused
    cannot be formed, and a model whose `potential_energy` is refused is checked in part only. So
    each quantity that was not compared fails the check, unless it is named in `allow_missing`.

    Args:
        entries: of `compare`.
        tolerance: largest relative error.
        allow_missing: quantities that need not be compared.

    Raises:
        UnknownNameError: a name in `allow_missing` is no quantity of the comparison.
    """
    for name in allow_missing:
        require_name("quantity", name, [entry.quantity for entry in entries])
    missing = [entry.quantity for entry in entries if math.isnan(entry.error)]
    differing = tuple(entry.quantity for entry in entries if entry.error > tolerance)
    not_compared = tuple(name for name in missing if name not in allow_missing)
    compared_any = len(missing) < len(entries)
    return AgreementVerdict(
        passed=compared_any and not differing and not not_compared,
        differing=differing,
        not_compared=not_compared,
        allowed=tuple(name for name in missing if name in allow_missing),
    )
