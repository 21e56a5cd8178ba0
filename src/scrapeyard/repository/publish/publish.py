"""Publishing a scraper: pack it, put the archive beside the index, then name it in the index."""

import asyncio
import hashlib
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct

from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.model import Limits, Scraper, ScraperRef
from scrapeyard.repository.archive.archives import pack
from scrapeyard.repository.archive.copies import SIGNATURE, Cache
from scrapeyard.repository.archive.files import ChangedMeanwhile, SourceFile, list_files, scraper_files
from scrapeyard.repository.catalogue.loading import LoadTerms, identify, load_files
from scrapeyard.repository.manifest.manifest import CAPABILITIES
from scrapeyard.repository.sources.indexed.document import FILE_NAME, FORMAT, MAX_BYTES, Archived, read_offer
from scrapeyard.repository.trust.signing import sign

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class Change(Struct, frozen=True, kw_only=True):
    """What publishing does to an index."""

    outcome: str
    """`published`, `moved` or `unchanged`."""
    entry: Archived
    """The version as the index then has it."""
    text: bytes
    """The new index."""


def changed_index(
    text: bytes | None, ref: ScraperRef, entry: Archived, channel: str, *, replace: bool, where: str
) -> Change:
    """The index with this version, and `channel` pointing to it. With `replace`, the new archive replaces an existing
    one of the same content, because it is signed. Raises ScraperInvalid if the version exists with other content,
    SourceUnavailable if the index cannot be read or grows too large."""
    tree = _read(text, where)
    scraper = _branch(tree["scrapers"], ref.id, where)
    versions, channels = _branch(scraper, "versions", where), _branch(scraper, "channels", where)
    there = _there(versions.get(ref.version), ref, entry, where)
    outcome = "unchanged" if channels.get(channel, "") == (ref.version if channel else "") else "moved"
    if there is None or (replace and there.sha256 != entry.sha256):
        versions[ref.version] = entry
        there, outcome = entry, "published"
    if channel:
        channels[channel] = ref.version
    return Change(outcome=outcome, entry=there, text=_written(tree, where))


def _read(text: bytes | None, where: str) -> dict[str, Any]:
    if text is None:
        return {"schema": FORMAT, "scrapers": {}}
    read_offer(text, "", f"{where}: {FILE_NAME}")
    tree: dict[str, Any] = msgspec.json.decode(text)
    return tree


