"""Scrapers and sources as the API shows them, and how far their packages are installed."""

import contextlib
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from msgspec import Meta, Struct, convert

from scrapeyard.errors import ScraperInvalid, ScraperNotFound, SourceUnavailable, StoreUnavailable
from scrapeyard.gateway.http.patterns import OBJECT
from scrapeyard.model import EnvironmentState, EnvironmentStatus, Limits, Scraper
from scrapeyard.model.identity import Identity
from scrapeyard.model.instants import instant
from scrapeyard.repository.catalogue.listings import Listings, sources
from scrapeyard.repository.port import Catalogue, Listing, find
from scrapeyard.store.ports.operations import WorkerStore

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

MAX_HIDDEN = 100
_WORST_FIRST = (
    EnvironmentStatus.FAILED,
    EnvironmentStatus.BUILDING,
    EnvironmentStatus.WAITING,
    EnvironmentStatus.READY,
    EnvironmentStatus.NONE,
)
UNKNOWN = "unknown"
"""No worker has reported, or the database is away."""
_PLAIN = (
    *("entry", "lane", "isolation", "network", "allowed_hosts", "requirements", "capabilities"),
    *("input_schema", "output_schema"),
)
"""Fields of a scraper that are shown unchanged; null for an invalid scraper."""


class EnvironmentStateDocument(Struct, frozen=True, kw_only=True):
    """How far a scraper's packages are installed on one worker."""

    status: EnvironmentStatus
    key: Annotated[str, Meta(description="Names the environment; empty until its requirements are resolved.")]
    problem: Annotated[str, Meta(description="Why it could not be built.")]
    size_bytes: int
    built_at: str | None


class ScraperSummary(Struct, frozen=True, kw_only=True):
    """A scraper in the listing."""

    id: str
    version: str
    name: str
    description: str
    builtin: bool
    valid: bool
    problem: Annotated[str, Meta(description="Why it cannot run; empty when it can.")]
    source: Annotated[str, Meta(description="The repository it comes from; empty for a built-in.")]
    stale: Annotated[
        str, Meta(description="Why what is served of that repository may be out of date; empty when it is fresh.")
    ]
    channels: Annotated[list[str], Meta(description="Channels that point to this version.")]


class SourceDocument(Struct, frozen=True, kw_only=True):
    """How fresh a repository's scrapers are."""

    name: str
    kind: Annotated[str, Meta(description="folder, git, http, s3 or installed.")]
    mark: Annotated[str, Meta(description="Commit id, entity tag, or empty.")]
    scrapers: Annotated[int, Meta(description="Versions that it offers and that can run.")]
    checked_at: Annotated[str | None, Meta(description="When it last answered, also before a restart; null: never.")]
    changed_at: Annotated[
        str | None, Meta(description="When what it offers last changed here; null: not since the start.")
    ]
    stale: Annotated[str, Meta(description="Why what is served may be out of date; empty when it is fresh.")]
    hidden: Annotated[
        tuple[str, ...],
        Meta(description="Scrapers of it that do not run: a repository before it has the same id. At most 100."),
    ]


class ScrapersDocument(Struct, frozen=True, kw_only=True):
    """Every version of every scraper there is, and where they come from, in order of precedence."""

    scrapers: list[ScraperSummary]
    sources: list[SourceDocument]


class HookDocument(Struct, frozen=True, kw_only=True):
    """What becomes of a Git host's call."""

    event: str
    refreshing: bool


class PolicyDefaults(Struct, frozen=True, kw_only=True):
    """What a call that does not say gets. Null and empty: the platform's own default."""

    retries: int | None
    timeout_seconds: float | None
    priority: str
    fetching: Annotated[Any, OBJECT, Meta(description="The keys of a call's `policy` that are about fetching.")]


class VersionDocument(Struct, frozen=True, kw_only=True):
    """One version of a scraper."""

    version: str
    digest: Annotated[str, Meta(description="Of its content; empty when it is invalid or built in.")]
    valid: bool
    problem: str
    prerelease: bool
    channels: list[str]
    source: str
    place: Annotated[str, Meta(description="Where in its repository: a folder, a tag, a key.")]
    offered: Annotated[bool, Meta(description="False: no repository offers it any more; a copy still serves calls.")]


class WorkerEnvironment(EnvironmentStateDocument, frozen=True, kw_only=True):
    """The same, beside those of other workers."""

    worker: str


class EnvironmentDocument(Struct, frozen=True, kw_only=True):
    """How far a scraper's packages are installed: the worst of what workers tell."""

    status: Annotated[
        str,
        Meta(description="`unknown`: no worker has told.", extra_json_schema={"enum": [*EnvironmentStatus, UNKNOWN]}),
    ]
    problem: str
    workers: list[WorkerEnvironment]


class ScraperDocument(ScraperSummary, frozen=True, kw_only=True):
    """A scraper with how it is called. The schemas and limits are null when it is invalid."""

    digest: str
    place: str
    entry: str | None
    lane: str | None
    isolation: Annotated[
        str | None, Meta(description="`run`: each call has a child of its own; `warm`: a child serves many calls.")
    ]
    network: str | None
    allowed_hosts: tuple[str, ...] | None
    requirements: tuple[str, ...] | None
    capabilities: tuple[str, ...] | None
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None
    limits: Limits | None
    policy: PolicyDefaults | None
    environment: EnvironmentDocument | None
    freshness: Annotated[SourceDocument | None, Meta(description="Its repository; null for a built-in.")]
    versions: Annotated[list[VersionDocument], Meta(description="All of them, newest first.")]
    all_channels: Annotated[dict[str, str], Meta(description="Channel → version, as now in force.")]


