"""What calls about jobs ask for: the models that their bodies are validated with."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from scrapeyard.extras import missing
from scrapeyard.gateway.http.names import Named
from scrapeyard.gateway.http.patterns import CHOSEN_ID, DOMAIN, JOB_ID, NAME, SCRAPER_WANTED, URL, Url, no_number
from scrapeyard.gateway.jobs.policies import JobPolicyCall, KafkaItems
from scrapeyard.inputs.source import MAX_DEPTH, MAX_ITEMS, MAX_PATTERNS, MAX_START, QueryMode, ScopeKind
from scrapeyard.model import ExitReason, Priority
from scrapeyard.model.export import MAX_SINKS, SINK_NAME
from scrapeyard.model.fetching import MOST
from scrapeyard.model.job import ITEM_KEY, ExportWish, ItemStatus

TEXT = r"^[^\x00-\x1f\x7f]*$"
MAX_EXPORTS = 20
MAX_KEYS = 1000
_FORBID = ConfigDict(extra="forbid", frozen=True)
_FIELD = Annotated[str, Field(min_length=1, max_length=200)]

Format = Literal["auto", "csv", "jsonl", "json", "urls"]
Pattern = Annotated[str, Field(min_length=1, max_length=500)]
Domain = Annotated[
    str,
    BeforeValidator(lambda given: given.strip().lower() if isinstance(given, str) else given),
    Field(pattern=DOMAIN),
]
TAKEN_IDS = frozenset({"runs", "probes"})
"""Not for jobs: the blob store has folders of these names."""


WebhookEvent = Literal[
    "job.completed",
    "job.failed",
    "job.cancelled",
    "job.paused",
    "job.resumed",
    "job.created",
    "job.archived",
    "job.restored",
    "breaker",
    "export.ready",
    "sink.done",
    "sink.failed",
    "item.failed",
    "item.ended",
]
DEFAULT_EVENTS: tuple[WebhookEvent, ...] = ("job.completed", "job.failed", "job.cancelled")


class ExportCall(BaseModel):
    """A file to be made of a job."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"type": "full", "format": "xlsx"}]}
    )

    type: Literal["full", "pages", "seo", "diff", "links", "records"] = Field(
        description="Which columns; `pages`: markdown, and which page is a duplicate; `records`: the scraper's own."
    )
    format: Literal["csv", "xlsx", "json", "jsonl", "parquet"] = Field(description="Of the file.")
    bom: bool = Field(True, strict=True, description="CSV alone: begin with the mark by which Excel knows UTF-8.")

    against: str | None = Field(
        None,
        pattern=JOB_ID,
        description="`diff` alone: the job to compare with, instead of the crawl before. Neither needs snapshots.",
    )

    skip_first: bool = Field(
        False, strict=True, description="`diff` alone: no file of a first crawl, which has nothing to compare with."
    )

    @field_validator("format")
    @classmethod
    def _can_be_written(cls, given: str) -> str:
        if given == "parquet" and (words := missing("parquet")):
            raise ValueError(words)
        return given

    @model_validator(mode="after")
    def _compares_diffs_only(self) -> "ExportCall":
        if self.against is not None and self.type != "diff":
            raise ValueError("against goes with the type diff")
        if self.skip_first and (self.type != "diff" or self.against is not None):
            raise ValueError("skip_first goes with the type diff, without against")
        return self

    def wish(self) -> ExportWish:
        """Convert to the model's ExportWish."""
        against = self.against or ""
        return ExportWish(type=self.type, format=self.format, bom=self.bom, against=against, skip_first=self.skip_first)


class Choice(BaseModel):
    """Which addresses are taken: globs over the whole address (`*` stops at a slash, `**` does not), over path and
    query when they begin with a slash, or regular expressions that are looked for in the address (after `re:`) or in
    its path alone (after `path:`)."""

    model_config = _FORBID

    include: list[Pattern] = Field(default_factory=list, max_length=MAX_PATTERNS, description="One must fit, if any.")
    exclude: list[Pattern] = Field(default_factory=list, max_length=MAX_PATTERNS, description="None may fit.")


class SitemapChoice(Choice):
    """What is taken of a sitemap."""

    modified_since: Annotated[datetime, BeforeValidator(no_number)] | None = Field(
        None, description="Pages that say they are older are left out. ISO 8601; UTC when it names no zone."
    )
    limit: int | None = Field(None, ge=1, le=MAX_ITEMS, strict=True, description="Addresses taken at most.")


