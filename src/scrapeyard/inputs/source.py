"""Where a job's items come from, as it stands in the job's row: enough to read it again after a crash."""

from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from scrapeyard.errors import BadRequest
from scrapeyard.model.job import Job, JobStatus

MAX_PATTERNS = 50
MAX_START = 1000
MAX_DEPTH = 100
"""Links from a start."""
MAX_ITEMS = 50_000_000
FOLLOWED = "follow"
"""The kind of source whose links are followed."""
READ_IN = (JobStatus.CREATING, JobStatus.RUNNING, JobStatus.PAUSED)
"""Where a job that is being read stands: not CREATING where it follows links, or was made to begin paused."""
Format = Literal["auto", "csv", "jsonl", "json", "urls"]
BadRows = Literal["reject", "skip"]


class Shape(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How rows become inputs."""

    format: Format = "auto"
    delimiter: Literal["", ",", ";", "\t", "|"] = ""
    """Of CSV; empty: told from its first line."""
    names: tuple[str, ...] = ()
    """Columns of CSV that has no header."""
    columns: dict[str, str] = field(default_factory=dict)
    """Column of CSV to field of the input; others are left out. Empty: every column is the field of its name."""
    input: dict[str, Any] = field(default_factory=dict)
    """Fields that every item has, unless its row says otherwise."""
    bad_rows: BadRows = "reject"
    """Whether a row that cannot be used refuses the whole list, or is counted and left out."""


class UrlChoice(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which addresses are taken. A pattern is a glob over the whole address (`*` stops at a slash, `**` does not), over
    path and query when it begins with a slash, or a regular expression after `re:`."""

    include: tuple[str, ...] = ()
    """One of them must fit; empty: all do."""
    exclude: tuple[str, ...] = ()
    """None of them may fit."""


class ListSource(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="list"):
    """A list that came with the call. It was read when the job was made, and lies ready as checked items."""

    shape: Shape = Shape()
    name: str = ""
    """Of the file, for people."""


class UrlSource(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="items_url"):
    """A list at an address."""

    url: str
    shape: Shape = Shape()


class SitemapSource(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="sitemap"):
    """The addresses of a sitemap with all that it leads to; of a robots.txt; of a site by its own address."""

    url: str
    shape: Shape = Shape()
    choice: UrlChoice = UrlChoice()
    modified_since: float | None = None
    """Unix seconds. Older pages are left out; those that do not say how old they are stay."""
    limit: int | None = None
    """Addresses taken; None: as many as the platform's own bound allows."""


class Progress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far the links of a job's pages were followed."""

    depth: int = 0
    """Of the pages whose links are read now."""
    at: int = 0
    """Number of the first item among them whose links were not read."""
    end: int = 0
    """Number of the first item that is deeper."""


class FollowSource(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag=FOLLOWED):
    """Addresses to begin with, and the pages that their links lead to."""

    start: tuple[str, ...]
    depth: int = 1
    """Links from a start to the farthest page."""
    same_site: bool = True
    """Whether links to other sites (registrable domains) than those of the starts are left."""
    limit: int = 10_000
    """Items, the starts among them."""
    choice: UrlChoice = UrlChoice()
    shape: Shape = Shape(bad_rows="skip")
    """Only `input` and `bad_rows` count: a link that does not fit the scraper's input is left, or fails the job."""
    links: str = "links"
    """Field of the results that has the links: a list of addresses."""
    progress: Progress | None = None
    """None: the starts were not added yet."""


Source = ListSource | UrlSource | SitemapSource | FollowSource


def source_of(job: Job) -> Source:
    """The source of a job. Raises BadRequest when it is none that can be read."""
    try:
        source: Source = msgspec.convert(job.source, Source)
    except msgspec.ValidationError as error:
        raise BadRequest(f"the job's source cannot be read: {error}") from None
    return source


def as_table(source: Source) -> dict[str, Any]:
    """As it goes into the job's row."""
    table: dict[str, Any] = msgspec.to_builtins(source)
    return table


def first_status(source: Source) -> JobStatus:
    """What a new job of this source begins as, with `reading` set: one that follows links can be paused meanwhile."""
    return JobStatus.RUNNING if isinstance(source, FollowSource) else JobStatus.CREATING