async def environment_of(scraper: Scraper, store: WorkerStore, seen_after: float) -> EnvironmentDocument:
    """The worst state that workers report, and each worker's own. `none` if the scraper requires no packages."""
    if not scraper.requirements:
        return EnvironmentDocument(status=EnvironmentStatus.NONE, problem="", workers=[])
    told = await _told(str(scraper.ref), store, seen_after)
    worst = min(told.values(), key=lambda state: _WORST_FIRST.index(state.status), default=None)
    return EnvironmentDocument(
        status=worst.status if worst else UNKNOWN,
        problem=worst.problem if worst else "",
        workers=[_state(state, WorkerEnvironment, worker=worker_id) for worker_id, state in told.items()],
    )


async def _told(name: str, workers: WorkerStore, seen_after: float) -> dict[str, EnvironmentState]:
    try:
        alive = await workers.alive(seen_after)
    except StoreUnavailable:
        return {}
    return {worker.id: worker.environments[name] for worker in alive if name in worker.environments}


def environment_state(state: EnvironmentState) -> EnvironmentStateDocument:
    """The state one worker reports."""
    return _state(state, EnvironmentStateDocument)


Shown = TypeVar("Shown", bound=EnvironmentStateDocument)


def _state(state: EnvironmentState, kind: type[Shown], **more: str) -> Shown:
    return kind(
        status=state.status,
        key=state.key,
        problem=state.problem,
        size_bytes=state.size_bytes,
        built_at=instant(state.built_at),
        **more,
    )


def listed(
    catalogue: Catalogue, identity: Identity, site: str | None = None, words: str | None = None
) -> ScrapersDocument:
    """Every version that matches and that the caller may call; and every source, unless the caller is a client."""
    matching = Listings(catalogue).all(site, words)
    found = [ScraperSummary(**brief) for brief in matching if identity.may_call(brief["id"])]
    known = sources(catalogue) if identity.sees_all else ()
    return ScrapersDocument(scrapers=found, sources=[_source(state) for state in known])


async def described(gateway: "Gateway", scraper_id: str, version: str | None) -> ScraperDocument:
    """One scraper at the version that a call would get, with all its versions. Raises ScraperNotFound, BadRequest."""
    services = gateway.services
    known = Listings(services.catalogue)
    listed = known.of(scraper_id)
    listing = await _chosen(services.catalogue, scraper_id, version, listed)
    left = _left(services.catalogue, listing, listed)
    scraper, limits, environment = listing.scraper, None, None
    if scraper is not None:
        limits = scraper.limits.within(services.settings.limits.as_limits())
        seen_after = services.clock() - services.settings.worker.lease_seconds
        environment = await environment_of(scraper, services.store.workers, seen_after)
    fresh = [_source(state) for state in sources(services.catalogue) if state["name"] == listing.source]
    shown: dict[str, Any] = {name: getattr(scraper, name, None) for name in _PLAIN}
    return ScraperDocument(
        **known.brief(listing),
        **shown,
        digest=scraper.ref.digest if scraper else "",
        policy=convert(scraper.policy, PolicyDefaults, from_attributes=True) if scraper else None,
        limits=limits,
        environment=environment,
        place=listing.place,
        freshness=fresh[0] if fresh else None,
        versions=[VersionDocument(**known.version(each)) for each in (*reversed(listed), *left)],
        all_channels=dict(services.catalogue.channels(scraper_id)),
    )


def _source(state: dict[str, Any]) -> SourceDocument:
    times = {name: instant(state[name]) for name in ("checked_at", "changed_at")}
    return SourceDocument(**state | times | {"hidden": state["hidden"][:MAX_HIDDEN]})


async def _chosen(catalogue: Catalogue, scraper_id: str, version: str | None, versions: tuple[Listing, ...]) -> Listing:
    """The listing that a call with this version, range or channel resolves to, even if it cannot run."""
    try:
        scraper = await find(catalogue, f"{scraper_id}@{version}" if version else scraper_id)
    except (ScraperInvalid, SourceUnavailable) as error:
        broken = [each for each in versions if each.scraper is None]
        meant = [each for each in broken if each.problem == error.message or each.version == version]
        if not broken:
            raise
        return (meant or broken)[-1]
    found = [each for each in versions if each.version == scraper.ref.version and each.scraper is not None]
    return found[-1] if found else _unlisted(scraper)


def _left(catalogue: Catalogue, chosen: Listing, listed: tuple[Listing, ...]) -> list[Listing]:
    """Versions that still answer calls though no source offers them: the chosen one, and those of channels."""
    known = {listing.version for listing in listed}
    left = {} if chosen.version in known else {chosen.version: chosen}
    for version in catalogue.channels(chosen.id).values():
        if version not in known and version not in left:
            with contextlib.suppress(ScraperNotFound, ScraperInvalid, SourceUnavailable):
                left[version] = _unlisted(catalogue.resolve(f"{chosen.id}@{version}"))
    return list(left.values())


def _unlisted(scraper: Scraper) -> Listing:
    return Listing(id=scraper.ref.id, version=scraper.ref.version, scraper=scraper, is_offered=False)
