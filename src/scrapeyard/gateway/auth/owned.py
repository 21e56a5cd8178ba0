"""Ids in paths, of what the caller may see. A client gets the same answer for what others own as for what does not
exist."""

from typing import Annotated

from fastapi import Depends
from msgspec.structs import replace

from scrapeyard.errors import NotFound, Refusal
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.http.parameters import ExportPath, GatewayDep, JobPath, RunPath
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


async def owned_run(gateway: GatewayDep, identity: IdentityDep, run_id: RunPath) -> str:
    """The id of a run that the caller may see. Raises NotFound."""
    if not identity.sees_all and not identity.may_see((await gateway.lookup.get(run_id)).owner):
        raise NotFound(f"no run {run_id}")
    return run_id


async def _job(gateway: GatewayDep, identity: IdentityDep, job_id: JobPath) -> str:
    return await owned_job(gateway.services.store.jobs, identity, job_id)


async def _export(gateway: GatewayDep, identity: IdentityDep, export_id: ExportPath) -> str:
    if identity.sees_all:
        return export_id
    store = gateway.services.store
    export = await store.exports.get(export_id)
    job = None if export is None else await store.jobs.get(export.job_id)
    if job is None or not identity.may_see(job.owner):
        raise NotFound(f"no export {export_id}")
    return export_id


RunId = Annotated[str, Depends(owned_run)]
JobId = Annotated[str, Depends(_job)]
ExportId = Annotated[str, Depends(_export)]
