"""Jobs run by the whole platform on its embedded backends: what becomes of their items."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.model import Backoff, BudgetLimits, CancelJob, ExitReason, RunError
from scrapeyard.model.job import BreakerPolicy, Counts, Item, ItemStatus, Job, JobStatus
from scrapeyard.queues import messages
from scrapeyard.results import artifacts
from scrapeyard.results.exports.protocol import line_of
from scrapeyard.sandbox.handles import parent, zygote
from tests.contract.sandboxes import descendants, eventually
from tests.leaks import PATIENCE
from tests.services.batch_yard import ECHO, BatchYard, batch_yard, soon
from tests.sites.site import Site, page

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
WORKER = {
    "slots": 4,
    "reserved_slots": 1,
    "heartbeat_seconds": 0.2,
    "lease_seconds": PATIENCE,
    "drain_seconds": 10,
    "ahead": 0,
}
SANDBOX = {"load_seconds": PATIENCE}
NO_BREAKER = BreakerPolicy(enabled=False)
SOON = Backoff(kind="linear", first_seconds=0.05, cap_seconds=0.05)

CASES = """
import os, time
from scrapeyard_sdk import Fail, Retry, Skip
seen = 0
def run(ctx, case, n=0, url=''):
    global seen
    seen += 1
    if case == 'who': return [os.getpid(), seen]
    if case == 'raise': print('before'); raise ValueError('no')
    if case == 'talk': print('x' * 9000); raise ValueError('y' * 9000)
    if case == 'quiet': print('not kept'); return n
    if case == 'fail': raise Fail('no')
    if case == 'skip': raise Skip('nothing here')
    if case == 'twice':
        if ctx.attempt == 1: raise Retry('again', after=0.05)
        return ctx.attempt
    if case == 'never': raise Retry('again')
    if case == 'crash': os.kill(os.getpid(), 11)
    if case == 'large': return 'x' * 20_000
    if case == 'artifact': ctx.artifact('a.txt', 'kept ' * 500); return n
    if case == 'page': return ctx.fetch(url).text('title')
    if case == 'wait': time.sleep(600)
    return n
"""
YIELDS = "def run(ctx, count):\n    for n in range(count): yield n\n"
RECORDS = """
from scrapeyard_sdk import Retry
def run(ctx, size: int, again: bool = False):
    for n in range(3): yield {"n": n, "text": "x" * size}
    if again and ctx.attempt == 1: raise Retry('again', after=0.05)
    if not again: raise ValueError('no more')
