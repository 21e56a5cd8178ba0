"""Settings of sinks: where the results of jobs are delivered."""

import re
from pathlib import Path
from typing import Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from scrapeyard.model.export import ITEMS_SINK, MAX_SINKS, SINK_NAME
from scrapeyard.settings.section import Section

SinkKind = Literal["sql", "parquet", "webhook", "kafka"]
SINKS: Final[dict[str, tuple[SinkKind, str]]] = {
    "postgresql": ("sql", "postgres"),
    "postgres": ("sql", "postgres"),
    "sqlite": ("sql", ""),
    "s3": ("parquet", "parquet"),
    "gs": ("parquet", "parquet"),
    "az": ("parquet", "parquet"),
    "file": ("parquet", "parquet"),
    "http": ("webhook", ""),
    "https": ("webhook", ""),
    "kafka": ("kafka", "kafka"),
    "kafka+ssl": ("kafka", "kafka"),
}
"""For the scheme of a sink's URL: the kind of sink, and the extra that it needs."""
_RECORDS: Final[dict[str, int]] = {"sql": 1000, "parquet": 20_000, "webhook": 100, "kafka": 1000}
_SECONDS: Final[dict[str, float]] = {"sql": 2.0, "parquet": 300.0, "webhook": 2.0, "kafka": 2.0}
_TABLE: Final = r"^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$"


class SinkTarget(Section):
    """One sink."""

    name: str = Field(pattern=SINK_NAME, description="What jobs call it.")
    url: SecretStr = Field(
        description="postgresql://… or sqlite:///path: rows of a table. s3://bucket/prefix, gs://…, az://… or "
        "file:///folder: Parquet files by day. https://…: batches to a webhook. "
        "kafka://user:password@host:port/topic, or kafka+ssl://…: records of a topic."
    )
    table: str = Field(
        "scrapeyard_results", pattern=_TABLE, description="SQL: the table, or schema.table; created if it is missing."
    )
    endpoint: str = Field("", description="Buckets: server other than the provider's, e.g. https://s3.example.com.")
    region: str = Field("", description="S3: region.")
    access_key: SecretStr = Field(
        SecretStr(""), description="Buckets: S3 access key or Azure account; empty: the machine's own credentials."
    )
    secret_key: SecretStr = Field(
        SecretStr(""), description="Buckets: S3 secret key, Azure account key, or Google service account key (JSON)."
    )
    secret: SecretStr = Field(
        SecretStr(""), description="Webhook: secret that signs batches, at least 16 characters; empty: webhooks.secret."
    )
    ca_file: Path | None = Field(
        None, description="Buckets, Kafka: PEM file of authorities trusted for the server, beside the machine's own."
    )
    batch_records: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="Maximum records of a batch; empty: SQL, Kafka 1000, Parquet 20000, webhook 100.",
    )
    batch_seconds: float | None = Field(
        None,
        ge=0.1,
        le=86_400,
        description="Seconds after which a smaller batch is delivered; empty: SQL, Kafka, webhook 2, Parquet 300.",
    )
    batch_mb: float = Field(
        16, gt=0, le=256, description="Maximum megabytes of inputs and results in a batch of several records."
    )

    @property
    def kind(self) -> SinkKind:
        """What it is."""
        return SINKS[self._scheme][0]

    @property
    def extra(self) -> str:
        """The extra that it needs; empty for none."""
        return SINKS[self._scheme][1]

    @property
    def records(self) -> int:
        """Maximum records of a batch."""
        return self.batch_records or _RECORDS[self.kind]

    @property
    def seconds(self) -> float:
        """How long records are gathered."""
        return self.batch_seconds or _SECONDS[self.kind]

    @property
    def _scheme(self) -> str:
        return self.url.get_secret_value().partition("://")[0]

    @field_validator("url")
    @classmethod
    def _is_known(cls, url: SecretStr) -> SecretStr:
        text = url.get_secret_value()
        scheme, found, rest = text.partition("://")
        if not found or not rest or scheme not in SINKS:
            raise ValueError(f"begin it with one of {', '.join(f'{name}://' for name in SINKS)}")
        if SINKS[scheme][0] == "webhook" and not urlsplit(text).hostname:
            raise ValueError("has no host; write https://host/path")
        return url

    @field_validator("secret")
    @classmethod
    def _is_long(cls, secret: SecretStr) -> SecretStr:
        if 0 < len(secret.get_secret_value()) < 16:
            raise ValueError("shorter than 16 characters can be guessed; take a longer one")
        return secret


class SinkSettings(Section):
    """Sinks: where the results of jobs are delivered while the jobs run."""

    targets: tuple[SinkTarget, ...] = Field(
        (), max_length=100, description="The sinks that jobs may name, as [[sinks.targets]] tables."
    )
    default: tuple[str, ...] = Field(
        (), max_length=MAX_SINKS, description="Sinks of every job whose call does not name any; empty: none."
    )
    timeout_seconds: float = Field(60, gt=0, le=3600, description="Maximum seconds for one batch.")
    first_seconds: float = Field(5, gt=0, le=3600, description="Seconds before a failed batch is repeated; doubles.")
    cap_seconds: float = Field(300, gt=0, le=86_400, description="Maximum seconds between two attempts.")
    give_up_hours: float = Field(
        24, ge=0, le=720, description="Hours without any success after which the delivery of a job is given up."
    )
    concurrency: int = Field(2, ge=1, le=16, description="Maximum jobs that are delivered to one sink at once.")
    max_record_mb: float = Field(
        16, gt=0, le=256, description="Maximum megabytes of one result; a larger one counts as failed."
    )

    def target(self, name: str) -> SinkTarget | None:
        """The sink of this name; None if there is none."""
        return next((target for target in self.targets if target.name == name), None)

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        names = [target.name for target in self.targets]
        for name in names:
            if name == ITEMS_SINK:
                raise ValueError(f"{ITEMS_SINK} is what jobs have for their webhook; call the sink otherwise")
            if names.count(name) > 1:
                raise ValueError(f"two sinks are called {name}; give each a name of its own")
        for name in self.default:
            if not re.match(SINK_NAME, name) or name not in names:
                raise ValueError(f"default: there is no sink {name} in sinks.targets")
        return self
