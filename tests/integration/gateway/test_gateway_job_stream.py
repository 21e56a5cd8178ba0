"""Watching a job live: the same events by server-sent events and by WebSocket, resumable, ended with the job."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import Raw
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as websocket
from websockets.exceptions import ConnectionClosed, InvalidStatus

from scrapeyard.gateway.jobs.streams import LINES, LOOK_SECONDS, JobStreams
from scrapeyard.gateway.server import GatewayServer
from scrapeyard.gateway.services import GatewayServices
from scrapeyard.model import ExitReason, new_id
from scrapeyard.model.job import Batch, JobStatus
from scrapeyard.settings import GatewaySettings, Settings
from scrapeyard.store.sql import SqlStore
from tests.integration.gateway_stand import open_services
from tests.integration.job_desk import get, outcome_of, post, read, urls, work
from tests.leaks import PATIENCE

LONG = 3600


@dataclass(frozen=True, kw_only=True)
class Served:
    """A gateway on a socket."""

    server: GatewayServer
    services: GatewayServices
    store: SqlStore
    client: httpx.AsyncClient

    @property
    def ws(self) -> str:
        return self.server.url.replace("http://", "ws://")


def connect(place: str, **more: Any) -> websocket:
    """A WebSocket that a pause of the machine does not end."""
    return websocket(place, open_timeout=PATIENCE, close_timeout=PATIENCE, ping_interval=None, **more)


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """Streams end by themselves when it stops: it would not cut them off for an hour."""
    monkeypatch.setattr("scrapeyard.gateway.server.GRACE_SECONDS", LONG)
    settings = Settings(gateway=GatewaySettings(port=0, max_streams=3))
    async with open_services(tmp_path, settings) as services:
        server = GatewayServer(services)
        await server.start()
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE, trust_env=False) as client:
            yield Served(server=server, services=services, store=services.store, client=client)  # type: ignore[arg-type]
        await server.stop()


@dataclass(frozen=True)
class Event:
    name: str
    id: int | None
    data: Any


async def sse(response: httpx.Response) -> AsyncIterator[Event]:
    """The events of a stream; comments are left out."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield Event(fields["event"], int(fields["id"]) if "id" in fields else None, json.loads(fields["data"]))
            fields = {}


async def all_of(served: Served, job_id: str, query: str = "", **headers: str) -> list[Event]:
    """Every event until the stream ends."""
    async with (
        asyncio.timeout(PATIENCE),
        served.client.stream("GET", f"/api/jobs/{job_id}/stream{query}", headers=headers) as response,
    ):
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        return [event async for event in sse(response)]


async def all_heard(socket: ClientConnection) -> list[Event]:
    """The same by WebSocket, until it is closed."""
    heard: list[Event] = []
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                told = json.loads(await socket.recv())
            except ConnectionClosed:
                return heard
            heard.append(Event(told["event"], told["id"], told["data"]))


async def end(served: Served, job_id: str) -> None:
    """The job completes, as the dispatcher does it: first the state, then the event."""
    for leave, to in ((JobStatus.RUNNING, JobStatus.FINISHING), (JobStatus.FINISHING, JobStatus.COMPLETED)):
        assert await served.store.jobs.move(job_id, leave, to, time.time())
        await served.store.events.add(job_id, "status", Raw(b'{"status":"%b"}' % to.value.encode()), time.time())


def told(events: list[Event]) -> list[Event]:
    return [event for event in events if event.name != "progress"]


async def test_both_ways_tell_the_same_until_the_job_ends(served: Served) -> None:
    job = await post(served.client, items=urls(3))
    async with connect(f"{served.ws}/api/jobs/{job['id']}/ws") as socket:
        watching = asyncio.create_task(all_of(served, job["id"]))
        hearing = asyncio.create_task(all_heard(socket))
        await work(served.store, job["id"], lambda item: ExitReason.FAILED if item.seq else ExitReason.SUCCEEDED)
        export = Raw(b'{"id":"export_1","type":"full","state":"done"}')
        await served.store.events.add(job["id"], "export", export, time.time())
        await end(served, job["id"])
        events, heard = await watching, await hearing
        assert socket.close_code == 1000
    assert told(events) == told(heard)
    kinds = [event.name for event in told(events)]
    assert kinds == ["item_failed", "item_failed", "export", "status", "status", "end"]
    assert [event.id for event in told(events)] == [1, 2, 3, 4, 5, None]
    assert told(events)[2].data["type"] == "full"
    assert events[-1].data == {"id": job["id"], "status": "completed"}
    last = [event for event in events if event.name == "progress"][-1]
    assert (last.id, last.data["status"], last.data["counts"]["error"]) == (None, "completed", 2)


