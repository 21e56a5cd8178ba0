"""One tree of settings: unit, default and meaning for each; validated whole at start.

Sources, strongest first: command line, environment, `.env` in the working directory, a TOML file
(`SCRAPEYARD_CONFIG`, or `scrapeyard.toml` in the working directory), defaults. The environment spells a nested key with
two underscores: `SCRAPEYARD_WORKER__SLOTS=8`. Well-known names (`DATABASE_URL`, `REDIS_URL`, `LOG_LEVEL`,
`OTEL_EXPORTER_OTLP_ENDPOINT`, `SCRAPEYARD_LANG`, `SCRIPT_REPOSITORY_TYPE`, `S3_BUCKET_NAME`, …) are understood beside
ours; ours win. Unknown keys are refused.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self, get_args
from urllib.parse import urlsplit, urlunsplit

from dotenv import dotenv_values
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from scrapeyard.errors import SettingsInvalid
from scrapeyard.model import Limits
from scrapeyard.model.fetching import POOL
from scrapeyard.model.proxies import read_endpoint, read_proxy_url

PREFIX = "SCRAPEYARD_"
CONFIG_FILE = "scrapeyard.toml"


class Section(BaseModel):
    """A branch of the tree. Unknown keys are refused; a list may be written with commas, or as JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @field_validator("*", mode="before")
    @classmethod
    def _split_list(cls, value: object, info: Any) -> object:
        annotation = cls.model_fields[info.field_name].annotation
        if not isinstance(value, str) or getattr(annotation, "__origin__", None) is not tuple:
            return value
        parts = _parts(value.strip())
        if parts and isinstance(kind := get_args(annotation)[0], type) and issubclass(kind, Section):
            raise ValueError("a list of tables, which only the file can hold; write [[…]] sections there")
        return parts


def _parts(text: str) -> tuple[object, ...]:
    if not text.startswith("["):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        return tuple(json.loads(text))
    except ValueError:
        raise ValueError("neither a JSON list nor words with commas between them") from None


class GatewaySettings(Section):
    """The HTTP API."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    wait_seconds: float = Field(30, gt=0, le=300, description="How long a call waits when it does not say.")
    max_wait_seconds: float = Field(300, gt=0, le=3600, description="The longest a call may wait.")
    max_body_mb: float = Field(10, gt=0, le=1024, description="Larger request bodies are refused before they are read.")
    max_urls: int = Field(1000, ge=1, le=100_000, description="URLs in one call.")
    max_backlog: int = Field(10_000, ge=1, description="Runs that may wait in one lane; beyond it calls get 503.")
    max_waiting: int = Field(2000, ge=1, description="Calls that may wait for an answer at once; beyond it 429.")
    cors_origins: tuple[str, ...] = Field((), description="Origins that browsers may call from; `*` for any.")


class WorkerSettings(Section):
    """Taking and running."""

    slots: int = Field(0, ge=0, le=1024, description="Runs at once; 0 means four per core.")
    reserved_slots: int = Field(-1, ge=-1, description="Slots kept for priority high; -1: a quarter, at least one.")
    lanes: tuple[str, ...] = Field(("default",), min_length=1, description="Lanes this worker takes from.")
    heartbeat_seconds: float = Field(2, gt=0, le=60, description="Between heartbeats.")
    lease_seconds: float = Field(15, gt=1, le=600, description="A run is another's when its worker was silent so long.")
    drain_seconds: float = Field(20, ge=0, le=600, description="On SIGTERM, how long running work may finish.")
    ahead: int = Field(2, ge=0, le=64, description="Children forked ahead of need for each busy scraper.")
    idle_scraper_seconds: float = Field(120, gt=0, description="A loaded scraper unused so long is let go.")
    max_scrapers: int = Field(32, ge=1, description="Loaded scrapers kept at once; the least recently used goes.")


class SandboxSettings(Section):
    """Walls around children."""

    mode: Literal["auto", "strict", "off"] = Field(
        "auto", description="auto: every wall the kernel has; strict: refuse to start without all; off: none."
    )
    without: tuple[str, ...] = Field((), description="Walls to leave out, by the names that `doctor` prints.")
    uid_base: int = Field(2_000_000, ge=1000, description="As root, each scraper runs under a user id from here on.")
    direct_network: tuple[str, ...] = Field(
        (), description='Scrapers (by id) that are granted the network = "direct" they ask for.'
    )
    load_seconds: float = Field(20, gt=0, le=600, description="How long a script may take to load.")


class LimitSettings(Section):
    """The ceiling for every scraper's own limits."""

    wall_seconds: float = Field(300, gt=0, description="Wall clock.")
    cpu_seconds: float = Field(300, gt=0, description="Processor time.")
    memory_mb: int = Field(2048, ge=16, description="Memory beyond the bare interpreter's.")
    disk_mb: int = Field(1024, ge=1, description="Files in the run's own folder.")
    output_mb: float = Field(100, gt=0, description="Result as JSON.")
    log_kb: int = Field(4096, ge=1, description="stdout, stderr and logs together.")
    artifact_mb: float = Field(500, gt=0, description="Artifacts together.")
    threads: int = Field(256, ge=1, description="Threads.")
    fetches: int = Field(100_000, ge=1, description="Requests to the web.")

    def as_limits(self) -> Limits:
        """The same as the model's noun."""
        return Limits(**self.model_dump())


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

    pools: tuple[ProxyPool, ...] = Field((), description="In order of cost, the cheapest first: that is the tier.")
    default: str = Field("none", description="Pool used unless policy says; `none`: no proxy.")

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        names = [pool.name for pool in self.pools]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two pools are called {name}; give each a name of its own")
        if re.match(POOL, self.default) is None:
            raise ValueError("default: not the name of a pool; write one, or `none`")
        return self


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


