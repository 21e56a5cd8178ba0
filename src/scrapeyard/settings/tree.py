"""The whole tree of settings."""

from pathlib import Path
from typing import Self

from pydantic import Field, PrivateAttr, SecretStr, field_validator, model_validator

from scrapeyard.model.lanes import ScraperLanes
from scrapeyard.settings.access import ClientSettings, OidcSettings
from scrapeyard.settings.ai import AiSettings
from scrapeyard.settings.alerts import AlertSettings
from scrapeyard.settings.broker import QueueSettings
from scrapeyard.settings.engine import (
    BrowserSettings,
    BudgetSettings,
    CacheSettings,
    CaptchaSettings,
    EscalationSettings,
    HttpSettings,
    ProxySettings,
    SiteSettings,
)
from scrapeyard.settings.events import EventSettings
from scrapeyard.settings.origins import SettingOrigins
from scrapeyard.settings.repository import BlobSettings, EnvironmentSettings, RepositorySettings
from scrapeyard.settings.secrets import MaskingSettings, SecretSettings
from scrapeyard.settings.section import Section, branch
from scrapeyard.settings.server import (
    AuthSettings,
    GatewaySettings,
    JobSettings,
    LaneSettings,
    LimitSettings,
    LogSettings,
    RetentionSettings,
    SandboxSettings,
    TelemetrySettings,
    WebhookSettings,
    WorkerSettings,
)
from scrapeyard.settings.sinks import SinkSettings


class Settings(Section):
    """The whole tree."""

    data_dir: Path = Field(Path("scrapeyard-data"), description="Folder for the files of embedded backends.")
    database_url: SecretStr = Field(
        SecretStr(""),
        description="postgresql://…, sqlite:///… or dynamodb://REGION/TABLE; dynamodb+https://KEY:SECRET@host:port/"
        "REGION/TABLE for a server that speaks as DynamoDB; empty: SQLite in the data directory.",
    )
    redis_url: SecretStr = Field(
        SecretStr(""),
        description="redis://… or host:port: the queue, unless `queue.url` names another broker, and what processes "
        "share: rates of sites, budgets, limits and cached pages; empty: each process keeps its own.",
    )
    queue: QueueSettings = branch()
    gateway: GatewaySettings = branch()
    clients: ClientSettings = branch()
    oidc: OidcSettings = branch()
    auth: AuthSettings = branch()
    worker: WorkerSettings = branch()
    lanes: LaneSettings = branch()
    sandbox: SandboxSettings = branch()
    limits: LimitSettings = branch()
    http: HttpSettings = branch()
    sites: SiteSettings = branch()
    cache: CacheSettings = branch()
    proxies: ProxySettings = branch()
    budget: BudgetSettings = branch()
    escalation: EscalationSettings = branch()
    browser: BrowserSettings = branch()
    captcha: CaptchaSettings = branch()
    ai: AiSettings = branch()
    jobs: JobSettings = branch()
    webhooks: WebhookSettings = branch()
    sinks: SinkSettings = branch()
    events: EventSettings = branch()
    secrets: SecretSettings = branch()
    masking: MaskingSettings = branch()
    repository: RepositorySettings = branch()
    environments: EnvironmentSettings = branch()
    retention: RetentionSettings = branch()
    blobs: BlobSettings = branch()
    log: LogSettings = branch()
    telemetry: TelemetrySettings = branch()
    alerts: AlertSettings = branch()
    _origins: SettingOrigins = PrivateAttr(default_factory=SettingOrigins)

    @property
    def has_broker(self) -> bool:
        """Whether several processes can meet: on Redis, or on the broker of `queue.url`."""
        return bool(self.queue.url.get_secret_value() or self.redis_url.get_secret_value())

    def keep_origins(self, origins: SettingOrigins) -> None:
        """Remember the sources that the tree was read from."""
        self._origins = origins

    def origin(self, key: str, environment: str) -> str:
        """Where the value of a key came from; `default` also where no source was read."""
        return self._origins.of(key, environment)

    @field_validator("redis_url")
    @classmethod
    def _has_scheme(cls, url: SecretStr) -> SecretStr:
        """The library would read `host:port` as a scheme and connect to this machine."""
        text = url.get_secret_value()
        return url if not text or "://" in text else SecretStr(f"redis://{text}")

    @model_validator(mode="after")
    def _takes_are_known(self) -> Self:
        if fault := ScraperLanes(self.lanes.patterns).takes_fault(self.worker.takes):
            raise ValueError(f"worker.takes: {fault}")
        return self
