"""A cassette: the pages that one run fetched, as `cassette.json` and one file for each body under `pages/`."""

import difflib
import hashlib
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from scrapeyard.authoring.redaction import Veil, clean_body, clean_url
from scrapeyard.engines.http.checks import check_allowed, first_hop
from scrapeyard.engines.port import FetchRequest
from scrapeyard.errors import ScraperInvalid
from scrapeyard.model import ExitReason, Scraper


def read_bounded(path: Path, most: int) -> bytes:
    """A regular file of at most `most` bytes, never through a link. Raises ScraperInvalid. Blocking."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ScraperInvalid(f"{path}: cannot be read: {error.strerror}; record the case again") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ScraperInvalid(f"{path}: not a regular file; record the case again")
        with open(descriptor, "rb", closefd=False) as stream:
            data = stream.read(most + 1)
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise ScraperInvalid(f"{path}: larger than {_shown(most)}; record a smaller input")
    return data


def _shown(size: int) -> str:
    return f"{size / (1 << 20):.3g} MB" if size >= 1 << 20 else f"{size} bytes"


MAX_COMPARED = 300
"""Characters of a URL that are compared to find the nearest one."""


class RecordedRequest(Struct, frozen=True, kw_only=True):
    """One request as a cassette stores it. Headers are ignored."""

    method: str
    url: str
    """Normalized as the engine does, with secrets hidden."""
    body_sha256: str = ""
    """Digest of the request's body, with secrets hidden; empty if there is none."""
    follow_redirects: bool = True

    def __str__(self) -> str:
        body = f" with body {self.body_sha256[:12]}…" if self.body_sha256 else ""
        return f"{self.method} {self.url}{body}{'' if self.follow_redirects else ' (redirects not followed)'}"


def asked_of(request: FetchRequest, scraper: Scraper | None, veil: Veil) -> RecordedRequest:
    """The request as it is recorded and matched. `veil` hides the scraper's own secrets.

    Raises FetchFailed as the engine does before it sends anything: a bad URL, a host that is not allowed.
    """
    hop = first_hop(request)
    check_allowed(hop.target, scraper.allowed_hosts if scraper else ())
    return RecordedRequest(
        method=hop.method,
        url=clean_url(veil.text(hop.target.url)),
        body_sha256=_digest(request, veil),
        follow_redirects=request.follow_redirects,
    )


def nearest(asked: RecordedRequest, known: Iterable[RecordedRequest]) -> RecordedRequest | None:
    """The known request that is most like this one; None when none is known."""
    return max(known, key=lambda each: _likeness(asked, each), default=None)


def _likeness(one: RecordedRequest, other: RecordedRequest) -> tuple[bool, float, bool]:
    ratio = difflib.SequenceMatcher(None, one.url[:MAX_COMPARED], other.url[:MAX_COMPARED], autojunk=False).ratio()
    return one.url == other.url, ratio, one.method == other.method


def _digest(request: FetchRequest, veil: Veil) -> str:
    if not request.body:
        return ""
    kind = next((value for name, value in request.headers.items() if name.lower() == "content-type"), "")
    return hashlib.sha256(clean_body(veil.data(request.body), kind)).hexdigest()


FILE_NAME = "cassette.json"
FOLDER = "pages"
FORMAT = 1
MAX_JSON_BYTES = 4 * 1024 * 1024
MAX_PAGES = 1000
MAX_BODY_BYTES = 20 * 1024 * 1024
MAX_BYTES = 64 * 1024 * 1024

_FILE = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}", re.ASCII)
_ENDINGS = {
    "application/javascript": "js",
    "application/json": "json",
    "application/pdf": "pdf",
    "application/xhtml+xml": "html",
    "application/xml": "xml",
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/webp": "webp",
    "text/css": "css",
    "text/csv": "csv",
    "text/html": "html",
    "text/javascript": "js",
    "text/plain": "txt",
    "text/xml": "xml",
}


