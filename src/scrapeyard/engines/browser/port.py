"""The browser engine: contexts in a real browser that have no network but the worker's forward proxy.

    BrowserEngine ── opens ──> BrowserContext ── perform(Operation) ──> Done
        │ admits each context at              │ speaks with
        └──> ForwardProxy (`Passage`)         └──> BrowserHost: the process that holds driver and browser

A script's `ctx.browser`, `engine="browser"`, `builtin/actions` and recordings all use `BrowserEngine.open`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta, Raw, Struct, field

from scrapeyard.engines.browser.operations import AnyOperation, Operation
from scrapeyard.engines.port import Caller, Proxy

BrowserName = Literal["chromium", "firefox", "webkit"]
Blocked = Literal["image", "media", "font", "stylesheet", "tracker"]
Text = Annotated[str, Meta(max_length=1000)]


class Evidence(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of a context for people to look at."""

    screenshot_on_failure: Annotated[bool, Meta(description="A picture of the page where the last step failed.")] = True
    har: Annotated[bool, Meta(description="The requests and answers, as a HAR file.")] = False
    trace: Annotated[bool, Meta(description="A zip that Playwright's trace viewer opens.")] = False
    video: Annotated[bool, Meta(description="A film of the page.")] = False
    console: Annotated[bool, Meta(description="Messages of the console and errors of the page, in the log.")] = False


class ContextOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a context looks like to pages. Empty and None: as the exit's country, the device or the browser has it."""

    session: Annotated[
        str,
        Meta(max_length=128, description="Cookies and storage are kept under this name, for the scraper, across runs."),
    ] = ""
    device: Annotated[Text, Meta(description="As Playwright names it, such as `iPhone 15`.")] = ""
    width: Annotated[Annotated[int, Meta(ge=1, le=10_000)] | None, Meta(description="Of the window, in pixels.")] = None
    height: Annotated[Annotated[int, Meta(ge=1, le=10_000)] | None, Meta(description="Of the window, in pixels.")] = (
        None
    )
    locale: Annotated[str, Meta(max_length=35, description="Language and country, such as `ko-KR`.")] = ""
    timezone: Annotated[str, Meta(max_length=64, description="Such as `Asia/Seoul`.")] = ""
    latitude: Annotated[
        Annotated[float, Meta(ge=-90, le=90)] | None, Meta(description="Of the place that pages are told.")
    ] = None
    longitude: Annotated[
        Annotated[float, Meta(ge=-180, le=180)] | None, Meta(description="Of the place that pages are told.")
    ] = None
    user_agent: Annotated[Text, Meta(description="Empty: the browser's own.")] = ""
    headers: Annotated[dict[str, Text], Meta(max_length=50, description="Sent with every request.")] = field(
        default_factory=dict
    )
    java_script: Annotated[bool, Meta(description="Whether pages may run scripts.")] = True
    block: Annotated[tuple[Blocked, ...], Meta(max_length=5, description="Kinds of requests that are not made.")] = ()
    timeout: Annotated[
        float, Meta(gt=0, le=3600, description="Maximum seconds of each operation that names none itself.")
    ] = 30
    evidence: Annotated[Evidence, Meta(description="What is kept for people to look at.")] = Evidence()


class Done(Struct, frozen=True):
    """What an operation returned: a JSON value, and bytes where the operation says so."""

    value: Raw = Raw(b"null")
    raw: bytes = b""


Perform = Callable[[AnyOperation, bytes], Awaitable[Done]]
"""Performs an operation in a context, as `BrowserContext.perform` says."""
OPENED = "opened"


class LogMessage(Struct, frozen=True, kw_only=True):
    """Of the page's console (`kind` is its level) or an error of the page (`error`); or a document that was opened in a
    tab (OPENED, with its status as text)."""

    kind: str
    text: str
    url: str = ""


class KeptFile(Struct, frozen=True, kw_only=True):
    """A file of evidence: `trace.zip`, `network.har`, `video.webm` or `video.avi`, `failure.png`."""

    name: str
    content_type: str
    data: bytes


class ContextEnd(Struct, frozen=True, kw_only=True):
    """What is left of a context."""

    state: dict[str, Any] = field(default_factory=dict)
    """`storage_state` of Playwright: cookies and local storage by origin."""
    pages: int = 0
    """Documents that were opened in main frames."""
    blocked: int = 0
    """Requests that `block` refused."""
    blocked_bytes: int = 0
    """About what they would have cost: by the size of what others of their kind cost."""
    files: tuple[KeptFile, ...] = ()


