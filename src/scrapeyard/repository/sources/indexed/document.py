"""`index.json`: what an HTTP or S3 repository offers.

    {"schema": 1,
     "scrapers": {
       "shop/product": {
         "versions": {
           "1.4.2": {"archive": "archives/shop/product/1.4.2-5e1f….tar.gz",
                     "size": 1834, "sha256": "5e1f…", "digest": "90ab…"}},
         "channels": {"stable": "1.4.2"}}}}

`archive` is a path below the document's own folder; `sha256` is of the archive, `digest` (optional) of the files in it.
Unknown keys are ignored, so that later versions may add some. An invalid entry does not affect the others.
"""

import re
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from scrapeyard.errors import SourceUnavailable
from scrapeyard.model import SCRAPER_ID
from scrapeyard.repository.archive.archives import ENDINGS, MAX_ARCHIVE_BYTES
from scrapeyard.repository.manifest.channels import MAX_CHANNELS, is_channel
from scrapeyard.repository.manifest.semver import is_version
from scrapeyard.repository.sources.port import Fault, Offer, Release

FILE_NAME: Final = "index.json"
FORMAT: Final = 1
MAX_BYTES: Final = 16 * 1024 * 1024
MAX_VERSIONS: Final = 100_000
MAX_FAULTS: Final = 1000
_PATH: Final = re.compile(r"(?!.*(?:^|/)\.{1,2}(?:/|$))[A-Za-z0-9._+@-]+(?:/[A-Za-z0-9._+@-]+){0,15}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class Archived(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One version in the document."""

    archive: str
    size: int
    sha256: str
    digest: str = ""
    """Digest of the files' names and contents, as listings show it; empty if the document does not say."""


class _Document(Struct, frozen=True, kw_only=True):
    schema: int
    scrapers: dict[str, Raw]


class _Scraper(Struct, frozen=True, kw_only=True):
    versions: dict[str, Raw]
    channels: Any = None


def read_offer(text: bytes, mark: str, where: str) -> Offer:
    """What a document offers. Raises SourceUnavailable, whose message begins with `where`, if it cannot be read."""
    document = _decode(text, where)
    reading = _Reading()
    for scraper_id, raw in document.scrapers.items():
        reading.scraper(scraper_id, raw)
        if reading.count > MAX_VERSIONS:
            raise SourceUnavailable(f"{where}: more than {MAX_VERSIONS} versions; take old ones out of it")
    return Offer(
        mark=mark,
        releases=tuple(reading.releases),
        faults=tuple(reading.faults[:MAX_FAULTS]),
        channels=reading.channels,
    )


def path_fault(path: str) -> str:
    """What is wrong with the path of an archive; empty when it is good."""
    if len(path) > 512 or _PATH.fullmatch(path) is None:
        return "must be a path below the index, of letters, digits and . _ + @ - /"
    return "" if path.endswith(ENDINGS) else f"must end with {' or '.join(ENDINGS)}"


def _decode(text: bytes, where: str) -> _Document:
    if len(text) > MAX_BYTES:
        raise SourceUnavailable(f"{where}: larger than {MAX_BYTES >> 20} MB; take old versions out of it")
    try:
        document = msgspec.json.decode(text, type=_Document)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SourceUnavailable(f"{where}: not an index of scrapers: {str(error)[:200]}") from None
    if document.schema != FORMAT:
        raise SourceUnavailable(
            f"{where}: schema {document.schema}, but this version of Scrapeyard reads {FORMAT}; update it"
        )
    return document


class _Reading:
    """Collects valid releases and faults."""

    def __init__(self) -> None:
        self.releases: list[Release] = []
        self.faults: list[Fault] = []
        self.channels: dict[str, dict[str, str]] = {}
        self.count = 0

    def scraper(self, scraper_id: str, raw: Raw) -> None:
        if SCRAPER_ID.fullmatch(scraper_id) is None:
            self._fault(scraper_id, "", "not a scraper's id; write site/task in lower case")
            return
        scraper = _typed(raw, _Scraper)
        if isinstance(scraper, str):
            self._fault(scraper_id, "", scraper)
            return
        self.count += len(scraper.versions)
        if self.count <= MAX_VERSIONS:
            for version, entry in scraper.versions.items():
                self._version(scraper_id, version, entry)
            self._read_channels(scraper_id, scraper)

    def _version(self, scraper_id: str, version: str, raw: Raw) -> None:
        archived = _typed(raw, Archived)
        fault = archived if isinstance(archived, str) else version_fault(version, archived)
        if fault or isinstance(archived, str):
            self._fault(scraper_id, version, fault)
            return
        self.releases.append(
            Release(
                id=scraper_id,
                version=version,
                mark=archived.sha256,
                place=archived.archive,
                size=archived.size,
                digest=archived.digest,
            )
        )

    def _read_channels(self, scraper_id: str, scraper: _Scraper) -> None:
        given = {} if scraper.channels is None else scraper.channels
        if not isinstance(given, dict) or len(given) > MAX_CHANNELS:
            self._fault(scraper_id, "", f"channels: must be names and versions, at most {MAX_CHANNELS}")
            return
        for name, version in given.items():
            if not is_channel(name) or not isinstance(version, str) or version not in scraper.versions:
                self._fault(scraper_id, "", f"channels: {name[:50]!a} must point to a version that is in the index")
            else:
                self.channels.setdefault(scraper_id, {})[name] = version

    def _fault(self, scraper_id: str, version: str, problem: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            where = f"{FILE_NAME}: {_shown(scraper_id)}" + (f" {_shown(version)}" if version else "")
            self.faults.append(
                Fault(id=_shown(scraper_id), version=_shown(version), place=where, problem=f"{where}: {problem}")
            )


def version_fault(version: str, archived: Archived) -> str:
    """What is wrong with a version in a document; empty when it is good."""
    if not is_version(version):
        return "not a semantic version such as 1.4.2"
    if fault := path_fault(archived.archive):
        return f"archive: {fault}"
    if not 0 < archived.size <= MAX_ARCHIVE_BYTES:
        return f"size: must be 1 to {MAX_ARCHIVE_BYTES} bytes"
    if _SHA256.fullmatch(archived.sha256) is None:
        return "sha256: must be 64 hexadecimal digits in lower case"
    if archived.digest and _SHA256.fullmatch(archived.digest) is None:
        return "digest: must be 64 hexadecimal digits in lower case"
    return ""


def _typed(raw: Raw, kind: Any) -> Any:
    """The value converted to `kind`, or a message why it cannot be."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return str(error)[:200]


def _shown(text: str) -> str:
    return text[:100] if text.isprintable() else ascii(text[:100])
