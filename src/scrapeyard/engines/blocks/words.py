"""What refusals say, weighed: the words that a page shows against the phrases of `words.toml`."""

import functools
import html
import re
import tomllib
from importlib.resources import files
from typing import Literal

from msgspec import Struct, convert

from scrapeyard.engines.blocks.rules import BlockKind

_MARKUP = 96 * 1024
"""Bytes of markup looked at, scripts and styles not counted."""
_CHUNK = 12 * 1024
"""Maximum bytes looked at in one go."""
_SKIPS = 400
_HIDDEN = re.compile(rb"<(?:(script|style|svg|template|title)\b|!--)", re.IGNORECASE)
_ENDS = {
    b"script": b"</script",
    b"style": b"</style",
    b"svg": b"</svg",
    b"template": b"</template",
    b"title": b"</title",
    b"": b"-->",
}
_TAG = re.compile(rb"<[^<>]*>?")
_TITLE = re.compile(rb"<title\b[^<>]*>([^<]{0,300})", re.IGNORECASE)
_TITLE_WITHIN = 32 * 1024


class Visible(Struct, frozen=True, kw_only=True):
    """What a reader sees."""

    text: str
    """Lower case, single spaces; as much as was asked for."""
    whole: bool
    """Whether that is all there is."""


def visible_text(body: bytes, encoding: str, limit: int) -> Visible:
    """The first `limit` characters or a little more."""
    pieces: list[bytes] = []
    size = seen = skips = at = 0
    chunk = min(2 * limit, _CHUNK)  # most pages show enough in the first
    while at < len(body) and size < limit and seen < _MARKUP and skips < _SKIPS:
        hidden = _HIDDEN.search(body, at, at + chunk)
        stop = hidden.start() if hidden else min(at + chunk, len(body))
        if hidden is None and stop < len(body):
            stop = _before_a_tag(body, at, stop)
        words = b" ".join(_TAG.sub(b" ", body[at:stop]).split())
        pieces.append(words)
        size, seen, at = size + len(words), seen + stop - at, stop
        if hidden:
            skips, at = skips + 1, _after(body, hidden)
    text = _decode(b" ".join(piece for piece in pieces if piece), encoding)
    return Visible(text=" ".join(html.unescape(text).split()).lower()[: 2 * limit], whole=at >= len(body))


def title_of(body: bytes, encoding: str) -> str:
    """In lower case; empty where there is none near the top."""
    match = _TITLE.search(body, 0, _TITLE_WITHIN)
    if match is None:
        return ""
    title = _decode(match[1], encoding)
    return " ".join((html.unescape(title) if "&" in title else title).split()).lower()


def _before_a_tag(body: bytes, at: int, stop: int) -> int:
    """Where to cut near `stop`. Words and tags stay whole, unless they are longer than _CHUNK."""
    opening = body.rfind(b"<", at + 1, stop)
    if opening < 0:
        opening = body.find(b"<", stop, at + _CHUNK)
    return opening if opening >= 0 else min(at + _CHUNK, len(body))


def _after(body: bytes, hidden: re.Match[bytes]) -> int:
    # Plain finding is ten times as fast as a pattern that ignores case, and few pages shout.
    ending = _ENDS[(hidden[1] or b"").lower()]
    at = body.find(ending, hidden.end())
    if at < 0:
        at = body.find(ending.upper(), hidden.end())
    closed = body.find(b">", at) if at >= 0 else -1
    return closed + 1 if closed >= 0 else len(body)


def _decode(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding, "replace")
    except LookupError:
        return data.decode("utf-8", "replace")


Feature = Literal["refused", "robot", "check", "guard", "number", "plea", "place", "limit"]
_TO_US = 0.7


class _Written(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    feature: Feature
    weight: float
    kind: BlockKind
    why: str
    patterns: list[str]


class _Sheet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    done: str
    turn: list[_Written]


class Turn(Struct, frozen=True, kw_only=True):
    """A turn of phrase."""

    pattern: re.Pattern[str]
    weight: float
    feature: Feature
    """Each feature counts once, by its heaviest turn."""
    kind: BlockKind
    why: str

    @property
    def to_us(self) -> bool:
        """Whether it is said to the visitor rather than about the world."""
        return self.weight >= _TO_US and self.feature in ("refused", "check")


@functools.cache
def turns() -> tuple[Turn, ...]:
    """The heaviest first, so that a feature that is found needs no second look. Read when first needed: compiling the
    patterns takes longer than most pages."""
    text = files(__package__).joinpath("words.toml").read_text("utf-8")
    sheet = convert(tomllib.loads(text), _Sheet)
    by_weight = sorted(sheet.turn, key=lambda written: -written.weight)
    return tuple(_turn(written, f"(?:{sheet.done})") for written in by_weight)


def _turn(written: _Written, done: str) -> Turn:
    pattern = re.compile("|".join(written.patterns).replace("<done>", done))
    return Turn(pattern=pattern, weight=written.weight, feature=written.feature, kind=written.kind, why=written.why)


def weigh(text: str) -> tuple[float, Turn | None]:
    """The sum of what a text says, and its heaviest turn; None: it says nothing of the kind. Expects lower case."""
    text = text.replace("\u2019", "'")
    found: dict[Feature, Turn] = {}
    for turn in turns():
        if turn.feature not in found and turn.pattern.search(text):
            found[turn.feature] = turn
    heaviest = max(found.values(), key=_importance, default=None)
    return sum(turn.weight for turn in found.values()), heaviest


def _importance(turn: Turn) -> tuple[bool, float]:
    """Pleas and numbers give weight but do not say what happened."""
    return turn.feature not in ("number", "plea", "guard"), turn.weight
