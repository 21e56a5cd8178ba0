"""Where a job's items come from, as stored in the job's row: enough to read it again after a crash."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct, field

from scrapeyard.errors import BadRequest
from scrapeyard.model.job import Job, JobStatus

MAX_PATTERNS = 50
MAX_START = 1000
MAX_DEPTH = 100
"""Maximum number of links from a start."""
MAX_ITEMS = 50_000_000
MAX_IDLE_SECONDS = 600.0
FOLLOWED = "follow"
"""The kind of source whose links are followed."""
READ_IN = (JobStatus.CREATING, JobStatus.RUNNING, JobStatus.PAUSED)
"""Statuses of a job whose source may be read: not only CREATING, since jobs may follow links or be created paused."""
Format = Literal["auto", "csv", "jsonl", "json", "urls"]
BadRows = Literal["reject", "skip"]
ScopeKind = Literal["host", "site", "path", "any"]
QueryMode = Literal["keep", "clean", "sort", "drop"]


class Shape(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How rows become inputs."""

    format: Format = "auto"
    delimiter: Literal["", ",", ";", "\t", "|"] = ""
    """Of CSV; empty to detect it from the first line."""
    names: tuple[str, ...] = ()
    """Column names of CSV without a header."""
    columns: dict[str, str] = field(default_factory=dict)
    """Maps CSV columns to input fields; other columns are dropped. If empty, every column is the field of its name."""
    input: dict[str, Any] = field(default_factory=dict)
    """Fields added to every item, unless its row has them."""
    bad_rows: BadRows = "reject"
    """Whether a bad row refuses the whole list, or is counted and skipped."""


