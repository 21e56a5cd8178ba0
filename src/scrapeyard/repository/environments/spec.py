"""What a scraper asks for, and the names that follow from it."""

import hashlib
import sys
import sysconfig

from msgspec import Struct

from scrapeyard.model import Scraper
from scrapeyard.repository.environments import base
from scrapeyard.repository.environments.requirements import checked, read_lock

_FORMAT = "1"


class Wish(Struct, frozen=True, kw_only=True):
    """A set of requirements for this interpreter on this kind of machine."""

    key: str
    requirements: tuple[str, ...] = ()
    lock: str = ""
    """What the scraper brings along; empty: its requirements are resolved here."""


def wish_of(scraper: Scraper) -> Wish | None:
    """None when it requires nothing. Raises ScraperInvalid. Blocking, for a small file."""
    if scraper.folder is None:
        return None
    lock = read_lock(scraper.folder)
    if lock:
        return Wish(key=_digest("lock", lock), lock=lock)
    if not scraper.requirements:
        return None
    requirements = checked(scraper.requirements)
    return Wish(key=_digest("requirements", *requirements), requirements=requirements)


def environment_key(lock: str) -> str:
    """The name of the environment that a lock makes."""
    return _digest("environment", lock)


def _digest(*parts: str) -> str:
    """The platform's own version has no part in it: its code is not in an environment."""
    machine = (_FORMAT, sys.version, sysconfig.get_platform(), *base.pins())
    total = hashlib.sha256()
    for part in (*machine, *parts):
        raw = part.encode()
        total.update(len(raw).to_bytes(4, "little") + raw)
    return total.hexdigest()
