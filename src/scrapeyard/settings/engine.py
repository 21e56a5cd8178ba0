"""Settings of fetching: HTTP engine, sites, cached pages, budgets, proxies, and what is tried when a site blocks us."""

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from scrapeyard.model.fetching import POOL, read_endpoint, read_proxy_url
from scrapeyard.settings.section import Section


class HttpSettings(Section):
    """The HTTP engine."""

    connect_seconds: float = Field(10, gt=0, description="Maximum seconds to connect, TLS included.")
    total_seconds: float = Field(30, gt=0, description="Maximum seconds for one request with all its redirects.")
    max_body_mb: float = Field(20, gt=0, description="Maximum size of a page, before and after decompression.")
    bodies_mb: float = Field(
        512,
        gt=0,
        description="Memory of one worker for pages above 1 MB in flight; further ones wait. One may always go on.",
    )
    max_redirects: int = Field(10, ge=0, le=50, description="Maximum redirects to follow.")
    concurrency: int = Field(256, ge=1, description="Maximum requests in flight in one worker.")
    profile: str = Field("chrome", description="Browser whose TLS and headers are used: chrome, firefox, safari, none.")
    allow_private: bool = Field(False, description="Whether private and loopback addresses may be fetched.")
    allow_hosts: tuple[str, ...] = Field((), description="Private hosts or networks (CIDR) that may be fetched.")
    user_agent: str = Field("", description="User-Agent to send instead of the profile's.")
    read_seconds: float = Field(30, gt=0, description="Maximum seconds between two pieces of an answer.")
    ca_bundle: Path | None = Field(None, description="PEM file of further certificate authorities to trust.")
    client_certificates: bool = Field(False, description="Whether scrapers may present client certificates.")
    session_days: float = Field(7, gt=0, description="Days that the cookies of a named session are kept.")


class SiteSettings(Section):
    """How every site is treated that has no settings of its own (`/api/sites` changes those while running)."""

    rate: float = Field(
        0, ge=0, le=100_000, description="Requests per second to one site, across all workers; 0: no limit."
    )
    burst: int = Field(1, ge=1, le=10_000, description="Requests that may start at once after a pause.")
    concurrency: int = Field(
        0, ge=0, le=10_000, description="Maximum requests in flight to one site, across all workers; 0: no limit."
    )
    adapt: bool = Field(True, description="Whether 429, 503 and rising latency lower a site's rate.")
    min_rate: float = Field(0.1, gt=0, description="Lowest rate that slowing down may reach, in requests per second.")
    wait_seconds: float = Field(60, ge=0, le=3600, description="Maximum seconds a fetch waits for its turn.")
    breaker_failures: int = Field(20, ge=1, description="Failures in a row that open the breaker of a site.")
    breaker_ratio: float = Field(
        0.5, gt=0, le=1, description="Share of failures among the last requests that opens it, too."
    )
    breaker_seconds: float = Field(
        300, gt=0, description="Seconds the breaker stays open before one request tries the site."
    )
    robots: Literal["ignore", "obey"] = Field("ignore", description="Whether robots.txt is obeyed by default.")
    job_robots: Literal["ignore", "obey"] = Field(
        "obey", description="Whether jobs obey the robots.txt of public hosts by default."
    )
    job_rate: float = Field(
        2,
        ge=0,
        le=100_000,
        description="Requests per second of all jobs without a rate of their own to one public site; 0: no limit.",
    )
    robots_agent: str = Field("scrapeyard", description="Product name to look for in robots.txt.")
    whole_hosts: tuple[str, ...] = Field((), description="Domains whose hosts each count as a site of their own.")


class CacheSettings(Section):
    """Pages kept."""

    mode: Literal["off", "through", "back", "around"] = Field(
        "through",
        description="through: stored here and in the shared cache; back: shared a moment later; around: shared only.",
    )
    max_age_seconds: float = Field(0, ge=0, description="Maximum age of a cached page by default; 0: no caching.")
    memory_mb: float = Field(64, ge=0, description="Memory for cached pages in each worker.")
    shared_mb: float = Field(
        1024, ge=0, description="Size of the shared cache, in Redis or else in the data directory."
    )
    max_page_mb: float = Field(4, gt=0, description="Maximum size of a cached page.")
    ttl_seconds: tuple[str, ...] = Field(
        ("text/html=3600", "image/*=86400", "*/*=3600"),
        description="Maximum seconds a page is cached, by content type.",
    )


