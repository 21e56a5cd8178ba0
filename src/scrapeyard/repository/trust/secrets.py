"""Secrets: values that a manifest only names, and an operator grants to scrapers one by one.

    # repository.secrets_file
    ["shop/product"]        the grant is to this scraper, all versions
    api_key = "…"
    ["shop/*"]              or to all scrapers of a site; the exact id wins
    proxy_password = "…"

Operators also grant secrets by the API, which keeps them encrypted in the store; the file wins. A manifest writes
`key = { secret = "api_key" }` below [config]. The worker inserts the value when it sends the config to the child; the
value never appears in a listing or a platform log. `redact` and `redact_json` remove it from what the script logs,
raises, fetches and returns.
"""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

from scrapeyard.errors import ScraperInvalid, SettingsInvalid
from scrapeyard.model import SCRAPER_ID, Scraper
from scrapeyard.repository.manifest.values import SECRET, SECRET_NAME, parse_toml
from scrapeyard.telemetry.events import get_log

log = get_log("secrets")
MAX_BYTES = 1024 * 1024
MAX_VALUE = 16 * 1024
SHORTEST_HIDDEN = 4
"""Shorter values are not hidden: they are hardly secret, and hiding them would make logs unreadable."""
HIDDEN = "***"

Grants = Mapping[str, Mapping[str, str]]
"""`site/task` or `site/*` → name → value."""


class Secrets:
    """The secrets of one file, read again when it changes. Without a file there are none. Blocks briefly."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._stamp: tuple[int, ...] | None = None
        self._grants: Grants = {}
        self._stored: Grants = {}
        self._told = ""

    def adopt(self, stored: Grants) -> None:
        """The secrets of the store, which the file's go before."""
        self._stored = stored

    def lacks(self, scraper: Scraper) -> bool:
        """Whether the scraper names a secret that is not granted to it. Raises ScraperInvalid."""
        names = secret_names(scraper.config)
        return bool(names) and not names <= self._granted(scraper).keys()

    def check(self) -> None:
        """Check the file at startup. Raises SettingsInvalid if it cannot be used; the message never has a value."""
        self._refresh()

    def fill(self, scraper: Scraper) -> dict[str, Any]:
        """The scraper's config with every secret in place. Raises ScraperInvalid naming a secret that is missing."""
        if not secret_names(scraper.config):
            return scraper.config
        granted = self._granted(scraper)
        return {key: _filled(value, granted, scraper) for key, value in scraper.config.items()}

    def named_by(self, scraper: Scraper) -> tuple[str, ...]:
        """The values that `fill` puts into this config, also as URLs and JSON write them, longest first, for `redact`.
        Raises ScraperInvalid."""
        names = secret_names(scraper.config)
        granted = self._granted(scraper) if names else {}
        forms = {form for name in names for form in written_forms(_value(name, granted, scraper))}
        return tuple(sorted(forms, key=len, reverse=True))

    def _granted(self, scraper: Scraper) -> dict[str, str]:
        try:
            self._refresh()
        except SettingsInvalid as error:
            self._report(error.message)
            raise ScraperInvalid(
                f"{scraper.ref}: its secrets cannot be read; the operator must mend the file of "
                "repository.secrets_file, and the worker's log tells why"
            ) from None
        site = scraper.ref.id.partition("/")[0]
        order = [(who, grants) for who in (f"{site}/*", scraper.ref.id) for grants in (self._stored, self._grants)]
        return {name: value for who, grants in order for name, value in grants.get(who, {}).items()}

    def _report(self, problem: str) -> None:
        """Log each problem once: a busy scraper would fill the log."""
        if problem != self._told:
            log.error("secrets.unreadable", problem=problem)
        self._told = problem

    def _refresh(self) -> None:
        if self._path is None:
            return
        try:
            stamp = _stamp(self._path.stat())
            if stamp != self._stamp:
                self._grants, self._stamp = {}, None
                self._grants = _read(self._path)
                self._stamp, self._told = stamp, ""
        except OSError as error:
            raise SettingsInvalid(f"repository.secrets_file: cannot read {self._path}: {error.strerror}") from None


def secret_names(config: Any) -> frozenset[str]:
    """Every secret that a config names."""
    return frozenset(_names(list(config.values())))


