"""A mode of a controller, and what leads from one to another, as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import casadi as ca

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.short_text import summarised

ANY = "*"
"""In place of the mode that a transition leaves: any one but its target."""


@summarised
@dataclass(frozen=True)
class ControlMode:
    """What a controller is given while a mode lasts; what it does not name comes from its inputs.

    Attributes:
        tuning: numbers by their names in the controller's `tuning`.
        mask: whether contacts and equality constraints are on, by their names; one that is not
            named is on. The input `mask` switches off beside it.
        reference: slices of the reference by their names, such as "hand.position".
    """

    tuning: Mapping[str, float] = field(default_factory=dict)
    mask: Mapping[str, bool] = field(default_factory=dict)
    reference: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_fields(self)


@summarised
@dataclass(frozen=True)
class Transition:
    """When one mode follows another: where all conditions that are given hold.

    Attributes:
        source: name of the mode that it leaves, "*" for any other than `target`.
        target: name of the mode that follows.
        after: s for which the mode has lasted, at least.
        request: value of `sequence.request` in `tuning`, a whole number from 1 on.
        when: what is compared with `above` or `below`: a Function of some of the controller's
            inputs, by name, to one number, or an entry of one of them, such as "q.elbow".
        above, below: bounds that `when` exceeds or falls short of.
        fade: s in which tuning and reference move from where they are to those of the target.
    """

    source: str
    target: str
    after: float | None = None
    request: int | None = None
    when: ca.Function | str | None = None
    above: float | None = None
    below: float | None = None
    fade: float = 0.0

    def __post_init__(self) -> None:
        require_fields(self)
        where = f"transition from {self.source!r} to {self.target!r}"
        if (self.when is None) != (self.above is None and self.below is None):
            raise ProblemError(f"{where}: expected `when` together with `above` or `below`")
        if self.after is None and self.request is None and self.when is None:
            raise ProblemError(f"{where} has no condition; expected after, request or when")
        if self.request is not None and self.request < 1:
            raise ProblemError(f"{where}: request = {self.request}; expected a number from 1 on")
        for name, value in (("after", self.after or 0.0), ("fade", self.fade)):
            if not 0 <= value < float("inf"):
                raise ProblemError(f"{where}: {name} = {value}; expected s, not negative")
