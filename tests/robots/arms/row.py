"""A line of the table: what was measured, and what is to be reached."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from robots.models import add_argument


@dataclass(frozen=True)
class Figure:
    """One number of a run.

    Attributes:
        robot: and how it is driven.
        conditions: of the run.
        name: what is measured.
        value: in `unit`.
        goal: largest value that is to be reached; None for a figure that is only reported.
        unit: of both.
    """

    robot: str
    conditions: str
    name: str
    value: float
    goal: float | None = None
    unit: str = ""

    @property
    def reached(self) -> bool:
        """Whether the value is finite and within the goal."""
        return self.goal is None or self.value <= self.goal

    def __str__(self) -> str:
        goal = "" if self.goal is None else f"{self.goal:g} {self.unit}".strip()
        verdict = "" if self.goal is None else "yes" if self.reached else "NO"
        value = f"{self.value:.3g} {self.unit}".strip()
        cells = self.robot, self.conditions, self.name, value, goal, verdict
        return "| " + " | ".join(cells) + " |"


HEAD = "| robot | conditions | figure | value | goal | reached |\n|---|---|---|---|---|---|"


def print_table(package: str, description: str | None, rows: Sequence[str]) -> int:
    """Print the figures of modules of a package; return 0 only if all goals are reached."""
    parser = argparse.ArgumentParser(prog=package, description=description)
    parser.add_argument("--only", nargs="*", choices=rows, default=list(rows))
    add_argument(parser)
    missed = 0
    given = parser.parse_args()
    print(HEAD)
    for name in given.only:
        for figure in import_module(f"{package}.{name}").figures():
            print(figure, flush=True)
            missed += not figure.reached
    return int(missed > 0)
