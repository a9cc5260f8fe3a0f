"""Choices of MPC of a whole mechanism beside its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.legged.touch_down import TouchDown
from mbcasadi.mpc.ocp.stage_tuning import TUNABLE
from mbcasadi.mpc.whole_body.end_cost import ENDS, WEIGHTS
from mbcasadi.mpc.whole_body.standing import Standing
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import require_choice, require_positive, require_whole
from mbcasadi.short_text import summarised


@final
@summarised
@readable_fields
@dataclass(frozen=True)
class WholeBodyOptions:
    """Choices of `whole_body_mpc`.

    Attributes:
        tunable: what may change at run time, as the input `tuning` of the plan and, where it is
            the default one, of the law: "weights", "gains", "friction", "limits".
        standing: when a robot with a gait stands; None for a gait that goes on without a command.
        growth: each interval is longer than the one before by this factor, at least 1. Lengths are
            then data, and samples lie on the switches of the gait, whose times need be no multiples
            of the period; see `gait_samples`. None for intervals of one period.
        touch_down: by which measured forces (its `on_force`, `off_force`, `earliest`) feet stand or
            are late, whatever the gait says; the Functions then have the input `f_measured`, and a
            `touch_down` of the swing is the same choice. None for the gait alone.
        impacts: whether feet may land with speed, stopped by an impulse inside their cones; else
            they are at rest where they land. See `ContactLanding`.
        line_search: as in `real_time_iteration`: how often a step of the plan may be halved.
        swing_height: by which feet rise in a swing, m: higher than what they may step on; by
            default that of `stepping`.
        shift: the command ends with a shift of the base over its feet along and across its heading
            and over the ground, m, and its turn about these, rad: (6,). It leans over a foot, or
            squats; joints follow, within their ranges, so that feet stay where they are.
        end: what the end of a plan costs: "weights", those of the cost, or "regulator", what the
            regulator would still cost from there by the periodic Riccati equation of the gait, or
            of the stance. `WholeBodyMPC.end` says which, or why there is none and no such cost.
        rigid_springs: joints of legs whose stiff springs the default law holds, as `RigidSprings`;
            in the plan they are as stiff as they are.

    Raises:
        ProblemError: intervals that shrink, a negative number of halvings.
    """

    tunable: Sequence[str] = ()
    standing: Standing | None = None
    growth: float | None = None
    touch_down: TouchDown | None = None
    impacts: bool = False
    line_search: int = 0
    shift: bool = False
    swing_height: float | None = None
    end: str = WEIGHTS
    rigid_springs: Sequence[str] = ()

    def __post_init__(self) -> None:
        require_fields(self)
        for each in self.tunable:
            require_choice("tunable", each, TUNABLE)
        require_choice("end", self.end, ENDS)
        require_whole(0, line_search=self.line_search)
        require_positive(
            **({} if self.swing_height is None else {"swing_height": self.swing_height})
        )
        if self.growth is not None and not 1 <= self.growth < np.inf:
            raise ProblemError(f"growth = {self.growth}; expected a factor of at least 1")


DEFAULT_OPTIONS = WholeBodyOptions()
