"""Scrapers and sources as the API shows them, and how far their packages are installed."""

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from scrapeyard.errors import ScraperInvalid, ScraperNotFound, SourceUnavailable, StoreUnavailable
from scrapeyard.gateway.runs import documents
from scrapeyard.gateway.runs.documents import instant
from scrapeyard.model import EnvironmentState, EnvironmentStatus, Scraper
from scrapeyard.repository.catalogue.listings import Listings, sources
from scrapeyard.repository.port import Catalogue, Listing
from scrapeyard.store.ports.operations import WorkerStore

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

_WORST_FIRST = (
    EnvironmentStatus.FAILED,
    EnvironmentStatus.BUILDING,
    EnvironmentStatus.WAITING,
    EnvironmentStatus.READY,
    EnvironmentStatus.NONE,
)
UNKNOWN = "unknown"
"""No worker has reported, or the database is away."""


async def environment_of(scraper: Scraper, workers: WorkerStore, seen_after: float) -> dict[str, Any]:
    """The worst state that workers report, and each worker's own. `none` if the scraper requires no packages."""
    if not scraper.requirements:
        return {"status": EnvironmentStatus.NONE, "problem": "", "workers": []}
    told = await _told(str(scraper.ref), workers, seen_after)
    worst = min(told.values(), key=lambda state: _WORST_FIRST.index(state.status), default=None)
    return {
        "status": worst.status if worst else UNKNOWN,
        "problem": worst.problem if worst else "",
        "workers": [{"worker": worker_id, **state_document(state)} for worker_id, state in told.items()],
    }


async def _told(name: str, workers: WorkerStore, seen_after: float) -> dict[str, EnvironmentState]:
    try:
        alive = await workers.alive(seen_after)
    except StoreUnavailable:
        return {}
    return {worker.id: worker.environments[name] for worker in alive if name in worker.environments}


def state_document(state: EnvironmentState) -> dict[str, Any]:
    """The state one worker reports."""
    return {
        "status": state.status,
        "key": state.key,
        "problem": state.problem,
        "size_bytes": state.size_bytes,
        "built_at": instant(state.built_at),
    }


_PLAIN = (
    "entry",
    "lane",
    "network",
    "allowed_hosts",
    "requirements",
    "capabilities",
    "input_schema",
    "output_schema",
    "policy",
)
"""Fields of a scraper that are shown unchanged."""


def listed(catalogue: Catalogue, site: str | None = None, words: str | None = None) -> Response:
    """Every version that matches, and every source."""
    found = Listings(catalogue).all(site, words)
    return answer({"scrapers": found, "sources": [source_document(state) for state in sources(catalogue)]})


async def described(gateway: "Gateway", scraper_id: str, version: str | None) -> Response:
    """One scraper at the version that a call would get, with all its versions. Raises ScraperNotFound, BadRequest."""
    services = gateway.services
    known = Listings(services.catalogue)
    versions = known.of(scraper_id)
    listing = _chosen(services.catalogue, scraper_id, version, versions)
    document = known.brief(listing) | _whole(listing.scraper)
    if listing.scraper is not None:
        document["limits"] = listing.scraper.limits.within(services.settings.limits.as_limits())
        seen_after = services.clock() - services.settings.worker.lease_seconds
        document["environment"] = await environment_of(listing.scraper, services.store.workers, seen_after)
    return answer(
        {
            **document,
            "place": listing.place,
            "freshness": _freshness(services.catalogue, listing.source),
            "versions": [known.version(each) for each in reversed(versions)],
            "all_channels": dict(services.catalogue.channels(scraper_id)),
        }
    )


def source_document(state: dict[str, Any]) -> dict[str, Any]:
    """A source, with its times as ISO 8601."""
    return state | {name: documents.instant(state[name]) for name in ("checked_at", "changed_at")}


def answer(document: dict[str, Any], status: int = 200) -> Response:
    """As JSON."""
    return Response(documents.encode(document), status, media_type=documents.JSON)


def _chosen(catalogue: Catalogue, scraper_id: str, version: str | None, versions: tuple[Listing, ...]) -> Listing:
    """The listing that a call with this version, range or channel resolves to, even if it cannot run."""
    try:
        wanted = catalogue.resolve(f"{scraper_id}@{version}" if version else scraper_id).ref
    except (ScraperInvalid, SourceUnavailable) as error:
        broken = [each for each in versions if each.scraper is None]
        meant = [each for each in broken if each.problem == error.message or each.version == version]
        if not broken:
            raise
        return (meant or broken)[-1]
    found = [each for each in versions if each.version == wanted.version and each.scraper is not None]
    if not found:
        raise ScraperNotFound(f"no version {wanted.version} of {scraper_id} is listed any more")
    return found[-1]


def _whole(scraper: Scraper | None) -> dict[str, Any]:
    """The fields that describe a call; null for an invalid scraper."""
    shown: dict[str, Any] = {name: getattr(scraper, name, None) for name in _PLAIN}
    return {**shown, "digest": scraper.ref.digest if scraper else "", "limits": None, "environment": None}


def _freshness(catalogue: Catalogue, source: str) -> dict[str, Any] | None:
    return next((source_document(state) for state in sources(catalogue) if state["name"] == source), None)
