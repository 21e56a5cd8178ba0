"""Masks personal data in what a run leaves: results, logs, errors, URLs in `explain`, artifacts that are text; and in
exports.

Patterns are bounded and look at ASCII, so that text of any length takes linear time and pages need not be decoded. What
is found depends on how it is written: docs/data-protection.md lists it.
"""

import asyncio
import hashlib
import hmac
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final

import msgspec

from scrapeyard.errors import SettingsInvalid
from scrapeyard.extras import missing
from scrapeyard.model import FetchPolicy
from scrapeyard.model.fetching import MASK_PLACES
from scrapeyard.settings import MaskingSettings

LONGEST: Final = 320
"""No match is longer, what stands around it included."""
TOKEN_HEX: Final = 12
OWN: Final = "own"
_PART: Final = 1 << 16
_IN_THREAD: Final = 1 << 15
"""Larger values are masked in a thread."""
_TEXT: Final = re.compile(r"text/|application/([\w.+-]*\+)?(json|xml|x-ndjson|javascript|xhtml\+xml)", re.IGNORECASE)
_DNI: Final = "TRWAGMYFPDXBNJZSQVHLCKE"
_PATTERNS: Final = {
    "email": r"(?<![\w.+-])[A-Za-z0-9][\w.+%-]{0,63}(?:@|%40)(?:[A-Za-z0-9-]{1,63}\.){1,4}[A-Za-z]{2,24}(?![\w-])",
    "national_id": r"(?<![\w-])(?:(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}"
    r"|\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])-?[1-8]\d{6}"
    r"|[XYZ]?\d{7,8}[A-Z])(?![\w-])",
    "card": r"(?<![\w-])\d(?:[ -]?\d){12,18}(?![\w-])",
    "ip": r"(?<![\w.:])(?:(?:\d{1,3}\.){3}\d{1,3}|(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4})(?![\w:]|\.\d)",
    "phone": r"(?<![\w.+-])(?:(?:\+|00)[1-9](?:[ ()./-]{0,2}\d){6,13}"
    r"|(?:\(\d{2,5}\)|\d{2,4})[ .-]\d{3,4}[ .-]\d{4})(?![\w-])",
}
"""In the order in which they are tried at one place."""
_DIGITS: Final = (r"\d(?:[ ()./-]{0,2}\d){6}", 8, 64)
_SIGNS: Final[Mapping[str, Sequence[tuple[str, int, int]]]] = {
    "email": (("@|%40", 68, 290),),
    "national_id": (_DIGITS,),
    "card": (_DIGITS,),
    "phone": (_DIGITS,),
    "ip": ((r"\d\.\d{1,3}\.\d{1,3}\.\d", 8, 16), (r":[0-9A-Fa-f]{0,4}:", 8, 48)),
}
"""What every match of a kind contains, quick to look for, and how far the match may reach before and after it. Only
there the patterns are tried, which takes many times as long."""
KINDS: Final = (*_PATTERNS, OWN)


def _luhn(digits: str) -> bool:
    pairs = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 * (value > 9) for value in pairs) % 10 == 0


def _is_card(text: str) -> bool:
    digits = re.sub(r"\D", "", text)
    return digits[0] in "23456" and len(set(digits)) > 1 and _luhn(digits)


def _is_national_id(text: str) -> bool:
    """Spanish ids have a letter that checks the number; without it any word of digits and a letter would be one."""
    if text[-1].isdigit():
        return True
    number = text[:-1].translate(str.maketrans("XYZ", "012"))
    return len(text) == 9 and _DNI[int(number) % 23] == text[-1]


def _is_ip(text: str) -> bool:
    try:
        return ip_address(text) is not None and any(each.isalnum() for each in text)
    except ValueError:
        return False


_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {"card": _is_card, "national_id": _is_national_id, "ip": _is_ip}


def _plain(kind: str, text: str) -> str:
    """The same for one value, however it is written."""
    return re.sub(r"\D", "", text) if kind in ("card", "phone") else text.replace("%40", "@").lower()