class BrowserContext(Protocol):
    """One context of one run, with its tabs. Operations of one tab are performed in the order of their arrival."""

    end: ContextEnd | None
    """What is left of it, once it is closed: its files are for the run's artifacts. None before, or if it crashed."""

    def messages(self) -> list[LogMessage]:
        """Of its pages since the last call, for the run's log; also after it is closed."""

    def watch(self) -> AsyncGenerator[bytes]:
        """Pictures of its newest tab as JPEG, whenever it changes, until it is closed. Raises FetchFailed."""

    async def perform(self, operation: Operation, raw: bytes = b"") -> Done:
        """Perform it. Raises FetchFailed: `browser_step` (cannot be done so: no such element, bad JavaScript),
        `browser_timeout`, `browser_crashed` (the page, the browser or its process died), or a fetch reason where a page
        could not be opened."""


class BrowserEngine(Protocol):
    """One per worker. Starts a browser when the first context is opened, and stops it when none was for a while."""

    open_now: int
    """Contexts that are open."""

    async def start(self) -> None:
        """Ready. Starts no browser."""

    async def stop(self) -> None:
        """Close every context, end every process, remove every folder. May be called twice."""

    def open(
        self,
        options: ContextOptions,
        caller: Caller,
        *,
        way: Proxy | Literal["policy"] | None = "policy",
        light: bool = False,
    ) -> AbstractAsyncContextManager[BrowserContext]:
        """A context, closed at the end whatever happens; waits for one that is free. It leaves by the exit `way`; None:
        straight. `light`: in the small browser, which has no layout. Raises FetchFailed: `browser_unavailable` (none is
        installed, or it does not start), and as policy says."""


class Passage(Struct, frozen=True, kw_only=True):
    """How the connections of one context leave the worker."""

    caller: Caller
    """Whose hosts, budgets and books count."""
    exit: Proxy | None = None
    """None: straight to the sites."""


class PassageCount(Struct, frozen=True, kw_only=True):
    """What went through a passage."""

    connections: int = 0
    refused: int = 0
    """Those that the proxy ended itself: it may not connect, or cannot. The browser sees no answer, never a page."""
    received: int = 0
    """Bytes, as on the wire."""
    sent: int = 0
    last_refusal: str = ""
    """Why the last one failed, for whoever reads the failure of a page; with its exit reason before a colon."""


class ForwardProxy(Protocol):
    """The only door of the browsers of a worker. Listens on a Unix socket in a private folder, speaks HTTP proxy with
    credentials that name the context."""

    path: str
    """Of the socket."""

    async def start(self) -> None:
        """Listen."""

    async def stop(self) -> None:
        """Close all connections. May be called twice."""

    def admit(self, passage: Passage) -> tuple[str, str]:
        """User and password for a new context; nothing passes without them."""

    def count(self, user: str) -> PassageCount:
        """What went through so far."""

    async def dismiss(self, user: str) -> PassageCount:
        """Close its connections and forget its credentials; what went through in all. May be called twice."""


class HostContext(Struct, frozen=True, kw_only=True):
    """What the host is told of a new context."""

    options: ContextOptions
    user: str
    password: str
    """Of the forward proxy."""
    state: dict[str, Any] = field(default_factory=dict)
    """`storage_state` to begin with; empty: none."""
    max_bytes: int = 20 * 1024 * 1024
    """Of one answer: a page's HTML, a picture, a file."""


USUAL_LANGUAGE = "en-US"


class HostKind(Struct, frozen=True, kw_only=True):
    """Which host a context needs."""

    language: str = USUAL_LANGUAGE
    """Of the whole browser: workers of a page know no other."""
    light: bool = False
    """A small browser without layout."""


USUAL_HOST = HostKind()
LIGHT_HOST = HostKind(light=True)


class BrowserHost(Protocol):
    """The process that holds driver and browser, seen from the worker. It has no network but a way to the socket of the
    forward proxy, in a network namespace of its own where the system allows one."""

    pid: int

    @property
    def is_alive(self) -> bool:
        """False once it died or its browser did; open contexts fail with `browser_crashed`."""

    async def open(self, number: int, context: HostContext) -> None:
        """Make a context under a number of the worker's choice. Raises FetchFailed."""

    async def perform(self, number: int, operation: Operation, raw: bytes = b"") -> Done:
        """As `BrowserContext.perform`. Cancelling abandons the operation; the context must be closed then."""

    async def close(self, number: int) -> ContextEnd:
        """Close a context, whatever state it is in. Raises FetchFailed (`browser_crashed`)."""

    def messages(self, number: int) -> list[LogMessage]:
        """Those that came since the last call; at most 200 are kept. Also after it is closed."""

    def watch(self, number: int) -> AsyncGenerator[bytes]:
        """JPEG pictures of the newest tab whenever it changes, at most 5 a second, until the context is closed. Who is
        slow misses some. Raises FetchFailed."""

    async def memory_mb(self) -> float:
        """Of the process and all that it started."""

    async def end(self) -> None:
        """Kill and reap everything. May be called twice."""
