"""Turns command options into an API call for a job. Reports wrong options before calling the server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scrapeyard.cli.common.inputs import is_url, read_object
from scrapeyard.errors import BadRequest

EXPORT_TYPES = ("full", "pages", "seo", "diff", "links", "records")
EXPORT_FORMATS = ("csv", "xlsx", "json", "jsonl", "parquet")
_LIST_FORMATS = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}
_MEDIA = {"csv": "text/csv", "jsonl": "application/x-ndjson"}
_PACKED = ".gz"


@dataclass(frozen=True, kw_only=True)
class JobTerms:
    """The options of a job, except the source of its items. None or empty if an option was not given."""

    scraper: str | None = None
    profile: str | None = None
    name: str = ""
    owner: str = ""
    priority: str | None = None
    lane: str | None = None
    paused: bool = False
    policy: str | None = None
    """JSON or `@file`."""
    rate: float | None = None
    exports: Sequence[str] = ()
    """Each `type:format`."""
    sinks: Sequence[str] | None = None
    webhook: str | None = None
    """An address, JSON or `@file`."""
    format: str | None = None
    delimiter: str | None = None
    names: str | None = None
    """Separated by commas."""
    columns: Sequence[str] = ()
    """Each `column=field`."""
    given: str | None = None
    """Fields of every item: JSON or `@file`."""
    page: Mapping[str, Any] = field(default_factory=dict)
    """What is wanted of each page: fields of every item."""
    bad_rows: str | None = None

    def table(self) -> dict[str, Any]:
        """The call's fields that were given. Raises BadRequest."""
        fields = {
            "scraper": self.scraper,
            "profile": self.profile,
            "name": self.name or None,
            "owner": self.owner or None,
            "priority": self.priority,
            "lane": self.lane,
            "paused": self.paused or None,
            "policy": self._policy() or None,
            "exports": [export_of(each) for each in self.exports] or None,
            "sinks": None if self.sinks is None else [name for name in self.sinks if name],
            "webhook": self._webhook(),
            "format": self.format,
            "delimiter": {"tab": "\t"}.get(self.delimiter or "", self.delimiter),
            "names": [name.strip() for name in self.names.split(",")] if self.names else None,
            "columns": dict(_pair(each) for each in self.columns) or None,
            "input": self._input(),
            "bad_rows": self.bad_rows,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def _input(self) -> dict[str, Any] | None:
        given = {} if self.given is None else read_object(self.given, "--input")
        return {**given, **self.page} or None

    def _policy(self) -> dict[str, Any]:
        policy = {} if self.policy is None else read_object(self.policy, "--policy")
        if self.rate is not None and policy.setdefault("rate", self.rate) != self.rate:
            raise BadRequest("--policy has a rate of its own; give one of them")
        return policy

    def _webhook(self) -> dict[str, Any] | None:
        if self.webhook is None:
            return None
        return {"url": self.webhook} if is_url(self.webhook) else read_object(self.webhook, "--webhook")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a job's items come from, as the options say."""

    words: Sequence[str] = ()
    """A file, `-`, or with `urls` addresses."""
    urls: bool = False
    items_url: str | None = None
    sitemap: str | None = None
    kafka: Mapping[str, Any] = field(default_factory=dict)
    """`topic`, `group` and `idle_seconds`; None where not given."""
    start_urls: Sequence[str] = ()
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    modified_since: str | None = None
    depth: int | None = None
    any_site: bool = False
    links: str | None = None
    limit: int | None = None

    def check(self) -> None:
        """Raises BadRequest unless there is one source, with options that go with it."""
        sources = (
            bool(self.words),
            bool(self.items_url),
            bool(self.sitemap),
            bool(self.kafka.get("topic")),
            bool(self.start_urls),
        )
        if sum(sources) != 1:
            raise BadRequest(
                "give one source: FILE, -, --urls URL…, --items-url, --sitemap, --kafka-topic or --start-url"
            )
        self._check_words("with --urls, --items-url, --sitemap or --start-url")
        self._check_options()

    def check_appended(self) -> None:
        """As `check`, for items added to a job, which come as a list or as URLs."""
        if not self.words and not self.urls:
            raise BadRequest("give the items: FILE, - or --urls URL…")
        self._check_words("with --urls before it, or fetch the list first")

    @property
    def file(self) -> str | None:
        """The list to upload; `-` is stdin. None if there is none."""
        return self.words[0] if self.words and not self.urls else None

    def table(self) -> dict[str, Any]:
        """The call's fields; empty for an uploaded list."""
        if self.urls:
            return {"items": list(self.words)}
        if self.items_url:
            return {"items_url": self.items_url}
        if self.sitemap:
            return {
                "sitemap_url": self.sitemap,
                **_under("sitemap", self._choice(), modified_since=self.modified_since),
            }
        if self.kafka.get("topic"):
            asked = {**self.kafka, "limit": self.limit}
            return {"kafka": {name: value for name, value in asked.items() if value}}
        if self.start_urls:
            more = {"depth": self.depth, "links": self.links, "same_site": False if self.any_site else None}
            return {"start_url": list(self.start_urls), **_under("follow", self._choice(), **more)}
        return {}

    def _choice(self) -> dict[str, Any]:
        return {"include": list(self.include), "exclude": list(self.exclude), "limit": self.limit}

    def _check_words(self, say: str) -> None:
        if self.urls and not self.words:
            raise BadRequest("--urls needs addresses: --urls https://shop.example/p/1 https://shop.example/p/2")
        if self.urls or not self.words:
            return
        if len(self.words) > 1:
            raise BadRequest("give one file; for addresses write --urls before them")
        if is_url(self.words[0]):
            raise BadRequest(f"{self.words[0][:200]}: an address; say what it is {say}")

    def _check_options(self) -> None:
        topic = self.kafka.get("topic")
        for option, value, fits, goes_with in (
            ("--include", self.include, self.sitemap or self.start_urls, "--sitemap or --start-url"),
            ("--exclude", self.exclude, self.sitemap or self.start_urls, "--sitemap or --start-url"),
            (
                "--limit",
                self.limit,
                self.sitemap or self.start_urls or topic,
                "--sitemap, --kafka-topic or --start-url",
            ),
            ("--kafka-group", self.kafka.get("group"), topic, "--kafka-topic"),
            ("--idle-seconds", self.kafka.get("idle_seconds"), topic, "--kafka-topic"),
            ("--modified-since", self.modified_since, self.sitemap, "--sitemap"),
            ("--depth", self.depth is not None, self.start_urls, "--start-url"),
            ("--any-site", self.any_site, self.start_urls, "--start-url"),
            ("--links", self.links, self.start_urls, "--start-url"),
        ):
            if value and not fits:
                raise BadRequest(f"{option} goes with {goes_with}")


def as_query(table: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a call whose body is a list: objects and lists as JSON."""
    import json

    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in table.items()}


def export_of(text: str) -> dict[str, str]:
    """An export as `type:format`. Raises BadRequest."""
    kind, _, form = text.partition(":")
    if kind not in EXPORT_TYPES or form not in EXPORT_FORMATS:
        types, formats = ", ".join(EXPORT_TYPES), ", ".join(EXPORT_FORMATS)
        raise BadRequest(f"{text[:100]!r}: write an export as type:format; types: {types}; formats: {formats}")
    return {"type": kind, "format": form}


def list_format(file: str) -> str | None:
    """The format that a file's name implies; None if it implies none."""
    return _LIST_FORMATS.get(Path(file.removesuffix(_PACKED)).suffix.lower())


def media_type(file: str, form: str | None) -> str:
    """The Content-Type to send a list with."""
    return "application/gzip" if file.endswith(_PACKED) else _MEDIA.get(form or "", "text/plain")


def _pair(text: str) -> tuple[str, str]:
    column, equals, name = text.partition("=")
    if not equals or not column or not name:
        raise BadRequest(f"{text[:100]!r}: write --column COLUMN=FIELD")
    return column, name


def _under(name: str, *tables: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    found = {key: value for table in (*tables, more) for key, value in table.items() if value not in (None, [])}
    return {name: found} if found else {}
