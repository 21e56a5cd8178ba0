"""One answer, as the rules ask about it. Each thing is worked out when first asked for, and once."""

import re
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeVar, overload

from scrapeyard.engines.blocks.rules import Holds
from scrapeyard.engines.blocks.words import Visible, title_of, visible_text
from scrapeyard.engines.headers import has_any
from scrapeyard.engines.port import FetchResponse

_REFUSALS = frozenset({400, 401, 402, 403, 405, 406, 409, 418, 423, 429, 430, 444, 451, 493, 503, 512, 555, 999})
"""Statuses that guards answer with. 404, 410 and plain faults of a server (500, 502, 504) are not among them."""
_PAGE_TYPES = ("text/html", "application/xhtml")
_MARKUP = 64 * 1024
_PLENTY = 1200
_LINKS = 40
"""So many links make a page without counting its words, which takes longer."""
_LINKS_WITHIN = 256 * 1024
_LINKS_STEP = 8 * 1024
_BARE = 160
_LINE = 120
SHORT = 4 * 1024
_DATA = re.compile(rb"\s{0,64}(?:[\[{]|<\?xml|<(?:rss|feed|urlset|sitemapindex)\b)")
_DATA_PATH = re.compile(r"\.(?:txt|json|xml|csv|tsv|js|css|md|ics|yaml|yml|log|map|webmanifest)$")
_LINES = re.compile(rb"^[a-z-]{2,24}:", re.MULTILINE)
_FORM = re.compile(
    rb"<input[^<>]{0,200}\b(?:type=[\"']?(?:password|email|search|tel)|name=[\"']?(?:user|login|email|search|q\b|phone|name))"
)
_SUBSTANCE = re.compile(rb"<(?:script|iframe|frame|img|meta[^<>]{0,40}refresh|video|canvas|svg|object|embed|form)\b")
_TAG = re.compile(rb"<[a-z!/]")


T = TypeVar("T")


