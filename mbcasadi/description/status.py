"""Status of a controller's output: one enum of codes, a table of texts for each kind.

The codes are the same in Python, in the generated C and in reports. Codes 1 and 2 differ between
controllers that solve a QP and laws that evaluate equations; 0, 3 and 4 do not.
"""

from dataclasses import dataclass
from enum import IntEnum, IntFlag


class Status(IntEnum):
    """Status of one control step.

    `SATURATED` and `UNATTAINABLE` are the codes 1 and 2 of a control law without a QP. `LIMIT` is
    set by the generated C only, whose iterations can be limited while it runs.
    """

    SOLVED = 0
    SUBOPTIMAL = 1
    INFEASIBLE = 2
    BAD_INPUT = 3
    FAILED = 4
    LIMIT = 5
    SATURATED = 1
    UNATTAINABLE = 2


class Flag(IntFlag):
    """Bits of a controller's output `flags`: changes that were made to obtain a valid output.

    `SATURATED`: an entry of u lay outside its limits before it was clipped. `RELAXED`: a soft
    constraint is violated with slack. `GATED`: a measurement was rejected. `OVERDUE`: a late sample
    has an age that is none, or is older than what is remembered. `CLIPPED`: a reference that
    requires far more than actuators and gravity can give was taken for a nearer one. `UNVIABLE`: a
    joint or a distance cannot be kept from its limit any more, or not surely: its limit demands
    more than actuators can give, or a joint is faster than its limit of speed, by more than a tick
    of its braking takes away. `TASK_MISSED`: a task of leading weight has been missed by half of
    its desired acceleration or more for 20 ticks: limits, constraints, or other tasks do not allow
    it; see `control/inverse_dynamics/missed_tasks.py`.

    Inputs that are doubtful, with a solution all the same: `OPEN_GAP`: a contact is on whose gap is
    larger than the geom that touches. `UNCARRIED`: no contact or constraint on carries a floating
    base.

    Set by the generated C only, with status 3: `UNPREPARED`: a feedback without a preparation from
    its inputs. `INTERRUPTING`: the call interrupted another one on the same memory.
    `UNINITIALISED`: the memory is not ready.
    """

    SATURATED = 1
    RELAXED = 2
    GATED = 4
    CLIPPED = 8
    UNPREPARED = 16
    INTERRUPTING = 32
    UNINITIALISED = 64
    UNVIABLE = 128
    OPEN_GAP = 256
    UNCARRIED = 512
    TASK_MISSED = 1024
    UNSURE = 2048
    OVERDUE = 4096


OUTPUTS = ("u", "z_next", "status", "flags", "residual")
"""Outputs of every controller, in this order."""

FLAG_BITS = 32
"""Width of `flags`; bits without a name are zero."""


@dataclass(frozen=True)
class StatusTable:
    """The text of each status of one kind of controller.

    Attributes:
        words: a text for each code, from 0 on.
        safe: codes with which u is the safe output.
    """

    words: tuple[str, ...]
    safe: tuple[int, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, with those of the safe output marked."""
        return tuple(
            f"{word}, safe output" if code in self.safe else word
            for code, word in enumerate(self.words)
        )

    def summary(self, safe_output: str = "") -> str:
        """Return all codes and texts in one line.

        Args:
            safe_output: description of the safe output.
        """
        line = "; ".join(f"{code} {text}" for code, text in enumerate(self.texts))
        return f"{line}; the safe output is {safe_output}" if safe_output else line


LIMIT_WORDS = "limit of iterations"

QP_STATUS = StatusTable(
    ("solved", "feasible, not optimal", "infeasible", "bad input", "failed", LIMIT_WORDS),
    (Status.INFEASIBLE, Status.BAD_INPUT, Status.FAILED, Status.LIMIT),
)
"""Of a controller that solves a QP. Solved: verified by residuals; failed: the solver stopped,
or its solution did not pass the check."""

LAW_STATUS = StatusTable(
    (
        "equations hold, within limits",
        "saturated at its limits",
        "desired motion or force unattainable, nearest output",
        "bad input",
        "arithmetic failed",
    ),
    (Status.BAD_INPUT, Status.FAILED),
)
"""Of a control law that evaluates equations."""

LIMITED_LAW_STATUS = StatusTable((*LAW_STATUS.words, LIMIT_WORDS), (*LAW_STATUS.safe, Status.LIMIT))
"""Of a control law with a QP behind its equations."""


class BranchStatus(IntEnum):
    """Status of `dynamics.branch_motion` at one state."""

    REGULAR = 0
    TAKEN = 1
    OFF_BRANCH = 2
    AT_REST = 3
    DEGENERATE = 4


BRANCH_STATUS = StatusTable(
    (
        "regular",
        "singular pose, the branch of v is taken",
        "singular pose, v is on no branch",
        "singular pose, at rest or too slow to select a branch",
        "singular pose, second derivatives do not determine the motion",
    ),
    (),
)
"""Of the motion along a branch."""
