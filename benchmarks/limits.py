"""Limits of a client over two gateway processes on Redis and PostgreSQL, under more load than they allow; and how long
a revoked key is still taken at each."""

import asyncio
import secrets
import time
from collections.abc import Callable
from itertools import cycle
from typing import Any

import httpx
from msgspec import Struct

from benchmarks.report import Goal, Options, Report, Table, figure
from scrapeyard.gateway.auth.documents import KeyCall, LimitsCall
from scrapeyard.gateway.auth.keys import KeyRing
from scrapeyard.model.identity import Pepper, Role
from scrapeyard.settings import LogSettings
from scrapeyard.store.sql import SqlStore
from scrapeyard.telemetry.events import configure

PARTS = ("limits",)
RATE = 50.0
CONCURRENCY = 6
CALLERS = 16
_SECONDS = 10.0
_NAP = {"scraper": "lab/nap", "input": {"seconds": 0.3}, "wait": 30}
_WAIT = 60.0

Say = Callable[[str], None]


class Held(Struct, frozen=True, kw_only=True):
    """What two gateways let through."""

    rate: float
    """Calls a second, beyond the burst that is allowed after a rest."""
    peak: int
    """Runs at once, by the workers' own times."""
    mean: float
    """Runs at once, on average."""
    revoked_ms: tuple[float, ...]
    """Until each gateway refused a revoked key."""


def run(options: Options, say: Say) -> Report:
    """Start two gateways, and measure."""
    from tests.programs import Cluster

    configure(LogSettings(level="error"))
    pepper = secrets.token_hex(32)
    env = {"SCRAPEYARD_AUTH__PEPPER": pepper, "SCRAPEYARD_WORKER__SLOTS": "24"}
    with Cluster(gateways=2, workers=1, dispatchers=1, environment=env) as cluster:
        urls = [str(cluster.client(number).base_url) for number in range(2)]
        held = asyncio.run(_measure(cluster.postgres.url, pepper, urls, _SECONDS * options.pace, say))
    return _report(held)


async def _measure(database: str, pepper: str, urls: list[str], seconds: float, say: Say) -> Held:
    store = SqlStore(database)
    await store.start()
    try:
        ring = KeyRing(store.api_keys, Pepper(pepper.encode()))
        keys = {}
        for name, limits in (("rate", LimitsCall(rate=RATE)), ("runs", LimitsCall(concurrency=CONCURRENCY))):
            call = KeyCall(name=name, role=Role.CLIENT, limits=limits)
            keys[name] = await ring.create(call.draft(time.time()))
        _, admin = await ring.create(KeyCall(name="admin", role=Role.ADMIN).draft(time.time()))
    finally:
        await store.stop()
    async with httpx.AsyncClient(timeout=_WAIT, limits=httpx.Limits(max_connections=2 * CALLERS)) as client:
        for url in urls:
            await _until(client, url, admin, 200)
        say("calls a second")
        rate = await _rate(client, urls, keys["rate"][1], seconds)
        say("runs at once")
        peak, mean = await _runs(client, urls, keys["runs"][1], seconds)
        say("revocation")
        key, secret = keys["rate"]
        await client.delete(f"{urls[0]}/api/keys/{key.id}", headers=_as(admin))
        began = time.perf_counter()
        revoked = await asyncio.gather(*(_until(client, url, secret, 401, began) for url in urls))
    return Held(rate=rate, peak=peak, mean=mean, revoked_ms=tuple(revoked))


def _as(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def _until(client: httpx.AsyncClient, url: str, secret: str, status: int, began: float = 0.0) -> float:
    """Milliseconds from `began` until a gateway answers so. Calls refused by rate are neither."""
    while (await client.get(f"{url}/api/identity", headers=_as(secret))).status_code != status:
        await asyncio.sleep(0.005)
    return 1000 * (time.perf_counter() - began)


async def _rate(client: httpx.AsyncClient, urls: list[str], secret: str, seconds: float) -> float:
    """Calls that were let through, beyond the burst of the beginning, a second."""
    taken: list[float] = []
    began = time.perf_counter()

    async def caller(number: int) -> None:
        turns = cycle(urls[number % 2 :] + urls[: number % 2])
        while time.perf_counter() - began < seconds:
            answer = await client.get(f"{next(turns)}/api/identity", headers=_as(secret))
            if answer.status_code == 200:
                taken.append(time.perf_counter())

    await asyncio.gather(*(caller(number) for number in range(CALLERS)))
    return (len(taken) - RATE) / (max(taken) - began)


async def _runs(client: httpx.AsyncClient, urls: list[str], secret: str, seconds: float) -> tuple[int, float]:
    """Peak and mean of the runs at once."""
    spans: list[tuple[str, str]] = []
    began = time.perf_counter()

    async def caller(number: int) -> None:
        while time.perf_counter() - began < seconds:
            answer = await client.post(f"{urls[number % 2]}/api/scrape", json=_NAP, headers=_as(secret))
            if answer.status_code == 200:
                told: dict[str, Any] = answer.json()
                spans.append((told["started_at"], told["finished_at"]))
            else:
                await asyncio.sleep(0.02)

    await asyncio.gather(*(caller(number) for number in range(CALLERS)))
    return peak_of(spans), len(spans) * _NAP["input"]["seconds"] / seconds  # type: ignore[index]


def peak_of(spans: list[tuple[str, str]]) -> int:
    """How many of these overlap at most. Instants of the same form sort as text; an end comes before a start."""
    moments = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    running = peak = 0
    for _, change in moments:
        running += change
        peak = max(peak, running)
    return peak


def _report(held: Held) -> Report:
    off = 100 * abs(held.rate / RATE - 1)
    over = max(0.0, 100 * (held.peak / CONCURRENCY - 1))
    slowest = max(held.revoked_ms)
    rows = (
        ("calls a second", figure(RATE), figure(held.rate)),
        ("runs at once, peak", figure(CONCURRENCY), figure(held.peak)),
        ("runs at once, mean", "", figure(held.mean)),
        ("revoked key refused at the slower gateway, ms", "", figure(slowest)),
    )
    note = f"{CALLERS} callers over two gateway processes."
    return Report(
        bench="limits",
        tables=(Table(title="Limits over two gateways", columns=("", "allowed", "measured"), rows=rows, note=note),),
        goals=(
            Goal(name="rate over two gateways: off by", measured=off, bound=5, at_least=False, unit="%"),
            Goal(name="runs at once over two gateways: over by", measured=over, bound=5, at_least=False, unit="%"),
            Goal(name="revocation reaches two gateways", measured=slowest, bound=1000, at_least=False, unit="ms"),
        ),
        failures={},
        numbers={"rate": held.rate, "peak": held.peak, "mean": held.mean, "revoked_ms": list(held.revoked_ms)},
    )