class _lazy(Generic[T]):  # noqa: N801  it is written as a decorator
    """Worked out once. functools' own takes a lock each time, which costs more here than what is worked out."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, answer: None, owner: type) -> "_lazy[T]": ...
    @overload
    def __get__(self, answer: object, owner: type) -> T: ...
    def __get__(self, answer: object, owner: type) -> "T | _lazy[T]":
        if answer is None:
            return self
        value = answer.__dict__[self._name] = self._make(answer)
        return value


class Answer:
    """What the rules look at."""

    WORDS: ClassVar[int] = 4000
    """Characters of text that are weighed."""

    def __init__(self, response: FetchResponse, *, has_links: bool | None = None) -> None:
        """`has_links`, if somebody has counted them in the body as it came; None: nobody has."""
        self.status = response.status
        self.url = response.url.lower()
        self.response = response
        if has_links is not None:
            self.__dict__["has_links"] = has_links

    def names_any(self, names: Iterable[str]) -> bool:
        """Whether it has a header of one of these names, in lower case."""
        return has_any(self.response.headers, names)

    @_lazy
    def headers(self) -> dict[str, str]:
        """Names and values in lower case; the values of one name joined."""
        found: dict[str, str] = {}
        for spelled, value in self.response.headers:
            name = spelled.lower()
            found[name] = f"{found[name]}\n{value.lower()}" if name in found else value.lower()
        return found

    def fits(self, holds: Holds) -> bool:
        """Whether a mark that holds only under a condition counts here."""
        if holds == "always":
            return True
        return self.refuses if holds == "refused" else self.is_bare or (self.refuses and not self.is_plenty)

    @property
    def refuses(self) -> bool:
        """Whether the status is one that guards use."""
        return self.status in _REFUSALS

    @_lazy
    def heading(self) -> str:
        """What stands where a page has its title, in lower case; in data that may be anything."""
        return title_of(self._body, self._encoding)

    @property
    def title(self) -> str:
        """In lower case."""
        return "" if not self.heading or self.is_data else self.heading

    @property
    def text(self) -> str:
        """What a reader sees, in lower case: enough of it to judge."""
        return self._visible.text

    @_lazy
    def markup(self) -> bytes:
        """The beginning of the body, in lower case."""
        return self._body[:_MARKUP].lower()

    @_lazy
    def is_plenty(self) -> bool:
        """Whether there is so much to read that it must be a page."""
        return self.has_links or len(self.text) >= _PLENTY

    @_lazy
    def has_links(self) -> bool:
        """Whether it has so many links that it must be a page, also without counting its words."""
        return has_many_links(self._body)

    @_lazy
    def is_bare(self) -> bool:
        """Whether there is next to nothing to read, and no form to fill in but a captcha's own."""
        return not self.is_plenty and self._visible.whole and len(self.text) < _BARE and not self.has_form

    @property
    def is_ordinary(self) -> bool:
        """Whether it is a whole page by all that is seen at a glance, so that it need not be looked at closely."""
        return self.status == 200 and len(self.response.body) >= SHORT and self.is_plenty

    @property
    def is_short(self) -> bool:
        """Whether so few bytes hold so much text that a refusal may be long-winded."""
        return len(self._body) < SHORT

    @property
    def is_tiny(self) -> bool:
        """Whether the whole body is a line."""
        return len(self._body) < 200

    @_lazy
    def is_data(self) -> bool:
        """Whether it is for machines: JSON, a feed, robots.txt."""
        kind = self.headers.get("content-type", "")
        if kind and not kind.startswith(_PAGE_TYPES):
            return "html" not in kind and (not kind.startswith("text/plain") or not self.refuses)
        if _DATA.match(self._body[:256]):
            return True
        return bool(_DATA_PATH.search(_path(self.url))) and not _TAG.search(self._body[:512].lower())

    @property
    def is_page(self) -> bool:
        """Whether it was meant for a reader."""
        return not self.is_data and "content-range" not in self.headers

    @_lazy
    def is_empty(self) -> bool:
        """Whether a page was promised and there is nothing: no word in any tag, no script, no picture."""
        if self.is_plenty or (not self._body and self.headers.get("content-length") not in (None, "0")):
            return False  # nothing but a length: the answer to HEAD
        if _TAG.search(self.markup):
            return not self.text and not _SUBSTANCE.search(self.markup)
        words = self.markup.strip()
        return len(words) <= _LINE and not _LINES.search(words)

    @_lazy
    def is_only_script(self) -> bool:
        """Whether there is a script of the page's own and nothing to see: no word, no application that it would start,
        and more than a line that sends us on."""
        if self.is_plenty or self.text or self.title or b"<script" not in self.markup or len(self._body) < _LINE:
            return False
        return b" src=" not in self.markup and b" id=" not in self.markup

    @_lazy
    def has_form(self) -> bool:
        """Whether there is something to fill in beside a captcha: a name, a password, a search."""
        return b"<input" in self.markup and _FORM.search(self.markup) is not None

    @_lazy
    def _visible(self) -> Visible:
        return visible_text(self._body, self._encoding, self.WORDS if self.refuses else _PLENTY)

    @_lazy
    def _body(self) -> bytes:
        """Wide characters are made narrow, so that needles are found in them."""
        body, encoding = self.response.body, self.response.encoding
        return body[: 4 * _MARKUP].decode(encoding, "replace").encode() if is_wide(encoding) else body

    @property
    def _encoding(self) -> str:
        encoding = self.response.encoding
        return "utf-8" if is_wide(encoding) else encoding


def is_wide(encoding: str) -> bool:
    """Whether its characters have several bytes each, so that needles are not found in them as they are."""
    return encoding != "utf-8" and encoding.lower().replace("_", "-").startswith(("utf-16", "utf-32"))


def _path(url: str) -> str:
    """Without the leading slash. Every page is asked for it, and urlsplit takes ten times as long."""
    return url.partition("?")[0].partition("#")[0].partition("://")[2].partition("/")[2]


def has_many_links(body: bytes) -> bool:
    """Whether it has so many that it must be a page. Counted piece by piece; most have enough in the first."""
    found = at = 0
    while found < _LINKS and at < min(len(body), _LINKS_WITHIN):
        found += body.count(b"</a>", at, at + _LINKS_STEP + 3)  # one that begins here may end in the next piece
        at += _LINKS_STEP
    return found >= _LINKS
