"""Settings of the broker between the roles."""

from pathlib import Path

from pydantic import Field, SecretStr, field_validator

from scrapeyard.settings.section import Section

BROKERS = {
    "nats": "nats",
    "tls": "nats",
    "sqs": "sqs",
    "sqs+http": "sqs",
    "sqs+https": "sqs",
    "kafka": "kafka",
    "kafka+ssl": "kafka",
}
"""The extra that each kind of `queue.url` needs, which is also the name of its adapter."""


class QueueSettings(Section):
    """The broker between gateways, dispatchers and workers."""

    url: SecretStr = Field(
        SecretStr(""),
        description="nats://user:password@host:port, tls://… for NATS over TLS; sqs://REGION for Amazon SQS, "
        "sqs+https://KEY:SECRET@host:port/REGION for a server that speaks as it; kafka://host:port,host:port for "
        "Kafka, kafka+ssl://user:password@host:port with TLS and a login; empty: Redis if `redis_url` names one, "
        "otherwise a queue in memory, for one process.",
    )
    prefix: str = Field(
        "scrapeyard",
        pattern=r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}",
        description="First word of every name that is created on the broker of `queue.url`; on SQS up to 13 letters, "
        "digits and underscores.",
    )
    replicas: int = Field(
        1,
        ge=1,
        le=5,
        description="Copies of each stream that is created on a NATS cluster, or of each topic on Kafka, where 1 means "
        "the cluster's own default.",
    )
    partitions: int = Field(
        8,
        ge=1,
        le=1000,
        description="Partitions of each Kafka topic that is created for a lane and priority. At least as many as "
        "workers is best: with fewer, some get their work from others.",
    )
    ca_file: Path | None = Field(
        None, description="PEM file of authorities trusted for the broker; empty: the machine's own."
    )

    @field_validator("url")
    @classmethod
    def _is_known(cls, url: SecretStr) -> SecretStr:
        scheme, found, _ = url.get_secret_value().partition("://")
        if (scheme or found) and (scheme not in BROKERS or not found):
            raise ValueError(f"begin it with one of {', '.join(f'{name}://' for name in BROKERS)}")
        return url
