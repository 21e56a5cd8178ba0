"""Settings of the dispatcher's duties: handing out items, telling receivers, removing what is old."""

from pydantic import Field, SecretStr, field_validator

from scrapeyard.settings.section import Section


class JobSettings(Section):
    """How the items of jobs reach workers."""

    tick_seconds: float = Field(0.05, ge=0.01, le=1, description="Between looks at what may be handed out.")
    batch_seconds: float = Field(1, gt=0, le=60, description="Of one slot's time that items handed out together take.")
    batch_items: int = Field(1000, ge=1, le=1000, description="Items handed out together at most.")
    window: float = Field(0.5, gt=0, le=100, description="Batches that wait in a lane for each slot of its workers.")


class WebhookSettings(Section):
    """Telling receivers what happened to jobs and runs."""

    secret: SecretStr = Field(
        SecretStr(""), description="Signs what is sent for calls that bring no secret of their own; empty: they must."
    )
    timeout_seconds: float = Field(10, gt=0, le=120, description="For one attempt, from connecting to the answer.")
    first_seconds: float = Field(10, gt=0, le=3600, description="Before the second attempt; doubles with each.")
    cap_seconds: float = Field(3600, gt=0, le=86_400, description="No wait between attempts is longer.")
    give_up_hours: float = Field(24, ge=0, le=720, description="How long a message is tried.")
    concurrency: int = Field(16, ge=1, le=256, description="Messages on their way at once, to all receivers.")
    allow_hosts: tuple[str, ...] = Field(
        (), description="Hosts or networks (CIDR) that may be told though private, beside http.allow_hosts."
    )

    @field_validator("secret")
    @classmethod
    def _is_long(cls, secret: SecretStr) -> SecretStr:
        if 0 < len(secret.get_secret_value()) < 16:
            raise ValueError("shorter than 16 characters can be guessed; take a longer one")
        return secret


class RetentionSettings(Section):
    """How long things are kept."""

    runs_days: float = Field(7, gt=0, description="Final runs with their logs, results and artifacts.")
    keys_hours: float = Field(24, gt=0, description="Idempotency keys.")
    jobs_days: float = Field(30, gt=0, description="Final jobs with their items, results, artifacts and exports.")
    webhooks_days: float = Field(7, gt=0, description="Messages to receivers of webhooks, once taken or given up.")
    usage_days: float = Field(90, ge=31, description="What was received from sites and through proxies, by day.")
