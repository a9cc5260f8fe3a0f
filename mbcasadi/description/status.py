"""What a controller says of its output: one enum of codes, a table of texts for each kind.

The codes are the same in Python, in the generated C and in reports. Codes 1 and 2 say different
things of a controller that solves a QP and of a law that evaluates equations; 0, 3 and 4 do not.
"""

from dataclasses import dataclass
from enum import IntEnum, IntFlag


class Status(IntEnum):
    """Status of one control step.

    `SATURATED` and `UNATTAINABLE` are the codes 1 and 2 of a control law without a QP.
    """

    SOLVED = 0
    SUBOPTIMAL = 1
    INFEASIBLE = 2
    BAD_INPUT = 3
    FAILED = 4
    SATURATED = 1
    UNATTAINABLE = 2


class Flag(IntFlag):
    """Bits of a controller's output `flags`: what was changed on the way to a valid output.

    `SATURATED`: an entry of u lay outside its limits before it was clipped. `RELAXED`: a soft
    constraint is violated with slack. `GATED`: a measurement was rejected.
    """

    SATURATED = 1
    RELAXED = 2
    GATED = 4


OUTPUTS = ("u", "z_next", "status", "flags", "residual")
"""Outputs of every controller, in this order."""

FLAG_BITS = 32
"""Width of `flags`; bits without a name are zero."""


@dataclass(frozen=True)
class StatusTable:
    """What each status of one kind of controller means.

    Attributes:
        texts: a text for each code, from 0 on.
        safe: codes with which u is the safe output.
    """

    texts: tuple[str, ...]
    safe: tuple[int, ...]

    def summary(self, safe_output: str = "") -> str:
        """Return all codes and texts in one line.

        Args:
            safe_output: what the safe output is.
        """
        line = "; ".join(f"{code} {text}" for code, text in enumerate(self.texts))
        return f"{line}; the safe output is {safe_output}" if safe_output else line


QP_STATUS = StatusTable(
    (
        "solved and verified",
        "feasible, not optimal",
        "infeasible, safe output",
        "bad input, safe output",
        "solver stopped or check failed, safe output",
    ),
    (Status.INFEASIBLE, Status.BAD_INPUT, Status.FAILED),
)

LAW_STATUS = StatusTable(
    (
        "equations hold, within limits",
        "saturated at its limits",
        "desired motion or force unattainable, nearest output",
        "bad input, safe output",
        "arithmetic failed, safe output",
    ),
    (Status.BAD_INPUT, Status.FAILED),
)
