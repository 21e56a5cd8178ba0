"""What must not be stored in a cassette. The same rules apply when a request is recorded and when it is matched.

Values are hidden by their names, in query strings, forms, JSON bodies and cookies; the scraper's own secrets are hidden
everywhere. Other secrets in the path of a URL or in the text of a page cannot be recognized: check a cassette before
you share it.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from scrapeyard.repository.manifest.values import SECRET
from scrapeyard.repository.trust.secrets import written_forms

HIDDEN = "redacted"
MAX_DEPTH = 50
_SECRET = re.compile(
    r"(^|[_.-])(access_?key|api_?key|app_?key|auth|authorization|bearer|credentials?|csrf|jwt|pass|passwd|password|pwd|"
    r"secret|session|session_?id|sid|sig|signature|token|xsrf)s?($|[_.-])|(secret|token|password|apikey)$",
    re.IGNORECASE,
)
_KEPT = re.compile(
    r"content-(type|language|disposition)|last-modified|etag|cache-control|expires|location|link|retry-after|"
    r"x-robots-tag|(x-)?(ratelimit|rate-limit|total|page|per-page|next|count)(-[a-z-]+)?"
)
MAX_HEADER = 4096
SHORTEST = 4
"""Shorter values are not hidden: they are hardly secret, and hiding them would spoil pages."""


def placeholder(name: str) -> str:
    """The text that replaces a secret in a test. It is written the same in a URL, a form and JSON."""
    return f"secret-{name}"


def without_secrets(config: Any) -> Any:
    """A manifest's config with the placeholder of each secret that it names."""
    if isinstance(config, list):
        return [without_secrets(child) for child in config]
    if not isinstance(config, dict):
        return config
    named = config.get(SECRET) if config.keys() == {SECRET} else None
    return (
        placeholder(named) if isinstance(named, str) else {key: without_secrets(each) for key, each in config.items()}
    )


def placeholders(config: Any) -> tuple[str, ...]:
    """The placeholders in what `without_secrets` gave."""
    if isinstance(config, str):
        return (config,) if config.startswith(placeholder("")) else ()
    members = config.values() if isinstance(config, dict) else config if isinstance(config, list) else ()
    return tuple(each for member in members for each in placeholders(member))


class Veil:
    """Replaces secret values with placeholders, both raw and as encoded in URLs and JSON."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        """`secrets` is name → value."""
        self._words: dict[str, str] = {}
        for name, value in sorted(secrets.items(), key=lambda item: -len(item[1])):
            for form in written_forms(value):
                if len(form) >= SHORTEST:
                    self._words[form] = placeholder(name)

    def text(self, text: str) -> str:
        """The text without the values."""
        for value, word in self._words.items():
            text = text.replace(value, word)
        return text

    def data(self, data: bytes) -> bytes:
        """The bytes without the values in UTF-8."""
        for value, word in self._words.items():
            data = data.replace(value.encode(), word.encode())
        return data


def is_secret(name: str) -> bool:
    """Whether values of this name are hidden."""
    return _SECRET.search(name[:200]) is not None


def clean_url(url: str) -> str:
    """The URL with secret parameters hidden; unchanged, to the letter, where there are none."""
    parts = urlsplit(url)
    pieces = parts.query.split("&")
    shown = "&".join(_clean_piece(piece) for piece in pieces)
    return url if shown == parts.query else urlunsplit(parts._replace(query=shown))


def clean_body(body: bytes, content_type: str) -> bytes:
    """The body of a request with secret fields hidden, where it is a form or JSON; otherwise as it is."""
    kind = content_type.partition(";")[0].strip().lower()
    try:
        if kind == "application/x-www-form-urlencoded":
            fields = parse_qsl(body.decode(), keep_blank_values=True)
            return urlencode([(name, HIDDEN if is_secret(name) else value) for name, value in fields]).encode()
        if kind == "application/json" or kind.endswith("+json"):
            return json.dumps(_clean_json(json.loads(body), 0), sort_keys=True).encode()
    except (ValueError, RecursionError):
        return body
    return body


def kept_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The response headers that a script may need, names in lower case. Of cookies, only the names are kept."""
    kept = []
    for name, value in ((name.lower(), value) for name, value in headers):
        if name == "set-cookie":
            kept.append((name, f"{value.partition('=')[0][:200]}={HIDDEN}"))
        elif _KEPT.fullmatch(name) and not is_secret(name):
            kept.append((name, clean_url(value)[:MAX_HEADER] if name == "location" else value[:MAX_HEADER]))
    return tuple(kept)


def _clean_piece(piece: str) -> str:
    name, equals, value = piece.partition("=")
    return f"{name}={quote(HIDDEN)}" if equals and value and is_secret(name) else piece


def _clean_json(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, dict):
        return {key: HIDDEN if is_secret(key) else _clean_json(child, depth + 1) for key, child in value.items()}
    return [_clean_json(child, depth + 1) for child in value] if isinstance(value, list) else value
