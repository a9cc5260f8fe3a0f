"""The demonstration: three controllers as generated C, each against MuJoCo, in one report.

Each part is a TOML file beside this one and can be run alone, with
`mbcasadi validate MODEL --controller FILE`.
"""

from dataclasses import dataclass
from pathlib import Path

from mbcasadi import models
from mbcasadi.progress import LoggedProgress, Progress
from mbcasadi.validation.report import Report, ReportOptions
from mbcasadi.validation.run import Run
from mbcasadi.validation.spec import read_spec, run_spec

_FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class DemoPart:
    """One run of the demonstration.

    Attributes:
        model: name of a model of the package; its controller is `<model>.toml`.
        heading: of the run in the report.
    """

    model: str
    heading: str

    @property
    def controller(self) -> Path:
        """The TOML file of the controller."""
        return _FOLDER / f"{self.model}.toml"


PARTS = (
    DemoPart("four_bar", "Four-bar, three rows of rank two, motor at its limit"),
    DemoPart("quadruped", "Quadruped, 10 % heavier, one tick late, one foot lifted by the mask"),
    DemoPart("arm_gripper", "Arm with a gripper of two loops and a coupling"),
)


def demo(*, render: bool = True, progress: Progress | None = None) -> Report:
    """Run all parts and return one report.

    Args:
        render: render frames, where a renderer is present.
        progress: called with what is being done and the share of the whole that is done.
    """
    runs: tuple[Run, ...] = ()
    report = progress or LoggedProgress()
    for k, part in enumerate(PARTS):
        options = ReportOptions(
            name=part.heading,
            render=render,
            progress=_part_progress(report, k, part.model),
        )
        spec, model = read_spec(part.controller), models.path(part.model)
        runs += run_spec(spec, model, options).runs
    return Report(runs, "Generated C against MuJoCo")


def _part_progress(progress: Progress, part: int, model: str) -> Progress:
    """Return the progress function of one part, which is a share of the whole."""
    return lambda text, share: progress(f"{model}: {text}", (part + share) / len(PARTS))
