"""How far the packages of a scraper are installed, as the workers' heartbeats tell."""

from typing import Any

from scrapeyard.errors import StoreUnavailable
from scrapeyard.gateway.runs.documents import instant
from scrapeyard.model import EnvironmentState, EnvironmentStatus, Scraper
from scrapeyard.store.ports.runs import WorkerStore

_WORST_FIRST = (
    EnvironmentStatus.FAILED,
    EnvironmentStatus.BUILDING,
    EnvironmentStatus.WAITING,
    EnvironmentStatus.READY,
    EnvironmentStatus.NONE,
)
UNKNOWN = "unknown"
"""No worker has told, or the database is away."""


async def environment_of(scraper: Scraper, store: WorkerStore, seen_after: float) -> dict[str, Any]:
    """The worst of what workers tell, and each worker's own word. `none`: the scraper requires nothing."""
    if not scraper.requirements:
        return {"status": EnvironmentStatus.NONE, "problem": "", "workers": []}
    told = await _told(str(scraper.ref), store, seen_after)
    worst = min(told.values(), key=lambda state: _WORST_FIRST.index(state.status), default=None)
    return {
        "status": worst.status if worst else UNKNOWN,
        "problem": worst.problem if worst else "",
        "workers": [{"worker": worker_id, **state_document(state)} for worker_id, state in told.items()],
    }


async def _told(name: str, store: WorkerStore, seen_after: float) -> dict[str, EnvironmentState]:
    try:
        workers = await store.workers(seen_after)
    except StoreUnavailable:
        return {}
    return {worker.id: worker.environments[name] for worker in workers if name in worker.environments}


def state_document(state: EnvironmentState) -> dict[str, Any]:
    """One worker's word."""
    return {
        "status": state.status,
        "key": state.key,
        "problem": state.problem,
        "size_bytes": state.size_bytes,
        "built_at": instant(state.built_at),
    }
