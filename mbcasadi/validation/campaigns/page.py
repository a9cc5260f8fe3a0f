"""A campaign as one self-contained HTML page."""

from typing import TYPE_CHECKING

from mbcasadi.validation.campaigns.plots import campaign_figures
from mbcasadi.validation.report import text
from mbcasadi.validation.report.extras import require
from mbcasadi.validation.report.plain_data import package_versions

if TYPE_CHECKING:
    from mbcasadi.validation.campaigns.result import Campaign


def campaign_page(campaign: "Campaign", title: str) -> str:
    """Return the HTML page: nothing in it refers to another file or to the network.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    require("jinja2", "an HTML report")
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mbcasadi.validation.campaigns", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(
        metric_text=text.metric_text,
        value_text=text.value_text,
        number_text=text.number_text,
    )
    page: str = environment.get_template("campaign.html.j2").render(
        title=title,
        campaign=campaign,
        failures=campaign.failures(),
        worst=campaign.worst(10),
        sensitivity=campaign.sensitivity(),
        summary=campaign.summary(),
        figures=campaign_figures(campaign.outcomes, campaign.judged_metrics()),
        versions=package_versions(),
    )
    return page
