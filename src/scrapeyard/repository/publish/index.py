"""One version into an index document. What else stands in it stays, understood or not."""

from typing import Any

import msgspec
from msgspec import Struct

from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.model import ScraperRef
from scrapeyard.repository.sources.indexed.document import FILE_NAME, FORMAT, MAX_BYTES, Archived, read_offer


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
    """The index with this version, and `channel` pointing to it. With `replace`, another archive of the same content
    takes the place of the one that is there: it has a signature. Raises ScraperInvalid when the version is there with
    other content, SourceUnavailable when the index cannot be read or grows too large."""
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
    """The version that is there, known to have the same content; None when there is none."""
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