class BudgetSettings(Section):
    """What every run may use up unless policy says less. 0: no limit."""

    requests: int = Field(0, ge=0, description="Maximum requests to the web.")
    megabytes: float = Field(0, ge=0, description="Maximum megabytes received; 0: no limit.")
    residential_megabytes: float = Field(
        0, ge=0, description="Maximum megabytes received through residential or unlocking proxies; 0: no limit."
    )
    seconds: float = Field(0, ge=0, description="Maximum seconds spent in fetches; 0: no limit.")
    ai_tokens: int = Field(0, ge=0, description="Maximum tokens that models read and write; 0: no limit.")
    ai_cost: float = Field(0, ge=0, description="Maximum cost of models, in the currency of their prices; 0: no limit.")
    warn_share: float = Field(0.8, gt=0, le=1, description="Share of a budget at which a warning is logged.")


class EscalationSettings(Section):
    """What is tried when a site blocks us."""

    enabled: bool = Field(True, description="Whether blocked fetches try other routes by default.")
    profiles: tuple[str, ...] = Field(("chrome", "firefox", "safari"), description="Browser profiles to try, in order.")
    max_ways: int = Field(4, ge=1, le=20, description="Maximum routes tried for one fetch.")
    browser: bool = Field(
        True, description="Whether a browser is tried where plain HTTP is blocked or finds no content."
    )
    solver: Literal["flaresolverr", "firecrawl"] = Field(
        "flaresolverr",
        description="What the solver at `solver_url` speaks: FlareSolverr, or Firecrawl: `/v2/scrape`, `/v2/search`.",
    )
    solver_url: str = Field(
        "", description="The solver, e.g. http://127.0.0.1:8191 for FlareSolverr; empty: our own browser, if any."
    )
    solver_key: SecretStr = Field(SecretStr(""), description="API key of a Firecrawl server; empty: it wants none.")
    solver_pages_daily: int = Field(
        0,
        ge=0,
        le=10**9,
        description="Maximum pages and searches that one worker asks Firecrawl for in a day (UTC); 0: no limit.",
    )
    solver_seconds: float = Field(
        60, gt=0, le=600, description="Maximum seconds the solver may take for one page or search."
    )
    solver_concurrency: int = Field(2, ge=1, le=100, description="Pages the solver works on at once for one worker.")
    remember_seconds: float = Field(
        86_400, gt=0, description="Seconds that the route which worked at a site is remembered."
    )

    @property
    def searches(self) -> bool:
        """Whether there is an outside engine that can be asked for a web search."""
        return self.solver == "firecrawl" and bool(self.solver_url)

    @field_validator("solver_url")
    @classmethod
    def _names_the_endpoint(cls, url: str) -> str:
        """FlareSolverr listens at /v1; its address is usually given without it."""
        bare = url.rstrip("/")
        return f"{bare}/v1" if bare.count("/") == 2 else url


class BrowserSettings(Section):
    """The browser engine. A worker without a browser does not offer it."""

    enabled: bool = Field(True, description="Whether scripts may use a browser, if one is installed.")
    driver: Literal["patchright", "playwright"] = Field(
        "patchright", description="Package that drives the browser; the first hides that it does."
    )
    name: Literal["chromium", "firefox", "webkit"] = Field(
        "chromium", description="Browser to start; others than Chromium need the driver playwright and its download."
    )
    executable: str = Field("", description="Path of the browser; empty: one on PATH, or the driver's download.")
    light_executable: str = Field(
        "", description='Path of Lightpanda, for engine="light"; empty: that of its package, or one on PATH.'
    )
    max_contexts: int = Field(
        0,
        ge=0,
        le=1000,
        description="Contexts open at once in one worker; 0: by the free memory, half of it, 80 MB each.",
    )
    contexts_per_run: int = Field(1, ge=1, le=4, description="Contexts that one run may have open at once.")
    wait_seconds: float = Field(60, ge=0, le=3600, description="Maximum seconds to wait for a free context.")
    idle_seconds: float = Field(60, ge=0, description="The browser is stopped after so many seconds without a context.")
    contexts_each: int = Field(500, ge=1, description="Contexts after which the browser is started anew.")
    minutes_each: float = Field(60, gt=0, description="Minutes after which the browser is started anew.")
    memory_mb: float = Field(4096, ge=256, description="Memory of the browser above which it is started anew.")
    sandbox: Literal["auto", "require", "off"] = Field(
        "auto", description="Chromium's own sandbox: on where the system allows it, required, or off."
    )
    namespace: Literal["auto", "require", "off"] = Field(
        "auto", description="A network namespace for the browser, from which only the worker's proxy can be reached."
    )
    arguments: tuple[str, ...] = Field((), max_length=50, description="Further command line arguments of the browser.")


