"""FastAPI + a fresh interpreter for each call, at most as many at once as there are workers elsewhere."""

import asyncio
import json
import os
import sys
from typing import Any

from fastapi import FastAPI, HTTPException

from benchmarks.peers.api import Call

app = FastAPI()
places = asyncio.Semaphore(int(os.environ["BENCH_PROCESSES"]))


@app.post("/run")
async def run(call: Call) -> dict[str, Any]:
    """One process, waited for."""
    async with places:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "benchmarks.peers.fresh_script",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate(json.dumps(call.input).encode())
    if process.returncode:
        raise HTTPException(502, "the process failed")
    return {"id": str(process.pid), "status": "succeeded", "result": json.loads(out)}
