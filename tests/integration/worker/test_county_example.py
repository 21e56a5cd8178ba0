"""The county example on the practice county itself, as items of a job through the real sandbox."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from scrapeyard.demo import create_app
from scrapeyard.model.job import Item
from tests.leaks import PATIENCE
from tests.services.batch_yard import batch_yard, soon
from tests.services.ports import free_port

EXAMPLE = Path(__file__).parents[3] / "examples" / "scrapers" / "county"


@asynccontextmanager
async def county() -> AsyncIterator[str]:
    """The practice site on a port of its own; its address."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(create_app(), port=port, log_level="warning", lifespan="off"))
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined] # older uvicorn
    task = asyncio.create_task(server.serve())

    async def started() -> bool:
        return server.started

    try:
        await soon(started, bool)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await asyncio.wait_for(task, PATIENCE)


def record(item: Item) -> dict[str, Any]:
    assert item.result is not None, item.error
    found: dict[str, Any] = msgspec.json.decode(item.result)
    return found


async def test_parcels_are_found_and_joined(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "scrapers" / "county", ignore=shutil.ignore_patterns("tests"))
    wanted = ["PC-0005", "PC-0005-A", "PC-0036", "PC-9999"]
    async with county() as site, batch_yard(tmp_path, {}) as yard:
        inputs = [{"site": site, "parcel_id": parcel} for parcel in wanted]
        items = await yard.run("county/parcel@1.0.0", inputs, isolation="job")
    assert [str(item.exit_reason) for item in items] == ["succeeded", "succeeded", "succeeded", "failed"]
    assert [item.attempt for item in items] == [1, 1, 1, 1]
    for item, parcel in zip(items[:3], wanted, strict=False):
        found = record(item)
        assert (found["parcel_id"], found["url"]) == (parcel, f"{site}/county/parcel/{parcel}")
        years = [each["year"] for each in found["tax_bills"]]
        assert years == [each["year"] for each in found["values"]] == list(range(2025, 2018, -1))
    assert record(items[0])["address"] != record(items[1])["address"]
