"""The result of a campaign: all outcomes, and what they say."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_whole
from mbcasadi.short_text import with_table
from mbcasadi.validation.campaigns.outcome import (
    Outcome,
    PassRate,
    Sensitivity,
    pass_rate,
    sensitivities,
    worst_first,
)
from mbcasadi.validation.campaigns.page import (
    Facts,
    campaign_html,
    campaign_page,
    default_title,
)
from mbcasadi.validation.campaigns.store import Store
from mbcasadi.validation.closed_loop.data_frames import data_frame
from mbcasadi.validation.metrics import NO_METRICS, passed, text
from mbcasadi.validation.report import SummaryRow, campaign_table, summary_rows
from mbcasadi.validation.report.pages import Plain, json_text, plain_data, save_page
from mbcasadi.validation.versions import package_versions

if TYPE_CHECKING:
    from rich.table import Table

PARAMETER_UNITS = {"delay": "ticks", "start_error": "rad or m"}
"""Units of parameters that have one; errors and factors have none."""

WORST = 5  # cases that a report lists
STRONG = 0.05  # p-value below which the text states a dependence


@with_table
@dataclass(frozen=True)
class Campaign:
    """The outcomes of a campaign, in the order of its cases.

    Attributes:
        outcomes: of the cases that were run.
        planned: number of cases of the campaign.
        notes: on conditions that were not given, and on what is not reported.
        settings: name → text of model, controller, duration and date; of the command, where one
            ran it.
    """

    outcomes: tuple[Outcome, ...]
    planned: int
    notes: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        require_fields(self)

    def __repr__(self) -> str:
        return f"Campaign({self.headline})"

    def _summary(self) -> dict[str, object]:
        return {"result": self.headline, "failures": self.failures()}

    def _repr_html_(self) -> str:
        heading = f"{default_title(self.settings)}: {self.headline}"
        return campaign_html(heading, self.outcomes, self.judged_metrics(), self.summary())

    @property
    def passed(self) -> bool | None:
        """Whether every case was run and passed; None where a case is not judged."""
        done = len(self.outcomes) == self.planned
        return passed([done, *(outcome.passed for outcome in self.outcomes)])

    @property
    def pass_rate(self) -> PassRate:
        """Share of the outcomes that passed, with its confidence interval.

        Raises:
            ProblemError: no case has been run.
        """
        if not self.outcomes:
            raise ProblemError("no case of this campaign has been run yet; run it again")
        return pass_rate(sum(o.passed is True for o in self.outcomes), len(self.outcomes))

    @property
    def headline(self) -> str:
        """The pass rate, and how much is missing, in one line."""
        missing = self.planned - len(self.outcomes)
        rate = str(self.pass_rate) if self.outcomes else "no run is done"
        unjudged = sum(outcome.passed is None for outcome in self.outcomes)
        if unjudged:
            rate += f"; {unjudged} runs are not judged: give a reference or criteria"
        return f"{rate}; {missing} of {self.planned} cases are not done" if missing else rate

    @checked
    def worst(self, count: int = WORST) -> list[Outcome]:
        """Return the worst outcomes, the worst first; see `statistics.worst_first`.

        `case_report(..., number=outcome.number)` runs one of them again, with a full report.

        Raises:
            ProblemError: a count that is no whole number of at least 1.
        """
        require_whole(1, count=count)
        return worst_first(self.outcomes)[:count]

    def failures(self) -> dict[str, int]:
        """Return how many runs failed by each criterion, most first."""
        names = [name for outcome in self.outcomes for name in outcome.failed]
        counts = {name: names.count(name) for name in dict.fromkeys(names)}
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    def judged_metrics(self) -> list[str]:
        """Return the names of the metrics that a criterion bounds."""
        names = (v.metric for o in self.outcomes for v in o.verdicts)
        return [name for name in dict.fromkeys(names) if name not in NO_METRICS]

    @checked
    def sensitivity(self, metrics: Sequence[str] | None = None) -> list[Sensitivity]:
        """Return how metrics depend on the parameters that vary over the cases.

        Errors that each body draws for itself are no parameters.

        Args:
            metrics: names; those with a criterion by default.
        """
        return sensitivities(self.outcomes, self.judged_metrics() if metrics is None else metrics)

    def summary(self) -> list[SummaryRow]:
        """Return one row for each metric: median, worst value and the number of its case."""
        numbers = [outcome.number for outcome in self.outcomes]
        return summary_rows(
            [outcome.metrics for outcome in self.outcomes],
            [outcome.verdicts for outcome in self.outcomes],
            numbers,
        )

    def to_dict(self) -> dict[str, Plain]:
        """Return everything as plain data that JSON can hold."""
        return plain_data(
            {
                "passed": self.passed,
                "settings": dict(self.settings),
                "planned": self.planned,
                "pass_rate": asdict(self.pass_rate) if self.outcomes else None,
                "failures": self.failures(),
                "worst": [outcome.number for outcome in self.worst()],
                "sensitivity": [asdict(row) for row in self.sensitivity()],
                "notes": list(self.notes),
                "versions": package_versions(),
                "summary": [asdict(row) for row in self.summary()],
                "cases": [outcome.to_dict() for outcome in self.outcomes],
            }
        )

    def to_dataframe(self) -> Any:
        """Return a `pandas.DataFrame`: a row for each case, indexed by its number.

        Columns are the parameters of the cases, `passed`, `failed` (the criteria), and each metric
        with its unit, `tracking.rms:crank [rad]`, NaN where a run does not have it.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        outcomes = self.outcomes
        parameters = dict.fromkeys(name for o in outcomes for name in o.case.parameters)
        units = {m.name: m.unit for o in outcomes for m in o.metrics}
        columns: dict[str, list[Any]] = {"seed": [o.case.seed for o in outcomes]}
        for name in parameters:
            column = f"{name} [{PARAMETER_UNITS[name]}]" if name in PARAMETER_UNITS else name
            columns[column] = [o.case.parameters.get(name, 0.0) for o in outcomes]
        columns["passed"] = [o.passed for o in outcomes]
        columns["failed"] = [", ".join(o.failed) for o in outcomes]
        for name, unit in units.items():
            columns[f"{name} [{unit}]" if unit else name] = [o.metric(name) for o in outcomes]
        return data_frame(columns, "case", [o.number for o in outcomes])

    def to_json(self) -> str:
        """Return the campaign as JSON text."""
        return json_text(self.to_dict())

    @checked
    def to_html(self, title: str = "", videos: Mapping[int, str | Path] | None = None) -> str:
        """Return the campaign as one HTML page that refers to no other file.

        Args:
            title: heading; controller and model by default.
            videos: number of a case → its `.mp4`, to be shown; see `case_report`.

        Raises:
            ProblemError: a video cannot be read, or is of a case that was not run.
            MissingExtraError: jinja2 or matplotlib is not installed.
        """
        return campaign_page(self._facts(), title, videos or {})

    @checked
    def save(self, path: str | Path, *, videos: Mapping[int, str | Path] | None = None) -> Path:
        """Write the campaign as `.json` or `.html`; return the path.

        Args:
            path: of the file.
            videos: for a page, as in `to_html`.

        Raises:
            ProblemError: a file that cannot be written, or another suffix; as `to_html`.
            MissingExtraError: an HTML page needs jinja2 and matplotlib.
        """
        return save_page(path, "a campaign", self.to_json, lambda: self.to_html(videos=videos))

    def table(self) -> "Table":
        """Return the summary as a `rich` table.

        Raises:
            MissingExtraError: rich is not installed.
        """
        return campaign_table(self.headline, self.summary())

    def findings(self) -> list[str]:
        """Return what the outcomes say, in sentences."""
        lines = []
        for name, count in self.failures().items():
            lines.append(f"{count} runs failed by: {text.metric_text(name)}")
        for outcome in self.worst() if self.failures() else ():
            why = "; ".join((*outcome.events, *map(text.metric_text, outcome.failed[:1])))
            if outcome.passed is False:
                lines.append(f"case {outcome.number} ({outcome.text}) failed: {why}")
        strong = [row for row in self.sensitivity() if row.p_value < STRONG]
        for row in sorted(strong, key=lambda row: -row.strength)[:WORST]:
            lines.append(f"{text.metric_text(row.metric)} depends on {row}")
        return [*lines, *self.notes]

    def _facts(self) -> Facts:
        return Facts(
            settings=self.settings,
            passed=self.passed,
            headline=self.headline,
            outcomes=self.outcomes,
            failures=self.failures(),
            worst=worst_first(self.outcomes),
            judged=self.judged_metrics(),
            sensitivity=self.sensitivity(),
            summary=self.summary(),
        )

    def __str__(self) -> str:
        return "\n".join([self.headline, *(f"  {line}" for line in self.findings())])


@checked
def open_campaign(path: str | Path) -> Campaign:
    """Return a campaign from the file that it was stored in, complete or not.

    Raises:
        ProblemError: no such file, or not of a campaign.
    """
    if not Path(path).is_file():
        raise ProblemError(f"{path}: no such file; expected one that campaign(store=) wrote")
    store = Store(Path(path))
    try:
        notes, settings = tuple(store.notes()), store.settings()
        return Campaign(tuple(store.outcomes()), len(store.cases()), notes, settings)
    finally:
        store.close()