class Follow(Choice):
    """How the links of pages are followed."""

    depth: int = Field(1, ge=0, le=MAX_DEPTH, strict=True, description="Links from a start to the farthest page.")
    same_site: bool = Field(True, strict=True, description="Whether links to other sites are left.")
    scope: ScopeKind | None = Field(
        None,
        description="Which links are followed: those to the host of a start (`www.` or not), to its site, or below its "
        "path. Default: as `same_site` says.",
    )
    query: QueryMode = Field(
        "keep",
        description="The query of a link: as it is; `clean`: without utm_source and the like; `sort`: also sorted; "
        "`drop`: none.",
    )
    sitemap: bool = Field(
        False, strict=True, description="Whether the pages of the site's sitemaps are taken, too, as if it linked them."
    )
    count_beyond: bool = Field(
        False,
        strict=True,
        description="Whether links deeper than `depth` are counted, as `source.found.beyond_depth`, or those to pages "
        "beyond a `limit` that was reached, as `source.found.beyond_limit`.",
    )
    limit: int = Field(10_000, ge=1, le=MAX_ITEMS, strict=True, description="Items at most, the starts among them.")
    links: str = Field("links", pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="Field of the results with the links.")


class WebhookCall(BaseModel):
    """Who is told of what happens to a job."""

    model_config = _FORBID

    url: Url = Field(description="Where to; private addresses are refused unless the operator allows them.")
    events: list[WebhookEvent] = Field(
        default_factory=lambda: list(DEFAULT_EVENTS), min_length=1, max_length=20, description="What is told."
    )
    secret: str | None = Field(
        None, min_length=16, max_length=200, pattern=r"^[\x21-\x7e]+$", description="Signs what is sent; never shown."
    )
    form: Literal["", "firecrawl.crawl", "firecrawl.batch_scrape"] = Field(
        "", description="Whose messages the receiver expects; empty: ours."
    )
    metadata: dict[str, str] = Field(
        default_factory=dict, max_length=20, description="Sent along by forms that know it."
    )


class ShapeOptions(BaseModel):
    """How rows of a list become items."""

    model_config = _FORBID

    format: Format = Field("auto", description="Of a list; `auto`: as it looks.")
    delimiter: Literal["", ",", ";", "\t", "|"] = Field("", description="Of CSV; empty: told from its first line.")
    names: list[_FIELD] = Field(default_factory=list, max_length=1000, description="Columns of CSV without a header.")
    columns: dict[_FIELD, _FIELD] = Field(
        default_factory=dict, max_length=1000, description="Column → field of the input; other columns are left out."
    )
    input: dict[str, Any] = Field(default_factory=dict, description="Fields that every item has, unless its row says.")
    bad_rows: Literal["reject", "skip"] | None = Field(
        None,
        description="Whether a row that cannot be used refuses the whole list, or is left out and counted. Default: "
        "`reject`; of sitemaps and links, which nobody wrote for this job, `skip`.",
    )


class JobOptions(ShapeOptions):
    """A job, but for where its items come from."""

    profile: Literal["site"] | None = Field(
        None,
        description="Defaults for whatever the call leaves open. `site`: a careful crawl of one site, with files.",
    )
    scraper: str | None = Field(
        None, pattern=SCRAPER_WANTED, description="`site/task` or `site/task@version`; pinned to one version now."
    )
    domain: Domain | None = Field(
        None, description="The site it is about, for listings; default: the host of the first address that is given."
    )
    name: str = Field("", max_length=200, pattern=TEXT, description="Name to show in lists.")
    owner: str = Field("", max_length=100, pattern=TEXT, description="Whose share of the workers it uses.")
    priority: Priority | None = Field(None, description="Default: the scraper's, else `normal`.")
    lane: str | None = Field(None, pattern=NAME, description="Which workers take it; default: the scraper's lane.")
    paused: bool = Field(False, description="Whether it waits for /resume before its first item is handed out.")
    policy: JobPolicyCall = JobPolicyCall()
    exports: list[ExportCall] = Field(
        default_factory=list, max_length=MAX_EXPORTS, description="Files to be made when it has ended."
    )
    sinks: list[Annotated[str, Field(pattern=SINK_NAME)]] | None = Field(
        None,
        max_length=MAX_SINKS,
        description="Sinks that its results are delivered to while it runs, by name: `GET /api/sinks` lists them. "
        "Default: those that the operator chose for all jobs.",
    )
    webhook: WebhookCall | None = Field(None, description="Who is told of what happens to it.")


