"""Captchas: pictures of text by a local model, and anything else by a vendor, where policy allows it."""

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

from msgspec import Struct

from scrapeyard.engines.port import Caller

MAX_IMAGE = 2 * 1024 * 1024
"""Bytes of a picture."""
MAX_CALLS = 100
"""Captchas of one attempt at a run."""
WidgetKind = Literal["turnstile", "recaptcha", "hcaptcha"]


class CaptchaAnswer(Struct, frozen=True, kw_only=True):
    """What a captcha came to."""

    text: str
    """The characters of a picture, or the token of a widget."""
    solver: str
    """`local`, `vendor`, or `browser` for a widget that a click satisfied."""
    confidence: float | None = None
    """0 to 1, where the solver says."""
    cost: float = 0.0
    """As the vendor bills it, in its own currency."""


class Widget(Struct, frozen=True, kw_only=True):
    """A captcha that a page embeds."""

    kind: WidgetKind
    site_key: str
    url: str
    """Of the page."""


Click = Callable[[], Awaitable[str]]
"""Clicks the widget in its page; the token, or nothing if the click was not enough. Raises FetchFailed."""


class CaptchaEngine(Protocol):
    """Solves captchas for runs. Counts attempts, successes and cost in the caller's books."""

    async def start(self) -> None:
        """Ready. Starts nothing."""

    async def stop(self) -> None:
        """End what was started. May be called twice."""

    async def solve_image(self, image: bytes, caller: Caller) -> CaptchaAnswer:
        """Read a picture of text. Raises FetchFailed: `fetch_not_allowed` (policy, a picture that is none, too many of
        them), `fetch_captcha` (it could not be read)."""

    async def solve_widget(self, widget: Widget, caller: Caller, click: Click | None = None) -> CaptchaAnswer:
        """A token for a widget: by `click` at first, if there is one, then by the vendor, where policy allows it.
        Raises FetchFailed likewise."""
