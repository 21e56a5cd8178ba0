"""`policy` of a job: how hard to try, how fast, how its pages are fetched, and when to stop; `kafka`: its items."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from scrapeyard.engines.politeness.policies import FixedPolicies
from scrapeyard.gateway.runs.policies import Budget, Policy, fetching_of, field_of
from scrapeyard.inputs.source import MAX_IDLE_SECONDS, MAX_ITEMS
from scrapeyard.model import Scraper
from scrapeyard.model.fetching import RETRIES, Backoff, BudgetLimits, FetchPolicy, RobotsMode, rules_of
from scrapeyard.model.job import BreakerPolicy, JobPolicy, SnapshotPolicy

FIELD = r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}(\.[A-Za-z0-9_*][A-Za-z0-9_-]{0,63}){0,7}$"
_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


class Breaker(BaseModel):
    """When a job is halted because its items fail, and for how long."""

    model_config = _STRICT

    enabled: bool = Field(True, description="Whether the job is ever halted by itself.")
    failures: int = Field(20, ge=1, le=100_000, description="So many errors in a row halt it.")
    ratio: float = Field(0.5, gt=0, le=1, description="Or this share of the last `window` outcomes.")
    window: int = Field(50, ge=1, le=10_000, description="Outcomes that `ratio` looks at.")
    cooldown_seconds: float = Field(300, gt=0, le=86_400, description="How long it is halted before items probe.")
    probes: int = Field(3, ge=1, le=1000, description="Items let through then; one success closes the breaker.")


class Snapshots(BaseModel):
    """What of the job's pages is remembered, so that the next crawl can tell what changed."""

    model_config = _STRICT

    scope: str = Field("", max_length=200, description="Crawls of one scope are compared; empty: by name or scraper.")
    ignore: list[Annotated[str, Field(pattern=FIELD)]] = Field(
        default_factory=list, max_length=100, description="Fields whose change is no news; `meta.*` for all below."
    )
    confirm: int = Field(1, ge=1, le=100, description="Crawls in a row that must agree before a change is told.")


class JobPolicyCall(Policy):
    """How a job's items are run. What is not given is as the scraper's manifest says, then as the operator set it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"rate": 20, "retries": 2, "budget": {"megabytes": 500}, "breaker": {"failures": 10}}]
        }
    )

    retries: int = field_of(RETRIES, 2, description="Further attempts of an item after its first.")
    rate: float | None = Field(None, gt=0, le=100_000, description="Items begun a second; null: as workers take them.")
    burst: int = Field(1, ge=1, le=10_000, description="Items that may begin at once after a rest.")
    concurrency: int | None = Field(
        None, ge=1, le=100_000, description="Items out at once; null: as workers take them."
    )
    breaker: Breaker = Breaker()
    budget: Budget = Field(Budget(), description="What the whole job may use up; then it is paused.")
    max_seconds: float | None = Field(
        None,
        gt=0,
        le=366 * 86_400,
        description="Wall clock of the whole job from its first item, pauses included; then items that have not begun "
        "are cancelled, and with them the job.",
    )
    item_budget: Budget = Field(Budget(), description="What one item may use up; then it ends as `fetch_budget`.")
    isolation: Literal["run", "job"] = Field(  # type: ignore[assignment] # a job has its own choices
        "run", description="`run`: a child for every item; `job`: a child serves many items of the job, much quicker."
    )
    results: Literal["rows", "objects"] = Field(
        "rows", description="`objects`: every item's data is an object of its own, by the key layout."
    )
    keep_html: bool = Field(False, description="Whether the page that an item fetched last is kept.")
    accept_status: list[Annotated[int, Field(ge=400, le=599)]] = Field(
        default_factory=list,
        max_length=200,
        description="Error statuses that are a result for built-in scrapers of pages. Otherwise 404 and 410 "
        "end as `gone`, the rest as `fetch_status`; 408, 425, 429 and 5xx are tried again.",
    )
    max_items: int = Field(
        100_000, ge=1, le=50_000_000, description="Scripts add no items by `ctx.enqueue` once the job has so many."
    )
    max_depth: int = Field(
        10, ge=0, le=100, description="Nor items that are more than so many steps from the job's own list."
    )
    snapshots: Snapshots | None = Field(None, description="Null: pages are remembered if a diff export is wished for.")


def policy_of(call: JobPolicyCall, scraper: Scraper) -> JobPolicy:
    """The policy of a new job. Fetch options stay as in the call: workers merge them over the manifest's."""
    retries = call.retries
    if "retries" not in call.model_fields_set and scraper.policy.retries is not None:
        retries = scraper.policy.retries
    timeout = scraper.policy.timeout_seconds if call.timeout_seconds is None else call.timeout_seconds
    stated = _stated(call)
    asked, default = stated.fetching, scraper.policy.fetching
    fetching = replace(  # the dispatcher knows no manifests
        asked,
        retention=asked.retention.over(default.retention),
        mask=asked.mask or default.mask,
        mask_as=asked.mask_as or default.mask_as,
        mask_in=asked.mask_in or default.mask_in,
    )
    return replace(stated, max_attempts=1 + retries, timeout_seconds=timeout, fetching=fetching)


