"""How a run reaches its one outcome.

A run is a row of its own partition. Every change of its status reads the row, decides, and writes under the condition
that nobody wrote it meanwhile; otherwise it decides anew. So of two concurrent callers one wins and the other gets
False. A run whose cancel was requested never goes back to QUEUED: whatever would put it there ends it.

Each run is written by itself. A call for many that raises StoreUnavailable has written some of them; repeat it.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from scrapeyard.errors import StoreUnavailable, StoreUncertain
from scrapeyard.model import (
    SCRAPER_ID,
    ExitReason,
    LogLine,
    Run,
    RunError,
    RunProgress,
    RunStatus,
    RunWait,
    status_of,
)
from scrapeyard.store.database.paging import as_cursor, from_cursor, is_id
from scrapeyard.store.dynamo.rows.run_rows import (
    FINAL_RUN,
    PUBLISHED,
    RUN,
    RUNNING,
    WAITING,
    fits,
    outcome_row,
    placed,
    put_back,
    run_condition,
    run_key,
)
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.expressions import (
    at_least,
    at_most,
    below,
)
from scrapeyard.store.dynamo.table.part import DynamoPart
from scrapeyard.store.dynamo.table.schema import DUE, ENDED, LIST
from scrapeyard.store.dynamo.table.table import SHARDS, changed, each
from scrapeyard.store.dynamo.table.values import Columns, Item, key_of
from scrapeyard.store.ports.runs import Ending, RunFilter, RunPage
from scrapeyard.store.runs.rows import (
    BEGUN,
    Row,
    ended_row,
    packed,
    queued_row,
    running_row,
    to_lines,
    to_run,
    with_progress,
)

_LARGE: Final = ("result", "logs")
_BLOCK: Final = 100


class DynamoRuns(DynamoPart):
    """The RunStore."""

    places: ClassVar[Mapping[str, str]] = {name: f"runs.{name}" for name in ("input", "error", "report", *_LARGE)}

    async def add(self, runs: Sequence[Run]) -> None:
        """Write accepted runs as QUEUED, each by itself. An existing run is left as it is."""
        try:
            await each({run.id: run for run in runs}.values(), self._add)
        except StoreUnavailable as error:
            if len(runs) > 1:  # others of them may be written
                raise StoreUncertain(error.message) from error
            raise

    async def begin(self, runs: Sequence[Run]) -> None:
        """Write that attempts began. If `runs` has several attempts of one run, only the last is written."""
        last = {run.id: run for run in sorted(runs, key=lambda run: run.attempt)}
        await each(last.values(), self._begin)

    async def finish(self, endings: Sequence[Ending]) -> list[bool]:
        """Record outcomes, with logs and artifacts. For each: True if this call recorded it. Raises ValueError, and
        records none, if one of them cannot be."""
        for ending in endings:
            placed(ended_row(ending))
        recorded = [False] * len(endings)
        by_run: dict[str, list[int]] = {}
        for place, ending in enumerate(endings):
            by_run.setdefault(ending.run.id, []).append(place)

        async def one(places: list[int]) -> None:
            for place in places:
                recorded[place] = await self._finish(endings[place])

        await each(by_run.values(), one)
        return recorded

    async def claim(self, run_id: str, attempt: int, worker_id: str, now: float, lease_until: float) -> bool:
        """Claim a redelivered run: True if it was QUEUED at this attempt and now is RUNNING under this worker."""
        began = {"status": RunStatus.RUNNING.value, "worker_id": worker_id, "started_at": now}
        began |= {"lease_until": lease_until, "not_before": None}

        def claimed(row: Item) -> Row | None:
            return row | began if row["attempt"] == attempt and row["status"] == RunStatus.QUEUED else None

        return await self._change(run_id, claimed) is not None

    async def renew(self, worker_id: str, run_ids: Sequence[str], lease_until: float) -> list[str]:
        """Renew leases; returns the runs to stop. A run whose start is not written yet (no row, or QUEUED at its first
        attempt) may continue."""

        async def one(run_id: str) -> bool:
            stops = False

            def renewed(row: Item) -> Row | None:
                nonlocal stops
                held = row["status"] == RunStatus.RUNNING and row["worker_id"] == worker_id
                is_written = row["status"] != RunStatus.QUEUED or row["attempt"] > 1
                stops = row["cancel_requested"] or (is_written and not held)
                return row | {"lease_until": lease_until} if held else None

            await self._change(run_id, renewed)
            return stops

        ids = sorted(run_ids)
        return [run_id for run_id, stops in zip(ids, await each(ids, one), strict=True) if stops]

    async def note_progress(
        self, run_id: str, attempt: int, progress: RunProgress | None, waiting: RunWait | None = None
    ) -> bool:
        """Write how far a RUNNING run is, and what it waits for. False if it is not running at this attempt."""

        def told(row: Item | None) -> Row | None:
            if row is None or row["attempt"] != attempt or row["status"] != RunStatus.RUNNING:
                return None
            return row | {"report": with_progress(row.get("report"), progress, waiting)}

        return await self._rewrite(run_id, told) is not None

    async def release(self, run_ids: Sequence[str], worker_id: str, now: float) -> None:
        """Give unfinished runs back: QUEUED again at the same attempt, due now; CANCELLED if that was requested."""

        def given_back(row: Item) -> Row | None:
            mine = row["status"] == RunStatus.RUNNING and row["worker_id"] == worker_id
            return put_back(row, now) if mine else None

        await each(run_ids, lambda run_id: self._change(run_id, given_back))

    async def cancel(self, run_id: str, now: float) -> Run | None:
        """Cancel a run. Returns the resulting run; None if there is no such run."""

        def stopped(row: Item) -> Row | None:
            if row["status"] in FINAL_RUN:
                return None
            asked = row | {"cancel_requested": True, "not_before": None}
            if row["status"] == RunStatus.RUNNING:
                return asked
            return asked | {"status": RunStatus.CANCELLED.value, "exit_reason": "cancelled", "finished_at": now}

        await self._change(run_id, stopped)
        return await self.get(run_id)

    async def end(self, run_id: str, attempt: int, reason: ExitReason, error: RunError, now: float) -> bool:
        """Make an unfinished run final from outside. False if it ended or moved on meanwhile."""
        values: Row = {"status": status_of(reason).value, "exit_reason": reason.value, "error": packed(error)}
        values |= {"finished_at": now, "lease_until": None, "not_before": None}

        def ended(row: Item | None) -> Row | None:
            return None if row is None or row["attempt"] != attempt or row["status"] in FINAL_RUN else row | values

        return await self._rewrite(run_id, ended) is not None

    async def get(self, run_id: str) -> Run | None:
        """The whole run, `result` included if it is stored inline. None if there is no such run."""
        if not is_id(run_id):
            return None
        row = await self._table.get(run_key(run_id))
        return None if row is None else (await self._runs([row]))[0]

    async def finals(self, run_ids: Sequence[str]) -> list[Run]:
        """The ended ones of these runs, whole."""
        rows = await self._rows(run_ids)
        return await self._runs([row for row in rows if row["status"] in FINAL_RUN])

    async def logs(self, run_id: str) -> tuple[tuple[LogLine, ...], bool]:
        """The lines of the last recorded attempt, and whether they were cut. Empty if there is no such run."""
        row = await self._table.get(run_key(run_id)) if is_id(run_id) else None
        if row is None:
            return (), False
        (opened,) = await self._contents.opened([row], without=("input", "error", "report", "result"))
        return to_lines(opened.get("logs")), row["logs_cut"]

    async def page(self, where: RunFilter, cursor: str | None, limit: int) -> RunPage:
        """Newest first. Raises BadRequest for an invalid cursor."""
        sort = None if cursor is None else below("list_sk", from_cursor(cursor))
        if where.scraper is not None and not SCRAPER_ID.fullmatch(where.scraper):
            return RunPage(runs=())
        found = await self._table.spread(
            RUN, LIST, sort=sort, where=run_condition(where), descending=True, limit=limit + 1
        )
        rows = [row for row in await self._rows(_ids(found[:limit])) if fits(row, where)]
        rows.sort(key=lambda row: str(row["id"]), reverse=True)
        more = as_cursor(found[limit - 1]["list_sk"]) if len(found) > limit else None
        return RunPage(runs=tuple(await self._runs(rows, without=_LARGE)), next_cursor=more)

    async def due(self, now: float, queued_before: float, limit: int) -> list[Run]:
        """QUEUED runs that should be in the queue; within each of the two kinds the longest waiting first."""
        found = await self._table.spread(WAITING, DUE, sort=at_most("due_at", now), limit=limit)
        found += await self._table.spread(PUBLISHED, DUE, sort=below("due_at", queued_before), limit=limit)

        def is_due(row: Item) -> bool:
            waits = row.get("not_before")
            came = row["queued_at"] < queued_before if waits is None else waits <= now
            return bool(row["status"] == RunStatus.QUEUED and came)

        return await self._runs([row for row in await self._rows(_ids(found[:limit])) if is_due(row)])

    async def requeued(self, run_ids: Sequence[str], now: float) -> None:
        """Record that these QUEUED runs were published at `now`."""

        def published(row: Item) -> Row | None:
            return row | {"queued_at": now, "not_before": None} if row["status"] == RunStatus.QUEUED else None

        await each(run_ids, lambda run_id: self._change(run_id, published))

    async def expired(self, now: float, limit: int) -> list[Run]:
        """RUNNING runs whose lease has ended, the longest silent first."""
        found = await self._table.spread(RUNNING, DUE, sort=below("due_at", now), limit=limit)
        rows = await self._rows(_ids(found))
        lost = [row for row in rows if row["status"] == RunStatus.RUNNING and row["lease_until"] < now]
        return await self._runs(sorted(lost, key=lambda row: float(row["lease_until"])))

    async def retry(self, run_id: str, attempt: int, now: float) -> bool:
        """Put a RUNNING run whose worker was lost back to QUEUED at `attempt` + 1, due now. False if it moved on, or if
        its cancel was requested, which ends it here."""

        def again(row: Item) -> Row | None:
            if row["attempt"] != attempt or row["status"] != RunStatus.RUNNING:
                return None
            back = put_back(row, now)
            return back if row["cancel_requested"] else back | {"attempt": attempt + 1}

        row = await self._change(run_id, again)
        return row is not None and row["status"] == RunStatus.QUEUED

    async def counts(self) -> dict[RunStatus, int]:
        """How many runs are not final, by status; both statuses are always present. The index that is counted may be a
        moment behind."""
        waiting, published, running = [await self._count(pk) for pk in (WAITING, PUBLISHED, RUNNING)]
        return {RunStatus.QUEUED: waiting + published, RunStatus.RUNNING: running}

    async def waiting(self) -> dict[tuple[str, str], int]:
        """How many QUEUED runs wait for a worker, by lane and owner."""
        counts: dict[tuple[str, str], int] = {}
        for row in await self._table.spread(PUBLISHED, DUE):
            whose = (row["lane"], row["owner"])
            counts[whose] = counts.get(whose, 0) + 1
        return counts

    async def unfinished(self, run_ids: Sequence[str]) -> set[str]:
        """Those of these runs that have not ended."""
        return {row["id"] for row in await self._rows(run_ids) if row["status"] not in FINAL_RUN}

    async def ended_since(self, finished_after: float) -> dict[tuple[str, RunStatus], int]:
        """How many runs have ended since then, by id of the scraper and status."""
        counts: dict[tuple[str, RunStatus], int] = {}
        for row in await self._table.spread(RUN, ENDED, sort=at_least("ended_at", finished_after)):
            which = (row["scraper_id"], RunStatus(row["status"]))
            counts[which] = counts.get(which, 0) + 1
        return counts

    async def accepted(self, run: Run) -> Item:
        """The row of a run that was accepted and waits."""
        return await self._contents.stored(placed(queued_row(run)))

    async def discard(self, rows: Sequence[Item]) -> None:
        """Remove what `accepted` wrote for rows that were not written then."""
        await self._contents.clean(rows)

    async def listed(self, run_ids: Sequence[str]) -> list[Run]:
        """The ended ones of these runs, without results and logs."""
        rows = [row for row in await self._rows(run_ids) if row["status"] in FINAL_RUN]
        return await self._runs(rows, without=_LARGE)

    async def known(self, run_ids: Sequence[str]) -> set[str]:
        """Which of these there are."""
        return {row["id"] for row in await self._rows(run_ids)}

    async def clear(self, run_id: str, values: Row) -> None:
        """Write columns of a final run."""
        await self._rewrite(run_id, lambda row: row | values if row and row["status"] in FINAL_RUN else None)

    async def remove(self, run_id: str) -> None:
        """Remove a final run, with all that belongs to it."""
        row = await self._table.get(run_key(run_id))
        if row is not None and row["status"] in FINAL_RUN:
            await self._contents.drop([run_key(run_id)])

    async def about(self, matches: Callable[[Item], bool]) -> AsyncIterator[list[tuple[str, bool]]]:
        """Ids of the runs whose rows match, and whether each is final, in blocks. Reads every run."""
        for shard in range(SHARDS):
            async for page in self._table.pages(f"{RUN}/{shard}", LIST):
                for start in range(0, len(page), _BLOCK):
                    rows = await self._rows(_ids(page[start : start + _BLOCK]))
                    opened = await self._contents.opened(rows, without=("result", "logs", "error"))
                    yield [(row["id"], row["status"] in FINAL_RUN) for row in opened if matches(row)]

    async def _add(self, run: Run) -> bool:
        return await self._table.add(await self.accepted(run))

    async def _begin(self, run: Run) -> None:
        row = await self._contents.stored(placed(running_row(run)))

        def begun(old: Item | None) -> Item | None:
            if old is None:
                return row
            if old["status"] in FINAL_RUN or old["attempt"] > run.attempt:
                return None
            return placed(old | {name: row[name] for name in BEGUN})

        await self._table.change(run_key(run.id), begun)

    async def _finish(self, ending: Ending) -> bool:
        return await self._rewrite(ending.run.id, lambda old: outcome_row(old, ending)) is not None

    async def _rewrite(self, run_id: str, work: Callable[[Item | None], Row | None]) -> Item | None:
        """Change a run with its content. `work` gets None if there is no such run, and returns None to leave it."""
        old = await self._table.get(run_key(run_id))
        while True:
            row = work(None if old is None else (await self._contents.opened([old]))[0])
            if row is None:
                return None
            new = await self._contents.stored(placed(row))
            try:
                await self._table.write(changed(key_of(new), old, new))
            except WriteRefused as refused:
                old = refused.items[0]
            else:
                await self._contents.clean([old] if old else [])
                return new

    async def _change(self, run_id: str, work: Callable[[Item], Row | None]) -> Item | None:
        """Change a run that there is, without its content."""

        def changed_row(old: Item | None) -> Item | None:
            new = None if old is None else work(old)
            return None if new is None else placed(new)

        return await self._table.change(run_key(run_id), changed_row) if is_id(run_id) else None

    async def _rows(self, run_ids: Iterable[str]) -> list[Item]:
        """Rows of runs that there are, in the order of their ids."""
        keys = [run_key(run_id) for run_id in run_ids if is_id(run_id)]
        found = await self._table.get_many(keys)
        return [found[key] for key in dict.fromkeys(keys) if key in found]

    async def _runs(self, rows: Sequence[Item], *, without: Iterable[str] = ("logs",)) -> list[Run]:
        return [to_run(Columns(row)) for row in await self._contents.opened(rows, without=without)]

    async def _count(self, pk: str) -> int:
        return sum(await each(range(SHARDS), lambda shard: self._table.count(f"{pk}/{shard}", DUE)))


def _ids(found: Iterable[Item]) -> list[str]:
    return [item["pk"].removeprefix("run/") for item in found]
