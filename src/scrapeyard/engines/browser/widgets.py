"""Captchas with a checkbox in a page of a browser: Turnstile, reCAPTCHA v2 and hCaptcha.

The widget is found by the address of its frame. A click on its box is tried first. Where that is not enough, and policy
allows it, the vendor gives a token, which goes into the widget's response field. What the page says is not trusted: it
can cost a click and, where allowed, the vendor's price.
"""

import asyncio
import re
import time
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from scrapeyard.engines.browser.operations import AnyOperation, Click, Evaluate, Frames, Hover, Read
from scrapeyard.engines.browser.port import Perform
from scrapeyard.engines.captcha.port import CaptchaEngine, Widget, WidgetKind
from scrapeyard.engines.port import Caller
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

T = TypeVar("T")

SECONDS: Final = 20.0
"""For the widget to appear and for a click to be enough."""
_LOOK_SECONDS: Final = 0.25
_CLICKS: Final = 3
_AGAIN_SECONDS: Final = 5.0
"""Between two clicks: a box may be drawn late, or again."""
_STEP_SECONDS: Final = 5.0
_MAX_TOKEN: Final = 8192
_BOXES: Final = "#recaptcha-anchor, #checkbox, [role=checkbox], input[type=checkbox]"
_BODY_SPOT: Final = (28.0, 32.0)
"""Where the box is drawn in a frame whose elements are hidden from us."""


class _Known(Struct, frozen=True):
    """What a kind of widget looks like from outside."""

    frame: re.Pattern[str]
    """In the URL of its frame."""
    key: re.Pattern[str]
    """The site key in that URL."""
    field: str
    """The name of its response field."""
    box: str
    """Its container in the page."""


_KNOWN: Final[dict[WidgetKind, _Known]] = {
    "turnstile": _Known(
        re.compile(r"^https://challenges\.cloudflare\.com/|/turnstile/if/"),
        re.compile(r"/(\dx[\w-]{8,64})(?:/|$)"),
        "cf-turnstile-response",
        ".cf-turnstile[data-sitekey]",
    ),
    "recaptcha": _Known(
        re.compile(r"/recaptcha/(?:api2|enterprise)/anchor\b"),
        re.compile(r"[?&]k=([\w-]{1,100})"),
        "g-recaptcha-response",
        ".g-recaptcha[data-sitekey]",
    ),
    "hcaptcha": _Known(
        re.compile(r"/hcaptcha\.html#(?:.*&)?frame=checkbox\b"),
        re.compile(r"[#&]sitekey=([\w-]{1,100})"),
        "h-captcha-response",
        ".h-captcha[data-sitekey]",
    ),
}
_LOOK: Final = """([field, box]) => ({
    token: [...document.querySelectorAll(`[name="${field}"]`)].map(each => each.value).find(value => value) || '',
    key: document.querySelector(box)?.getAttribute('data-sitekey') || '',
    url: location.href,
})"""
_ANSWER: Final = """([field, box, token]) => {
    const fields = [...document.querySelectorAll(`[name="${field}"]`)];
    for (const each of fields) {
        each.value = token;
        for (const kind of ['input', 'change']) each.dispatchEvent(new Event(kind, {bubbles: true}));
    }
    const call = window[document.querySelector(box)?.getAttribute('data-callback')];
    if (typeof call === 'function') setTimeout(() => call(token));
    return fields.length > 0 || typeof call === 'function';
}"""


class _Seen(Struct, frozen=True):
    token: str
    key: str
    url: str


class _Place(Struct, frozen=True):
    """Where a widget is."""

    kind: WidgetKind
    home: tuple[str, ...]
    """The frame that has its response field."""
    frame: tuple[str, ...] | None
    """Its own frame; None: it has no box to click."""
    key: str


async def solve_widget(
    perform: Perform, captchas: CaptchaEngine | None, caller: Caller, *, tab: int = 0, seconds: float | None = None
) -> str:
    """Solve the first widget of the page; its token, which its response field has now. Raises FetchFailed:
    `browser_step` (there is no widget), `fetch_not_allowed` (policy), `fetch_captcha` (it is not satisfied)."""
    if captchas is None:
        raise no_captchas()
    return await _Solving(perform, tab, seconds or SECONDS).run(captchas, caller)


