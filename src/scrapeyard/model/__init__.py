"""The nouns and their state machines. Imports nothing of ours."""

from scrapeyard.model.environment import Environment, EnvironmentState, EnvironmentStatus
from scrapeyard.model.exit_reasons import ExitReason, may_help_later
from scrapeyard.model.fetching import Backoff, BudgetLimits, FetchPolicy
from scrapeyard.model.ids import new_id
from scrapeyard.model.run import (
    FINAL,
    Artifact,
    Delivery,
    FetchTrace,
    LogLine,
    Outcome,
    Priority,
    Run,
    RunError,
    RunStatus,
    Timing,
    Usage,
    WorkerInfo,
    status_of,
)
from scrapeyard.model.scraper import SCRAPER_ID, Defaults, Limits, Scraper, ScraperRef
from scrapeyard.model.signals import Cancel, CancelJob, Invalidate, Refresh, Signal, SitesChanged

__all__ = [
    "FINAL",
    "SCRAPER_ID",
    "Artifact",
    "Backoff",
    "BudgetLimits",
    "Cancel",
    "CancelJob",
    "Defaults",
    "Delivery",
    "Environment",
    "EnvironmentState",
    "EnvironmentStatus",
    "ExitReason",
    "FetchPolicy",
    "FetchTrace",
    "Invalidate",
    "Limits",
    "LogLine",
    "Outcome",
    "Priority",
    "Refresh",
    "Run",
    "RunError",
    "RunStatus",
    "Scraper",
    "ScraperRef",
    "Signal",
    "SitesChanged",
    "Timing",
    "Usage",
    "WorkerInfo",
    "may_help_later",
    "new_id",
    "status_of",
]
