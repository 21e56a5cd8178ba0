"""What receivers are told that expect the messages of another tool."""

import msgspec
from msgspec import Raw

from scrapeyard.dispatch.webhooks.news import Outbox
from scrapeyard.model import RunError
from scrapeyard.model.job import JobStatus
from scrapeyard.model.webhook import JobEventKind, Webhook
from scrapeyard.store.ports.jobs import JobEvent
from scrapeyard.store.ports.webhooks import EventCursor, JobNewsItem
from tests.contract.job_nouns import a_job

HOOK = Webhook(
    url="https://you.example/hook",
    events=("job.created", "job.completed", "job.failed"),
    form="firecrawl.crawl",
    metadata={"order": "17"},
)


def told(
    status: JobStatus, *, hook: Webhook = HOOK, events: tuple[JobEvent, ...] = (), **more: object
) -> list[dict[str, object]]:
    job = a_job(status=status, webhook=Raw(msgspec.json.encode(hook)), **more)
    _, deliveries = Outbox(60).of_job(JobNewsItem(job=job, mark=EventCursor(), events=events), 1.0)
    return [msgspec.json.decode(each.body) for each in deliveries]


def test_a_crawl_as_firecrawl_tells_it() -> None:
    started, ended = told(JobStatus.COMPLETED, finished_at=2.0)
    assert started == {**ended, "type": "crawl.started"}
    assert {name: ended[name] for name in ("success", "type", "data", "metadata")} == {
        "success": True,
        "type": "crawl.completed",
        "data": [],
        "metadata": {"order": "17"},
    }


def test_who_gets_the_pages_is_told_of_the_end_after_them() -> None:
    hook = msgspec.structs.replace(HOOK, events=(*HOOK.events, "item.ended"))
    started = told(JobStatus.COMPLETED, finished_at=2.0, hook=hook)
    assert [each["type"] for each in started] == ["crawl.started"], "some pages are still under way"
    other = JobEvent(number=4, kind=JobEventKind.SINK, at=3.0, data=Raw(b'{"sink": "table", "state": "done"}'))
    for status in (JobStatus.COMPLETED, JobStatus.FAILED):
        data = Raw(b'{"sink": "webhook-items", "state": "done", "job_status": "%b"}' % status.encode())
        done = JobEvent(number=3, kind=JobEventKind.SINK, at=3.0, data=data)
        news = told(status, finished_at=2.0, hook=hook, events=(done, other))
        assert [each["type"] for each in news] == ["crawl.started", f"crawl.{status}"]


def test_a_failure_has_its_reason() -> None:
    _, ended = told(JobStatus.FAILED, finished_at=2.0, error=RunError(message="the list cannot be read"))
    assert (ended["success"], ended["type"], ended["error"]) == (False, "crawl.failed", "the list cannot be read")
