"""Job control: pause, resume, cancel, redrive, append, delete."""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import NotFound, Refusal, ScrapeyardError, Swept
from scrapeyard.gateway.http import dialects
from scrapeyard.gateway.jobs.calls import AppendCall, ChangeCall, RedriveCall, ShapeOptions
from scrapeyard.gateway.jobs.create import JobCreation, Upload, shape_of
from scrapeyard.gateway.jobs.policies import policy_over
from scrapeyard.gateway.jobs.profiles import with_parts
from scrapeyard.gateway.jobs.streams import JobNotifier
from scrapeyard.inputs.formats.rows import BadRow
from scrapeyard.inputs.importer import ItemImporter
from scrapeyard.inputs.spool import KEPT, ListSummary, read_spool
from scrapeyard.model import new_id
from scrapeyard.model.export import SINK_OPEN_SECONDS
from scrapeyard.model.instants import instant
from scrapeyard.model.job import ArchiveState, Job, JobStatus, NewItem
from scrapeyard.repository.manifest.items import is_same
from scrapeyard.repository.port import Catalogue
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("jobs")
BY_HAND = "paused by a call"
_PAUSABLE = frozenset({JobStatus.CREATING, JobStatus.RUNNING, JobStatus.PAUSED})
_REMEDIES = {
    JobStatus.CANCELLING: "wait until it is cancelled, then resume it",
    JobStatus.FINISHING: "every item has ended; when it is completed, redrive runs items again",
    JobStatus.COMPLETED: "every item has ended; redrive runs items again",
    JobStatus.FAILED: "its source could not be read; redrive runs the items that it has, or make the job again",
}
"""What to do with a job that cannot be resumed."""


class Appended(Struct, frozen=True, kw_only=True):
    """Result of appending items."""

    added: int
    twice: int
    """Rows whose item was already in the job."""
    summary: ListSummary


