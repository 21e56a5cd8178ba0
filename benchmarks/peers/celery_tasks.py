"""The Celery application of the comparison: prefork, Redis as broker and result backend, nothing optional running."""

import os
from typing import Any

from celery import Celery

from benchmarks.peers import noop

app = Celery("bench", broker=os.environ["BENCH_BROKER"], backend=os.environ["BENCH_RESULTS"])
app.conf.update(
    worker_prefetch_multiplier=1,
    task_serializer="json",
    result_serializer="json",
    accept_content=["json"],
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
    result_expires=60,
)


@app.task(name="bench.noop")
def run(data: dict[str, Any]) -> dict[str, Any]:
    """The no-op as a task."""
    return noop.run(data)
