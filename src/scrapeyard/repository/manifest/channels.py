"""Channels: names such as `stable` that point to a version, and the file in which a folder or a repository says so."""

import re
from typing import Any

from scrapeyard.errors import ScraperInvalid
from scrapeyard.model import SCRAPER_ID
from scrapeyard.repository.manifest.semver import is_version, looks_like_range
from scrapeyard.repository.manifest.values import parse_toml

FILE_NAME = "channels.toml"


MAX_BYTES = 1024 * 1024


MAX_SCRAPERS = 10_000


MAX_CHANNELS = 50
"""Of one scraper."""


_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")


Channels = dict[str, dict[str, str]]
"""By scraper id: channel name → version."""


def is_channel(name: str) -> bool:
    """Whether a channel may have this name: lower case, and not a range such as `x`."""
    return _NAME.fullmatch(name) is not None and not looks_like_range(name)


def read_channels(text: bytes, where: str) -> Channels:
    """Read a `channels.toml`: `["shop/product"]`, then `stable = "1.4.1"`. Raises ScraperInvalid naming the place."""
    if len(text) > MAX_BYTES:
        raise ScraperInvalid(f"{where}: larger than {MAX_BYTES // 1024} KB; shorten it")
    try:
        table = parse_toml(text)
    except ValueError as error:
        raise ScraperInvalid(f"{where}: not TOML in UTF-8: {str(error)[:200]}") from None
    return check_channels(table, where)


def check_channels(table: dict[str, Any], where: str) -> Channels:
    """The table, checked to hold channels. Raises ScraperInvalid naming the place."""
    if len(table) > MAX_SCRAPERS:
        raise ScraperInvalid(f"{where}: more than {MAX_SCRAPERS} scrapers; remove those without channels")
    return {scraper_id: _of_one(scraper_id, given, where) for scraper_id, given in table.items()}


def _of_one(scraper_id: str, given: Any, where: str) -> dict[str, str]:
    place = f"{where}: {scraper_id[:100]}"
    if SCRAPER_ID.fullmatch(scraper_id) is None:
        raise ScraperInvalid(f'{place}: not a scraper\'s id; write ["site/task"]')
    if not isinstance(given, dict) or len(given) > MAX_CHANNELS:
        raise ScraperInvalid(f'{place}: must be a table of at most {MAX_CHANNELS} channels, e.g. stable = "1.4.1"')
    for name, version in given.items():
        if not is_channel(name):
            raise ScraperInvalid(f"{place}: {name[:100]!r} is not a channel's name; write lower-case letters")
        if not isinstance(version, str) or not is_version(version):
            raise ScraperInvalid(f'{place}: {name}: must be a version such as "1.4.1"')
    return given