def _branch(tree: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    branch = tree.setdefault(key, {})
    if not isinstance(branch, dict):
        raise SourceUnavailable(f"{where}: {FILE_NAME}: {key} is not an object there; mend it")
    return branch


def _there(given: Any, ref: ScraperRef, entry: Archived, where: str) -> Archived | None:
    """The existing entry of the version, checked to have the same content; None if there is none."""
    if given is None:
        return None
    try:
        there = msgspec.convert(given, Archived)
    except msgspec.ValidationError as error:
        raise SourceUnavailable(f"{where}: {FILE_NAME}: {ref} is there but wrong: {error}; take it out") from None
    same = there.digest == entry.digest if there.digest else there.sha256 == entry.sha256
    if not same:
        kind = "digest" if there.digest else "sha256"
        raise ScraperInvalid(
            f"{ref} is published already with other content: {kind} {getattr(there, kind)} at {where}, "
            f"{getattr(entry, kind)} here; raise the version in scraper.toml"
        )
    return there


def _written(tree: dict[str, Any], where: str) -> bytes:
    text = msgspec.json.format(msgspec.json.encode(tree, order="sorted"), indent=1) + b"\n"
    if len(text) > MAX_BYTES:
        raise SourceUnavailable(
            f"{where}: {FILE_NAME} would be larger than {MAX_BYTES >> 20} MB; take old versions out"
        )
    return text


ATTEMPTS = 30
"""Attempts to write the index while others publish; of several publishers, at least one succeeds each time."""
_PAUSE_SECONDS = 0.05


class Parcel(Struct, frozen=True, kw_only=True):
    """A scraper, checked and packed."""

    ref: ScraperRef
    file: Path
    entry: Archived
    is_signed: bool


class Published(Struct, frozen=True, kw_only=True):
    """The result of publishing a parcel."""

    id: str
    version: str
    digest: str
    archive: str
    size: int
    sha256: str
    target: str
    channel: str
    outcome: str
    """`published`; `moved` when only the channel was; `unchanged` when all of it was there already."""


class PublishTarget(Protocol):
    """Where scrapers are published to."""

    name: str
    """Shown in messages; without credentials."""

    async def read_index(self) -> tuple[bytes | None, str]:
        """The index (None if there is none yet) and a mark that identifies this state. Raises SourceUnavailable."""

    async def put_archive(self, path: str, file: Path) -> None:
        """Write an archive atomically; its path is derived from its content. Raises SourceUnavailable."""

    async def write_index(self, text: bytes, mark: str) -> bool:
        """Replace the index if it still has this mark; False if it has changed, so read it again. Raises
        SourceUnavailable."""


def pack_scraper(folder: Path, work: Path, ceiling: Limits, private: "Ed25519PrivateKey | None" = None) -> Parcel:
    """Check a scraper and pack it into `work`, an empty folder; with a key, signed. Blocking.

    Assumes every permission that an operator must grant, such as the direct network. Raises ScraperInvalid.
    """
    try:
        scraper = _load(folder, work, ceiling)
        files = _signed(scraper, work, private)
        file = work / "archive.tar.gz"
        with file.open("xb") as stream:
            pack(files, stream)
    except OSError as error:
        raise ScraperInvalid(f"{error.filename or folder}: cannot be read: {error.strerror}") from None
    except ChangedMeanwhile:
        raise ScraperInvalid(f"{folder}: changed while it was read; try again") from None
    return Parcel(
        ref=scraper.ref,
        file=file,
        entry=_entry(file, scraper.ref),
        is_signed=any(each.name == SIGNATURE for each in files),
    )


async def publish(parcel: Parcel, target: PublishTarget, *, channel: str = "", dry_run: bool = False) -> Published:
    """Upload a parcel and point `channel` to it. With `dry_run`, only report what would happen.

    Raises ScraperInvalid, naming both digests, if that version exists with other content; SourceUnavailable.
    """
    tried = set()
    for attempt in range(ATTEMPTS):
        text, mark = await target.read_index()
        change = changed_index(text, parcel.ref, parcel.entry, channel, replace=parcel.is_signed, where=target.name)
        tried.add(change.outcome)
        # A web server may have taken our index and then another's, which has our version: what we did still counts.
        outcome = next(each for each in ("published", "moved", "unchanged") if each in tried)
        if change.outcome == "unchanged" or dry_run:
            return _published(parcel, target, channel, change.entry, outcome)
        if change.outcome == "published":
            await target.put_archive(parcel.entry.archive, parcel.file)
        if await target.write_index(change.text, mark):
            return _published(parcel, target, channel, change.entry, outcome)
        await asyncio.sleep(random.uniform(0, _PAUSE_SECONDS * (attempt + 1)))  # noqa: S311 - no secret
    raise SourceUnavailable(f"{target.name}: others wrote the index {ATTEMPTS} times meanwhile; try again")


def _load(folder: Path, work: Path, ceiling: Limits) -> Scraper:
    ref, _ = identify(folder)
    terms = LoadTerms(ceiling=ceiling, direct_network=(ref.id,), capabilities=CAPABILITIES)
    return load_files(scraper_files(folder, folder.resolve(), str(folder)), Cache(work / "copy"), terms, str(folder))


def _signed(scraper: Scraper, work: Path, private: "Ed25519PrivateKey | None") -> tuple[SourceFile, ...]:
    """The files of the copy that was checked, with a new signature in place of an old one."""
    assert scraper.folder is not None  # noqa: S101 - it was loaded from a folder
    files = list_files(scraper.folder, scraper.folder, marker="", label=str(scraper.ref))
    if private is None:
        return files
    extra = work / "signature"
    extra.mkdir()
    (extra / SIGNATURE).write_bytes(sign(scraper.ref, private))
    return tuple(file for file in files if file.name != SIGNATURE) + list_files(
        extra, extra, marker="", label=str(scraper.ref)
    )


def _entry(file: Path, ref: ScraperRef) -> Archived:
    with file.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    return Archived(
        archive=f"archives/{ref.id}/{ref.version}-{sha256[:16]}.tar.gz",
        size=file.stat().st_size,
        sha256=sha256,
        digest=ref.digest,
    )


def _published(parcel: Parcel, target: PublishTarget, channel: str, entry: Archived, outcome: str) -> Published:
    return Published(
        id=parcel.ref.id,
        version=parcel.ref.version,
        digest=parcel.ref.digest,
        archive=entry.archive,
        size=entry.size,
        sha256=entry.sha256,
        target=target.name,
        channel=channel,
        outcome=outcome,
    )
