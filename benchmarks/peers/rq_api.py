"""FastAPI + RQ: enqueue, then block on the job's result stream, as RQ's documentation shows.

The routes are plain functions, so FastAPI runs each in a thread; waiting is an XREAD, never a poll.
"""

import os
from typing import Any

from fastapi import FastAPI, HTTPException
from redis import Redis
from rq import Queue

from benchmarks.peers.api import Call

app = FastAPI()
queue = Queue("bench", connection=Redis.from_url(os.environ["BENCH_REDIS"]))


@app.post("/run")
def run(call: Call) -> dict[str, Any]:
    """One job, waited for."""
    job = queue.enqueue("benchmarks.peers.noop.run", call.input)
    result = job.latest_result(timeout=60)
    if result is None or result.type != result.Type.SUCCESSFUL:
        raise HTTPException(502, "the job failed")
    return {"id": job.id, "status": "succeeded", "result": result.return_value}
