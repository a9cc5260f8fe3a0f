"""Runs as a table, as JSON and as one self-contained page."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ProblemError
from mbcasadi.plant import BrowserView, Observer
from mbcasadi.plant.browser_server import HOST, PORT, require_browser
from mbcasadi.plant.video import VideoOptions, require_video
from mbcasadi.plant.viewer import require_viewer
from mbcasadi.progress import Progress
from mbcasadi.short_text import summarised
from mbcasadi.validation.metrics import passed
from mbcasadi.validation.metrics.text import verdict_line, verdict_word
from mbcasadi.validation.report.findings import findings
from mbcasadi.validation.report.html import page
from mbcasadi.validation.report.notebook import report_html
from mbcasadi.validation.report.pages import Plain, json_text, plain_data, save_page
from mbcasadi.validation.report.terminal import criteria_table
from mbcasadi.validation.run import Run
from mbcasadi.validation.versions import package_versions

if TYPE_CHECKING:
    from rich.table import Table


@summarised
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
        timing: call some ticks again in C, to time them; that may take longer than the run.
        early: run the Python Function of a controller of ours while another process compiles its
            C, which behind the run has to give the same controls at the same inputs. Runs of more
            than 6,000 ticks or of slow ones, such as a predictive controller's, and those with
            criteria on times wait for the C as without it.
        judged: called with the report as soon as the run is judged; that of an early run has
            nothing of the C then.
        undelayed: the same law made for no delay, for those repetitions that have none; the law
            of the run by default.
        render: render frames, where a renderer is present.
        video: file to write the motion to, `.mp4` or `.gif`; see `plant.save_video`. Where no
            renderer is present, the report says so.
        viewer: show the run in MuJoCo's viewer while it is simulated, at most in real time; in a
            browser where there is no screen.
        browser: show the run in a browser while it is simulated, at most in real time. The
            address is written to stderr, and the run waits a minute for a page to be opened.
        observer: called with MuJoCo's model and data at each tick of the run, not of repetitions.
        progress: called with what is being done and a share from 0 to 1.

    Raises:
        ProblemError: `undelayed` without `what_if`; a video of another suffix, or in no folder.
        MissingExtraError: the encoder of the video, or viser for the browser, is not installed.
        RenderingError: there is no screen for the viewer, and no viser for the browser.
    """

    name: str = ""
    softness: bool = False
    what_if: bool = False
    explain: bool = True
    timing: bool = True
    early: bool = False
    judged: "Callable[[Report], None] | None" = None
    undelayed: Controller | HasController | None = None
    render: bool = False
    video: str | Path | None = None
    viewer: bool = False
    browser: bool = False
    observer: Observer | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        if self.video is not None:
            require_video(Path(self.video))
        if self.browser:
            require_browser()
        elif self.viewer:
            require_viewer()
        if self.undelayed is not None and not self.what_if:
            raise ProblemError(
                "undelayed is used by the repetitions of what_if only; give what_if=True too"
            )


@summarised
@dataclass(frozen=True)
class Report:
    """One or several runs.

    Attributes:
        runs: in the order of the report.
        title: heading.

    Raises:
        ProblemError: no runs, or something else among them.
    """

    runs: tuple[Run, ...]
    title: str = "Closed-loop validation"

    def __post_init__(self) -> None:
        require_fields(self)
        if not self.runs:
            raise ProblemError("runs is empty; expected the runs of at least one report")

    def _summary(self) -> dict[str, object]:
        return {
            "title": self.title,
            "passed": self.passed,
            "runs": {run.name: verdict_word(run.passed) for run in self.runs},
        }

    @property
    def passed(self) -> bool | None:
        """Whether every criterion of every run is fulfilled; None where a run is not judged."""
        return passed(run.passed for run in self.runs)

    @checked
    def __add__(self, other: "Report") -> "Report":
        """Return one report with the runs of both."""
        return Report(self.runs + other.runs, self.title)

    def to_dict(self) -> dict[str, Plain]:
        """Return the report as plain data that JSON can hold; NaN and infinity become None."""
        return plain_data(
            {
                "title": self.title,
                "passed": self.passed,
                "versions": package_versions(),
                "runs": [run.to_dict() for run in self.runs],
            }
        )

    def to_json(self) -> str:
        """Return the report as JSON text."""
        return json_text(self.to_dict())

    def to_html(self) -> str:
        """Return the report as one HTML page that refers to no other file.

        Raises:
            MissingExtraError: jinja2 or matplotlib is not installed.
        """
        return page(self.runs, self.title, package_versions())

    @checked
    def save(self, path: str | Path) -> Path:
        """Write the report as `.json` or `.html`; return the path.

        Raises:
            ProblemError: a file that cannot be written, or another suffix.
            MissingExtraError: an HTML page needs jinja2 and matplotlib.
        """
        return save_page(path, "a report", self.to_json, self.to_html)

    @checked
    def video(self, path: str | Path, options: VideoOptions | None = None) -> Path:
        """Write the motion of the only run as `.mp4` or `.gif`; see `plant.save_video`.

        Raises:
            ProblemError: there are several runs; each has a method `video` of its own.
        """
        return self._only_run("video").video(path, options)

    @checked
    def browse(self, *, host: str = HOST, port: int = PORT) -> BrowserView:
        """Show the only run in a browser; see `Run.browse`.

        Raises:
            ProblemError: there are several runs; each has a method `browse` of its own.
        """
        return self._only_run("browse").browse(host=host, port=port)

    def _only_run(self, method: str) -> Run:
        if len(self.runs) != 1:
            raise ProblemError(
                f"the report has {len(self.runs)} runs; call the method of one of them, "
                f"report.runs[0].{method}(...)"
            )
        return self.runs[0]

    def _repr_html_(self) -> str:
        return report_html(self.title, self.runs)

    def table(self) -> "Table":
        """Return the criteria of all runs as a `rich` table.

        Raises:
            MissingExtraError: rich is not installed.
        """
        rows = [(run.name, run.verdicts) for run in self.runs]
        return criteria_table(self._headline, rows)

    @property
    def _headline(self) -> str:
        return f"{self.title}: {verdict_word(self.passed, 'FAILED')}"

    def __str__(self) -> str:
        lines = [self._headline]
        for run in self.runs:
            lines += [f"  {run.name}: {verdict_word(run.passed, 'FAILED')}"]
            lines += [f"    {verdict_line(verdict)}" for verdict in run.verdicts]
            lines += [f"    {sentence}" for sentence in (*run.notes, *findings(run))]
            if run.what_if is not None:
                lines += [f"    {line}" for line in str(run.what_if).splitlines()]
        return "\n".join(lines)
