"""Settings of alerts: the rules, and who is told."""

from typing import Final, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from scrapeyard.settings.section import Section

AlertKind = Literal[
    "failure_rate", "queue_age", "budget", "stale_schedules", "no_data", "worker_loss", "drift", "sinks"
]
AlertChannel = Literal["webhook", "slack", "email"]
_THRESHOLDS: Final[dict[str, float]] = {
    "failure_rate": 0.1,
    "queue_age": 300.0,
    "budget": 0.9,
    "stale_schedules": 300.0,
    "no_data": 0.0,
    "worker_loss": 0.0,
    "drift": 0.0,
    "sinks": 0.0,
}
_WINDOWS: Final[dict[str, float]] = {"failure_rate": 15.0, "no_data": 60.0, "worker_loss": 60.0}


class AlertRule(Section):
    """One rule."""

    kind: AlertKind = Field(description="What it watches.")
    name: str = Field("", pattern=r"^[a-z0-9_-]{0,64}$", description="Its name in alerts; empty: its kind.")
    threshold: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="failure_rate: share of failures; queue_age, stale_schedules: seconds; budget: share used; empty: "
        "the default of the kind.",
    )
    window_minutes: float | None = Field(
        None, gt=0, le=1440, description="failure_rate, no_data: what is looked at; worker_loss: how long it is told."
    )
    minimum: int = Field(20, ge=1, description="failure_rate: ends, no_data: requests, below which nothing is told.")
    only: tuple[str, ...] = Field(
        (),
        max_length=100,
        description="Patterns of scrapers (failure_rate, drift), lanes (queue_age), clients and jobs (budget), "
        "sites (no_data), sinks, names or ids of schedules; empty: all.",
    )

    @property
    def label(self) -> str:
        """Its name in alerts."""
        return self.name or self.kind

    @property
    def limit(self) -> float:
        """The threshold in force."""
        return _THRESHOLDS[self.kind] if self.threshold is None else self.threshold

    @property
    def window_seconds(self) -> float:
        """The window in force."""
        return 60.0 * (self.window_minutes or _WINDOWS.get(self.kind, 15.0))


def _all_kinds() -> tuple[AlertRule, ...]:
    return tuple(AlertRule.model_validate({"kind": kind}) for kind in _THRESHOLDS)


class AlertSettings(Section):
    """Being told when something is wrong, without Prometheus."""

    enabled: bool = Field(True, description="Whether the rules are evaluated.")
    rules: tuple[AlertRule, ...] = Field(
        (), max_length=100, description="What is watched, as [[alerts.rules]] tables; empty: one rule of each kind."
    )
    every_seconds: float = Field(30, ge=1, le=3600, description="Seconds between two evaluations of the rules.")
    repeat_hours: float = Field(
        12, ge=0, le=720, description="Hours after which an alert that lasts is told again; 0: never."
    )
    keep_days: float = Field(90, gt=0, le=3650, description="Days to keep alerts that are resolved.")
    webhook_url: SecretStr = Field(SecretStr(""), description="Receiver of alerts as signed JSON; empty: none.")
    webhook_secret: SecretStr = Field(SecretStr(""), description="Secret that signs it, at least 16 characters.")
    slack_url: SecretStr = Field(SecretStr(""), description="Incoming webhook of Slack or a like service; empty: none.")
    email_to: tuple[str, ...] = Field((), max_length=50, description="Addresses that get e-mail; empty: none.")
    email_from: str = Field("scrapeyard@localhost", max_length=320, description="Sender of the e-mail.")
    smtp_host: str = Field("127.0.0.1", description="Server that takes the e-mail.")
    smtp_port: int = Field(25, ge=1, le=65535, description="Its port: 25, 587 with starttls, 465 with tls.")
    smtp_security: Literal["none", "starttls", "tls"] = Field("none", description="How the connection is encrypted.")
    smtp_user: str = Field("", description="User at that server; empty: no login.")
    smtp_password: SecretStr = Field(SecretStr(""), description="The user's password; needs starttls or tls.")

    @property
    def rules_in_force(self) -> tuple[AlertRule, ...]:
        """What is watched."""
        return (self.rules or _all_kinds()) if self.enabled else ()

    @property
    def channels(self) -> tuple[AlertChannel, ...]:
        """Who is told."""
        known: dict[AlertChannel, bool] = {
            "webhook": bool(self.webhook_url.get_secret_value()),
            "slack": bool(self.slack_url.get_secret_value()),
            "email": bool(self.email_to),
        }
        return tuple(channel for channel, is_set in known.items() if is_set)

    @field_validator("email_to", "email_from")
    @classmethod
    def _are_addresses(cls, given: tuple[str, ...] | str) -> tuple[str, ...] | str:
        for address in (given,) if isinstance(given, str) else given:
            if not address.isprintable() or address.count("@") != 1 or " " in address or address[0] == "@":
                raise ValueError(f"{address!r} is no e-mail address, such as ops@example.com")
        return given

    @field_validator("webhook_url", "slack_url")
    @classmethod
    def _is_url(cls, url: SecretStr) -> SecretStr:
        text = url.get_secret_value()
        if text and not text.startswith(("http://", "https://")):
            raise ValueError("begins with neither http:// nor https://")
        return url

    @model_validator(mode="after")
    def _fits(self) -> Self:
        labels = [rule.label for rule in self.rules]
        if len(labels) != len(set(labels)):
            raise ValueError("two rules have the same name; give each a `name` of its own")
        if self.webhook_url.get_secret_value() and len(self.webhook_secret.get_secret_value()) < 16:
            raise ValueError("webhook_url needs a webhook_secret of at least 16 characters to sign with")
        if self.smtp_user and self.smtp_security == "none":
            raise ValueError("smtp_user: a password goes only over smtp_security starttls or tls")
        return self