"""
SCRIPTS = {
    "test/cases": CASES,
    "test/yields": YIELDS,
    "test/records": RECORDS,
    "test/broken": "raise ValueError('at import')\n",
}
CASE = "test/cases@1.0.0"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def yard(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchYard]:
    folder = tmp_path_factory.mktemp("batches")
    for place in (folder, folder.parent):
        place.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zygote, "_HELLO_PATIENCE", PATIENCE)
        patch.setattr(parent, "_FORK_PATIENCE", PATIENCE)
        async with batch_yard(folder, SCRIPTS, worker=WORKER, sandbox=SANDBOX) as made:
            yield made


@pytest_asyncio.fixture(loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with Site() as made:
        made.routes["/"] = page(b"<title>hello</title>", content_type="text/html")
        yield made


def error(item: Item) -> RunError:
    assert item.error is not None, item
    return item.error


def value(item: Item) -> Any:
    assert item.exit_reason is ExitReason.SUCCEEDED, item
    assert item.result is not None
    return msgspec.json.decode(item.result)


async def test_every_item_of_a_builtin_ends_with_its_own_result(yard: BatchYard) -> None:
    inputs = [{"n": n, "url": f"http://www.shop{n % 3}.example/p"} for n in range(3000)]
    items = await yard.run(ECHO, inputs)
    assert [value(item) for item in items] == inputs
    assert {item.site for item in items} == {f"shop{n}.example" for n in range(3)}
    assert {item.attempt for item in items} == {1}
    assert all(item.usage and item.usage.output_bytes == item.result_bytes > 0 for item in items)


@pytest.mark.parametrize("isolation", ["run", "job"])
async def test_how_items_of_a_script_end(yard: BatchYard, isolation: str) -> None:
    cases = ["", "raise", "skip", "fail", "twice", "never", "crash", "quiet"]
    inputs = [{"case": case, "n": n} for n, case in enumerate(cases)]
    policy = {"isolation": isolation, "max_attempts": 2, "breaker": NO_BREAKER, "backoff": SOON}
    items = await yard.run(CASE, inputs, **policy)
    by_case = dict(zip(cases, items, strict=True))
    reasons = {case: str(item.exit_reason) for case, item in by_case.items()}
    assert reasons == {
        "": "succeeded", "raise": "script_error", "skip": "skipped", "fail": "failed", "twice": "succeeded",
        "never": "retry", "crash": "crashed", "quiet": "succeeded",
    }  # fmt: skip
    assert (value(by_case["twice"]), by_case["twice"].attempt) == (2, 2)
    assert by_case["never"].attempt == 2
    assert [line.text for line in by_case["raise"].logs] == ["before"]
    assert error(by_case["raise"]).type == "ValueError"
    assert by_case["quiet"].logs == ()
    assert by_case["skip"].status is ItemStatus.SUCCESS


@pytest.mark.parametrize("isolation", ["run", "job"])
async def test_records_of_a_failed_item_are_kept_as_partial(yard: BatchYard, isolation: str) -> None:
    inputs: list[dict[str, Any]] = [{"size": 10}, {"size": 50_000}, {"size": 10, "again": True}]
    policy = {"isolation": isolation, "max_attempts": 2, "breaker": NO_BREAKER, "backoff": SOON}
    small, large, good = await yard.run("test/records@1.0.0", inputs, **policy)
    assert [item.partial for item in (small, large, good)] == [True, True, False]
    assert [item.status for item in (small, large, good)] == [ItemStatus.ERROR, ItemStatus.ERROR, ItemStatus.SUCCESS]
    assert small.result is not None
    assert [record["n"] for record in msgspec.json.decode(small.result)] == [0, 1, 2]
    assert large.result_key
    assert large.result_bytes > 150_000
    assert line_of(small).result == line_of(large, b"[]").result == b""
    assert len(value(good)) == 3


async def test_items_of_a_job_share_a_child_only_where_its_policy_says(yard: BatchYard) -> None:
    told = {}
    for isolation in ("run", "job"):
        items = await yard.run(CASE, [{"case": "who"}] * 30, isolation=isolation)
        told[isolation] = [value(item) for item in items]
    assert {seen for _, seen in told["run"]} == {1}
    assert max(seen for _, seen in told["job"]) > 1


async def test_words_of_a_failed_item_are_cut(yard: BatchYard) -> None:
    (item,) = await yard.run(CASE, [{"case": "talk"}])
    assert sum(len(line.text) for line in item.logs) <= 4096
    assert len(error(item).message) <= 4096
    assert len(error(item).traceback) <= 4096


async def test_inputs_are_checked_before_they_run(yard: BatchYard) -> None:
    items = await yard.run(f"builtin/page@{ECHO.partition('@')[2]}", [{"url": 7}, {}, {"url": "ftp://a.test/"}])
    assert {item.exit_reason for item in items} == {ExitReason.BAD_INPUT}
    assert all("the input does not fit" in error(item).message for item in items)


@pytest.mark.parametrize(
    ("pinned", "reason"),
    [
        ("test/gone@1.0.0", ExitReason.SCRAPER_NOT_FOUND),
        ("test/cases@9.9.9", ExitReason.SCRAPER_NOT_FOUND),
        ("test/broken@1.0.0", ExitReason.SCRAPER_INVALID),
    ],
)
async def test_items_of_a_scraper_that_cannot_run_end_with_the_reason(
    yard: BatchYard, pinned: str, reason: ExitReason
) -> None:
    items = await yard.run(pinned, [{"case": ""}] * 3, isolation="job", breaker=NO_BREAKER)
    assert {item.exit_reason for item in items} == {reason}


async def test_the_size_of_a_result_is_its_length_also_where_a_script_yields_it(yard: BatchYard) -> None:
    items = await yard.run("test/yields@1.0.0", [{"count": count} for count in (0, 1, 3)])
    assert [(value(item), item.result_bytes) for item in items] == [([], 2), ([0], 3), ([0, 1, 2], 7)]


async def test_large_results_and_artifacts_are_objects(yard: BatchYard) -> None:
    blobs = ObjectBlobs.in_folder(yard.data_dir / "blobs")
    large, kept = await yard.run(CASE, [{"case": "large"}, {"case": "artifact", "n": 5}])
    assert large.result is None
    assert large.result_bytes == 20_002
    assert large.result_key.endswith("/items/k0/data.json")
    assert msgspec.json.decode(await artifacts.read(blobs, large.result_key)) == "x" * 20_000
    assert value(kept) == 5
    (artifact,) = kept.artifacts
    assert artifact.key.endswith("/items/k1/artifacts/a.txt")
    assert await artifacts.read(blobs, artifact.key) == b"kept " * 500


async def test_a_job_may_keep_each_item_as_objects_with_its_page(yard: BatchYard, site: Site) -> None:
    blobs = ObjectBlobs.in_folder(yard.data_dir / "blobs")
    url = site.url()
    good, bad = await yard.run(
        CASE, [{"case": "page", "url": url}, {"case": "fail"}], results="objects", keep_html=True, max_attempts=1
    )
    told = {artifact.name: artifact.key for artifact in good.artifacts}
    assert set(told) == {"html.html", "metadata.json"}
    assert b"<" in await artifacts.read(blobs, told["html.html"])
    metadata = msgspec.json.decode(await artifacts.read(blobs, told["metadata.json"]))
    assert (metadata["key"], metadata["exit_reason"], metadata["usage"]["fetches"]) == ("k0", "succeeded", 1)
    assert good.result_key.endswith("/items/k0/data.json")
    assert [artifact.name for artifact in bad.artifacts] == ["metadata.json"]
    assert good.usage is not None
    assert good.usage.requests == 1


async def test_a_page_is_kept_however_its_type_is_written(yard: BatchYard, site: Site) -> None:
    kinds = {"/upper": "TEXT/HTML", "/twice": "image/png, text/html", "/image": "image/png"}
    for path, kind in kinds.items():
        site.routes[path] = page(b"<p>", content_type=kind)
    inputs = [{"case": "page", "url": site.url(path)} for path in kinds]
    kept = await yard.run(CASE, inputs, results="objects", keep_html=True)
    found = ["html.html" in {artifact.name for artifact in outcome.artifacts} for outcome in kept]
    assert found == [True, True, False]


async def test_what_a_job_may_fetch_is_counted_over_its_items(yard: BatchYard, site: Site) -> None:
    inputs = [{"case": "page", "url": site.url()}] * 6
    job_id = await yard.job(CASE, inputs, budget=BudgetLimits(requests=4), max_attempts=1, breaker=NO_BREAKER)

    def is_at_rest(job: Job) -> bool:
        """What is done is counted a moment after what was fetched."""
        return job.status is JobStatus.PAUSED and not job.counts.queued and not job.counts.in_progress

    job = await soon(lambda: yard.store.jobs.get(job_id), is_at_rest)
    assert job.pause_reason == "budget"
    assert (job.counts.success, job.counts.error, job.counts.pending) == (4, 0, 2)
    await yard.store.jobs.cancel(job_id, True, time.time())


async def test_a_killed_job_leaves_no_child_and_loses_no_item(yard: BatchYard) -> None:
    await yard.run(CASE, [{"case": ""}])  # the parent of its children is there, and stays
    before = set(descendants(os.getpid()))
    inputs = [{"case": ""}, *[{"case": "wait"}] * 3]
    job_id = await yard.job(CASE, inputs, isolation="job")
    await soon(lambda: yard.store.jobs.get(job_id), lambda job: job.counts.in_progress > 0)
    worker = yard.platform.worker
    assert worker is not None
    await yard.store.jobs.cancel(job_id, True, time.time())
    await worker._queue.send(messages.SIGNALS, messages.encode(CancelJob(job_id=job_id)))
    job = await soon(lambda: yard.store.jobs.get(job_id), lambda job: job.status is JobStatus.CANCELLED)
    assert job.counts.success + job.counts.cancelled == 4, "none came to its own end, which would be an error"
    assert job.counts.success <= 1
    assert job.counts == await yard.store.items.recount(job_id)
    await eventually(lambda: len(worker._batches) == 0)
    await eventually(lambda: not _new(before), lambda: f"{_new(before)}")


def _new(before: set[int]) -> set[int]:
    """No child is forked ahead here, so each that came since belongs to a run."""
    return set(descendants(os.getpid())) - before


async def test_a_worker_that_stops_records_what_is_done_and_gives_the_rest_back(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("draining")
    for place in (folder, folder.parent):
        place.chmod(0o755)
    worker = {**WORKER, "slots": 2, "reserved_slots": 0, "drain_seconds": 1}
    async with batch_yard(folder, SCRIPTS, worker=worker, sandbox=SANDBOX) as made:
        job_id = await made.job(CASE, [{"case": "", "n": 1}, *[{"case": "wait"}] * 5], isolation="job")
        await soon(
            lambda: made.store.jobs.get(job_id), lambda job: job.counts.success == 1 and job.counts.in_progress > 0
        )
        assert made.platform.worker is not None
        await made.platform.worker.stop()
        job = await made.store.jobs.get(job_id)
        assert job is not None
        assert (job.counts.success, job.counts.in_progress, job.counts.error) == (1, 0, 0)

        async def counted() -> tuple[Counts, Counts]:
            """By the job and by its rows. The dispatcher may hand items out between the two."""
            job = await made.store.jobs.get(job_id)
            assert job is not None
            return job.counts, await made.store.items.recount(job_id)

        await soon(counted, lambda both: both[0] == both[1])


async def test_calls_are_answered_while_a_job_runs(yard: BatchYard) -> None:
    """Turns are shared: nothing else in this process waits longer than a moment. Its own work counts, not how long
    the machine lets it wait."""
    job_id = await yard.job(ECHO, [{"n": n} for n in range(10_000)])
    late = []
    job = await yard.store.jobs.get(job_id)
    while job is not None and job.counts.done < job.counts.total:
        began = time.thread_time()
        await asyncio.sleep(0)
        late.append(time.thread_time() - began)
        await asyncio.sleep(0.005)
        job = await yard.store.jobs.get(job_id)
    late.sort()
    assert late[len(late) // 2] < 0.02