async def test_whoever_comes_again_misses_nothing_and_hears_nothing_twice(served: Served) -> None:
    job = await post(served.client, items=urls(4))
    await work(served.store, job["id"], lambda _: ExitReason.FAILED)
    path = f"/api/jobs/{job['id']}/stream"
    async with asyncio.timeout(PATIENCE), served.client.stream("GET", path) as response:
        first = await _until(sse(response), 2)
    await end(served, job["id"])
    rest = told(await all_of(served, job["id"], **{"last-event-id": str(first[-1].id)}))
    assert [event.id for event in first + rest] == [1, 2, 3, 4, 5, 6, None]
    async with connect(f"{served.ws}/api/jobs/{job['id']}/ws?after=4") as socket:
        assert [event.id for event in told(await all_heard(socket))] == [5, 6, None]


async def _until(events: AsyncIterator[Event], number: int) -> list[Event]:
    found: list[Event] = []
    async for event in events:
        found += [event] if event.id is not None else []
        if event.id == number:
            break
    return found


async def test_progress_comes_at_most_twice_a_second(served: Served) -> None:
    job = await post(served.client, items=urls(2000))
    await read(served.store, served.services.intake, job["id"])
    times = changes = 0

    async def watch() -> None:
        nonlocal times
        async with served.client.stream("GET", f"/api/jobs/{job['id']}/stream") as response:
            async for event in sse(response):
                times += event.name == "progress"

    began = time.monotonic()
    watching = asyncio.create_task(watch())
    async with asyncio.timeout(PATIENCE):
        while times < 4 or changes <= times:  # a busy machine may take as long for a change as the stream rests
            changes += 1
            await work_one(served, job["id"])
            await asyncio.sleep(0.005)
        await post(served.client, f"/api/jobs/{job['id']}/cancel")
        await watching
    assert changes > times
    assert times <= (time.monotonic() - began) / LOOK_SECONDS + 1


async def work_one(served: Served, job_id: str) -> None:
    now = time.time()
    batch = await served.store.batches.cut(Batch(id=new_id("batch"), job_id=job_id, left=1, queued_at=now), now)
    if batch is not None:
        taken = await served.store.batches.take(batch.id, "w1", now, now + 60)
        assert taken is not None
        await served.store.batches.record(
            batch.id, "w1", 0, [outcome_of(item, ExitReason.SUCCEEDED) for item in taken[2]], now
        )


async def test_a_job_that_ended_long_ago_is_told_at_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await post(served.client, items=urls(1))
    await served.store.jobs.cancel(job["id"], False, time.time() - 60)
    looks, look = [], JobStreams._look_once

    async def counted(streams: JobStreams, watch: Any) -> None:
        looks.append(watch.job.id)
        await look(streams, watch)

    monkeypatch.setattr(JobStreams, "_look_once", counted)
    events = await all_of(served, job["id"])
    assert events[-1].data["status"] == "cancelled"
    assert looks == [job["id"]], "it waits for no second look"


async def test_streams_are_bounded_and_end_with_the_gateway(served: Served) -> None:
    job = await post(served.client, items=urls(1), paused=True)
    place = f"{served.ws}/api/jobs/{job['id']}/ws"
    async with AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(connect(place)) for _ in range(3)]
        for socket in sockets:
            await asyncio.wait_for(socket.recv(), PATIENCE)
        refused = await served.client.get(f"/api/jobs/{job['id']}/stream")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_waiting")
        assert refused.headers["retry-after"]
        with pytest.raises(InvalidStatus) as denied:
            await connect(place)
        assert denied.value.response.status_code == 429
        await sockets[0].close()
        async with asyncio.timeout(PATIENCE):
            while not await _opens(place):  # the place of the one that left is free once the gateway has heard of it
                await served.client.get("/api/live")
            await served.server.stop()
            await asyncio.gather(*(socket.wait_closed() for socket in sockets))
        assert sockets[1].close_code == 1001


