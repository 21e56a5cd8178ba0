"""One tree of settings: unit, default and meaning for each; validated whole at start.

Sources, strongest first: command line, environment, `.env` in the working directory, a TOML file
(`SCRAPEYARD_CONFIG`, or `scrapeyard.toml` in the working directory), defaults. The environment spells a nested key with
two underscores: `SCRAPEYARD_WORKER__SLOTS=8`. Well-known names (`DATABASE_URL`, `REDIS_URL`, `LOG_LEVEL`,
`S3_BUCKET`, `CORS_ORIGINS`, …) are understood beside ours; ours win. `LANG` chooses the language if no setting does.
Unknown keys are refused.
"""

from scrapeyard.settings.access import ClientSettings, OidcSettings
from scrapeyard.settings.ai import AiProvider, AiSettings
from scrapeyard.settings.alerts import AlertChannel, AlertRule, AlertSettings
from scrapeyard.settings.aliases import ALIASES, names_of
from scrapeyard.settings.engine import (
    BrowserSettings,
    BudgetSettings,
    CacheSettings,
    CaptchaSettings,
    EscalationSettings,
    HttpSettings,
    ProxyPool,
    ProxySettings,
    SiteSettings,
)
from scrapeyard.settings.loading import (
    CONFIG_FILE,
    PREFIX,
    EffectiveSetting,
    describe,
    effective,
    hide_password,
    hide_user,
    load,
    not_used,
    read_dotenv,
    redacted,
)
from scrapeyard.settings.repository import (
    SCHEMES,
    BlobSettings,
    EnvironmentSettings,
    RepositorySettings,
    SourceSettings,
)
from scrapeyard.settings.secrets import MaskingSettings, SecretSettings
from scrapeyard.settings.section import Section
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
from scrapeyard.settings.sinks import SINKS, SinkKind, SinkSettings, SinkTarget
from scrapeyard.settings.tree import Settings

__all__ = [
    "ALIASES",
    "CONFIG_FILE",
    "PREFIX",
    "SCHEMES",
    "SINKS",
    "AiProvider",
    "AiSettings",
    "AlertChannel",
    "AlertRule",
    "AlertSettings",
    "AuthSettings",
    "BlobSettings",
    "BrowserSettings",
    "BudgetSettings",
    "CacheSettings",
    "CaptchaSettings",
    "ClientSettings",
    "EffectiveSetting",
    "EnvironmentSettings",
    "EscalationSettings",
    "GatewaySettings",
    "HttpSettings",
    "JobSettings",
    "LaneSettings",
    "LimitSettings",
    "LogSettings",
    "MaskingSettings",
    "OidcSettings",
    "ProxyPool",
    "ProxySettings",
    "RepositorySettings",
    "RetentionSettings",
    "SandboxSettings",
    "SecretSettings",
    "Section",
    "Settings",
    "SinkKind",
    "SinkSettings",
    "SinkTarget",
    "SiteSettings",
    "SourceSettings",
    "TelemetrySettings",
    "WebhookSettings",
    "WorkerSettings",
    "describe",
    "effective",
    "hide_password",
    "hide_user",
    "load",
    "names_of",
    "not_used",
    "read_dotenv",
    "redacted",
]
