"""`python -m benchmarks.peers.sink_delivery DATABASE URL`: deliver the job of a database to a sink, and tell what it
took, as JSON."""

import asyncio
import json
import resource
import sys
import time
from pathlib import Path

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.model.export import SinkState
from scrapeyard.results.sinks.delivery import SinkDeliveries
from scrapeyard.settings import Settings
from scrapeyard.store.ports.jobs import JobFilter
from scrapeyard.store.sql import SqlStore
from scrapeyard.wiring.backends import make_sink


async def main(database: str, url: str) -> None:
    """Until the sink has all."""
    settings = Settings.model_validate({"sinks": {"targets": [{"name": "one", "url": url}]}})
    store = SqlStore(f"sqlite:///{database}")
    await store.start()
    sink = make_sink(settings, settings.sinks.targets[0])
    await sink.start()
    duty = SinkDeliveries(
        settings.sinks, {"one": sink}, store, ObjectBlobs.in_folder(Path(database).parent / "blobs"), time.time
    )
    (job,) = (await store.jobs.page(JobFilter(), None, 2)).jobs
    await store.sinks.add(job.id, "one", time.time())
    idle_mb, began, spent = _peak_mb(), time.monotonic(), time.process_time()
    found = (await store.sinks.of_jobs([job.id]))[0]
    while found.state is SinkState.ACTIVE:
        await duty.run_once()
        await duty.idle()
        found = (await store.sinks.of_jobs([job.id]))[0]
    told = {
        "records": found.delivered,
        "seconds": time.monotonic() - began,
        "cpu_seconds": time.process_time() - spent,
        "idle_mb": idle_mb,
        "peak_mb": _peak_mb(),
    }
    await sink.stop()
    await store.stop()
    print(json.dumps(told))


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
