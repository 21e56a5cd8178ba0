"""The requirements of a scraper as an environment is made of them, and the lock that it may bring along."""

import re
from collections.abc import Iterable
from pathlib import Path

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.manifest.requirements import check_requirement
from scrapeyard.repository.manifest.values import Place

LOCK_FILE = "requirements.lock"
MAX_REQUIREMENTS = 200
MAX_LOCK_BYTES = 1024 * 1024
_PLACE = Place("scraper.toml", "requirements")
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_EXTRAS = rf"\[\s*(?:{_NAME}(?:\s*,\s*{_NAME})*)?\s*\]"
_MARKER = r""";[A-Za-z0-9_.'"<>=!~() ,+*-]+"""
_HASH = r"--hash=sha(?:256|384|512):[0-9a-f]{64,128}"
_PIN = re.compile(rf"{_NAME}(?:{_EXTRAS})?\s*==\s*[A-Za-z0-9.+!_-]+\s*(?:{_MARKER}?)?(?:\s+{_HASH})+")


def checked(requirements: Iterable[str]) -> tuple[str, ...]:
    """The same, stripped, sorted, each once. Raises ScraperInvalid naming the first that a manifest may not have:
    they are checked again where they become files that uv reads."""
    found = {check_requirement(requirement, _PLACE) for requirement in requirements}
    if len(found) > MAX_REQUIREMENTS:
        raise _PLACE.fault(f"must be at most {MAX_REQUIREMENTS}")
    return tuple(sorted(found))


def read_lock(folder: Path) -> str:
    """The lock that a scraper brings along, without comments; empty when it has none.

    Raises ScraperInvalid when it is too large or a line is anything but a pinned package with its hashes. Blocking.
    """
    try:
        with (folder / LOCK_FILE).open("rb") as stream:
            raw = stream.read(MAX_LOCK_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ScraperInvalid(f"{LOCK_FILE}: cannot be read: {error.strerror}") from None
    if len(raw) > MAX_LOCK_BYTES:
        raise ScraperInvalid(f"{LOCK_FILE}: larger than {MAX_LOCK_BYTES // 1024} KB")
    try:
        return _pins(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise ScraperInvalid(f"{LOCK_FILE}: not UTF-8") from None


def names(lock: str) -> frozenset[str]:
    """The packages of a lock, spelled in the one normal way."""
    return frozenset(normal(line.partition("==")[0].partition("[")[0]) for line in lock.splitlines() if line)


def normal(name: str) -> str:
    """A package's name in the one spelling under which all of its spellings are equal."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _pins(text: str) -> str:
    whole = text.replace("\r\n", "\n").replace("\\\n", " ")
    lines = (re.sub(r"(^|\s)#.*$", "", line) for line in whole.split("\n"))
    pins = [" ".join(line.split()) for line in lines if line.strip()]
    for pin in pins:
        if _PIN.fullmatch(pin) is None:
            raise ScraperInvalid(
                f"{LOCK_FILE}: {pin[:100]!r} is not `name==version --hash=sha256:…`; "
                "make the file with `uv pip compile --generate-hashes`"
            )
    return "".join(f"{pin}\n" for pin in sorted(pins))