class SourceSettings(Section):
    """One repository of scrapers."""

    type: Literal["", "folder", "git", "http", "s3"] = Field("", description="What it is; empty: there is none.")
    name: str = Field("", description="How listings call it; empty: its URL without credentials.")
    url: SecretStr = Field(
        SecretStr(""), description="Folder, any URL that git understands, or the URL of the index; not for s3."
    )
    path: str = Field("", description="Folder inside a Git repository that holds the scrapers; empty: all of it.")
    branch: str = Field("", description="Git branch; empty: the one that the repository names.")
    history: int = Field(50, ge=1, le=10_000, description="Commits of the branch searched for older versions.")
    token: SecretStr = Field(SecretStr(""), description="Password for Git over https, bearer token for http.")
    key_file: Path | None = Field(None, description="Private key for Git over ssh.")
    known_hosts: Path | None = Field(None, description="Host keys for Git over ssh; empty: the user's own file.")
    bucket: str = Field("", description="S3 bucket.")
    region: str = Field("", description="S3 region.")
    prefix: str = Field("", description="S3 prefix before every key.")
    endpoint: str = Field("", description="S3-compatible server other than Amazon's.")
    access_key: SecretStr = Field(SecretStr(""), description="S3 access key; empty: the machine's own credentials.")
    secret_key: SecretStr = Field(SecretStr(""), description="S3 secret key.")

    @model_validator(mode="after")
    def _says_where(self) -> Self:
        """S3 names alone are no fault: other programs read them too."""
        url = bool(self.url.get_secret_value())
        if url and not self.type:
            raise ValueError("url is set, but type is not; set type to folder, git, http or s3")
        if self.type in ("folder", "git", "http") and not url:
            raise ValueError(f"type is {self.type}, but url is not set")
        if self.type == "s3" and (url or not self.bucket):
            raise ValueError("type is s3: set bucket, and endpoint instead of url for a server other than Amazon's")
        return self


class RepositorySettings(Section):
    """Where scrapers come from, in order of precedence: `scrapers`, `source`, `more`, installed packages."""

    scrapers: Path | None = Field(None, description="Folder with scrapers, watched; its files may change at any time.")
    refresh_seconds: float = Field(2, gt=0, description="Between looks at the folder.")
    source: SourceSettings = SourceSettings()
    more: tuple[SourceSettings, ...] = Field(
        (), description="Further repositories: [[repository.more]] sections in the file, with the keys of `source`."
    )
    poll_seconds: float = Field(30, gt=0, description="Between looks at a repository that is not a folder.")
    timeout_seconds: float = Field(60, gt=0, description="For one look at a repository or one download.")
    versions: int = Field(20, ge=1, le=10_000, description="Newest versions of each scraper that are kept ready.")
    cache_mb: float = Field(2048, gt=0, description="Copies of scrapers on this machine.")
    default: str = Field("builtin/page", description="What runs when a call gives only a URL.")
    public_keys: tuple[str, ...] = Field(
        (), description="Ed25519 keys (base64); when there are any, every scraper from a repository must be signed."
    )
    hook_secret: SecretStr = Field(
        SecretStr(""), description="Shared with the Git host that calls /api/scrapers/refresh after a push."
    )
    secrets_file: Path | None = Field(None, description="TOML file with the secrets granted to each scraper.")
    installed: bool = Field(True, description="Whether scrapers of installed Python packages are offered.")


