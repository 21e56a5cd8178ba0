"""How a script speaks with its browser: one frame for each step, and methods that serve async and plain scripts.

A frame's raw part begins with `size` bytes of JSON: the options of a context, a step, or what a step returned. Bytes of
files and pictures follow it.
"""

import functools
import json
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypedDict, TypeVar, overload

from scrapeyard_sdk.outcomes import BrowserError

if TYPE_CHECKING:
    from scrapeyard_sdk.channel import Answer, Channel
    from scrapeyard_sdk.context import Context, SyncContext

P = ParamSpec("P")
T = TypeVar("T")

EVIDENCE = ("screenshot_on_failure", "har", "trace", "video", "console")
_OPENING = frozenset({"goto", "back", "forward", "reload", "new_tab", "download"})
"""Steps that count towards limits.fetches."""


class BrowserOptions(TypedDict, total=False):
    """The options of `ctx.browser`. What is not given is as the exit's country, the device or the browser has it."""

    session: str
    """Cookies and storage are kept under this name, for this scraper, across runs and for `ctx.fetch` too."""
    device: str
    """As Playwright names it, such as `iPhone 15`."""
    width: int
    """Of the window, in pixels."""
    height: int
    locale: str
    """Such as `de-DE`."""
    timezone: str
    """Such as `Europe/Berlin`."""
    latitude: float
    longitude: float
    user_agent: str
    headers: dict[str, str]
    """Sent with every request."""
    java_script: bool
    """False: pages run no scripts."""
    block: list[str]
    """Kinds of requests that are not made: `image`, `media`, `font`, `stylesheet`, `tracker`."""
    timeout: float
    """Seconds of each step that names none; 30."""
    screenshot_on_failure: bool
    """Save `failure.png` as an artifact if the last step failed; True."""
    har: bool
    """Save `network.har` as an artifact: every request and answer."""
    trace: bool
    """Save `trace.zip` as an artifact, for Playwright's trace viewer."""
    video: bool
    """Save `video.webm` as an artifact."""
    console: bool
    """Write the page's console and its errors to the run's log; False, because pages can notice it."""


class Awaited:
    """Marks pages of `async def` scripts: each method is awaited."""


class Plain:
    """Marks pages of plain `def` scripts: each method blocks."""


class both(Generic[P, T]):  # noqa: N801 - a decorator
    """A method that is written once, as a coroutine. Pages of plain scripts return its result instead: their calls
    block, so the coroutine never waits."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, page: Awaited, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...

    @overload
    def __get__(self, page: Plain, owner: type) -> Callable[P, T]: ...

    @overload
    def __get__(self, page: None, owner: type) -> Callable[..., Any]: ...

    def __get__(self, page: Any, owner: type) -> Any:
        if page is None:
            return self._method
        bound = self._method.__get__(page, owner)
        return bound if isinstance(page, Awaited) else _blocking(bound)


def _blocking(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return finished(method(*args, **kwargs))

    return call


def finished(call: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("this call waits; use ctx.browser in an `async def` script")


class BrowserCalls:
    """One tab, or a frame within it, of one context."""

    def __init__(self, ctx: "Context | SyncContext", channel: "Channel", options: dict[str, Any]) -> None:
        unknown = sorted(set(options) - set(BrowserOptions.__annotations__))
        if unknown:
            raise TypeError(f"browser() has no option {', '.join(unknown)}")
        evidence = {name: options.pop(name) for name in EVIDENCE if name in options}
        self._options = {**options, "evidence": evidence} if evidence else options
        self._ctx = ctx
        self._channel = channel
        self._context: dict[str, int] = {}
        """The number of the open context, as `b`; shared by all its tabs and frames."""
        self._tab = 0
        self._path: tuple[str, ...] = ()

    async def _open(self) -> None:
        if self._context:
            raise BrowserError("browser_step", "this page is open already; call ctx.browser for another")
        head, _ = _checked(await self._ask("open", self._options))
        self._context["b"] = int(head["b"])

    async def _close(self) -> None:
        if self._context:
            await self._ask("close", {})
            self._context.clear()

    async def _do(self, do: str, raw: bytes = b"", /, **fields: Any) -> tuple[Any, bytes]:
        """Perform a step; its value and its bytes. Fields that are None are left out. Raises BrowserError."""
        self._check_open()
        if do in _OPENING:
            self._ctx.spend_fetch()
        step: dict[str, Any] = {"do": do, "tab": self._tab, "frame": self._path}
        step |= {name: value for name, value in fields.items() if value is not None}
        return _returned(await self._ask("do", step, raw))

    async def _solve(self, timeout: float | None) -> str:
        """Solve the captcha of the tab; its token. Raises BrowserError."""
        self._check_open()
        token: str = _returned(await self._ask("solve", {"tab": self._tab, "timeout": timeout}))[0]
        return token

    def _check_open(self) -> None:
        if not self._context:
            raise BrowserError("browser_step", "this page is not open; use it within `with ctx.browser() as page:`")

    async def _ask(self, act: str, given: dict[str, Any], raw: bytes = b"") -> "Answer":
        packed = json.dumps(given, allow_nan=False).encode()
        head = {"t": "browser", "act": act, "size": len(packed), **self._context}
        if isinstance(self, Awaited):
            return await self._channel.request(head, packed + raw)
        return self._channel.wait_for(self._channel.ask(head, packed + raw))

    async def _save(self, name: str, data: bytes) -> bytes:
        """The same bytes, saved as an artifact if there is a name for it."""
        if name:
            saved: Any = self._ctx.artifact(name, data)
            if isinstance(self, Awaited):
                await saved
        return data


def _returned(answer: "Answer") -> tuple[Any, bytes]:
    """The value of a step, and its bytes."""
    head, found = _checked(answer)
    size = int(head["size"])
    return json.loads(found[:size]), found[size:]


def _checked(answer: "Answer") -> "Answer":
    head = answer[0]
    if head["t"] != "browser":
        raise BrowserError(
            head.get("reason", "browser_step"), head["message"], head.get("site_status"), head.get("retry_after")
        )
    return answer
