"""Settings of the stream of lifecycle events."""

from pydantic import Field, SecretStr, field_validator

from scrapeyard.settings.section import Section


class EventSettings(Section):
    """The stream of lifecycle events of runs and jobs, on Kafka."""

    url: SecretStr = Field(
        SecretStr(""),
        description="kafka://user:password@host:port, or kafka+ssl://…: where events of runs and jobs are sent, with "
        "the options of `queue.url`; empty: nowhere.",
    )
    topic: str = Field(
        "scrapeyard.events",
        pattern=r"^[A-Za-z0-9._-]{1,249}$",
        description="Topic of the events; created with 8 partitions if it is missing.",
    )
    runs: bool = Field(True, description="Whether events of runs are sent, not only those of jobs.")

    @field_validator("url")
    @classmethod
    def _is_known(cls, url: SecretStr) -> SecretStr:
        text = url.get_secret_value()
        if text and not text.startswith(("kafka://", "kafka+ssl://")):
            raise ValueError("begin it with kafka:// or kafka+ssl://")
        return url