class EnvironmentSettings(Section):
    """Python packages that scrapers require."""

    build_seconds: float = Field(300, gt=0, description="For resolving and installing one set of requirements.")
    max_mb: float = Field(1024, gt=0, description="One environment on disk.")
    cache_mb: float = Field(10_240, gt=0, description="All environments on disk; the least recently used goes.")
    builds: int = Field(1, ge=1, le=16, description="Environments built at once.")
    retry_seconds: float = Field(300, gt=0, description="Before a build that failed is tried again.")
    index_url: SecretStr = Field(SecretStr(""), description="Package index; empty: what uv is set up with.")
    find_links: tuple[Path, ...] = Field((), description="Folders of this machine with wheels, beside the index.")
    offline: bool = Field(False, description="Whether only find_links and uv's cache are used.")
    source_builds: bool = Field(False, description="Whether packages without a wheel are built, which runs their code.")

    @field_validator("find_links")
    @classmethod
    def _are_folders(cls, places: tuple[Path, ...]) -> tuple[Path, ...]:
        """uv takes no hashes from a page of links, and without hashes nothing is installed."""
        if any(":/" in str(place) for place in places):
            raise ValueError("write folders of this machine; for a server of packages, set environments.index_url")
        return places


class LogSettings(Section):
    """Logs, on stderr."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level shown.")
    format: Literal["auto", "human", "json"] = Field("auto", description="auto: human on a terminal, JSON otherwise.")
    lang: Literal["en", "ko"] = Field("en", description="Language of the messages.")


class RetentionSettings(Section):
    """How long things are kept."""

    runs_days: float = Field(7, gt=0, description="Final runs with their logs, results and artifacts.")
    keys_hours: float = Field(24, gt=0, description="Idempotency keys.")
    usage_days: float = Field(90, ge=31, description="What was received from sites and through proxies, by day.")


class TelemetrySettings(Section):
    """Traces."""

    otlp_endpoint: str = Field("", description="OTLP over HTTP, e.g. http://127.0.0.1:4318; empty: no traces.")


class Settings(Section):
    """The whole tree."""

    data_dir: Path = Field(Path("scrapeyard-data"), description="Where embedded backends keep their files.")
    database_url: SecretStr = Field(
        SecretStr(""), description="postgresql://… or sqlite:///…; empty: SQLite in the data directory."
    )
    redis_url: SecretStr = Field(SecretStr(""), description="redis://…; empty: a queue in memory, for one process.")
    gateway: GatewaySettings = GatewaySettings()
    worker: WorkerSettings = WorkerSettings()
    sandbox: SandboxSettings = SandboxSettings()
    limits: LimitSettings = LimitSettings()
    http: HttpSettings = HttpSettings()
    sites: SiteSettings = SiteSettings()
    cache: CacheSettings = CacheSettings()
    proxies: ProxySettings = ProxySettings()
    budget: BudgetSettings = BudgetSettings()
    escalation: EscalationSettings = EscalationSettings()
    repository: RepositorySettings = RepositorySettings()
    environments: EnvironmentSettings = EnvironmentSettings()
    retention: RetentionSettings = RetentionSettings()
    log: LogSettings = LogSettings()
    telemetry: TelemetrySettings = TelemetrySettings()


ALIASES: dict[str, tuple[str, ...]] = {
    "DATABASE_URL": ("database_url",),
    "REDIS_URL": ("redis_url",),
    "LOG_LEVEL": ("log", "level"),
    "OTEL_EXPORTER_OTLP_ENDPOINT": ("telemetry", "otlp_endpoint"),
    "SCRAPEYARD_LANG": ("log", "lang"),
    "SCRIPT_REPOSITORY_TYPE": ("repository", "source", "type"),
    "SCRIPT_REPOSITORY_URL": ("repository", "source", "url"),
    "S3_BUCKET_NAME": ("repository", "source", "bucket"),
    "S3_REGION": ("repository", "source", "region"),
    "S3_ACCESS_KEY": ("repository", "source", "access_key"),
    "S3_SECRET_KEY": ("repository", "source", "secret_key"),
    "S3_PREFIX": ("repository", "source", "prefix"),
    "FLARESOLVERR_URL": ("escalation", "solver_url"),
}
"""Names other tools use, and the key each stands for."""

_NOT_KEYS = {"SCRAPEYARD_CONFIG", "SCRAPEYARD_URL", *ALIASES}
"""SCRAPEYARD_CONFIG names the file; SCRAPEYARD_URL tells the command line which server to call."""


def load(
    overrides: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    folder: Path | None = None,
) -> Settings:
    """Read every source and validate the whole tree. Raises SettingsInvalid naming each wrong key.

    `overrides` is a nested mapping, such as the command line makes; None values in it count as not given.
    """
    folder = folder or Path.cwd()
    tree: dict[str, Any] = _read_file(environ.get("SCRAPEYARD_CONFIG"), folder)
    dotenv = {name: value for name, value in dotenv_values(folder / ".env").items() if value is not None}
    for source in (dotenv, environ):
        _merge(tree, _from_environment(source))
    _merge(tree, _given(overrides or {}))
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise SettingsInvalid(_explain(error)) from None


def redacted(settings: Settings) -> dict[str, Any]:
    """The effective tree as plain values, with passwords hidden."""
    tree = settings.model_dump(mode="json")
    for name in ("database_url", "redis_url"):
        tree[name] = hide_password(getattr(settings, name).get_secret_value())
    tree["environments"]["index_url"] = hide_user(settings.environments.index_url.get_secret_value())
    repository = settings.repository
    for shown, source in zip(
        (tree["repository"]["source"], *tree["repository"]["more"]), (repository.source, *repository.more), strict=True
    ):
        shown["url"] = hide_user(source.url.get_secret_value())
    return tree


def hide_password(url: str) -> str:
    """The same URL with its password as `***`; all of it hidden when it cannot be read as a URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "***"
    if not parts.password:
        return url
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username or ''}:***@{host}"))


