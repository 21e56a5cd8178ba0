"""What the API takes and answers about scrapers, their versions, channels and environments."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from scrapeyard.gateway.http.patterns import VERSION
from scrapeyard.model import EnvironmentStatus


class EnvironmentStateDocument(BaseModel):
    """How far a scraper's packages are installed on one worker."""

    status: EnvironmentStatus
    key: str = Field(description="Names the environment; empty until its requirements are resolved.")
    problem: str = Field(description="Why it could not be built.")
    size_bytes: int
    built_at: str | None


class ScraperSummary(BaseModel):
    """A scraper in the listing."""

    id: str
    version: str
    name: str
    description: str
    builtin: bool
    valid: bool
    problem: str = Field(description="Why it cannot run; empty when it can.")
    source: str = Field(description="The repository it comes from; empty for a built-in.")
    stale: str = Field(description="Why what is served of that repository may be out of date; empty when it is fresh.")
    channels: list[str] = Field(description="Channels that point to this version.")


class SourceDocument(BaseModel):
    """How fresh a repository's scrapers are."""

    name: str
    kind: str = Field(description="folder, git, http, s3 or installed.")
    mark: str = Field(description="Commit id, entity tag, or empty.")
    scrapers: int = Field(description="Versions that it offers and that can run.")
    checked_at: str | None = Field(description="When it last answered; null: not since the start.")
    changed_at: str | None = Field(description="When what it offers last changed here; null: not since the start.")
    stale: str = Field(description="Why what is served may be out of date; empty when it is fresh.")


class ScrapersDocument(BaseModel):
    """Every version of every scraper there is, and where they come from, in order of precedence."""

    scrapers: list[ScraperSummary]
    sources: list[SourceDocument]


class HookDocument(BaseModel):
    """What becomes of a Git host's call."""

    event: str
    refreshing: bool


class LimitsDocument(BaseModel):
    """What one run may use, the platform's ceiling applied."""

    wall_seconds: float
    cpu_seconds: float
    memory_mb: float
    disk_mb: float
    output_mb: float
    log_kb: float
    artifact_mb: float
    threads: int
    fetches: int


class PolicyDefaults(BaseModel):
    """What a call that does not say gets. Null and empty: the platform's own default."""

    retries: int | None
    timeout_seconds: float | None
    priority: str
    fetching: dict[str, Any] = Field(description="The keys of a call's `policy` that are about fetching.")


class VersionDocument(BaseModel):
    """One version of a scraper."""

    version: str
    digest: str = Field(description="Of its content; empty when it is invalid or built in.")
    valid: bool
    problem: str
    prerelease: bool
    channels: list[str]
    source: str
    place: str = Field(description="Where in its repository: a folder, a tag, a key.")


class WorkerEnvironment(EnvironmentStateDocument):
    """The same, beside those of other workers."""

    worker: str


class EnvironmentDocument(BaseModel):
    """How far a scraper's packages are installed: the worst of what workers tell."""

    status: EnvironmentStatus | Literal["unknown"] = Field(description="`unknown`: no worker has told.")
    problem: str
    workers: list[WorkerEnvironment]


class ScraperDocument(ScraperSummary):
    """A scraper with how it is called. The schemas and limits are null when it is invalid."""

    digest: str
    place: str
    entry: str | None
    lane: str | None
    network: str | None
    allowed_hosts: list[str] | None
    requirements: list[str] | None
    capabilities: list[str] | None
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None
    limits: LimitsDocument | None
    policy: PolicyDefaults | None
    environment: EnvironmentDocument | None
    freshness: SourceDocument | None = Field(description="Its repository; null for a built-in.")
    versions: list[VersionDocument] = Field(description="All of them, newest first.")
    all_channels: dict[str, str] = Field(description="Channel → version, as now in force.")


class MoveCall(BaseModel):
    """Where to point a channel."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"example": {"version": "1.4.1"}})

    version: str = Field(pattern=VERSION, max_length=64, description="A version that is there.")


class MoveDocument(BaseModel):
    """One move."""

    channel: str
    before: str = Field(description="Empty: it was where the repository says.")
    after: str = Field(description="Empty: the move was taken back.")
    moved_at: str


class ChannelsDocument(BaseModel):
    """A scraper's channels."""

    scraper: str
    channels: dict[str, str] = Field(
        description="Channel → version, as now in force. An unset `stable` is the newest release."
    )
    moved: dict[str, str] = Field(description="Those that operators moved.")
    moves: list[MoveDocument] = Field(description="The last moves, newest first.")