class Masking:
    """Makes maskers for policies. `key` makes the tokens; each process of a platform needs the same."""

    def __init__(self, settings: MaskingSettings, key: bytes = b"") -> None:
        """Raises SettingsInvalid if a pattern cannot be used."""
        self._settings = settings
        self._key = key or os.urandom(32)
        self._own = _compile_own(settings.patterns)

    def of(self, policy: FetchPolicy) -> "Masker | None":
        """The masker of a run; None if its policy and the settings mask nothing."""
        if not policy.mask and not self._settings.kinds:
            return None
        asked = policy.mask or ",".join(self._settings.kinds)
        kinds = frozenset(asked.split(",")) - {"none", ""}
        if not kinds:
            return None
        own = self._own if OWN in kinds else ()
        key = self._key if (policy.mask_as or self._settings.mask_as) == "hash" else b""
        places = frozenset(policy.mask_in.split(",") if policy.mask_in else self._settings.places)
        return Masker(kinds, own, key, places)


def _compile_own(patterns: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    if not patterns:
        return ()
    if words := missing("masking"):
        raise SettingsInvalid(f"masking.patterns: {words}")
    import re2  # noqa: PLC0415 - an extra; its time is linear for every pattern

    options = re2.Options()
    options.max_mem, options.log_errors = 1 << 20, False
    try:
        return tuple((each.partition("=")[0], re2.compile(each.partition("=")[2], options)) for each in patterns)
    except re2.error as error:
        raise SettingsInvalid(f"masking.patterns: {error}; write it as RE2 takes it: no look-around, no \\1") from None


@lru_cache(64)
def _compiled(kinds: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{kind}>{text})" for kind, text in _PATTERNS.items() if kind in kinds), re.ASCII)


@lru_cache(64)
def _signs(kinds: frozenset[str]) -> tuple[tuple[re.Pattern[str], int, int], ...]:
    wanted = dict.fromkeys(sign for kind in _PATTERNS if kind in kinds for sign in _SIGNS[kind])
    return tuple((re.compile(text, re.ASCII), before, after) for text, before, after in wanted)


def _windows(signs: Sequence[tuple[re.Pattern[str], int, int]], text: str, start: int) -> list[tuple[int, int]]:
    """Parts of a text, from `start` on, in which a match may lie, in order and apart from each other."""
    found = [
        (match.start() - before, match.end() + after)
        for pattern, before, after in signs
        for match in pattern.finditer(text, max(0, start - LONGEST))
    ]
    found.sort()
    windows: list[tuple[int, int]] = []
    for first, end in found:
        if windows and first <= windows[-1][1]:
            windows[-1] = (windows[-1][0], max(end, windows[-1][1]))
        else:
            windows.append((max(first, start), end))
    return windows


class Masker:
    """Masks the values of one run, and counts them by kind in `found`. With a `key`, equal values get equal tokens.

    What is not in its `places` stays as it is. Large values are masked in a thread: the loop goes on meanwhile.
    """

    def __init__(
        self,
        kinds: frozenset[str],
        own: Sequence[tuple[str, Any]],
        key: bytes,
        places: frozenset[str] = frozenset(MASK_PLACES),
    ) -> None:
        self.found: Counter[str] = Counter()
        self._kinds = kinds
        self._places = places
        self._pattern = _compiled(kinds) if kinds - {OWN} else None
        self._signs = _signs(kinds)
        self._own = own
        self._key = key

    def text(self, text: str) -> str:
        """A text, masked."""
        if not self._own and not any(pattern.search(text) for pattern, _, _ in self._signs):
            return text
        stages, out = self._stages(), []
        for start in range(0, len(text), _PART):
            out.append(_fed(stages, text[start : start + _PART]))
        return "".join([*out, _ended(stages)])

    def value(self, value: Any) -> Any:
        """A JSON value with every text, key and number masked."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(child) for key, child in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self.value(child) for child in value)
        if isinstance(value, int) and not isinstance(value, bool):
            masked = self.text(str(value))
            return value if masked == str(value) else masked
        return value

    def logged(self, value: Any) -> Any:
        """What goes into logs, errors and `explain`, masked."""
        return self.value(value) if "logs" in self._places else value

    async def result(self, text: bytes) -> bytes:
        """A result as JSON, masked."""
        return await self._run(text, lambda masker: masker.json(text)) if "results" in self._places else text

    async def artifact(self, data: bytes, content_type: str) -> bytes:
        """An artifact, masked if it is text in an encoding that extends ASCII."""
        if not self._is_masked(content_type):
            return data
        return await self._run(data, lambda masker: masker.text(data.decode("latin-1")).encode("latin-1"))

    @property
    def masks_exports(self) -> bool:
        """Whether files that are exported are masked when they are written."""
        return "exports" in self._places

    async def _run(self, data: bytes, work: "Callable[[Masker], bytes]") -> bytes:
        if len(data) <= _IN_THREAD:
            return work(self)
        apart = Masker(self._kinds, self._own, self._key, self._places)  # counters are not for two threads
        masked = await asyncio.to_thread(work, apart)
        self.found.update(apart.found)
        return masked

    def _is_masked(self, content_type: str) -> bool:
        place = "html" if "html" in content_type.partition(";")[0].lower() else "artifacts"
        return place in self._places and _TEXT.match(content_type) is not None

    def json(self, text: bytes) -> bytes:
        """JSON, masked; as it is if nothing was found."""
        before = self.found.total()
        value = self.value(msgspec.json.decode(text))
        return text if self.found.total() == before else msgspec.json.encode(value)

    async def stream(self, pieces: AsyncIterator[bytes], content_type: str) -> AsyncIterator[bytes]:
        """The same for one that arrives in pieces, holding LONGEST characters back: a value may lie across two."""
        if not self._is_masked(content_type):
            async for piece in pieces:
                yield piece
            return
        stages = self._stages()
        async for piece in pieces:
            for start in range(0, len(piece), _PART):
                yield _fed(stages, piece[start : start + _PART].decode("latin-1")).encode("latin-1")
                await asyncio.sleep(0)  # the loop goes on between two parts
        yield _ended(stages).encode("latin-1")

    def _stages(self) -> list["_Stage"]:
        stages = [_Stage(self._pattern, self._replaced, self._signs)] if self._pattern is not None else []
        return stages + [_Stage(pattern, self._replaced_own(name)) for name, pattern in self._own]

    def _replaced(self, match: re.Match[str]) -> str | None:
        kind = match.lastgroup or ""
        text = match.group()
        check = _CHECKS.get(kind)
        return None if check is not None and not check(text) else self._token(kind, text)

    def _replaced_own(self, name: str) -> Callable[[Any], str | None]:
        return lambda match: self._token(name, match.group()) if match.group() else None

    def _token(self, kind: str, text: str) -> str:
        self.found[kind] += 1
        if not self._key:
            return f"[{kind}]"
        digest = hmac.new(self._key, f"{kind} {_plain(kind, text)}".encode(), hashlib.sha256)
        return f"[{kind}:{digest.hexdigest()[:TOKEN_HEX]}]"


class _Stage:
    """One pattern over a text that arrives in parts. `replace` returns None to leave a match as it is."""

    def __init__(
        self,
        pattern: Any,
        replace: Callable[[Any], str | None],
        signs: Sequence[tuple[re.Pattern[str], int, int]] | None = None,
    ) -> None:
        self._pattern = pattern
        self._signs = signs
        self._replace = replace
        self._held = ""
        self._done = 0
        """Characters at the beginning of `_held` that were given out; they are what stands before a match."""

    def feed(self, text: str) -> str:
        """What is certain after this part."""
        self._held += text
        return self._out(max(self._done, len(self._held) - LONGEST))

    def end(self) -> str:
        """The rest."""
        return self._out(len(self._held))

    def _out(self, until: int) -> str:
        """Give out what stands before `until`; a match that begins there ends there or is given out later, whole."""
        out, at = [], self._done
        for match in self._matches(at):
            if match.start() >= until:
                break
            token = self._replace(match)
            out.append(self._held[at : match.start()] + (match.group() if token is None else token))
            at = match.end()
        out.append(self._held[at : max(at, until)])
        at = max(at, until)
        kept = max(0, at - LONGEST)
        self._held, self._done = self._held[kept:], at - kept
        return "".join(out)

    def _matches(self, start: int) -> Iterator[Any]:
        if self._signs is None:
            yield from self._pattern.finditer(self._held, start)
            return
        for first, end in _windows(self._signs, self._held, start):
            yield from self._pattern.finditer(self._held, first, min(end, len(self._held)))


def _fed(stages: Sequence[_Stage], text: str) -> str:
    for stage in stages:
        text = stage.feed(text)
    return text


def _ended(stages: Sequence[_Stage]) -> str:
    rest = ""
    for stage in stages:
        rest = stage.feed(rest) + stage.end()
    return rest