def hide_user(url: str) -> str:
    """As `hide_password`; over http and https the user as well, since a token is often written there, and the query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "***"
    if parts.scheme not in ("http", "https"):
        return hide_password(url)
    user, at, host = parts.netloc.rpartition("@")
    shown = parts._replace(netloc=f"{'***' if user else ''}{at}{host}", query="***" if parts.query else "")
    return urlunsplit(shown)


def describe() -> Iterator[tuple[str, str, Any, str]]:
    """Every key: (dotted name, environment name, default, meaning), a section's own keys before its branches. For docs
    and `scrapeyard config --describe`."""
    yield from _describe(Settings, ())


def _describe(section: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[str, str, Any, str]]:
    branches = []
    for name, info in section.model_fields.items():
        here = (*path, name)
        if isinstance(info.annotation, type) and issubclass(info.annotation, Section):
            branches.append((info.annotation, here))
        else:
            default = info.default.get_secret_value() if isinstance(info.default, SecretStr) else info.default
            yield ".".join(here), PREFIX + "__".join(here).upper(), default, info.description or ""
    for branch, here in branches:
        yield from _describe(branch, here)


def _read_file(named: str | None, folder: Path) -> dict[str, Any]:
    path = Path(named) if named else folder / CONFIG_FILE
    if not named and not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsInvalid(f"cannot read {path}: {error.strerror}; check SCRAPEYARD_CONFIG") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"{path} is not TOML: {error}") from None


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, path in ALIASES.items():
        if environ.get(name):
            value = environ[name].lower() if name in ("LOG_LEVEL", "SCRAPEYARD_LANG") else environ[name]
            _put(tree, path, value)
    for name, value in environ.items():
        if name.startswith(PREFIX) and name not in _NOT_KEYS:
            _put(tree, tuple(name.removeprefix(PREFIX).lower().split("__")), value)
    return tree


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for part in path[:-1]:
        branch = tree.setdefault(part, {})
        if not isinstance(branch, dict):
            raise SettingsInvalid(f"{'.'.join(path)}: {part} is a value, not a section")
        tree = branch
    tree[path[-1]] = value


def _given(tree: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: _given(value) if isinstance(value, Mapping) else value for key, value in tree.items()}
    return {key: value for key, value in kept.items() if value is not None and value != {}}


def _merge(tree: dict[str, Any], stronger: Mapping[str, Any]) -> None:
    for key, value in stronger.items():
        if isinstance(value, Mapping) and isinstance(tree.get(key), dict):
            _merge(tree[key], value)
        else:
            tree[key] = value


def _explain(error: ValidationError) -> str:
    lines = []
    for fault in error.errors():
        key = ".".join(str(part) for part in fault["loc"])
        unknown = fault["type"] == "extra_forbidden"
        lines.append(f"{key}: {'no such setting' if unknown else fault['msg'].removeprefix('Value error, ')}")
    return "; ".join(lines) + " (`scrapeyard config --describe` lists every key)"
