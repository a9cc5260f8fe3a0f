"""The demonstration: three controllers as generated C, each against MuJoCo, in one report.

Each part is a TOML file beside this one and can be run alone, with
`mbcasadi validate MODEL --controller FILE`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mujoco_models
from mbcasadi.validation.report.report import Report
from mbcasadi.validation.run.run import Run
from mbcasadi.validation.spec import read_spec, run_spec

_FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Part:
    """One run of the demonstration.

    Attributes:
        model: name of a model of `mujoco_models`; its controller is `<model>.toml`.
        heading: of the run in the report.
    """

    model: str
    heading: str

    @property
    def controller(self) -> Path:
        """The TOML file of the controller."""
        return _FOLDER / f"{self.model}.toml"


PARTS = (
    Part("four_bar", "Four-bar, three rows of rank two, motor at its limit"),
    Part("quadruped", "Quadruped, 10 % heavier, one tick late, one foot lifted by the mask"),
    Part("arm_gripper", "Arm with a gripper of two loops and a coupling"),
)


def demo(*, render: bool = True, progress: Callable[[str, float], None] | None = None) -> Report:
    """Run all parts and return one report.

    Args:
        render: draw pictures, where a renderer is present.
        progress: called with what is being done and the share of the whole that is done.
    """
    tell = progress or (lambda _what, _share: None)
    runs: tuple[Run, ...] = ()
    for k, part in enumerate(PARTS):

        def part_of_all(what: str, share: float, done: int = k, model: str = part.model) -> None:
            tell(f"{model}: {what}", (done + share) / len(PARTS))

        spec, model = read_spec(part.controller), mujoco_models.path(part.model)
        report = run_spec(spec, model, render=render, name=part.heading, progress=part_of_all)
        runs += report.runs
    return Report(runs, "Generated C against MuJoCo")
