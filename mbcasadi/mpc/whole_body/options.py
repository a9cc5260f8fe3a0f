"""Choices of MPC of a whole mechanism beside its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from mbcasadi.argument_kinds import require_fields
from mbcasadi.mpc.ocp.stage_tuning import TUNABLE
from mbcasadi.mpc.whole_body.standing import Standing
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import require_choice
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
    """

    tunable: Sequence[str] = ()
    standing: Standing | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        for each in self.tunable:
            require_choice("tunable", each, TUNABLE)


DEFAULT_OPTIONS = WholeBodyOptions()
