"""Everything that users do to a yard, well or badly, at once: calls, pages, jobs, cancels, streams, bad requests."""

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from tests.job_calls import FINAL, adds_up
from tests.leaks import PATIENCE
from tests.programs import Yard

BAD_WAYS = ("raise", "exit", "hog", "spin", "print", "unread", "late")
JSON = {"Content-Type": "application/json"}
PAGES = 40
"""Items of a job over the practice shop's pages."""
ROWS = 400
"""Items of a job that fetches nothing."""


class Mixed:
    """Users of one yard. `done` counts what they did, `faults` tells what they should not have met."""

    def __init__(self, yard: Yard, seed: int) -> None:
        self.done: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self._yard = yard
        self._chance = random.Random(seed)
        self._numbers = itertools.count(1)
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Until `stop`."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        async with (
            httpx.AsyncClient(base_url=self._yard.urls[0], timeout=PATIENCE, trust_env=False, limits=limits) as api,
            asyncio.TaskGroup() as users,
        ):
            users.create_task(self._again(lambda: self._call(api), 0.15))
            users.create_task(self._again(lambda: self._page(api), 0.3))
            users.create_task(self._again(lambda: self._leave(api), 0.7))
            users.create_task(self._again(lambda: self._cancel(api), 0.9))
            users.create_task(self._again(lambda: self._misbehave(api), 1.5))
            users.create_task(self._again(lambda: self._ask_badly(api), 0.5))
            users.create_task(self._again(lambda: self._read_job(api), 1.0))
            users.create_task(self._again(lambda: self._count_job(api), 1.0))

    def stop(self) -> None:
        """Each user ends what it is at."""
        self._stopping.set()

    async def _again(self, act: Callable[[], Awaitable[None]], pause: float) -> None:
        while not self._stopping.is_set():
            try:
                await act()
            except (httpx.TransportError, KeyError, ValueError) as error:
                self.faults[f"{type(error).__name__}: {error}"] += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)

    async def _scrape(self, api: httpx.AsyncClient, scraper: str, given: dict[str, Any], **more: Any) -> dict[str, Any]:
        answer = await api.post("/api/scrape", json={"scraper": scraper, "input": given, **more})
        self._expect(answer, 200, 202, 502, 504)
        document: dict[str, Any] = answer.json()
        return document

    async def _call(self, api: httpx.AsyncClient) -> None:
        run = await self._scrape(api, "lab/nap", {"seconds": 0.05}, wait=60)
        self.done[f"call {run['exit_reason']}"] += 1

    async def _page(self, api: httpx.AsyncClient) -> None:
        url = f"{self._yard.shop.url}/?page={next(self._numbers)}"
        run = await self._scrape(api, "builtin/page", {"url": url}, wait=60)
        self.done[f"page {run['exit_reason']}"] += 1

    async def _leave(self, api: httpx.AsyncClient) -> None:
        with contextlib.suppress(httpx.TimeoutException):
            body = {"scraper": "lab/nap", "input": {"seconds": 2}, "wait": 30}
            await api.post("/api/scrape", json=body, timeout=self._chance.uniform(0.05, 0.5))
        self.done["left"] += 1

    async def _cancel(self, api: httpx.AsyncClient) -> None:
        given = {"url": f"{self._yard.shop.url}/slow", "seconds": 30}
        run = await self._scrape(api, "lab/stay", given, wait=0)
        await asyncio.sleep(self._chance.uniform(0, 0.5))
        self._expect(await api.delete(f"/api/scrape/{run['id']}"), 200, 202, 204)
        self.done["cancelled"] += 1

    async def _misbehave(self, api: httpx.AsyncClient) -> None:
        way = self._chance.choice(BAD_WAYS)
        await self._scrape(api, "lab/bad", {"way": way, "url": f"{self._yard.shop.url}/slow"}, wait=60)
        self.done["bad"] += 1

    async def _ask_badly(self, api: httpx.AsyncClient) -> None:
        self._expect(await api.get("/api/nowhere"), 404)
        self._expect(await api.post("/api/scrape", content=b"[" * 5000, headers=JSON), 400, 422)
        self._expect(await api.post("/api/scrape", json={"scraper": f"lab/none{next(self._numbers)}"}), 404)
        self._expect(await api.get("/api/jobs", params={"limit": "many"}), 422)
        self.done["bad requests"] += 4

    async def _read_job(self, api: httpx.AsyncClient) -> None:
        exports = [{"type": kind, "format": "csv"} for kind in ("full", "seo", "links")]
        source = {"sitemap_url": f"{self._yard.shop.url}/sitemap.xml", "sitemap": {"limit": PAGES}}
        body = {"scraper": "builtin/page", **source, "exports": exports, "name": "soak"}
        await self._job(api, body)

    async def _count_job(self, api: httpx.AsyncClient) -> None:
        rows = [{"item_id": f"k{n}", "n": n, "seconds": 0.002} for n in range(ROWS)]
        await self._job(api, {"scraper": "lab/count", "items": rows, "policy": {"isolation": "job", "retries": 10}})

    async def _job(self, api: httpx.AsyncClient, body: dict[str, Any]) -> None:
        """One job to its end: left alone, cancelled half way, or paused and resumed."""
        created = await api.post("/api/jobs", json=body)
        self._expect(created, 201)
        path = f"/api/jobs/{created.json()['id']}"
        with contextlib.suppress(httpx.TimeoutException):
            async with api.stream("GET", f"{path}/stream", timeout=1.0) as stream:
                async for _line in stream.aiter_lines():
                    if self._chance.random() < 0.2:
                        break
        fate = self._chance.choice(("alone", "cancel", "pause"))
        if fate == "cancel":
            self._expect(await api.post(f"{path}/cancel"), 200, 409)
        elif fate == "pause":
            self._expect(await api.post(f"{path}/pause"), 200, 409)
            self._expect(await api.post(f"{path}/resume"), 200, 409)
        job = await self._ended(api, path)
        if job["status"] == "failed":
            self.faults[f"{path} failed: {job['error']}"] += 1
        if not adds_up(job["counts"]):
            self.faults[f"{path} does not add up: {job['counts']}"] += 1
        self.done[f"job {job['status']}"] += 1

    async def _ended(self, api: httpx.AsyncClient, path: str) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE * 2):
            while (job := (await api.get(path)).json())["status"] not in FINAL:
                await asyncio.sleep(0.3)
        found: dict[str, Any] = job
        return found

    def _expect(self, answer: httpx.Response, *statuses: int) -> None:
        if answer.status_code not in statuses:
            self.faults[f"{answer.request.method} {answer.url.path}: {answer.status_code} {answer.text[:300]}"] += 1
