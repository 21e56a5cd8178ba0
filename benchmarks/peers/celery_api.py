"""FastAPI + Celery: `delay`, then `AsyncResult.get`, in the thread that FastAPI gives a plain function.

Celery's Redis backend waits on pub/sub and keeps one connection per thread, so nothing polls here either.
"""

from typing import Any

from fastapi import FastAPI

from benchmarks.peers import celery_tasks
from benchmarks.peers.api import Call

app = FastAPI()


@app.post("/run")
def run(call: Call) -> dict[str, Any]:
    """One task, waited for."""
    pending = celery_tasks.run.delay(call.input)
    return {"id": pending.id, "status": "succeeded", "result": pending.get(timeout=60)}