def no_captchas() -> FetchFailed:
    """Why nothing is solved where there is no engine for it."""
    return FetchFailed(ExitReason.FETCH_NOT_ALLOWED, "captchas are not solved here")


class _Solving:
    def __init__(self, perform: Perform, tab: int, seconds: float) -> None:
        self._perform = perform
        self._tab = tab
        self._seconds = seconds
        self._ends = time.monotonic() + seconds

    async def run(self, captchas: CaptchaEngine, caller: Caller) -> str:
        place = await self._find()
        seen = await self._look(place)
        if seen.token:
            return seen.token[:_MAX_TOKEN]
        widget = Widget(kind=place.kind, site_key=(seen.key or place.key)[:200], url=seen.url[:16384])
        click = None if place.frame is None else partial(self._click, place)
        answer = await captchas.solve_widget(widget, caller, click)
        if answer.solver != "browser":
            await self._fill_in(place, answer.text)
        return answer.text

    async def _find(self) -> _Place:
        while True:
            for each in await self._value(Frames(tab=self._tab), list[dict[str, Any]]):
                if place := _place_of(str(each["url"]), tuple(each["path"])):
                    return place
            if time.monotonic() >= self._ends:
                return await self._find_container()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _find_container(self) -> _Place:
        """A widget whose frame did not come: only the vendor can help."""
        for kind in _KNOWN:
            place = _Place(kind, (), None, "")
            if (await self._look(place)).key:
                return place
        words = f"no Turnstile, reCAPTCHA or hCaptcha appeared in the page within {self._seconds:g} s"
        raise FetchFailed(ExitReason.BROWSER_STEP, words)

    async def _look(self, place: _Place) -> _Seen:
        known = _KNOWN[place.kind]
        look = Evaluate(expression=_LOOK, arg=[known.field, known.box], tab=self._tab, frame=place.home)
        return await self._value(look, _Seen)

    async def _click(self, place: _Place) -> str:
        """Click until the response field has a value, or the time is over: nothing then."""
        clicks, after = 0, 0.0
        while True:
            if token := (await self._look(place)).token:
                return token[:_MAX_TOKEN]
            now = time.monotonic()
            if now >= self._ends:
                return ""
            if clicks < _CLICKS and now >= after:
                clicks, after = clicks + 1, now + _AGAIN_SECONDS
                with suppress(FetchFailed):  # the frame may be drawn anew at any moment
                    await self._press(place.frame or ())
            await asyncio.sleep(_LOOK_SECONDS)

    async def _press(self, frame: tuple[str, ...]) -> None:
        at: dict[str, Any] = {"tab": self._tab, "frame": frame, "timeout": _STEP_SECONDS}
        spot: dict[str, Any] = {"selector": "body", "x": _BODY_SPOT[0], "y": _BODY_SPOT[1]}
        if any(await self._value(Read(selector=_BOXES, what="visible", limit=1, **at), list[bool])):
            for what in ("@aria-checked", "checked"):
                if await self._value(Read(selector=_BOXES, what=what, limit=1, **at), list[Any]) in (["true"], [True]):
                    return
            spot = {"selector": f"{_BOXES} >> nth=0"}
        await self._perform(Hover(selector="body", x=5, y=5, **at), b"")
        await self._perform(Click(**spot, delay=0.08, **at), b"")

    async def _fill_in(self, place: _Place, token: str) -> None:
        known = _KNOWN[place.kind]
        say = Evaluate(expression=_ANSWER, arg=[known.field, known.box, token], tab=self._tab, frame=place.home)
        if not await self._value(say, bool):
            words = f"the page takes no token: it has neither a field {known.field} nor a data-callback"
            raise FetchFailed(ExitReason.FETCH_CAPTCHA, words)

    async def _value(self, operation: AnyOperation, kind: type[T]) -> T:
        done = await self._perform(operation, b"")
        try:
            return msgspec.json.decode(done.value, type=kind)
        except msgspec.ValidationError as error:  # the page has changed what its objects do
            raise FetchFailed(ExitReason.BROWSER_STEP, f"the page gives no account of its captcha: {error}") from None


def _place_of(url: str, path: tuple[str, ...]) -> _Place | None:
    for kind, known in _KNOWN.items():
        if known.frame.search(url):
            key = known.key.search(url)
            return _Place(kind, path[:-1], None if "size=invisible" in url else path, key[1] if key else "")
    return None