def policy_over(call: JobPolicyCall, before: JobPolicy) -> JobPolicy:
    """The policy of a job that is changed or redriven: what the call sets, the rest unchanged."""
    given, stated = call.model_fields_set, _stated(call)
    changes = {name: getattr(stated, name) for name in _PLAIN & given}
    if "retries" in given:
        changes["max_attempts"] = stated.max_attempts
    if given & _FETCHING:
        changes["fetching"] = stated.fetching.over(before.fetching)
    return replace(before, **changes)


def _stated(call: JobPolicyCall) -> JobPolicy:
    fetching = fetching_of(call, _OF_ITEMS)
    snapshots = call.snapshots
    return JobPolicy(
        timeout_seconds=call.timeout_seconds,
        max_attempts=1 + call.retries,
        backoff=msgspec.convert(_given(call.backoff), Backoff),
        rate=call.rate,
        burst=call.burst,
        concurrency=call.concurrency,
        breaker=BreakerPolicy(**call.breaker.model_dump()),
        budget=msgspec.convert(_given(call.budget), BudgetLimits),
        max_seconds=call.max_seconds,
        isolation=call.isolation,
        results=call.results,
        keep_html=call.keep_html,
        accept_status=tuple(call.accept_status),
        max_items=call.max_items,
        max_depth=call.max_depth,
        snapshots=None if snapshots is None else msgspec.convert(snapshots.model_dump(), SnapshotPolicy),
        fetching=replace(fetching, budget=msgspec.convert(_given(call.item_budget), BudgetLimits), backoff=Backoff()),
    )


def _given(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(exclude_none=True)


_PLAIN = frozenset(JobPolicy.__struct_fields__) - {"max_attempts", "fetching"}
_OF_ITEMS = frozenset(FetchPolicy.__struct_fields__) - {"isolation"}
_FETCHING = frozenset({*rules_of(FetchPolicy), "item_budget", "retention"})


class HostManners(Struct, frozen=True, kw_only=True):
    """How politely hosts of a kind are fetched from."""

    robots: Annotated[RobotsMode, Meta(description="Whether robots.txt is obeyed.")]
    requests_per_second: Annotated[
        float | None, Meta(description="Maximum requests a second to one site; null: no limit.", examples=[2])
    ]


class JobManners(Struct, frozen=True, kw_only=True):
    """How politely a job fetches. A site with settings of its own (`/api/sites`) follows those."""

    items_per_second: Annotated[float | None, Meta(description="`policy.rate`; null: no rate of its own.")]
    public: Annotated[HostManners, Meta(description="Of all other hosts.")]
    private: Annotated[HostManners, Meta(description="Of private and loopback hosts.")]


def manners_of(policy: JobPolicy, scraper: Scraper, sites: FixedPolicies) -> JobManners:
    """What holds for a job of this scraper on sites without settings of their own; as workers have it."""
    asked = policy.fetching.over(scraper.policy.fetching).robots
    for_all, for_jobs = sites.limits("").rate, sites.job_limits("") if policy.rate is None else None
    public = for_all or (for_jobs.rate if for_jobs is not None else 0.0)
    return JobManners(
        items_per_second=policy.rate,
        public=HostManners(robots=asked or sites.robots("", for_job=True), requests_per_second=public or None),
        private=HostManners(robots=asked or sites.robots(""), requests_per_second=for_all or None),
    )


class KafkaItems(BaseModel):
    """Records of a Kafka topic, each an item."""

    model_config = ConfigDict(extra="forbid")

    topic: str = Field(
        pattern=r"^[A-Za-z0-9._-]{1,249}$",
        description="The topic, on the cluster that the operator names; one that jobs may read.",
    )
    group: str = Field(
        "",
        max_length=200,
        pattern=r"^[A-Za-z0-9._-]*$",
        description="Consumer group: the job begins where it stands, and moves it on when the job has its items, so "
        "that the next job continues. Use it for one job at a time.",
    )
    start: Literal["earliest", "latest"] = Field(
        "earliest", description="Where to begin in a partition in which the group, if any, has no position."
    )
    offsets: dict[Annotated[str, StringConstraints(pattern=r"^[0-9]{1,5}$")], Annotated[int, Field(ge=0)]] = Field(
        {}, max_length=1000, description="First offset by partition, instead of `start`."
    )
    limit: int | None = Field(None, ge=1, le=MAX_ITEMS, strict=True, description="Records read at most.")
    idle_seconds: float = Field(
        0,
        ge=0,
        le=MAX_IDLE_SECONDS,
        description="Read on until no record came for this long; 0: up to the end of the topic as it is now. Needs a "
        "limit.",
    )

    @model_validator(mode="after")
    def _has_an_end(self) -> "KafkaItems":
        if self.idle_seconds and self.limit is None:
            raise ValueError("kafka.limit: give one with idle_seconds, since a busy topic is never idle")
        if self.group and self.offsets:
            raise ValueError("kafka.offsets: a group has positions of its own; give one of the two")
        return self
