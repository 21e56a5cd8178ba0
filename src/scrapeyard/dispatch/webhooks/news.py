"""Turns changes of jobs and runs into messages for receivers. Pure.

A job's news are its events, in order, and its status. An event may be lost if a process is killed between a step and
its event. So a status is also sent if it differs from the last one sent, and is not sent again if its event arrives
late.
"""

from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from scrapeyard.model import Run
from scrapeyard.model.export import ITEMS_SINK
from scrapeyard.model.instants import instant
from scrapeyard.model.job import FINAL_JOB, Job, JobStatus
from scrapeyard.model.webhook import ITEM_ENDED, JobEventKind, Webhook, WebhookDelivery, delivery_id
from scrapeyard.store.ports.jobs import JobEvent
from scrapeyard.store.ports.webhooks import EventCursor, JobNewsItem

_WEBHOOK: Final = msgspec.json.Decoder(Webhook)
_DATA: Final = msgspec.json.Decoder(dict[str, Any])
_ENDS: Final = frozenset(f"job.{status}" for status in FINAL_JOB)
_FOUND: Final = 0
"""Number of news without an event; events count from 1."""


class _News(Struct, frozen=True, kw_only=True):
    """A change; an empty name if no receiver can subscribe to it."""

    name: str
    number: int
    at: float
    data: Raw = Raw(b"{}")


class Outbox:
    """Builds deliveries. `give_up_seconds`: how long each is tried."""

    def __init__(self, give_up_seconds: float) -> None:
        self._give_up = give_up_seconds

    def of_job(self, item: JobNewsItem, now: float) -> tuple[EventCursor, list[WebhookDelivery]]:
        """The new cursor and the deliveries to write for a job. The status is compared only if no event is left: the
        row may be older than its events."""
        webhook, mark = _webhook_of(item.job), item.mark
        news: list[_News] = []
        if not mark.status and not mark.events:
            news.append(_News(name="job.created", number=_FOUND, at=item.job.created_at))
        for event in item.events:
            mark, name = _after_event(mark, event)
            news.append(_News(name=name, number=event.number, at=event.at, data=event.data))
        if not item.events:
            mark, name = _found(mark, item.job)
            news.append(_News(name=name, number=_FOUND, at=item.job.finished_at or now, data=Raw(b"{}")))
        job = Raw(msgspec.json.encode(job_document(item.job)))
        if ITEM_ENDED in webhook.events:
            news = [_after_items(one) for one in news]
        chosen = [one for one in news if one.name in webhook.events]
        return mark, [self._made(item.job, webhook, one, {"job": job, "data": one.data}) for one in chosen]

    def of_run(self, run: Run, webhook: Webhook) -> list[WebhookDelivery]:
        """The deliveries to write for a run that has ended."""
        one = _News(name=f"run.{run.status.value}", number=_FOUND, at=run.finished_at or run.created_at)
        return [self._made(run, webhook, one, {"run": run_document(run)})] if one.name in webhook.events else []

    def _made(self, subject: Job | Run, webhook: Webhook, news: _News, more: dict[str, Any]) -> WebhookDelivery:
        made = delivery_id(subject.id, news.name, news.number, news.at)
        body = _as_firecrawl(subject, webhook, news) if webhook.form else _as_ours(made, news, more)
        return WebhookDelivery(
            id=made,
            subject=subject.id,
            owner=subject.owner,
            event=news.name,
            url=webhook.url,
            host=(urlsplit(webhook.url).hostname or "")[:253],
            secret=webhook.secret or "",
            body=msgspec.json.encode(body),
            created_at=news.at,
            next_at=news.at,
            give_up_at=news.at + self._give_up,
        )


def _as_ours(made: str, news: _News, more: dict[str, Any]) -> dict[str, Any]:
    return {"id": made, "event": news.name, "created_at": instant(news.at), **more}


def _as_firecrawl(subject: Job | Run, webhook: Webhook, news: _News) -> dict[str, Any]:
    """As Firecrawl tells its receivers. The pages are had by the status of the job."""
    kind, event = webhook.form.removeprefix("firecrawl."), news.name.rpartition(".")[2]
    error = subject.error.message if subject.error else None
    return {
        "success": event != "failed",
        "type": f"{kind}.{'started' if event == 'created' else event}",
        "id": subject.id,
        "data": [],
        "metadata": webhook.metadata,
        **({"error": error} if error else {}),
    }


