"""A line of the table: what was measured, and what is to be reached."""

from dataclasses import dataclass


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