_URL = {"type": "string", "pattern": URL, "maxLength": 8192}
_Starts = Annotated[
    list[Url],
    Field(min_length=1, max_length=MAX_START),
    BeforeValidator(lambda given: [given] if isinstance(given, str) else given),
    WithJsonSchema({"anyOf": [_URL, {"type": "array", "items": _URL, "minItems": 1, "maxItems": MAX_START}]}),
]


class SiteOptions(BaseModel):
    """A crawl of a site under other names: the profile `site`, with these limits. `policy`, `sitemap` and `follow`
    win. Answers about such a job use the words of the dialect `site`."""

    model_config = _FORBID

    domain: Domain | None = Field(None, description="As `domain`.")
    max_urls: int = Field(10_000, ge=1, le=MAX_ITEMS, strict=True, description="As `sitemap.limit`, `follow.limit`.")
    max_concurrency: int = Field(2, ge=1, le=100_000, strict=True, description="As `policy.concurrency`.")
    allow_residential: bool = Field(False, strict=True, description="As `policy.allow_residential`.")
    traffic_budget_mb: float = Field(100, gt=0, le=MOST, description="As `policy.budget.megabytes`.")
    residential_limit_mb: float = Field(50, ge=0, le=MOST, description="As `policy.budget.residential_megabytes`.")
    enable_firecrawl: Literal[False] = Field(False, description="Firecrawl is not used.")
    firecrawl_api_key: None = Field(None, description="Firecrawl is not used.")


class JobCall(Named, JobOptions):
    """A job to do. Give exactly one of `items`, `items_url`, `sitemap_url`, `kafka` and `start_url`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"scraper": "shop/product", "items": ["https://shop.example/p/1", {"url": "https://shop.example/p/2"}]},
                {
                    "sitemap_url": "https://shop.example/sitemap.xml",
                    "sitemap": {"include": ["/p/**"]},
                    "policy": {"rate": 10},
                    "exports": [{"type": "full", "format": "xlsx"}],
                },
                {"start_url": "https://shop.example/", "follow": {"depth": 2}},
            ]
        }
    )

    job_id: str | None = Field(
        None,
        pattern=CHOSEN_ID,
        description="The id that the job shall have; the same call again is the same job. Default: one of ours. A "
        "client's id gets its name before it: `acme.test-001`.",
    )
    options: SiteOptions | None = Field(None, description="Limits under other names.")
    items: list[Any] | None = Field(
        None,
        min_length=1,
        description='Inputs: objects, or addresses. `{"item_id": …, "input": {…}}` names an item; `item_id` may also '
        "stand beside the input's fields.",
    )
    items_url: Url | None = Field(None, description="A list at an address: CSV, JSONL, JSON or plain addresses.")
    sitemap_url: Url | None = Field(
        None, description="A sitemap, an index of them, a robots.txt, or a site whose robots.txt names them."
    )
    sitemap: SitemapChoice = Field(SitemapChoice(), description="What is taken of the sitemap.")
    kafka: KafkaItems | None = Field(None, description="Records of a Kafka topic.")
    start_url: _Starts | None = Field(None, description="Where to begin to follow links: an address, or several.")
    follow: Follow = Field(Follow(), description="How the links of `start_url` are followed.")

    @model_validator(mode="after")
    def _has_one_source(self) -> "JobCall":
        sources = ("items", "items_url", "sitemap_url", "kafka", "start_url")
        given = [name for name in sources if getattr(self, name) is not None]
        if len(given) != 1:
            said = f"not {' and '.join(given)}" if given else "or upload a list"
            raise ValueError(f"give exactly one of items, items_url, sitemap_url, kafka and start_url, {said}")
        for option, source in (("sitemap", "sitemap_url"), ("follow", "start_url")):
            if option in self.model_fields_set and given != [source]:
                raise ValueError(f"{option} goes with {source}, which is not given")
        return self

    @model_validator(mode="after")
    def _chooses_a_free_id(self) -> "JobCall":
        if self.job_id is not None and (self.job_id.startswith("job_") or self.job_id in TAKEN_IDS):
            raise ValueError(f"job_id: {self.job_id!r} is an id of ours; choose one that does not begin with job_")
        return self

    @model_validator(mode="after")
    def _reads_options(self) -> "JobCall":
        options = self.options
        if options is None:
            return self
        if self.items is not None and len(self.items) > options.max_urls:
            raise ValueError(f"{len(self.items)} addresses are given, and options.max_urls is {options.max_urls}")
        if self.items_url is not None and "max_urls" in options.model_fields_set:
            raise ValueError("options.max_urls does not go with items_url, whose list is read whole")
        given: dict[str, Any] = {"policy": _limited(self.policy, options), "domain": self.domain or options.domain}
        given["profile"] = self.profile or "site"
        if self.sitemap_url is not None and self.sitemap.limit is None:
            given["sitemap"] = self.sitemap.model_copy(update={"limit": options.max_urls})
        if self.start_url is not None and "limit" not in self.follow.model_fields_set:
            given["follow"] = self.follow.model_copy(update={"limit": options.max_urls})
        return self.model_copy(update=given)

    @property
    def starts(self) -> tuple[str, ...]:
        """URLs to start following links from; empty if the call does not ask for that."""
        return tuple(self.start_url or ())


def _limited(policy: JobPolicyCall, options: SiteOptions) -> JobPolicyCall:
    """The policy with the limits of the options, where it has none itself."""
    limits = {"megabytes": options.traffic_budget_mb, "residential_megabytes": options.residential_limit_mb}
    budget = policy.budget.model_copy(update=_unset(policy.budget, limits))
    more = {"concurrency": options.max_concurrency, "allow_residential": options.allow_residential}
    return policy.model_copy(update={**_unset(policy, more), "budget": budget})


def _unset(model: BaseModel, values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in model.model_fields_set}


class AppendOptions(ShapeOptions):
    """How more items are read."""


class AppendCall(AppendOptions):
    """More items for a job that runs."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": ["https://shop.example/p/3"]}]})

    items: list[Any] = Field(min_length=1, description="As when a job is created.")