class UrlChoice(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which URLs are taken. A pattern is a glob over the whole URL (`*` stops at a slash, `**` does not), over path and
    query if it starts with a slash, or a regular expression that is looked for in the URL (after `re:`) or in its path
    alone (after `path:`)."""

    include: tuple[str, ...] = ()
    """At least one must match; if empty, all URLs do."""
    exclude: tuple[str, ...] = ()
    """None may match."""


class _Called(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the call says that every source keeps."""

    dialect: str = ""
    """Dialect of the call that made the job, in which answers about it are given; empty for ours."""
    domain: str = ""
    """The site that the job is about, for listings; empty if that is not known."""
    call_digest: str = ""
    """Digest of the call, if it chose the job's id: the same call again is the same job."""
    spool: str = ""
    """Folder of its list below the job's own, if the call chose the job's id: two calls with one id write two files."""


class ListSource(_Called, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="list"):
    """A list that came with the call. It was parsed when the job was created, and is spooled as checked items."""

    shape: Shape = Shape()
    name: str = ""
    """File name, for people."""


class UrlSource(_Called, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="items_url"):
    """A list at a URL."""

    url: str
    shape: Shape = Shape()


class SitemapSource(_Called, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="sitemap"):
    """The URLs of a sitemap with everything it refers to; of a robots.txt; of a site by its own URL."""

    url: str
    shape: Shape = Shape()
    choice: UrlChoice = UrlChoice()
    modified_since: float | None = None
    """Unix seconds. Older pages are skipped; those without a date are not."""
    limit: int | None = None
    """Maximum URLs; None if only the platform's own limit applies."""


class Span(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The records of a partition from one offset up to another, which is not included."""

    partition: int
    start: int
    end: int
    lost: int = 0
    """Records before `start` that were asked for, but that the topic's retention had removed."""


class KafkaSource(_Called, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="kafka"):
    """Records of a Kafka topic, each an item. The spans are written before the first record is read, so that reading
    again after a crash gives the same items."""

    topic: str
    shape: Shape = Shape(format="jsonl", bad_rows="skip")
    group: str = ""
    """Consumer group whose positions say where to begin, and that is moved on when the job has its items."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where to begin in a partition in which the group, if any, has no position."""
    offsets: dict[str, int] = field(default_factory=dict)
    """The same by partition, where it is given."""
    limit: int | None = None
    """Maximum records."""
    idle_seconds: float = 0.0
    """Read on until no record came for this long; 0: up to the ends as they are when reading begins."""
    spans: tuple[Span, ...] = ()
    """What is read; empty before reading began."""


class Progress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a job's links have been followed."""

    depth: int = 0
    """Depth of the pages whose links are being read."""
    at: int = 0
    """Number of the first item at this depth whose links have not been read."""
    end: int = 0
    """Number of the first item that is deeper."""
    failed: int = 0
    """Pages so far that failed, so that their links are not known."""
    first: int = 0
    """Number of the first item at this depth."""
    beyond: int = 0
    """Links that lead to pages which the job does not have: of the deepest pages, or of those read at the limit."""
    at_limit: bool = False
    """Whether the job has as many pages as it may, and the links of all of them are counted."""
    sitemap: int | None = None
    """URLs that the site's sitemaps gave; None if they were not read yet."""
    sitemap_gaps: tuple[str, ...] = ()


class FollowSource(_Called, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag=FOLLOWED):
    """URLs to start with, and the pages their links lead to."""

    start: tuple[str, ...]
    depth: int = 1
    """Maximum number of links from a start."""
    same_site: bool = True
    """Whether links to sites (registrable domains) other than those of the starts are skipped."""
    scope: ScopeKind | Literal[""] = ""
    """Which links are followed: those to the host of a start, to its site, or below its path. Empty: `same_site`."""
    query: QueryMode = "keep"
    """What becomes of the query of a link: see `tidy_query`."""
    sitemap: bool = False
    """Whether the URLs of the sitemaps of the starts' hosts are taken, too, as if the starts linked to them."""
    count_beyond: bool = False
    """Whether links of the deepest pages are counted. The job then reads until its last page has ended."""
    limit: int = 10_000
    """Maximum items, including the starts."""
    choice: UrlChoice = UrlChoice()
    shape: Shape = Shape(bad_rows="skip")
    """Only `input` and `bad_rows` apply: a link that does not fit the scraper's input is skipped, or fails the job."""
    links: str = "links"
    """Field of the results that holds the links: a list of URLs."""
    progress: Progress | None = None
    """None if the starts have not been added yet."""


Source = ListSource | UrlSource | SitemapSource | KafkaSource | FollowSource


class Topics(Protocol):
    """The topics that the operator lets jobs read."""

    def check(self, topic: str) -> None:
        """Raises BadRequest if jobs may not read this topic."""

    async def spans(self, source: KafkaSource) -> Sequence[Span]:
        """Where to read in each partition: from the positions that the source asks for to the ends as they are now.
        Raises BadRequest if there is no such topic, QueueUnavailable if the broker does not answer."""

    def read(self, source: KafkaSource, ended: Callable[[Sequence[Span]], Awaitable[None]]) -> AsyncIterator[bytes]:
        """The records of the spans, each a line, the same ones each time. A source that waits for more reads on, and
        `ended` gets how far it came before the iteration ends. Raises BadRequest if records are gone, QueueUnavailable
        if the broker does not answer."""

    async def commit(self, source: KafkaSource) -> None:
        """Move the group of the source, if it has one, to the ends of its spans. Raises QueueUnavailable."""


def source_of(job: Job) -> Source:
    """The source of a job. Raises BadRequest if it cannot be read."""
    try:
        source: Source = msgspec.convert(job.source, Source)
    except msgspec.ValidationError as error:
        raise BadRequest(f"the job's source cannot be read: {error}") from None
    return source


def spool_place(job_id: str, folder: str) -> str:
    """Where a job's list is spooled."""
    return f"{job_id}/{folder}" if folder else job_id


def spool_of(job: Job) -> str:
    """The same for a job there is."""
    return spool_place(job.id, job.source.get("spool", ""))


def as_table(source: Source) -> dict[str, Any]:
    """The source as stored in the job's row."""
    table: dict[str, Any] = msgspec.to_builtins(source)
    return table


def first_status(source: Source) -> JobStatus:
    """Initial status of a job with this source, `reading` set: a job that follows links can be paused meanwhile."""
    return JobStatus.RUNNING if isinstance(source, FollowSource) else JobStatus.CREATING
