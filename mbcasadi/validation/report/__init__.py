"""Runs and campaigns as tables, JSON and one HTML page."""

from mbcasadi.validation.report.findings import findings
from mbcasadi.validation.report.frames import (
    RenderedFrames,
    observer_of,
    render_frames,
    write_video,
)
from mbcasadi.validation.report.notes import run_notes, unreported_notes
from mbcasadi.validation.report.plain_data import plain_data
from mbcasadi.validation.report.report import Report
from mbcasadi.validation.report.report_options import ReportOptions
from mbcasadi.validation.report.settings import run_settings
from mbcasadi.validation.report.summary import SummaryRow, summary_rows
from mbcasadi.validation.report.terminal import campaign_table, what_if_table
from mbcasadi.validation.report.text import tick_count
from mbcasadi.validation.report.why import reasons

__all__ = [
    "RenderedFrames",
    "Report",
    "ReportOptions",
    "SummaryRow",
    "campaign_table",
    "findings",
    "observer_of",
    "plain_data",
    "reasons",
    "render_frames",
    "run_notes",
    "run_settings",
    "summary_rows",
    "tick_count",
    "unreported_notes",
    "what_if_table",
    "write_video",
]
