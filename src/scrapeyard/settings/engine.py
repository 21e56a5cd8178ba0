"""Settings of fetching: the HTTP engine, sites, kept pages, budgets, and what is tried when a site blocks us."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from scrapeyard.settings.section import Section


class HttpSettings(Section):
    """The HTTP engine."""

    connect_seconds: float = Field(10, gt=0, description="To connect, TLS included.")
    total_seconds: float = Field(30, gt=0, description="For one request with all its redirects.")
    max_body_mb: float = Field(20, gt=0, description="A larger page is an error, before and after decompression.")
    max_redirects: int = Field(10, ge=0, le=50, description="Redirects followed.")
    concurrency: int = Field(256, ge=1, description="Requests in flight in one worker.")
    profile: str = Field("chrome", description="Browser whose TLS and headers are used: chrome, firefox, safari, none.")
    allow_private: bool = Field(False, description="Whether private and loopback addresses may be fetched.")
    allow_hosts: tuple[str, ...] = Field((), description="Hosts or networks (CIDR) that may be fetched though private.")
    user_agent: str = Field("", description="Overrides the profile's.")
    read_seconds: float = Field(30, gt=0, description="Between two pieces of an answer.")
    ca_bundle: Path | None = Field(None, description="PEM file of authorities trusted beside the usual ones.")
    client_certificates: bool = Field(False, description="Whether scrapers may present client certificates.")
    session_days: float = Field(7, gt=0, description="How long the cookies of a named session are kept.")


class SiteSettings(Section):
    """How every site is treated that has no settings of its own (`/api/sites` changes those while running)."""

    rate: float = Field(0, ge=0, le=100_000, description="Requests a second to one site, of all workers; 0: no limit.")
    burst: int = Field(1, ge=1, le=10_000, description="Requests that may come at once after a rest.")
    concurrency: int = Field(0, ge=0, le=10_000, description="Requests in flight to one site, of all workers; 0: any.")
    adapt: bool = Field(True, description="Whether 429, 503 and rising latency slow a site down.")
    min_rate: float = Field(0.1, gt=0, description="Slowed down no further than this.")
    wait_seconds: float = Field(60, ge=0, le=3600, description="The longest that a fetch waits for its turn.")
    breaker_failures: int = Field(20, ge=1, description="Failures in a row that make us leave a site alone.")
    breaker_ratio: float = Field(0.5, gt=0, le=1, description="Share of failures among the last ones that does, too.")
    breaker_seconds: float = Field(300, gt=0, description="How long it is left alone before one request tries it.")
    robots: Literal["ignore", "obey"] = Field("ignore", description="What robots.txt means unless policy says.")
    robots_agent: str = Field("scrapeyard", description="Product name that robots.txt is read for.")
    whole_hosts: tuple[str, ...] = Field((), description="Domains below which each host is a site of its own.")


class CacheSettings(Section):
    """Pages kept."""

    mode: Literal["off", "through", "back", "around"] = Field(
        "through", description="through: kept here and shared; back: shared a moment later; around: shared only."
    )
    max_age_seconds: float = Field(0, ge=0, description="How old a kept page may be unless policy says; 0: none.")
    memory_mb: float = Field(64, ge=0, description="In each worker.")
    shared_mb: float = Field(1024, ge=0, description="In Redis, or in the data directory without it.")
    max_page_mb: float = Field(4, gt=0, description="Larger pages are not kept.")
    ttl_seconds: tuple[str, ...] = Field(
        ("text/html=3600", "image/*=86400", "*/*=3600"), description="How long pages are kept at most, by content type."
    )


class BudgetSettings(Section):
    """What every run may use up unless policy says less. 0: no limit."""

    requests: int = Field(0, ge=0, description="Requests to the web.")
    megabytes: float = Field(0, ge=0, description="Received.")
    residential_megabytes: float = Field(0, ge=0, description="Received through residential or unlocking proxies.")
    seconds: float = Field(0, ge=0, description="Spent in fetches.")
    warn_share: float = Field(0.8, gt=0, le=1, description="Share of a budget whose use is warned of.")


class EscalationSettings(Section):
    """What is tried when a site blocks us."""

    enabled: bool = Field(True, description="Whether other ways are tried unless policy says.")
    profiles: tuple[str, ...] = Field(("chrome", "firefox", "safari"), description="Browsers to look like, in turn.")
    max_ways: int = Field(4, ge=1, le=20, description="Ways tried for one fetch.")
    solver_url: str = Field("", description="FlareSolverr, e.g. http://127.0.0.1:8191/v1; empty: none.")
    solver_seconds: float = Field(60, gt=0, le=600, description="How long it may take for one page.")
    solver_concurrency: int = Field(2, ge=1, le=100, description="Pages it solves for one worker at once.")
    remember_seconds: float = Field(86_400, gt=0, description="How long what worked at a site is remembered.")