class CaptchaSettings(Section):
    """Captchas: pictures by a local model, anything by a vendor with 2captcha's API."""

    allow: Literal["off", "local", "vendor"] = Field(
        "off", description="What runs may use whose policy does not say: nothing, the local model, the vendor as well."
    )
    vendor_url: str = Field("", description="API of the vendor, e.g. https://api.2captcha.com; empty: none.")
    vendor_key: SecretStr = Field(SecretStr(""), description="Key of the vendor's account.")
    seconds: float = Field(120, gt=0, le=600, description="Maximum seconds to wait for the vendor's answer.")
    poll_seconds: float = Field(3, gt=0, le=60, description="Seconds between two questions whether it is there.")
    sure: float = Field(
        0.9, ge=0, le=1, description="Confidence of the local model below which the vendor is asked, where allowed."
    )
    concurrency: int = Field(4, ge=1, le=100, description="Captchas that one worker solves at once.")


class ProxyPool(Section):
    """One pool of proxies; [[proxies.pools]] in the file."""

    name: str = Field(..., pattern=POOL, description="How policies name it.")
    kind: Literal["list", "brightdata"] = Field("list", description="A plain list, or a vendor's template.")
    proxy_class: Literal["datacenter", "residential", "unlocker"] = Field("datacenter", description="What it costs.")
    urls: tuple[SecretStr, ...] = Field(
        (), max_length=10_000, description="http, https, socks5 or socks5h URLs, with credentials."
    )
    host: str = Field("", description="Vendor's endpoint, host:port; empty: its usual one.")
    customer: str = Field("", pattern=r"^[A-Za-z0-9_]{0,64}$", description="Vendor's account.")
    zone: str = Field("", pattern=r"^[A-Za-z0-9_]{0,64}$", description="Vendor's zone.")
    password: SecretStr = Field(SecretStr(""), description="Vendor's password for the zone.")
    country: str = Field(
        "", pattern=r"^([A-Za-z]{2})?$", description="Exit country, as two letters; policies may name another."
    )
    rotation: Literal["request", "session", "site"] = Field("request", description="When another exit is taken.")
    exits: int = Field(20, ge=1, le=1000, description="Exits of a vendor's zone that are used in turn.")
    cooldown_seconds: float = Field(
        60, gt=0, le=86_400, description="How long a proxy that failed rests; doubles while it goes on failing."
    )
    ca_file: Path | None = Field(
        None, description="PEM file of authorities trusted through this pool beside the usual ones."
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.name == "none":
            raise ValueError("name: `none` stands for no proxy; call the pool otherwise")
        vendor = (self.customer, self.zone, self.password.get_secret_value())
        if self.kind == "list":
            self._check_list(any((*vendor, self.host)))
        elif self.urls or not all(vendor):
            raise ValueError("kind is brightdata: set customer, zone and password, and no urls")
        elif self.host:
            read_endpoint(self.host)
        return self

    def _check_list(self, names_vendor: bool) -> None:
        if names_vendor or not self.urls:
            raise ValueError("kind is list: set urls, and none of host, customer, zone and password")
        for place, url in enumerate(self.urls):
            try:
                read_proxy_url(url.get_secret_value())
            except ValueError as error:
                raise ValueError(f"urls.{place}: {error}") from None


class ProxySettings(Section):
    """Proxies."""

    pools: tuple[ProxyPool, ...] = Field((), description="Pools in order of cost, the cheapest first.")
    default: str = Field("none", description="Pool to use by default; `none`: no proxy.")

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        names = [pool.name for pool in self.pools]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two pools are called {name}; give each a name of its own")
        if re.match(POOL, self.default) is None:
            raise ValueError("default: not the name of a pool; write one, or `none`")
        return self
