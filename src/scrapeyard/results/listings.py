"""What a job's source says about which pages there are: a page that is missing from it is gone only if it was looked
for."""

import hashlib
from typing import Any, Final

import msgspec
from msgspec import Struct

from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.url import Target, parse_target
from scrapeyard.errors import FetchFailed
from scrapeyard.model.job import Job, JobStatus

_SITES: Final = Sites()
_PLAIN_PORTS: Final = (80, 443)
_encode = msgspec.json.Encoder(order="sorted").encode


class PageListing(Struct, frozen=True, kw_only=True):
    """The source of one job."""

    source: str = ""
    """Digest of where it begins and what it takes: two jobs with the same would list the same pages."""
    depth: int | None = None
    """How deep links are followed; None if they are not."""
    gap: str = ""
    """Why a page that is not on it may still be there; empty if the whole source was read."""
    sites: tuple[str, ...] | None = None
    """The sites it speaks of; None if it speaks of all pages of its scope."""


def listing_of(job: Job) -> PageListing:
    """The listing that a job has read."""
    source = job.source
    kind = source.get("kind")
    depth = source.get("depth", 1) if kind == "follow" else None
    return PageListing(source=_digest(source), depth=depth, gap=_gap(job), sites=_sites(source))


def site_of(url: str) -> str:
    """The site of a page, with its port unless that is the usual one; empty if it is no URL."""
    try:
        target = parse_target(url)
    except FetchFailed:
        return ""
    return _site(target)


def _site(target: Target) -> str:
    site = _SITES.of(target.host)
    return site if target.port in _PLAIN_PORTS else f"{site}:{target.port}"


def _digest(source: dict[str, Any]) -> str:
    if source.get("kind") not in ("sitemap", "follow"):
        return "list"
    names = ("kind", "url", "start", "choice", "same_site", "links")
    more = {name: source[name] for name in ("scope", "query", "sitemap") if name in source}
    return hashlib.sha256(_encode({**{name: source.get(name) for name in names}, **more})).hexdigest()[:16]


def _sites(source: dict[str, Any]) -> tuple[str, ...] | None:
    if source.get("kind") == "sitemap":
        return (site_of(str(source.get("url"))),)
    if source.get("kind") == "follow":
        return tuple({site_of(str(url)): None for url in source.get("start", ())})
    return None


def _gap(job: Job) -> str:
    if job.status is JobStatus.CANCELLED:
        return "the job was cancelled"
    if gaps := job.gaps:
        return gaps[0]
    if job.source.get("modified_since") is not None:
        return "the job read only pages that were modified lately"
    return ""
