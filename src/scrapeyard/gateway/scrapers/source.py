"""The files of a scraper's version, for people who read what runs: bounded, and only what was checked."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter
from msgspec import Meta, Struct

from scrapeyard.errors import NotFound, SourceUnavailable
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.auth.ownership import check_call
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.scrapers.routes import Site, Task, WantedVersion
from scrapeyard.repository.archive.files import ChangedMeanwhile, SourceFile, list_files, read_chunks
from scrapeyard.repository.manifest.manifest import FILE_NAME
from scrapeyard.repository.port import find

MAX_FILES = 500
MAX_TEXT_BYTES = 256 * 1024
MAX_ALL_BYTES = 2 * 1024 * 1024


class ScriptFileDocument(Struct, frozen=True, kw_only=True):
    """A file of a scraper."""

    name: Annotated[str, Meta(description="Relative to the scraper's folder, with slashes.")]
    size: int
    text: Annotated[
        str | None,
        Meta(description="Null if it is not UTF-8, larger than 256 KiB, or past 2 MiB of text in one answer."),
    ]


class ScraperSourceDocument(Struct, frozen=True, kw_only=True):
    """The files of one version of a scraper."""

    scraper: Annotated[str, Meta(description="`site/task@version`.")]
    digest: str
    entry: Annotated[str, Meta(description="The file and the function that a run calls.")]
    files: Annotated[list[ScriptFileDocument], Meta(description="By name, at most 500.")]
    more: Annotated[bool, Meta(description="Whether there are files that are not listed.")]


router = APIRouter(tags=["scrapers"], route_class=AnswerRoute)


@router.get(
    "/api/scrapers/{site}/{task}/source", summary="Read a scraper's files", responses=refusals(400, 404, 422, 503)
)
async def get_source(
    gateway: GatewayDep, identity: IdentityDep, site: Site, task: Task, version: WantedVersion = None
) -> ScraperSourceDocument:
    """The files of the version that a call would get, or of the one that is named, as they run. Recorded cases and
    hidden files are not part of a version. A built-in scraper has none to read."""
    check_call(identity, f"{site}/{task}")
    catalogue = gateway.services.catalogue
    scraper = await find(catalogue, f"{site}/{task}@{version}" if version else f"{site}/{task}")
    if scraper.folder is None:
        raise NotFound(f"{site}/{task} is built in and has no files of its own")
    if not await catalogue.verify(scraper):
        raise SourceUnavailable(f"the copy of {scraper.ref} was damaged and is fetched again; try it in a moment")
    files = await asyncio.to_thread(_files, scraper.folder)
    return ScraperSourceDocument(
        scraper=str(scraper.ref),
        digest=scraper.ref.digest,
        entry=scraper.entry,
        files=files[:MAX_FILES],
        more=len(files) > MAX_FILES,
    )


def _files(folder: Path) -> list[ScriptFileDocument]:
    root = folder.resolve()
    return list(_read(list_files(root, root, marker=FILE_NAME, label=folder.name)[: MAX_FILES + 1]))


def _read(files: tuple[SourceFile, ...]) -> Iterator[ScriptFileDocument]:
    left = MAX_ALL_BYTES
    for file in files:
        text = _text(file) if file.size <= min(MAX_TEXT_BYTES, left) else None
        left -= file.size if text is not None else 0
        yield ScriptFileDocument(name=file.name, size=file.size, text=text)


def _text(file: SourceFile) -> str | None:
    try:
        return b"".join(read_chunks(file)).decode()
    except (OSError, ChangedMeanwhile, UnicodeDecodeError):
        return None
