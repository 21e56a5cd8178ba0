"""What a caller may call and see, and what it owns. Imports no web framework: jobs without a server use it."""

from msgspec.structs import replace

from scrapeyard.errors import NotFound, Refusal
from scrapeyard.model.identity import Identity
from scrapeyard.model.job import ExportWish
from scrapeyard.store.ports.jobs import JobStore


def check_call(identity: Identity, scraper: str) -> None:
    """Raise Refusal (403) if the caller may not call a scraper, whether it exists or not."""
    if not identity.may_call(scraper):
        raise Refusal("forbidden", 403, f"this key may call {', '.join(identity.scrapers)}, and not {scraper[:200]}")


def owner_of(identity: Identity, named: str) -> str:
    """The owner of new work for which the call may name one. Raises Refusal (403) if a client names another."""
    if named and not identity.may_see(named):
        raise Refusal("forbidden", 403, f"owner: this key is of {identity.client}; leave it out, or name that")
    return named or identity.client


async def owned_job(jobs: JobStore, identity: Identity, job_id: str) -> str:
    """The id of a job that the caller may see, also if a client gives it as it chose it. Raises NotFound."""
    if identity.sees_all:
        return job_id
    for known_as in (job_id, identity.job_id(job_id)):
        job = await jobs.get(known_as)
        if job is not None and identity.may_see(job.owner):
            return known_as
    raise NotFound(f"no job {job_id}")


async def owned_wish(jobs: JobStore, identity: Identity, wish: ExportWish) -> ExportWish:
    """An export that compares with no job, or with one that the caller may see. Raises NotFound."""
    return replace(wish, against=await owned_job(jobs, identity, wish.against)) if wish.against else wish