class CassetteEntry(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One request and its outcome, as stored in the file: a response has a `status`, a failure an `error`."""

    method: str
    url: str
    body_sha256: str = ""
    follow_redirects: bool = True
    status: int | None = None
    final_url: str = ""
    """The URL after redirects; empty if it is the same."""
    redirects: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    encoding: str = "utf-8"
    file: str = ""
    """Name of the body's file under `pages/`; empty for an empty body."""
    error: ExitReason | None = None
    message: str = ""
    site_status: int | None = None

    @property
    def asked(self) -> RecordedRequest:
        """The request."""
        return RecordedRequest(
            method=self.method,
            url=self.url,
            body_sha256=self.body_sha256,
            follow_redirects=self.follow_redirects,
        )


class RecordedPage(Struct, frozen=True, kw_only=True):
    """An entry with its body."""

    entry: CassetteEntry
    body: bytes = b""


class _Document(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: int
    pages: tuple[CassetteEntry, ...]


def read_cassette(folder: Path) -> tuple[RecordedPage, ...]:
    """The pages in a case's folder, in the order they were asked for. Raises ScraperInvalid. Blocking."""
    path = folder / FILE_NAME
    document = _decode(read_bounded(path, MAX_JSON_BYTES), path)
    if document.format != FORMAT:
        raise ScraperInvalid(f"{path}: format: this version of Scrapeyard reads format {FORMAT} alone")
    if len(document.pages) > MAX_PAGES:
        raise ScraperInvalid(f"{path}: more than {MAX_PAGES} pages; record a smaller input")
    pages, left = [], MAX_BYTES
    for number, entry in enumerate(document.pages):
        _check(entry, f"{path}: pages[{number}]")
        body = _body(folder, entry, min(left, MAX_BODY_BYTES))
        left -= len(body)
        pages.append(RecordedPage(entry=entry, body=body))
    return tuple(pages)


def write_cassette(folder: Path, pages: tuple[RecordedPage, ...]) -> None:
    """Write a cassette into a case's folder, which is empty. Names depend on the pages alone. Raises OSError."""
    if any(page.body for page in pages):
        (folder / FOLDER).mkdir()
    entries = []
    for number, page in enumerate(pages, 1):
        name = _file_name(number, page.entry) if page.body else ""
        if page.body:
            (folder / FOLDER / name).write_bytes(page.body)
        entries.append(msgspec.structs.replace(page.entry, file=name))
    document = msgspec.json.encode(_Document(format=FORMAT, pages=tuple(entries)))
    (folder / FILE_NAME).write_bytes(msgspec.json.format(document, indent=2) + b"\n")


def _decode(data: bytes, path: Path) -> _Document:
    try:
        return msgspec.json.decode(data, type=_Document)
    except msgspec.ValidationError as error:
        raise ScraperInvalid(f"{path}: not a cassette: {error}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ScraperInvalid(f"{path}: not JSON: {str(error)[:200]}") from None


def _check(entry: CassetteEntry, where: str) -> None:
    if (entry.status is None) == (entry.error is None):
        raise ScraperInvalid(f"{where}: needs a status, or an error; one of them")
    if entry.status is not None and not 100 <= entry.status <= 599:
        raise ScraperInvalid(f"{where}.status: must be 100 to 599")
    if entry.error is not None and not entry.error.value.startswith("fetch_"):
        raise ScraperInvalid(f"{where}.error: must be one of the fetch_… reasons")
    if entry.file and _FILE.fullmatch(entry.file) is None:
        raise ScraperInvalid(f"{where}.file: {entry.file[:100]!r} is not the name of a file under {FOLDER}/")
    try:
        b"x".decode(entry.encoding, "replace")
    except (LookupError, ValueError):
        raise ScraperInvalid(f"{where}.encoding: {entry.encoding[:50]!r} is not known") from None


def _body(folder: Path, entry: CassetteEntry, most: int) -> bytes:
    if not entry.file:
        return b""
    if (folder / FOLDER).is_symlink():
        raise ScraperInvalid(f"{folder / FOLDER}: a link; copy the pages in")
    return read_bounded(folder / FOLDER / entry.file, most)


def _file_name(number: int, entry: CassetteEntry) -> str:
    kind = next((value for name, value in entry.headers if name == "content-type"), "")
    ending = _ENDINGS.get(kind.partition(";")[0].strip().lower(), "bin")
    parts = urlsplit(entry.url)
    words = re.sub(r"[^a-z0-9]+", "-", f"{parts.path}-{parts.query}".lower()).strip("-")[:60].strip("-")
    return f"{number:03d}-{words or 'index'}.{ending}"
