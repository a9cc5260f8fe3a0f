"""Campaigns: many cases of one controller, in processes or on a cluster, and their statistics."""

from mbcasadi.validation.campaigns.campaign import CampaignOptions, campaign, case_report
from mbcasadi.validation.campaigns.case import Case, cases, sampled_cases
from mbcasadi.validation.campaigns.failure_margin import FailureMargin, margin
from mbcasadi.validation.campaigns.outcome import Outcome, PassRate, Sensitivity
from mbcasadi.validation.campaigns.result import Campaign, open_campaign

__all__ = [
    "Campaign",
    "CampaignOptions",
    "Case",
    "FailureMargin",
    "Outcome",
    "PassRate",
    "Sensitivity",
    "campaign",
    "case_report",
    "cases",
    "margin",
    "open_campaign",
    "sampled_cases",
]