def written_forms(value: str) -> tuple[str, ...]:
    """A value as it is, and as it is written in a URL, a form and JSON."""
    as_json = (json.dumps(value, ensure_ascii=plain)[1:-1] for plain in (True, False))
    return value, quote(value, safe=""), quote(value), quote_plus(value), *as_json


def redact(value: Any, hidden: tuple[str, ...]) -> Any:
    """The same text, list or table with each `hidden` value as `***`.

    Keys stay as they are, and only what stands in `hidden` is found: a script may write its secret in base64.
    """
    if isinstance(value, str):
        for secret in hidden:
            if len(secret) >= SHORTEST_HIDDEN:
                value = value.replace(secret, HIDDEN)
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(redact(child, hidden) for child in value)
    if isinstance(value, dict):
        return {key: redact(child, hidden) for key, child in value.items()}
    return value


def redact_json(text: bytes, hidden: tuple[str, ...]) -> bytes:
    """The same JSON with each `hidden` value as `***`, in texts, keys and numbers. Unchanged text stays as it is."""
    long = tuple(secret for secret in hidden if len(secret) >= SHORTEST_HIDDEN)
    if not any(secret.encode() in text for secret in long):
        return text
    return msgspec.json.encode(_redacted(msgspec.json.decode(text), long))


def _redacted(value: Any, hidden: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {redact(key, hidden): _redacted(child, hidden) for key, child in value.items()}
    if isinstance(value, list):
        return [_redacted(child, hidden) for child in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return HIDDEN if str(value) in hidden else value
    return redact(value, hidden)


def _names(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for child in value for name in _names(child)]
    if isinstance(value, dict):
        return [value[SECRET]] if SECRET in value else _names(list(value.values()))
    return []


def _filled(value: Any, granted: Mapping[str, str], scraper: Scraper) -> Any:
    if isinstance(value, list):
        return [_filled(child, granted, scraper) for child in value]
    if isinstance(value, dict) and SECRET in value:
        return _value(value[SECRET], granted, scraper)
    if isinstance(value, dict):
        return {key: _filled(child, granted, scraper) for key, child in value.items()}
    return value


def _value(name: str, granted: Mapping[str, str], scraper: Scraper) -> str:
    if name not in granted:
        raise ScraperInvalid(
            f"{scraper.ref}: the secret {name} is not granted to it; the operator runs `scrapeyard secrets set "
            f"{scraper.ref.id} {name}`, or adds {name} for {scraper.ref.id} to the file of repository.secrets_file"
        )
    return granted[name]


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _read(path: Path) -> Grants:
    with path.open("rb") as stream:
        mode = os.fstat(stream.fileno()).st_mode
        if os.name == "posix" and mode & 0o027:
            raise SettingsInvalid(
                f"repository.secrets_file: {path} is open to others (mode {stat.S_IMODE(mode):03o}); chmod it to 600"
            )
        text = stream.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise SettingsInvalid(f"repository.secrets_file: {path} is larger than {MAX_BYTES >> 20} MB")
    return {who: _grant(who, granted, path) for who, granted in _table(text, path).items()}


def _table(text: bytes, path: Path) -> dict[str, Any]:
    """Hides the parser's own message, because it may quote a value."""
    try:
        return parse_toml(text)
    except ValueError:
        raise SettingsInvalid(f"repository.secrets_file: {path} is not TOML in UTF-8") from None


def _grant(who: str, granted: Any, path: Path) -> dict[str, str]:
    place = f"repository.secrets_file: {path}: {who[:100]!r}"
    if SCRAPER_ID.fullmatch(f"{who[:-1]}x" if who.endswith("/*") else who) is None or not isinstance(granted, dict):
        raise SettingsInvalid(f'{place} must be a table named ["site/task"] or ["site/*"]')
    for name, value in granted.items():
        if SECRET_NAME.fullmatch(name) is None:
            raise SettingsInvalid(f"{place}: {name[:100]!r} is no name: letters, digits, '.', '_', '-'")
        if not isinstance(value, str) or not 0 < len(value) <= MAX_VALUE:
            raise SettingsInvalid(f"{place}: {name} must be text of 1 to {MAX_VALUE} characters")
    return granted