class ChangeCall(BaseModel):
    """What of a job is changed."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"policy": {"budget": {"megabytes": 2000}}}]}
    )

    policy: JobPolicyCall = Field(JobPolicyCall(), description="Changes of the job's policy; the rest stays as it is.")
    name: str | None = Field(None, max_length=200, pattern=TEXT, description="Name to show in lists.")
    priority: Priority | None = Field(None, description="Of items that are handed out from now on.")

    @model_validator(mode="after")
    def _changes_something(self) -> "ChangeCall":
        if not self.model_fields_set:
            raise ValueError("give at least one of policy, name and priority")
        return self


class RedriveCall(BaseModel):
    """Which items are run again, and how. An item must fit every filter that is given."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"exit_reasons": ["fetch_timeout"], "policy": {"retries": 5}}]},
    )

    statuses: list[Literal["success", "error", "cancelled"]] | None = Field(
        None, min_length=1, max_length=3, description="Default: errors, and whatever was cancelled."
    )
    exit_reasons: list[ExitReason] | None = Field(None, min_length=1, max_length=60, description="Any of these.")
    sites: list[Annotated[str, Field(pattern=r"^[^\s/\x00-\x1f]{1,253}$")]] | None = Field(
        None, min_length=1, max_length=100, description="Registrable domains, any of these."
    )
    http_statuses: list[Annotated[int, Field(ge=100, le=999)]] | None = Field(
        None, min_length=1, max_length=100, description="Statuses of the last page that an item fetched, any of these."
    )
    keys: list[Annotated[str, Field(pattern=ITEM_KEY)]] | None = Field(
        None, min_length=1, max_length=MAX_KEYS, description="Items by their ids, any of these."
    )
    scraper: str | None = Field(
        None, pattern=SCRAPER_WANTED, description="Run them by this version from now on; pinned to one version now."
    )
    policy: JobPolicyCall | None = Field(None, description="Changes of the job's policy; the rest stays as it is.")

    @property
    def wanted(self) -> tuple[ItemStatus, ...] | None:
        """The statuses as the model's; None if the store's default applies."""
        return None if self.statuses is None else tuple(ItemStatus(status) for status in self.statuses)
