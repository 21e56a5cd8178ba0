"""Ids in paths, of what the caller may see. A client gets the same answer for what others own as for what does not
exist."""

from typing import Annotated

from fastapi import Depends

from scrapeyard.errors import NotFound
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.auth.ownership import owned_job
from scrapeyard.gateway.http.parameters import ExportPath, GatewayDep, JobPath, RunPath


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
