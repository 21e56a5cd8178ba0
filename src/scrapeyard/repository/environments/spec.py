"""The requirements of a scraper, its optional lock, and the keys derived from them."""

import hashlib
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from msgspec import Struct

from scrapeyard.errors import ScraperInvalid
from scrapeyard.model import Scraper
from scrapeyard.repository.manifest.requirements import check_requirement
from scrapeyard.repository.manifest.values import Place

NEEDED = ("selectolax",)


def pins() -> tuple[str, ...]:
    """Name and version of each, as a resolver's constraints."""
    return tuple(f"{name}=={metadata.version(name)}" for name in NEEDED)


def copy_to(packages: Path, already: frozenset[str]) -> None:
    """Copy each package that the environment does not have `already`. Raises OSError."""
    for name in NEEDED:
        if name not in already:
            _copy(metadata.distribution(name), packages)


def _copy(distribution: metadata.Distribution, packages: Path) -> None:
    for file in distribution.files or ():
        source = Path(str(distribution.locate_file(file)))
        if ".." in file.parts or not source.is_file():
            continue
        target = packages / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


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
    """The requirements, stripped, sorted and deduplicated. Raises ScraperInvalid naming the first that a manifest may
    not have; this repeats the manifest's check before uv reads them."""
    found = {check_requirement(requirement, _PLACE) for requirement in requirements}
    if len(found) > MAX_REQUIREMENTS:
        raise _PLACE.fault(f"must be at most {MAX_REQUIREMENTS}")
    return tuple(sorted(found))


def read_lock(folder: Path) -> str:
    """The scraper's own lock, without comments; empty if it has none.

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
    """The packages of a lock, by normalized name."""
    return frozenset(normal(line.partition("==")[0].partition("[")[0]) for line in lock.splitlines() if line)


def normal(name: str) -> str:
    """The normalized form of a package's name, equal for all of its spellings."""
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


_FORMAT = "1"


class EnvironmentSpec(Struct, frozen=True, kw_only=True):
    """A set of requirements for this interpreter on this kind of machine."""

    key: str
    requirements: tuple[str, ...] = ()
    lock: str = ""
    """The scraper's own lock; if empty, its requirements are resolved here."""


def spec_of(scraper: Scraper) -> EnvironmentSpec | None:
    """None when it requires nothing. Raises ScraperInvalid. Blocking, for a small file."""
    if scraper.folder is None:
        return None
    lock = read_lock(scraper.folder)
    if lock:
        return EnvironmentSpec(key=_digest("lock", lock), lock=lock)
    if not scraper.requirements:
        return None
    requirements = checked(scraper.requirements)
    return EnvironmentSpec(key=_digest("requirements", *requirements), requirements=requirements)


def environment_key(lock: str) -> str:
    """The name of the environment that a lock makes."""
    return _digest("environment", lock)


def _digest(*parts: str) -> str:
    """Does not include the platform's own version: its code is not in an environment."""
    machine = (_FORMAT, sys.version, sysconfig.get_platform(), *pins())
    total = hashlib.sha256()
    for part in (*machine, *parts):
        raw = part.encode()
        total.update(len(raw).to_bytes(4, "little") + raw)
    return total.hexdigest()
