"""A campaign as one self-contained HTML page."""

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mbcasadi.errors import ProblemError
from mbcasadi.validation.campaigns.outcome import Outcome
from mbcasadi.validation.campaigns.plots import campaign_figures
from mbcasadi.validation.report import text
from mbcasadi.validation.report.page_template import page_template
from mbcasadi.validation.versions import package_versions

if TYPE_CHECKING:
    from mbcasadi.validation.campaigns.result import Campaign


class _Video(NamedTuple):
    """An mp4 on the page, as base64, with its case."""

    outcome: Outcome
    content: str


def campaign_page(campaign: "Campaign", title: str, videos: Mapping[int, str | Path]) -> str:
    """Return the HTML page: nothing in it refers to another file or to the network.

    Args:
        campaign: complete or not.
        title: heading.
        videos: number of a case → its `.mp4`.

    Raises:
        ProblemError: a video cannot be read, or is of a case that was not run.
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    template = page_template(
        "campaign.html.j2",
        metric_text=text.metric_text,
        verdict_word=text.verdict_word,
        value_text=text.value_text,
        number_text=text.number_text,
    )
    return template.render(
        title=title,
        campaign=campaign,
        failures=campaign.failures(),
        worst=campaign.worst(10),
        videos=list(_videos(campaign, videos)),
        sensitivity=campaign.sensitivity(),
        summary=campaign.summary(),
        figures=campaign_figures(campaign.outcomes, campaign.judged_metrics()),
        versions=package_versions(),
    )


def _videos(campaign: "Campaign", paths: Mapping[int, str | Path]) -> Iterator[_Video]:
    outcomes = {outcome.number: outcome for outcome in campaign.outcomes}
    for number, path in paths.items():
        if number not in outcomes:
            raise ProblemError(f"{path} shows case {number}, which this campaign has not run")
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise ProblemError(f"cannot read the video {path}: {error.strerror}") from error
        yield _Video(outcomes[number], base64.b64encode(content).decode("ascii"))