async def _opens(place: str) -> bool:
    try:
        async with connect(place):
            return True
    except InvalidStatus:
        return False


@pytest.mark.parametrize(
    ("path", "origin", "status", "code"),
    [
        ("/api/jobs/job_00000000000000000000000000000000/ws", None, 404, "not_found"),
        ("/api/jobs/nonsense/ws", None, 404, "not_found"),
        ("/api/jobs/{id}/ws", "https://evil.example", 403, "origin_refused"),
    ],
)
async def test_a_socket_is_refused_with_a_problem(
    served: Served, path: str, origin: str | None, status: int, code: str
) -> None:
    job = await post(served.client, items=urls(1))
    with pytest.raises(InvalidStatus) as denied:
        await connect(f"{served.ws}{path.format(id=job['id'])}", origin=origin)  # type: ignore[arg-type]
    assert denied.value.response.status_code == status
    assert json.loads(denied.value.response.body or b"")["code"] == code


async def test_pages_of_the_gateway_itself_may_watch(served: Served) -> None:
    job = await post(served.client, items=urls(1))
    async with connect(f"{served.ws}/api/jobs/{job['id']}/ws", origin=served.server.url) as socket:  # type: ignore[arg-type]
        assert json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))["event"] == "progress"
    assert (await get(served.client, f"/api/jobs/{job['id']}"))["status"] == "running"


async def test_each_item_that_ends_is_a_line_where_lines_are_wanted(served: Served) -> None:
    job = await post(served.client, items=urls(3))
    async with connect(f"{served.ws}/api/jobs/{job['id']}/ws?results=true") as socket:
        watching = asyncio.create_task(all_of(served, job["id"], "?lines=true"))
        hearing = asyncio.create_task(all_heard(socket))
        await work(served.store, job["id"], lambda item: ExitReason.FAILED if item.seq else ExitReason.SUCCEEDED)
        await end(served, job["id"])
        lines, with_results = (
            [event for event in events if event.name == "item"] for events in (await watching, await hearing)
        )
    assert sorted(event.data["url"] for event in lines) == urls(3)
    assert [event.data["status"] for event in sorted(lines, key=lambda event: event.data["number"])] == [
        "success",
        "error",
        "error",
    ]
    assert all(event.id is None and event.data["ms"] >= 0 and "result" not in event.data for event in lines)
    good = next(event.data for event in with_results if event.data["number"] == 0)
    assert (good["result"], good["error"]) == ({"title": "Tea", "number": 0}, None)
    assert len(with_results) == 3


@pytest.mark.parametrize(("profile", "query", "lines"), [("site", "", 2), ("site", "?lines=false", 0), (None, "", 0)])
async def test_the_profile_of_a_site_is_watched_line_by_line(
    served: Served, profile: str | None, query: str, lines: int
) -> None:
    job = await post(served.client, items=urls(2), profile=profile)
    await work(served.store, job["id"])
    await end(served, job["id"])
    events = await all_of(served, job["id"], query)
    assert sum(event.name == "item" for event in events) == lines
    last = [event.data for event in events if event.name == "progress"][-1]
    assert (last["percent"], last["message"]) == (100.0, "Completed: 2/2")


async def test_of_more_lines_than_a_watcher_can_read_the_rest_is_counted(served: Served) -> None:
    job = await post(served.client, items=urls(LINES + 20))
    await work(served.store, job["id"])
    await end(served, job["id"])
    events = await all_of(served, job["id"], "?lines=true")
    assert sum(event.name == "item" for event in events) == LINES
    assert [event.data for event in events if event.name == "items_left_out"] == [{"count": 20}]


async def test_progress_says_which_item_is_next(served: Served) -> None:
    job = await post(served.client, items=urls(4))
    await work_one(served, job["id"])
    async with asyncio.timeout(PATIENCE), served.client.stream("GET", f"/api/jobs/{job['id']}/stream") as response:
        first = await anext(sse(response))
    assert (first.name, first.data["percent"], first.data["message"]) == ("progress", 25.0, "Processing URL 2/4")
