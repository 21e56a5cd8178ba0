"""URL filters: globs and regular expressions, matched in linear time.

Python's own expressions can take for ever on a hostile pair of pattern and URL; those of the schema library cannot.
"""

import re

import jsonschema_rs

from scrapeyard.engines.http.url import parse_target
from scrapeyard.errors import BadRequest
from scrapeyard.inputs.source import MAX_PATTERNS, UrlChoice

MAX_PATTERN = 500
_EXPRESSION = "re:"
_OF_PATH = "path:"
_GLOB = re.compile(r"\*\*|\*")
_PATH = re.compile(r"[a-z]+://[^/?#]*(/[^?#]*)", re.IGNORECASE)
"""Of an address that a site wrote, which may be none at all."""


class Chooser:
    """Decides which URLs are taken."""

    def __init__(self, choice: UrlChoice) -> None:
        """Raises BadRequest naming the invalid pattern."""
        self._include = _Patterns(choice.include, "include") if choice.include else None
        self._exclude = _Patterns(choice.exclude, "exclude") if choice.exclude else None

    def takes(self, url: str) -> bool:
        """Whether an address is taken."""
        if self._include is not None and not self._include.fit(url):
            return False
        return self._exclude is None or not self._exclude.fit(url)


class _Patterns:
    """One expression for all patterns of addresses, and one for those of paths."""

    def __init__(self, patterns: tuple[str, ...], place: str) -> None:
        if len(patterns) > MAX_PATTERNS:
            raise BadRequest(f"{place}: {len(patterns)} patterns; at most {MAX_PATTERNS} are taken")
        for pattern in patterns:
            _one(pattern, place)
        self._url = _compiled([each for each in patterns if not each.startswith(_OF_PATH)], place)
        self._path = _compiled([each for each in patterns if each.startswith(_OF_PATH)], place)

    def fit(self, url: str) -> bool:
        """Whether an address fits one of them."""
        if self._url is not None and self._url.is_valid(url):
            return True
        if self._path is None or (found := _PATH.match(url)) is None:
            return False
        return self._path.is_valid(found[1])


def _compiled(patterns: list[str], place: str) -> jsonschema_rs.Validator | None:
    """One expression that matches what any of the patterns matches; None without patterns."""
    if not patterns:
        return None
    return _validator("|".join(f"(?:{_expression(pattern)})" for pattern in patterns), place, "all together")


def _one(pattern: str, place: str) -> None:
    if not 0 < len(pattern) <= MAX_PATTERN:
        raise BadRequest(f"{place}: a pattern has 1 to {MAX_PATTERN} characters, not {len(pattern)}")
    _validator(_expression(pattern), place, pattern)


def _validator(expression: str, place: str, told: str) -> jsonschema_rs.Validator:
    try:
        return jsonschema_rs.validator_for(
            {"pattern": expression},
            pattern_options=jsonschema_rs.RegexOptions(size_limit=1 << 20, dfa_size_limit=1 << 20),
        )
    except (jsonschema_rs.ValidationError, ValueError):
        raise BadRequest(
            f"{place}: {told[:100]!r} cannot be used; write a glob such as https://shop.example/p/**, or re: (for the "
            "path alone, path:) and a regular expression without look-around and back-references"
        ) from None


def _expression(pattern: str) -> str:
    for sign in (_EXPRESSION, _OF_PATH):
        if pattern.startswith(sign):
            return pattern.removeprefix(sign)
    start = r"^[a-z]+://[^/?#]*" if pattern.startswith("/") else "^"
    parts = _GLOB.split(pattern)
    stars = _GLOB.findall(pattern)
    text = re.escape(parts[0])
    for star, part in zip(stars, parts[1:], strict=True):
        text += (".*" if star == "**" else "[^/]*") + re.escape(part)
    return f"{start}{text}$"


def normal(url: str) -> str:
    """The normalised URL, without its fragment. Raises FetchFailed."""
    return parse_target(url).url
