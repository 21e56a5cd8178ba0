"""What a page's status means for a job of a built-in scraper, and what costs an item no attempt."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from scrapeyard import __version__
from scrapeyard.model import Backoff, BudgetLimits, ExitReason
from scrapeyard.model.job import BreakerPolicy, Item, Job, JobStatus
from tests.integration.worker.test_run_retries import then
from tests.services.batch_yard import BatchYard, batch_yard, soon
from tests.sites.site import Site, page

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
PAGE = f"builtin/page@{__version__}"
PRODUCT = f"builtin/product@{__version__}"
POLICY: dict[str, Any] = {
    "breaker": BreakerPolicy(enabled=False),
    "backoff": Backoff(kind="linear", first_seconds=0.05, cap_seconds=0.05),
}
HELLO = page(b"<title>hello</title>", content_type="text/html")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def yard(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchYard]:
    # Each 429 and 503 would slow down the site, which is one host for all these tests: the later ones would wait.
    sites = {"breaker_failures": 1000, "adapt": False}
    async with batch_yard(tmp_path_factory.mktemp("pages"), {}, sites=sites) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with Site() as made:
        yield made


def shown(item: Item) -> tuple[str, str, int]:
    return item.status.value, str(item.exit_reason), item.attempt


def status_in(item: Item) -> Any:
    assert item.result is not None, item
    return msgspec.json.decode(item.result)["status"]


@pytest.mark.parametrize("scraper", [PAGE, PRODUCT])
@pytest.mark.parametrize("status", [408, 425, 429, 500, 503, 599])
async def test_an_error_page_that_may_pass_is_tried_again(
    yard: BatchYard, site: Site, scraper: str, status: int
) -> None:
    site.routes["/"] = then(page(b"busy", status=status), HELLO)
    (item,) = await yard.run(scraper, [{"url": site.url("/")}], **POLICY)
    assert (shown(item), status_in(item)) == (("success", "succeeded", 2), 200)


@pytest.mark.parametrize(("status", "attempts"), [(500, 2), (429, 2), (400, 1), (403, 1), (451, 1)])
async def test_an_error_page_is_no_success(yard: BatchYard, site: Site, status: int, attempts: int) -> None:
    site.routes["/"] = page(b"no", status=status)
    (item,) = await yard.run(PAGE, [{"url": site.url("/")}], max_attempts=2, **POLICY)
    assert shown(item) == ("error", "fetch_status", attempts)
    assert item.error is not None
    assert item.error.site_status == status
    assert item.result is None


async def test_the_site_says_when_to_come_back(yard: BatchYard, site: Site) -> None:
    site.routes["/"] = then(page(b"busy", status=503, retry_after="1"), HELLO)
    patient = POLICY | {"backoff": Backoff(kind="linear", first_seconds=3000, cap_seconds=3000)}
    (item,) = await yard.run(PAGE, [{"url": site.url("/")}], **patient)
    assert shown(item) == ("success", "succeeded", 2)


@pytest.mark.parametrize("status", [404, 410])
async def test_a_page_that_is_gone_is_a_result_of_its_own_kind(yard: BatchYard, site: Site, status: int) -> None:
    site.routes["/"] = page(b"<title>not here</title>", status=status, content_type="text/html")
    (item,) = await yard.run(PAGE, [{"url": site.url("/")}], **POLICY)
    assert (shown(item), status_in(item)) == (("success", "gone", 1), status)


async def test_a_job_counts_its_items_by_the_status_they_ended_with(yard: BatchYard, site: Site) -> None:
    """A page that was tried again counts once, and one without an answer not at all."""
    site.routes |= {"/": HELLO, "/gone": page(b"x", status=404), "/busy": then(page(b"busy", status=503), HELLO)}
    site.routes["/no"] = page(b"no", status=403)
    urls = [*(site.url(path) for path in ("/", "/", "/gone", "/busy", "/no")), "http://127.0.0.1:1/"]
    job_id = await yard.job(PAGE, [{"url": url} for url in urls], max_attempts=2, **POLICY)
    job = await yard.ended(job_id)
    assert job.http_statuses == {200: 3, 403: 1, 404: 1}
    assert [item.http_status for item in await yard.items(job_id)] == [200, 200, 404, 200, 403, None]


async def test_the_policy_says_which_statuses_are_a_result(yard: BatchYard, site: Site) -> None:
    for status in (404, 500, 503):
        site.routes[f"/{status}"] = page(b"x", status=status)
    inputs = [{"url": site.url(f"/{status}")} for status in (404, 500, 503)]
    items = await yard.run(PAGE, inputs, accept_status=(404, 500), max_attempts=1, **POLICY)
    assert [item.exit_reason for item in items] == [
        ExitReason.SUCCEEDED,
        ExitReason.SUCCEEDED,
        ExitReason.FETCH_STATUS,
    ]


async def test_a_job_that_has_used_up_its_budget_burns_no_item(yard: BatchYard, site: Site) -> None:
    site.routes["/"] = HELLO
    inputs = [{"url": site.url("/")}] * 60
    job_id = await yard.job(PAGE, inputs, budget=BudgetLimits(requests=10), max_attempts=1, **POLICY)

    async def job() -> Job:
        found = await yard.store.jobs.get(job_id)
        assert found is not None
        return found

    def is_paused(job: Job) -> bool:
        return job.status is JobStatus.PAUSED and not job.counts.queued and not job.counts.in_progress

    paused = await soon(job, is_paused)
    assert (paused.pause_reason, paused.counts.error) == ("budget", 0)
    assert (paused.counts.success, paused.counts.pending) == (10, 50)
    events = [msgspec.json.decode(event.data) for event in await yard.store.events.after(job_id, 0, 1000)]
    assert [event["state"] for event in events if event.get("budget") == "requests"].count("used_up") == 1

    await yard.store.jobs.set_policy(job_id, msgspec.structs.replace(paused.policy, budget=BudgetLimits()))
    await yard.store.jobs.set_paused(job_id, False, "", 0.0)
    await yard.ended(job_id)
    items = await yard.items(job_id)
    assert Counter(shown(item) for item in items) == {("success", "succeeded", 1): 60}


async def test_a_site_that_is_left_alone_costs_no_attempt(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The breaker of the site opens at the second failure and lets a probe through a second later."""
    sites = {"breaker_failures": 2, "breaker_seconds": 1}
    async with Site() as site, batch_yard(tmp_path_factory.mktemp("down"), {}, sites=sites) as yard:
        site.routes["/"] = then(*[page(b"down", status=500)] * 4, HELLO)
        items = await yard.run(PAGE, [{"url": site.url("/")}] * 8, max_attempts=1, concurrency=1, **POLICY)
        assert Counter(shown(item) for item in items) == {
            ("error", "fetch_status", 1): 4,
            ("success", "succeeded", 1): 4,
        }
        assert len(site.asked) == 8, "each item asked once, none ended without having asked"
