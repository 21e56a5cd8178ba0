"""Looking at jobs, items and events, on SQLite and on PostgreSQL."""

from typing import Any

import pytest
from msgspec import Raw

from scrapeyard.errors import BadRequest
from scrapeyard.model import Artifact, ExitReason, LogLine, Usage
from scrapeyard.model.job import (
    ItemStatus,
    JobStatus,
)
from scrapeyard.store.jobs import item_queries
from scrapeyard.store.ports.jobs import DeadLetterFilter, Frontier, ItemFilter, JobFilter
from scrapeyard.store.ports.store import Store
from tests.contract.job_nouns import a_batch, a_job, a_retry, an_error, successes
from tests.contract.job_steps import a_running_job, an_ended_job, taken
from tests.contract.nouns import NOW


class TestReads:
    async def test_jobs_by_page_and_filter(self, store: Store) -> None:
        jobs = [a_job(id=f"job_{n}", schedule_id=f"s{n % 2}", reading=n == 0) for n in range(5)]
        for job in jobs:
            await store.jobs.create(job)
        seen, cursor = [], None
        while True:
            page = await store.jobs.page(JobFilter(), cursor, 2)
            seen += [job.id for job in page.jobs]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == [f"job_{n}" for n in (4, 3, 2, 1, 0)]
        assert [job.id for job in (await store.jobs.page(JobFilter(schedule_id="s1"), None, 9)).jobs] == [
            "job_3",
            "job_1",
        ]
        assert [job.id for job in (await store.jobs.page(JobFilter(reading=True), None, 9)).jobs] == ["job_0"]
        assert len((await store.jobs.page(JobFilter(scraper="shop/product"), None, 9)).jobs) == 5
        assert (await store.jobs.page(JobFilter(scraper="no\x00"), None, 9)).jobs == ()
        assert (await store.jobs.page(JobFilter(statuses=(JobStatus.PAUSED,)), None, 9)).jobs == ()

    @pytest.mark.parametrize("cursor", ["", "!", "bm8", "\x00", "é", "a" * 5000, "LTE"])
    async def test_a_strange_cursor_is_refused(self, store: Store, cursor: str) -> None:
        with pytest.raises(BadRequest, match="cursor"):
            await store.items.page("job_1", ItemFilter(), cursor, 10)
        with pytest.raises(BadRequest, match="cursor"):
            await store.items.dead_letters(DeadLetterFilter(), cursor, 10)

    async def test_a_page_of_jobs_refuses_a_strange_cursor(self, store: Store) -> None:
        with pytest.raises(BadRequest, match="cursor"):
            await store.jobs.page(JobFilter(), "!", 10)

    @pytest.mark.parametrize(
        ("where", "found"),
        [
            ({}, [0, 1, 2, 3, 4, 5, 6, 7]),
            ({"statuses": (ItemStatus.SUCCESS,)}, [0, 1]),
            ({"statuses": (ItemStatus.ERROR,)}, [2, 3]),
            ({"statuses": (ItemStatus.IN_PROGRESS,)}, [4]),
            ({"statuses": (ItemStatus.PENDING,)}, [5, 7]),
            ({"statuses": (ItemStatus.QUEUED, ItemStatus.ERROR)}, [2, 3, 6]),
            ({"statuses": (ItemStatus.CANCELLED,)}, []),
            ({"statuses": ()}, []),
            ({"exit_reasons": (ExitReason.TIMEOUT,)}, [3]),
            ({"sites": ("shop.example",), "statuses": (ItemStatus.ERROR,)}, [2]),
            ({"sites": ("shop.example",), "statuses": (ItemStatus.PENDING,)}, []),
            ({"keys": ("item-7", "item-0", "no")}, [0, 7]),
            ({"first": 6}, [6, 7]),
        ],
    )
    async def test_items_by_filter_in_pages_and_streamed(
        self, store: Store, where: dict[str, Any], found: list[int]
    ) -> None:
        job = await a_running_job(store, 8)
        batch, items = await taken(store, job, 6)
        timeout = an_error(items[3], exit_reason=ExitReason.TIMEOUT, site="b.test")
        later = a_retry(items[5], not_before=NOW + 60)
        await store.batches.record(
            batch, "worker-1", 0, [*successes(items[:2]), an_error(items[2]), timeout, later], NOW
        )
        await store.batches.cut(a_batch(job, 1), NOW)
        seen, cursor = [], None
        while True:
            page = await store.items.page(job.id, ItemFilter(**where), cursor, 2)
            seen += [item.seq for item in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == found
        streamed = [item async for block in store.items.stream(job.id, ItemFilter(**where)) for item in block]
        assert [item.seq for item in streamed] == found

    @pytest.mark.parametrize("every", [1, 2, 7, 19, 50])
    async def test_items_that_are_far_apart_are_found(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, every: int
    ) -> None:
        monkeypatch.setattr(item_queries, "_STRETCH", 2)
        job = await a_running_job(store, 40)
        batch, items = await taken(store, job)
        ends = [an_error(item) if item.seq % every == every - 1 else successes([item])[0] for item in items]
        await store.batches.record(batch, "worker-1", 0, ends, NOW)
        for statuses in ((ItemStatus.ERROR,), (ItemStatus.SUCCESS,)):
            seen: list[int] = []
            cursor = None
            while True:
                page = await store.items.page(job.id, ItemFilter(statuses=statuses), cursor, 3)
                seen += [item.seq for item in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert seen == [n for n in range(40) if (n % every == every - 1) == (statuses == (ItemStatus.ERROR,))]

    async def test_an_item_is_told_whole(self, store: Store) -> None:
        job = await a_running_job(store, 2)
        batch, items = await taken(store, job)
        end = an_error(
            items[0],
            logs=(LogLine(at_ms=1.0, stream="stdout", text="one"),),
            artifacts=(Artifact(name="html.html", content_type="text/html", size=3, key="k"),),
            usage=Usage(wall_ms=1.5, memory_mb=3.0, records=2, bytes_by_class={"direct": 4}, solver_calls=2),
            strategy="solver",
            proxy="residential home/gate.example:9000",
            result_key="blob",
        )
        await store.batches.record(batch, "worker-1", 0, [end, a_retry(items[1], not_before=NOW + 5)], NOW)
        item = await store.items.get(job.id, "item-0")
        assert item is not None
        told = {name: getattr(item, name) for name in end.__struct_fields__ if hasattr(item, name)}
        assert told == {name: getattr(end, name) for name in told}
        waits = await store.items.get(job.id, "item-1")
        assert waits is not None
        assert (waits.status, waits.attempt, waits.not_before) == (ItemStatus.PENDING, 1, NOW + 5)

    async def test_ends_are_told_once_and_again_when_an_item_runs_again(self, store: Store) -> None:
        job = await a_running_job(store, 6)
        batch, items = await taken(store, job, 4)
        none = await store.items.ended_since(job.id, Frontier(), 10)
        assert (none.items, none.left_out) == ((), 0)
        ends = [*successes(items[:1]), an_error(items[1]), a_retry(items[2])]
        await store.batches.record(batch, "worker-1", 0, ends, NOW)
        first = await store.items.ended_since(job.id, none.frontier, 10)
        assert [(item.seq, item.status) for item in first.items] == [(0, ItemStatus.SUCCESS), (1, ItemStatus.ERROR)]
        assert bytes(first.items[0].input) == b'{"url": "http://shop.example/0"}'
        again = await store.items.ended_since(job.id, first.frontier, 10)
        assert (again.items, again.left_out) == ((), 0)
        await store.batches.record(batch, "worker-1", 1, successes(items[3:]), NOW)
        retried, waiting = await taken(store, job)
        await store.batches.record(retried, "worker-1", 0, successes(waiting), NOW)
        then = await store.items.ended_since(job.id, again.frontier, 10)
        assert sorted(item.seq for item in then.items) == [2, 3]
        await store.items.redrive(job.id, ItemFilter(), None, NOW)
        open_again = await store.items.ended_since(job.id, then.frontier, 10)
        assert (open_again.items, open_again.left_out) == ((), 0)
        redriven, failed = await taken(store, job)
        await store.batches.record(redriven, "worker-1", 0, successes(failed), NOW)
        assert [item.seq for item in (await store.items.ended_since(job.id, open_again.frontier, 10)).items] == [1]
        assert (await store.items.ended_since("job_missing", Frontier(), 10)).items == ()

    async def test_of_many_ends_some_are_told_and_the_others_counted(self, store: Store) -> None:
        job = await a_running_job(store, 50)
        batch, items = await taken(store, job)
        await store.batches.record(batch, "worker-1", 0, successes(items), NOW)
        found = await store.items.ended_since(job.id, Frontier(), 8)
        assert (sorted(item.seq for item in found.items), found.left_out) == (list(range(42, 50)), 42)
        assert (await store.items.ended_since(job.id, found.frontier, 8)).left_out == 0

    async def test_a_stream_without_data(self, store: Store) -> None:
        job = await a_running_job(store, 2500)
        batch, items = await taken(store, job)
        await store.batches.record(batch, "worker-1", 0, successes(items), NOW)
        blocks = [block async for block in store.items.stream(job.id, ItemFilter(), data=False)]
        assert [len(block) for block in blocks] == [1000, 1000, 500]
        assert all(item.result is None and bytes(item.input) == b"{}" for block in blocks for item in block)
        assert [item.seq for block in blocks for item in block] == list(range(2500))

    async def test_dead_letters_of_a_job_are_its_owner_s(self, store: Store) -> None:
        """Whoever names the job of another client sees nothing."""
        job = await an_ended_job(store, owner="ada")
        for owner, count in (("ada", 2), ("bob", 0), ("", 0), (None, 2)):
            letters, _ = await store.items.dead_letters(DeadLetterFilter(job_id=job.id, owner=owner), None, 10)
            assert len(letters) == count

    async def test_pages_lead_past_what_was_handed_out(self, store: Store) -> None:
        job = await a_running_job(store, 30)
        assert await store.batches.cut(a_batch(job, 5), NOW) is not None
        seen, cursor = [], None
        while True:
            page = await store.items.page(job.id, ItemFilter(), cursor, 10)
            seen += [(item.seq, item.status) for item in page.items]
            if (cursor := page.next_cursor) is None:
                break
        statuses = [ItemStatus.QUEUED] * 5 + [ItemStatus.PENDING] * 25
        assert seen == list(enumerate(statuses))

    async def test_dead_letters_across_jobs(self, store: Store) -> None:
        older, newer = await an_ended_job(store), await an_ended_job(store)
        seen, cursor = [], None
        while True:
            letters, cursor = await store.items.dead_letters(DeadLetterFilter(), cursor, 3)
            seen += [(job_id, item.key) for job_id, item in letters]
            if cursor is None:
                break
        assert seen == [(job.id, key) for job in (newer, older) for key in ("item-3", "item-2")]

    async def test_dead_letters_by_filter(self, store: Store) -> None:
        job, other = await an_ended_job(store), await an_ended_job(store)

        async def keys(**where: Any) -> list[tuple[str, str]]:
            letters, cursor = await store.items.dead_letters(DeadLetterFilter(**where), None, 10)
            assert cursor is None
            return [(job_id, item.key) for job_id, item in letters]

        whole = await keys()
        assert await keys(job_id=job.id) == [one for one in whole if one[0] == job.id]
        assert await keys(job_id=other.id, scraper="shop/product") == [one for one in whole if one[0] == other.id]
        assert await keys(job_id=job.id, scraper="shop/other") == []
        ended = {
            (job_id, item.key): item
            for job_id, item in (await store.items.dead_letters(DeadLetterFilter(), None, 9))[0]
        }
        for reason in {item.exit_reason for item in ended.values()}:
            assert await keys(exit_reasons=(reason,)) == [one for one in whole if ended[one].exit_reason is reason]
        for site in {item.site for item in ended.values()}:
            assert await keys(sites=(site,)) == [one for one in whole if ended[one].site == site]
        assert await keys(exit_reasons=(ExitReason.SUCCEEDED,)) == []
        assert await keys(sites=("nobody.example", "no\x00")) == []
        assert await keys(scraper="nobody/nothing") == await keys(job_id="job_9") == []

    async def test_events_are_numbered_and_told_once(self, store: Store) -> None:
        job = await an_ended_job(store)
        for _ in range(2):
            await store.events.add(job.id, "status", Raw(b'{"status": "running"}'), NOW)
        events = await store.events.after(job.id, 0, 10)
        assert [(event.number, event.kind) for event in events] == [
            (1, "item_failed"),
            (2, "item_failed"),
            (3, "status"),
        ]
        assert [event.number for event in await store.events.after(job.id, 1, 1)] == [2]
        assert b'"item-2"' in bytes(events[0].data)


class TestListing:
    async def test_jobs_come_newest_first_whatever_their_ids(self, store: Store) -> None:
        for chosen in ("b", "job_1", "a"):
            assert await store.jobs.create(a_job(id=chosen))
        first = await store.jobs.page(JobFilter(), None, 2)
        assert [job.id for job in first.jobs] == ["a", "job_1"]
        rest = await store.jobs.page(JobFilter(), first.next_cursor, 2)
        assert ([job.id for job in rest.jobs], rest.next_cursor) == (["b"], None)

    async def test_jobs_are_found_by_their_domain(self, store: Store) -> None:
        for chosen, source in (
            ("first", {"kind": "list", "domain": "shop.example"}),
            ("second", {"kind": "sitemap", "url": "https://shop.example/", "domain": "shop.example"}),
            ("other", {"kind": "list", "domain": "shop.example.org"}),
            ("none", {"kind": "list"}),
        ):
            assert await store.jobs.create(a_job(id=chosen, source=source))
        await store.jobs.set_source("first", {"kind": "list", "gaps": ["a"], "domain": "shop.example"})
        found = await store.jobs.page(JobFilter(domain="shop.example"), None, 10)
        assert [job.id for job in found.jobs] == ["second", "first"]
        assert (await store.jobs.page(JobFilter(domain='shop"'), None, 10)).jobs == ()
