"""Turns rows of runs and jobs into lifecycle events, each step once and in order.

After a restart the memory is empty: steps of the last minutes are told again, with the same ids.
"""

import hashlib
from collections import OrderedDict
from typing import Any, Final

import msgspec
from msgspec import Struct

from scrapeyard.dispatch.webhooks.news import job_document, run_document
from scrapeyard.model import FINAL, Run
from scrapeyard.model.instants import instant
from scrapeyard.model.job import FINAL_JOB, Job, JobStatus
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.store.ports.jobs import JobEvent

SCHEMA: Final = "scrapeyard.event/1"
REMEMBERED: Final = 50_000
"""Runs and jobs whose steps are remembered, the last ones."""


class LifecycleEvent(Struct, frozen=True, kw_only=True):
    """One event, as it is sent."""

    subject: str
    """The run or job: the key of the record."""
    name: str
    body: bytes


class Steps:
    """What was told of each run and job."""

    def __init__(self) -> None:
        self._told: OrderedDict[str, set[str]] = OrderedDict()

    def of_run(self, run: Run) -> list[LifecycleEvent]:
        """The steps of a run that were not told, in order."""
        document = run_document(run)
        del document["result"]
        steps = [("run.created", run.created_at, 1)]
        if run.attempt > 1:
            steps.append(("run.retried", run.queued_at, run.attempt))
        if run.started_at is not None:
            steps.append(("run.started", run.started_at, run.attempt))
        if run.status in FINAL and run.finished_at is not None:
            steps.append((f"run.{run.status.value}", run.finished_at, run.attempt))
        return self._new(run.id, steps, {"run": document})

    def of_job(self, job: Job, event: JobEvent | None) -> list[LifecycleEvent]:
        """The same of a job. An event of its archive is told as such; the status is always the row's."""
        steps: list[tuple[str, float, int]] = [("job.created", job.created_at, 0)]
        if job.started_at is not None:
            steps.append(("job.started", job.started_at, 0))
        if event is not None:
            steps.append((_name(event), event.at, event.number))
        if job.status in FINAL_JOB and job.finished_at is not None:
            steps.append((f"job.{job.status.value}", job.finished_at, 0))
        return self._new(job.id, [step for step in steps if step[0]], {"job": job_document(job)})

    def forget(self, events: list[LifecycleEvent]) -> None:
        """They could not be sent: tell them again."""
        for event in events:
            self._told.pop(event.subject, None)

    def _new(self, subject: str, steps: list[tuple[str, float, int]], more: dict[str, Any]) -> list[LifecycleEvent]:
        told = self._told.setdefault(subject, set())
        self._told.move_to_end(subject)
        while len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        found = []
        for name, at, number in steps:
            # the end of a job is told by its event and by its row, at times that differ a little
            made = f"{name}:{number}" if name.startswith("run.") else f"{name}:{int(at)}"
            if made not in told and (name != "job.started" or not any(one.startswith(name) for one in told)):
                told.add(made)
                body = {
                    "schema": SCHEMA,
                    "id": _id(subject, made),
                    "event": name,
                    "at": instant(at),
                    "subject": subject,
                    **more,
                }
                found.append(LifecycleEvent(subject=subject, name=name, body=msgspec.json.encode(body)))
        return found


def _name(event: JobEvent) -> str:
    """Empty: not told. An end is told by the job's row, which is always there."""
    data = msgspec.json.decode(event.data, type=dict[str, Any])
    if event.kind == JobEventKind.ARCHIVE:
        return f"job.{data.get('state')}"
    if data.get("status") == JobStatus.PAUSED:
        return "job.paused"
    return "job.resumed" if data.get("status") == JobStatus.RUNNING else ""


def _id(subject: str, made: str) -> str:
    return f"event_{hashlib.sha256(f'{subject}:{made}'.encode()).hexdigest()[:32]}"
