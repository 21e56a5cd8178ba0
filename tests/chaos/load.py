"""A steady stream of waiting and polling calls, and an account of what became of each."""

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx

from tests.leaks import PATIENCE

FINAL = frozenset({"succeeded", "failed", "cancelled"})
ANSWERS = frozenset({200, 202, 502, 504})
"""What is answered for a run that was accepted."""
REFUSALS = frozenset({429, 503})
SLACK_SECONDS = 60.0
"""Beyond its wait, a call has an answer within this, whatever is away and however busy the machine. One that nobody
answers breaks off only after PATIENCE."""


@dataclass(kw_only=True)
class Call:
    """One call and what came back."""

    tag: str
    wait: float
    nap: float
    twice: bool
    """Whether the script asks for a second attempt, which only a dispatcher can give it."""
    seconds: float = 0.0
    """Until the answer, or until the connection broke."""
    status: int = 0
    """0: no answer came, since the gateway was gone."""
    code: str = ""
    run_id: str = ""
    exit_reason: str = ""
    """As the answer told; empty for a handle."""
    gateway: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the caller was told of a run."""
        return self.status in ANSWERS and bool(self.run_id)


@dataclass(kw_only=True)
class Account:
    """What all calls and all runs came to."""

    calls: list[Call]
    runs: list[dict[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def accepted(self) -> list[Call]:
        """Calls that were told of a run."""
        return [call for call in self.calls if call.accepted]

    @property
    def slowest(self) -> float:
        """The longest that an accepted run took beyond its naps, in seconds: how long recovery took at worst."""
        naps = {call.tag: call.nap * (1 + call.twice) for call in self.accepted}
        took = [_took(run) - naps[tag] for run in self.runs if (tag := run["input"]["tag"]) in naps]
        return max(took, default=0.0)

    @property
    def ends(self) -> Counter[str]:
        """Exit reasons of the runs that callers were told of."""
        told = {call.run_id for call in self.accepted}
        return Counter(str(run["exit_reason"]) for run in self.runs if run["id"] in told)

    @property
    def ran_though_refused(self) -> list[dict[str, Any]]:
        """Runs of calls that were refused, and whose cancel came too late."""
        refused = {call.tag for call in self.calls if call.status in REFUSALS}
        return [run for run in self.runs if run["input"]["tag"] in refused and run["status"] != "cancelled"]

    def summary(self, name: str) -> str:
        """One line."""
        refused = Counter(call.code or "cut off" for call in self.calls if not call.accepted)
        final = sum(run["status"] in FINAL for run in self.runs)
        return (
            f"{name}: calls={len(self.calls)} accepted={len(self.accepted)} listed={len(self.runs)} final={final} "
            f"ends={dict(self.ends)} refused={dict(refused)} "
            f"ran_though_refused={len(self.ran_though_refused)} again={sum(run['attempt'] > 1 for run in self.runs)} "
            f"latest_answer={max((call.seconds - call.wait for call in self.calls), default=0):+.1f}s beyond wait "
            f"slowest_recovery={self.slowest:.1f}s"
        )


class Load:
    """Calls `per_second` times a second at the gateways that `urls` names, half of them waiting."""

    def __init__(self, urls: Callable[[], list[str]], *, per_second: float, seed: int, wait: float = 12.0) -> None:
        self._urls = urls
        self._pause = 1 / per_second
        self._random = random.Random(seed)
        self._wait = wait
        self._numbers = itertools.count(1)
        self._name = f"{seed}-{time.time_ns():x}"
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[Call]] = []

    async def accepted(self, count: int) -> None:
        """Wait until so many calls more were told of a run."""
        wanted = count + self._accepted
        async with asyncio.timeout(PATIENCE):
            while self._accepted < wanted:
                await asyncio.sleep(0.02)

    @property
    def _accepted(self) -> int:
        return sum(task.done() and task.result().accepted for task in self._tasks)

    async def run(self) -> list[Call]:
        """Call until `stop`; then wait for the answers that are due."""
        async with _client() as client:
            while not self._stopping.is_set():
                self._tasks.append(asyncio.create_task(self._call(client)))
                try:
                    await asyncio.wait_for(self._stopping.wait(), self._pause)
                except TimeoutError:
                    continue
            return await asyncio.gather(*self._tasks)

    def stop(self) -> None:
        """No more calls."""
        self._stopping.set()

    async def _call(self, client: httpx.AsyncClient) -> Call:
        number = next(self._numbers)
        call = Call(
            tag=f"{self._name}-{number}",
            wait=self._wait if number % 2 else 0.0,
            nap=round(self._random.uniform(0.05, 0.9), 2),
            twice=number % 5 == 0,
        )
        given = {"seconds": call.nap, "tag": call.tag, "twice": call.twice}
        body = {"scraper": "lab/nap", "input": given, "wait": call.wait, "policy": {"retries": 10}}
        began = time.monotonic()
        urls = self._urls()
        try:
            call.gateway = urls[number % len(urls)]
            answer = await client.post(f"{call.gateway}/api/scrape", json=body)
        except httpx.TimeoutException:
            call.code = "HUNG"
        except httpx.TransportError:
            call.code = ""
        else:
            call.status, document = answer.status_code, answer.json()
            call.code, call.run_id = document.get("code", ""), document.get("id", "")
            call.exit_reason = document.get("exit_reason") or ""
        call.seconds = time.monotonic() - began
        return call


async def settle(url: str, calls: list[Call], within: float) -> Account:
    """Wait until every run of these calls is final, then check everything that must hold."""
    account = Account(calls=calls)
    deadline = time.monotonic() + within
    async with _client() as client:
        while True:
            account.runs = await _listed(client, url, {call.tag for call in calls})
            open_runs = [run for run in account.runs if run["status"] not in FINAL]
            if not open_runs or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.2)
        account.faults += [f"{run['id']} is still {run['status']}" for run in open_runs]
        account.faults += await _idle(client, url, deadline + 5)
    _check_calls(account)
    _check_runs(account)
    return account


def _check_calls(account: Account) -> None:
    for call in account.calls:
        told = f"call {call.tag} (wait {call.wait:g}) got {call.status} {call.code} after {call.seconds:.1f} s"
        if call.code == "HUNG" or call.seconds > call.wait + SLACK_SECONDS:
            account.faults.append(f"no answer in time: {told}")
        elif call.status and call.status not in ANSWERS | REFUSALS:
            account.faults.append(f"an answer that is no answer: {told}")
        elif call.status in ANSWERS and not call.run_id:
            account.faults.append(f"an answer without a run: {told}")


def _check_runs(account: Account) -> None:
    """Every accepted call has one run, none has two, and what was answered is what is recorded. A call that was
    refused may leave a run only if its answer named it, or if that run was cancelled at once."""
    ids, tags = (Counter(run["id"] for run in account.runs), Counter(run["input"]["tag"] for run in account.runs))
    account.faults += [f"{name} is listed {count} times" for name, count in (ids | tags).items() if count > 1]
    runs = {run["id"]: run for run in account.runs}
    for call in account.accepted:
        run = runs.get(call.run_id)
        if run is None:
            account.faults.append(f"accepted with {call.status} and not listed: {call.run_id}")
        elif call.exit_reason not in ("", run["exit_reason"]):
            account.faults.append(f"{call.run_id} was answered {call.exit_reason} and is recorded {run['exit_reason']}")
        elif run["input"]["tag"] != call.tag:
            account.faults.append(f"{call.run_id} is another call's run")
    told = {call.run_id for call in account.calls}
    codes = {call.tag: f"{call.code} after {call.seconds:.1f} of {call.wait:g} s" for call in account.calls}
    for run in account.ran_though_refused:
        if run["id"] not in told:
            why = codes[run["input"]["tag"]]
            account.faults.append(f"{run['id']} was refused ({why}) and ended {run['exit_reason']} nevertheless")


async def _listed(client: httpx.AsyncClient, url: str, tags: set[str]) -> list[dict[str, Any]]:
    """Every run of these calls, page by page; once more from the start when a page does not come."""
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        params = {"limit": "200", "scraper": "lab/nap"} | ({"cursor": cursor} if cursor else {})
        try:
            answer = await client.get(f"{url}/api/scrape", params=params)
        except httpx.TransportError:
            answer = httpx.Response(503)
        if answer.status_code != 200:
            found, cursor = [], ""
            await asyncio.sleep(0.2)
            continue
        page = answer.json()
        found += [run for run in page["runs"] if run["input"].get("tag") in tags]
        cursor = page["next_cursor"]
    return found


async def _idle(client: httpx.AsyncClient, url: str, deadline: float) -> list[str]:
    while True:
        workers = (await client.get(f"{url}/api/workers")).json().get("workers", [])
        busy = [f"worker {worker['id']} still runs {worker['busy']}" for worker in workers if worker["busy"]]
        if not busy or time.monotonic() > deadline:
            return busy
        await asyncio.sleep(0.2)


def _client() -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
    return httpx.AsyncClient(timeout=PATIENCE, trust_env=False, limits=limits)


def _took(run: dict[str, Any]) -> float:
    if not run["finished_at"]:
        return float("inf")
    finished, created = datetime.fromisoformat(run["finished_at"]), datetime.fromisoformat(run["created_at"])
    return (finished - created).total_seconds()