def _after_items(news: _News) -> _News:
    """Where the receiver gets the items, the end of the job is told when it has all of them, or they were given up.

    The event says how the job ended: its row may be older.
    """
    if news.name in _ENDS:
        return replace(news, name="")
    data = _DATA.decode(news.data) if news.name.startswith("sink.") else {}
    return replace(news, name=f"job.{data.get('job_status')}") if data.get("sink") == ITEMS_SINK else news


def _webhook_of(job: Job) -> Webhook:
    """The job's webhook; one without events if it cannot be decoded, so that it blocks no other."""
    try:
        return _WEBHOOK.decode(job.webhook or b"")
    except msgspec.MsgspecError:
        return Webhook(url="", events=())


def _after_event(mark: EventCursor, event: JobEvent) -> tuple[EventCursor, str]:
    """The cursor after an event, and the name of the message; empty if none is sent."""
    mark = replace(mark, events=event.number)
    data = _DATA.decode(event.data)
    if event.kind == JobEventKind.ITEM_FAILED:
        return mark, "item.failed"
    if event.kind == JobEventKind.BREAKER:
        return mark, "breaker"
    if event.kind == JobEventKind.ARCHIVE:
        return mark, f"job.{data.get('state')}"
    if event.kind == JobEventKind.EXPORT:
        return mark, "export.ready" if data.get("state") == "done" else ""
    if event.kind == JobEventKind.SINK:
        return mark, f"sink.{data.get('state')}"
    status = str(data.get("status", ""))
    if event.kind != JobEventKind.STATUS or status == mark.status:
        return mark, ""
    return replace(mark, status=status, finished_at=None), _status_name(mark.status, status)


def _found(mark: EventCursor, job: Job) -> tuple[EventCursor, str]:
    """The same for the job's current status."""
    status = job.status.value
    after = replace(mark, status=status, finished_at=job.finished_at)
    if status == mark.status:
        ended_again = mark.finished_at is not None and job.finished_at not in (None, mark.finished_at)
        return after, _status_name("", status) if ended_again else ""
    if not mark.status and job.status not in FINAL_JOB:
        return after, ""
    return after, _status_name(mark.status, status)


def _status_name(before: str, status: str) -> str:
    if status in FINAL_JOB or status == JobStatus.PAUSED:
        return f"job.{status}"
    again = before in FINAL_JOB or before == JobStatus.PAUSED
    return "job.resumed" if status == JobStatus.RUNNING and again else ""


def job_document(job: Job) -> dict[str, Any]:
    """A job as its receivers see it, as it stood when the message was made."""
    return {
        "id": job.id,
        "status": job.status,
        "name": job.name,
        "scraper": job.pinned,
        "counts": job.counts,
        "pause_reason": job.pause_reason,
        "error": job.error.message if job.error else None,
        "schedule_id": job.schedule_id or None,
        "created_at": instant(job.created_at),
        "started_at": instant(job.started_at),
        "finished_at": instant(job.finished_at),
        "links": {"self": f"/api/jobs/{job.id}", "results": f"/api/jobs/{job.id}/results"},
    }


def run_document(run: Run) -> dict[str, Any]:
    """A run as its receivers see it. A result in the blob store is not included: get it from `links.self`."""
    ran = run.resolved
    return {
        "id": run.id,
        "status": run.status,
        "scraper": run.scraper.partition("@")[0],
        "version": ran.version if ran else None,
        "exit_reason": run.exit_reason,
        "partial": run.partial,
        "error": {"message": run.error.message, "site_status": run.error.site_status} if run.error else None,
        "attempt": run.attempt,
        "created_at": instant(run.created_at),
        "finished_at": instant(run.finished_at),
        "result": run.result if run.result is not None else Raw(b"null"),
        "result_bytes": run.result_bytes,
        "links": {"self": f"/api/scrape/{run.id}"},
    }
