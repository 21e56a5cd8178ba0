"""The sandbox: runs a scraper's code in a child that owns nothing but its wire."""

from typing import Any, Protocol

from msgspec import Raw, Struct, field

from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.model import Environment, ExitReason, Limits, LogLine, RunError, Scraper


class Work(Struct, frozen=True, kw_only=True):
    """One run for one child."""

    run_id: str
    attempt: int
    input: Raw
    limits: Limits
    config: dict[str, Any] = field(default_factory=dict)
    environment: Environment | None = None
    """The packages that the script sees; None: what the platform has installed."""


class Verdict(Struct, frozen=True, kw_only=True):
    """How the child ended and what it left."""

    exit_reason: ExitReason
    result: Raw | None = None
    error: RunError | None = None
    wall_ms: float = 0.0
    cpu_ms: float = 0.0
    memory_mb: float = 0.0
    child_start_ms: float = 0.0
    forked_ahead: bool = False
    records: int = 0
    output_bytes: int = 0
    log_bytes: int = 0
    logs_cut: bool = False
    retry_after: float | None = None
    """The script asked for another attempt, that many seconds later."""


class ChildServices(Protocol):
    """What the worker does for a child while it runs. Never raises but as said."""

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Raises FetchFailed."""

    async def download(self, request: FetchRequest, name: str) -> FetchResponse:
        """Keep a page of a good status as an artifact, as it comes, at most `request.max_bytes`; `kept` says how much.

        Raises FetchFailed, or another ScrapeyardError when it cannot be kept. Then nothing is.
        """

    async def artifact(self, name: str, content_type: str, data: bytes) -> None:
        """Keep bytes. Raises ScrapeyardError when they cannot be kept; the script sees the message."""

    def log(self, line: LogLine) -> None:
        """A line within the caps."""


class Wall(Struct, frozen=True, kw_only=True):
    """One wall, as `doctor` reports it."""

    name: str
    up: bool
    detail: str = ""


class Sandbox(Protocol):
    """Makes children. One per worker."""

    async def start(self) -> None:
        """Start the base zygote. Raises SandboxError when a wall is missing and the mode is strict."""

    async def stop(self) -> None:
        """Kill every child and zygote, and wait until they are gone. May be called twice."""

    async def run(self, scraper: Scraper, work: Work, services: ChildServices) -> Verdict:
        """Run to the end. Cancelling the task kills the child's whole group before this returns.

        Never raises for what a script does; SandboxError means that no child could be made through no fault of the
        script.
        """

    async def check(self, scraper: Scraper, environment: Environment | None = None) -> None:
        """Load the script in a walled process without running it. Raises ScraperInvalid with the script's words."""

    def walls(self) -> tuple[Wall, ...]:
        """Which walls stand."""