class JobControl:
    """Carries out calls on a job. Raises NotFound if there is none, Refusal (409) if its state forbids the call."""

    def __init__(
        self,
        *,
        store: Store,
        blobs: Blobs,
        catalogue: Catalogue,
        intake: ItemImporter,
        creation: JobCreation,
        news: JobNotifier,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._catalogue = catalogue
        self._intake = intake
        self._creation = creation
        self._news = news
        self._clock = clock

    async def get(self, job_id: str) -> Job:
        """The job in its current state. A job that was made in another API's words is answered in them."""
        job = _there(await self._store.jobs.get(job_id), job_id)
        dialects.adopt(job.source.get("dialect", ""))
        return job

    async def pause(self, job_id: str, reason: str = BY_HAND) -> Job:
        """Stop handing out items; those already handed out finish. May be repeated."""
        before = await self.get(job_id)
        if before.status not in _PAUSABLE:
            raise _forbidden(before, "be paused")
        return await self._told(before, await self._store.jobs.set_paused(job_id, True, reason, self._clock()))

    async def resume(self, job_id: str) -> Job:
        """Resume with a reset breaker. A cancelled job goes on with what it did not do; one that runs stays as it
        is."""
        before = await self.get(job_id)
        if before.status is JobStatus.CANCELLED:
            return await self._reopen(before)
        if before.status not in _PAUSABLE:
            raise _forbidden(before, f"be resumed; {_REMEDIES[before.status]}")
        job = await self._store.jobs.set_paused(job_id, False, "", self._clock())
        await self._news.wake()
        return await self._told(before, job)

    async def _reopen(self, before: Job) -> Job:
        woken_at = await self._wake_sinks(before)
        job = await self._store.jobs.reopen(before.id, self._clock())
        await self._keep_sinks_awake(before, woken_at)
        if job is not None and job.deleting:
            raise Refusal("conflict", 409, "the job is being deleted, so it cannot be resumed")
        if job is not None and job.archive:
            raise _archived(job)
        if job is not None and job.status is JobStatus.CANCELLED:
            raise _swept(job, "resumed")
        log.info("jobs.reopened", job=before.id, items=before.counts.cancelled)
        await self._news.wake()
        return await self._told(before, job)

    async def _wake_sinks(self, job: Job) -> float:
        """Before its items run again: if this process is killed in between, nothing has changed. Returns the time."""
        now = self._clock()
        if job.sinks:
            await self._store.sinks.wake(job.id, now, now + SINK_OPEN_SECONDS)
        return now

    async def _keep_sinks_awake(self, job: Job, woken_at: float) -> None:
        """After its items run again: a delivery may be done once more if that took long. It is woken as of the first
        time, since items may have ended meanwhile."""
        now = self._clock()
        if job.sinks and now - woken_at > SINK_OPEN_SECONDS / 2:
            await self._store.sinks.wake(job.id, woken_at, now + SINK_OPEN_SECONDS)

    async def change(self, job_id: str, call: ChangeCall) -> Job:
        """Change the policy and priority for items that are handed out from now on, and the name."""
        before = await self.get(job_id)
        policy = policy_over(call.policy, before.policy)
        changed = await self._store.jobs.set_policy(job_id, policy, name=call.name, priority=call.priority)
        job = _there(changed, job_id)
        if job.status.is_final:
            raise _forbidden(job, "be changed; redrive takes a policy, too")
        log.info("jobs.changed", job=job_id)
        await self._news.wake()
        return job

    async def cancel(self, job_id: str, *, kill: bool) -> Job:
        """Cancel the job: items handed out finish, or are killed. A final job stays as it is. May be repeated."""
        before = await self.get(job_id)
        job = _there(await self._store.jobs.cancel(job_id, kill, self._clock()), job_id)
        if kill and job.status is JobStatus.CANCELLING:
            await self._news.kill(job_id)
        return await self._told(before, job)

    async def redrive(self, job_id: str, call: RedriveCall) -> tuple[int, Job]:
        """Run items again; returns how many. Also raises what resolving another scraper raises."""
        before = await self.get(job_id)
        where = ItemFilter(
            statuses=call.wanted,
            exit_reasons=_some(call.exit_reasons),
            sites=_some(call.sites),
            http_statuses=_some(call.http_statuses),
            keys=_some(call.keys),
        )
        changed = await self._changed(before, call)
        woken_at = await self._wake_sinks(before)
        count = await self._store.items.redrive(job_id, where, changed, self._clock())
        await self._keep_sinks_awake(before, woken_at)
        if count is None:
            held = await self.with_items(job_id)
            is_swept = held.sweeping or "results" in held.swept
            raise _swept(held, "run again") if is_swept else _forbidden(held, "be run again")
        job = await self.get(job_id)
        if count:
            log.info("jobs.redriven", job=job_id, items=count)
            await self._news.status(job, redriven=count)
            await self._news.wake()
        return count, job

    async def append(
        self, job_id: str, call: AppendCall | ShapeOptions, *, upload: Upload | None = None, source: str = ""
    ) -> Appended:
        """Append items to a running job. All of them are checked before the first is added. `source` identifies the
        call, so that repeating it adds nothing twice; empty if the call has no key."""
        job = await self.get(job_id)
        scraper = await self._catalogue.obtain(job.pinned, job.digest)
        shape = with_parts(shape_of(call), scraper, _types(job))
        part = new_id("part")
        place = f"{job_id}/appended/{part}"
        if isinstance(call, AppendCall):
            summary = await self._intake.keep_values(place, scraper, call.items, shape)
        elif upload is not None:
            summary = await self._intake.keep_list(place, scraper, upload.chunks, shape, upload.limit)
        else:
            raise ValueError("neither items nor an upload to append")
        try:
            added, clashes = await self._add(job, place, f"append {source or part}")
        finally:
            await self._blobs.delete([keys.job_list(place)])
        await self._news.wake()
        bad, first = summary.bad + len(clashes), (*summary.first, *clashes)[:KEPT]
        summary = replace(summary, bad=bad, first=first)
        return Appended(added=added, twice=summary.rows - added - len(clashes), summary=summary)

    async def archive(self, job_id: str) -> Job:
        """Have the items of a final job moved to the blob store. May be repeated."""
        job = _there(await self._store.archives.begin(job_id), job_id)
        if job.archive in (ArchiveState.NONE, ArchiveState.RESTORING):
            why = "has files to write or exports to make" if job.status.is_final else f"is {job.status}"
            raise Refusal("conflict", 409, f"the job {job.archive or why}, so it cannot be archived yet")
        return job

    async def restore(self, job_id: str) -> Job:
        """Have the items of an archived job moved back. A job that is not archived stays as it is. May be repeated."""
        job = _there(await self._store.archives.begin_restore(job_id), job_id)
        if job.archive in (ArchiveState.ARCHIVING, ArchiveState.REMOVING):
            raise Refusal("conflict", 409, "the job is being archived; restore it when it is")
        return job

    async def with_items(self, job_id: str) -> Job:
        """The job, if its items are in the database. Raises Refusal (409) if they are archived."""
        job = await self.get(job_id)
        if job.archive:
            raise _archived(job)
        return job

    async def delete(self, job_id: str) -> None:
        """Delete a final job and everything it left. It is marked first, then objects are removed before the rows that
        refer to them. After a crash, retention completes the deletion."""
        if not await self._store.jobs.begin_delete(job_id):
            job = await self.get(job_id)
            raise Refusal("conflict", 409, f"the job is {job.status}; cancel it first, and delete it when it has ended")
        await self._blobs.delete_prefix([keys.job_prefix(job_id)])
        await self._store.jobs.delete(job_id)
        log.info("jobs.deleted", job=job_id)

    async def _add(self, job: Job, place: str, source: str) -> tuple[int, list[BadRow]]:
        """How many are new, and which ids the job has with another input."""
        added = block = 0
        clashes: list[BadRow] = []
        async with aclosing(read_spool(self._blobs.stream(keys.job_list(place)))) as found:
            async for some in found:
                if isinstance(some, ListSummary):
                    break
                new = await self._add_block(job, some, block, source)
                if new < len(some):
                    clashes += await self._clashes(job, some)
                added, block = added + new, block + 1
        return added, clashes

    async def _clashes(self, job: Job, items: Sequence[NewItem]) -> list[BadRow]:
        """Items that were not added because the job has another input under their id."""
        given = {item.key: item for item in items}
        found = await self._store.items.page(job.id, ItemFilter(keys=tuple(given)), None, len(given))
        reason = "the job has the item_id {} with another input"
        return [
            BadRow(line=0, reason=reason.format(held.key))
            for held in found.items
            if not is_same(held.input, given[held.key].input)
        ]

    async def _add_block(self, job: Job, items: Sequence[NewItem], block: int, source: str) -> int:
        new = await self._store.items.add(job.id, items, block, self._clock(), source=source)
        if new is None:
            raise _forbidden(await self.get(job.id), "take more items")
        return new

    async def _changed(self, job: Job, call: RedriveCall) -> Job | None:
        """The job with another version or policy; None if neither changes."""
        if call.scraper is None and call.policy is None:
            return None
        changes: dict[str, Any] = {}
        if call.scraper is not None:
            scraper = await self._creation.find(call.scraper)
            pinned = self._creation.pinned(call.scraper, scraper)
            changes = {"scraper": call.scraper, "pinned": pinned, "digest": scraper.ref.digest}
        if call.policy is not None:
            changes["policy"] = policy_over(call.policy, job.policy)
        return replace(job, **changes)

    async def _told(self, before: Job, after: Job | None) -> Job:
        job = _there(after, before.id)
        if job.status is not before.status or job.pause_reason != before.pause_reason:
            await self._news.status(job)
        return job


def _types(job: Job) -> list[str]:
    wished: list[str] = [wish.type for wish in job.exports]
    return [*wished, "diff"] if job.policy.snapshots is not None else wished


def _there(job: Job | None, job_id: str) -> Job:
    if job is None:
        raise NotFound(f"no job {job_id}")
    return job


def _forbidden(job: Job, what: str) -> Refusal:
    return Refusal("conflict", 409, f"the job is {job.status}, so it cannot {what}")


def _swept(job: Job, what: str) -> ScrapeyardError:
    if "results" in job.swept:
        at = instant(job.swept["results"])
        return Swept(f"retention removed the job's results at {at}, so it cannot be {what}; make a new job")
    return Refusal("conflict", 409, f"retention removes something of the job now; it can be {what} in a moment")


def _archived(job: Job) -> Refusal:
    return Refusal("conflict", 409, f"the job is {job.archive}; POST /api/jobs/{job.id}/restore brings its items back")


def _some(given: list[Any] | None) -> tuple[Any, ...] | None:
    return None if given is None else tuple(given)
