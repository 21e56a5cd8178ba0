"""The sandbox: runs a scraper's code in a child that owns nothing but its wire."""

from typing import Any, Protocol

from msgspec import Raw, Struct, field

from scrapeyard.engines.browser.operations import AnyOperation
from scrapeyard.engines.browser.port import ContextOptions, Done
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.model import Environment, ExitReason, Limits, LogLine, RunError, RunProgress, Scraper


class Work(Struct, frozen=True, kw_only=True):
    """One run for one child."""

    run_id: str
    attempt: int
    input: Raw
    limits: Limits
    config: dict[str, Any] = field(default_factory=dict)
    nan: str = "error"
    """What becomes of NaN and infinity in a result: `null`, or the run ends as `bad_result`."""
    environment: Environment | None = None
    """The packages that the script sees; None for the platform's own."""
    warm: bool = False
    """Whether a child that served earlier runs of this version may serve it, and later ones after it."""


class Verdict(Struct, frozen=True, kw_only=True):
    """How the child ended and what it left."""

    exit_reason: ExitReason
    result: Raw | None = None
    """With a bad exit reason: the records that the script yielded before, as a list."""
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


class BrowserServices(Protocol):
    """The browser of a run."""

    async def open_browser(self, options: ContextOptions) -> int:
        """Open a context in a browser, with one tab; its number for `browse`. It is closed with the run at the latest.
        Raises FetchFailed."""

    async def browse(self, number: int, operation: AnyOperation, raw: bytes = b"") -> Done:
        """Perform a step in an open context. Raises FetchFailed."""

    async def solve_widget(self, number: int, tab: int, seconds: float | None) -> str:
        """Solve the captcha of a page with a checkbox; its token. `seconds` is for a click to be enough; None: as the
        engine has it. Raises FetchFailed."""

    async def close_browser(self, number: int) -> None:
        """Close a context and save what it leaves. One that is closed already is no fault."""


class ChildServices(BrowserServices, Protocol):
    """What the worker does for a child while it runs. Raises only what each method names."""

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Raises FetchFailed."""

    async def download(self, request: FetchRequest, name: str) -> FetchResponse:
        """Stream a page with a success status into an artifact, at most `request.max_bytes`; `kept` says how many.

        Raises FetchFailed, or another ScrapeyardError if it cannot be saved; nothing is saved then.
        """

    async def solve_image(self, image: bytes) -> str:
        """The text in a picture. Raises FetchFailed: `fetch_not_allowed`, `fetch_captcha`."""

    async def extract(self, given: dict[str, Any]) -> dict[str, Any]:
        """Data of a page: an input of `builtin/extract`, and its result. Raises FetchFailed or BadRequest."""

    async def artifact(self, name: str, content_type: str, data: bytes) -> None:
        """Save bytes as an artifact. Raises ScrapeyardError if that fails; the script sees the message."""

    def log(self, line: LogLine) -> None:
        """Take a log line within the limits."""

    def progress(self, progress: RunProgress) -> None:
        """Take note of how far the script is."""

    def enqueue(self, given: bytes, item_id: str) -> None:
        """Add an item to the job: its input, or a URL, as JSON. Raises BadRequest if the run belongs to no job or the
        input does not fit; the script sees the message."""

    async def read_state(self, key: str) -> bytes | None:
        """A value of the scraper's state as JSON; None if there is none. Raises ScrapeyardError."""

    async def change_state(self, key: str, value: bytes | None, old: bytes | None, compare: bool) -> bool:
        """Write a value, or remove the key if it is None; with `compare`, only if the present value is `old`. False if
        nothing was changed. Raises ScrapeyardError; the script sees the message."""


class Series(Protocol):
    """Many inputs for one version of a scraper, all of one job: a child serves one after another.

    Module state of the script persists from one input to the next. A child that crashed, exceeded a limit or left
    something behind is replaced; only the current input fails.
    """

    async def run(self, work: Work, services: ChildServices) -> Verdict:
        """As `Sandbox.run`, one at a time. `work.limits` hold for each input; they and `work.environment` are the same
        for all. Cancelling kills the child."""

    def close(self) -> None:
        """Release the child. May be called twice."""


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

        Never raises for what a script does. Raises SandboxError if no child could be made for reasons outside the
        script.
        """

    def series(self, scraper: Scraper) -> Series:
        """A series that runs many inputs in one child. Starts nothing before the first input; close it at the end."""

    async def check(self, scraper: Scraper, environment: Environment | None = None) -> None:
        """Load the script in a sandboxed process without running it. Raises ScraperInvalid with the script's error."""

    def walls(self) -> tuple[Wall, ...]:
        """Which walls are up."""
