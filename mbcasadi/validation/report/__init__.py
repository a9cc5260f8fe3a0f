"""Runs and campaigns as tables, JSON and one HTML page."""

from mbcasadi.validation.report.findings import (
    findings,
    missed_notes,
    run_notes,
    unreported_notes,
)
from mbcasadi.validation.report.frames import (
    RenderedFrames,
    observer_of,
    render_frames,
    render_plans,
    write_video,
)
from mbcasadi.validation.report.pages import plain_data
from mbcasadi.validation.report.report import Report, ReportOptions
from mbcasadi.validation.report.settings import run_settings
from mbcasadi.validation.report.side_by_side import SideBySide, side_by_side
from mbcasadi.validation.report.terminal import (
    SummaryRow,
    campaign_table,
    summary_rows,
    what_if_table,
)

__all__ = [
    "RenderedFrames",
    "Report",
    "ReportOptions",
    "SideBySide",
    "SummaryRow",
    "campaign_table",
    "findings",
    "missed_notes",
    "observer_of",
    "plain_data",
    "render_frames",
    "render_plans",
    "run_notes",
    "run_settings",
    "side_by_side",
    "summary_rows",
    "unreported_notes",
    "what_if_table",
    "write_video",
]
