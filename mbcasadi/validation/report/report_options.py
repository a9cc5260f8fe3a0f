"""What a report contains beside the metrics of the run."""

from dataclasses import dataclass
from pathlib import Path

from mbcasadi.argument_kinds import require_fields
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Observer
from mbcasadi.plant.video import require_video
from mbcasadi.plant.viewer import require_screen
from mbcasadi.validation.closed_loop import Progress


@dataclass(frozen=True)
class ReportOptions:
    """What a report contains beside the metrics of the run.

    Attributes:
        name: heading of the run; the model's and the controller's name by default.
        softness: sweep `solimp` and report the part of the disagreement that it explains; repeat
            the run with other `solref` and report how far the loops open.
        what_if: repeat the run without its delay, without its errors and without both, and report
            the cost of each.
        explain: where the run fails, repeat it without one thing at a time (errors of the plant,
            its delay, friction loss, saturation, ...), and report what the failure is due to.
        undelayed: the same law made for no delay, for those repetitions that have none; the law
            of the run by default.
        render: render frames, where a renderer is present.
        video: file to write the motion to, `.mp4` or `.gif`; see `plant.save_video`. Where no
            renderer is present, the report says so.
        viewer: show the run in MuJoCo's viewer while it is simulated, at most in real time.
        observer: called with MuJoCo's model and data at each tick of the run, not of repetitions.
        progress: called with what is being done and a share from 0 to 1.

    Raises:
        ProblemError: `undelayed` without `what_if`; a video of another suffix, or in no folder.
        MissingExtraError: the encoder of the video is not installed.
        RenderingError: there is no screen for the viewer.
    """

    name: str = ""
    softness: bool = False
    what_if: bool = False
    explain: bool = True
    undelayed: Controller | HasController | None = None
    render: bool = False
    video: str | Path | None = None
    viewer: bool = False
    observer: Observer | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        if self.video is not None:
            require_video(Path(self.video))
        if self.viewer:
            require_screen()
        if self.undelayed is not None and not self.what_if:
            raise ProblemError(
                "undelayed is used by the repetitions of what_if only; give what_if=True too"
            )
