"""What keys add to a call: `scrapeyard up` that asks for a key beside one that does not, and the middleware alone.

Both servers run at the same time and are called by turns, each second turn in the other order, so that a slow moment of
the machine falls on both. Figures are medians of the pairs. On busy cores the processor time of the server's own
process says more than the clock does: it is what a call takes from throughput.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from benchmarks.core import ground_of
from benchmarks.load import Load, LoadFailed, Plan, drive
from benchmarks.processes import StartFailed
from benchmarks.quantiles import median
from benchmarks.report import Goal, Options, Report, Table, figure
from benchmarks.systems import Running, embedded
from scrapeyard.gateway.app import ROUTERS
from scrapeyard.gateway.auth.authentication import Authentication
from scrapeyard.gateway.auth.credentials import Authenticator
from scrapeyard.gateway.auth.documents import KeyCall
from scrapeyard.gateway.auth.keys import KeyRing
from scrapeyard.gateway.auth.permissions import RouteAccess
from scrapeyard.model.identity import Pepper, Role
from scrapeyard.settings import LogSettings
from scrapeyard.store.sql import SqlStore
from scrapeyard.telemetry.events import configure

PARTS = ("auth",)
_TURNS = 4
"""Pairs in each round."""
_SECONDS = 1.5
_CALLS = 20_000
_BEST_OF = 5
_MODES = ("off", "on")

Say = Callable[[str], None]


class Measured(Struct, frozen=True, kw_only=True):
    """One server, called for a while."""

    load: Load
    processor_ms: float
    """Of the server's own process, without its children, for each call."""


Pair = dict[str, Measured]
"""By mode."""


def run(options: Options, say: Say) -> Report:
    """Measure both. A part that cannot be measured is named in `failures`."""
    pairs: dict[int, list[Pair]] = {1: [], options.clients: []}
    failures = {}
    pepper = secrets.token_hex(32)
    with ground_of(options) as ground:
        database = f"sqlite:///{ground.folder / 'keys.db'}"
        key, micros = asyncio.run(_middleware(database, pepper))
        env = {"SCRAPEYARD_AUTH__PEPPER": pepper, "DATABASE_URL": database, "SCRAPEYARD_AUTH__MODE": "on"}
        try:
            with (
                embedded(ground, {"SCRAPEYARD_AUTH__MODE": "off"}) as off,
                embedded(ground, env, {"Authorization": f"Bearer {key}"}) as on,
            ):
                for number in range(options.rounds * _TURNS):
                    say(f"keys, turn {number + 1} of {options.rounds * _TURNS}")
                    for clients, found in pairs.items():
                        found.append(_pair({"off": off, "on": on}, clients, number, options.pace))
        except (StartFailed, LoadFailed) as error:
            failures["auth"] = str(error)
    return _report(pairs[1], pairs[options.clients], micros, failures, options)


def _pair(servers: dict[str, Running], clients: int, number: int, pace: float) -> Pair:
    order = _MODES if number % 2 else _MODES[::-1]
    return {mode: _turn(servers[mode], clients, pace) for mode in order}


def _turn(server: Running, clients: int, pace: float) -> Measured:
    program = server.programs[0]
    before = program.processor_seconds()
    load = drive(Plan(target=server.target, clients=clients, seconds=_SECONDS * pace, warmup_seconds=0))
    return Measured(load=load, processor_ms=1000 * (program.processor_seconds() - before) / load.answers)


def _report(
    one: list[Pair], many: list[Pair], micros: dict[str, float], failures: dict[str, str], options: Options
) -> Report:
    added = median(pair["on"].load.p50_ms - pair["off"].load.p50_ms for pair in one)
    cost = 100 * (1 - median(pair["on"].load.per_second / pair["off"].load.per_second for pair in many))
    work = 100 * (median(pair["on"].processor_ms / pair["off"].processor_ms for pair in many) - 1)
    rows = [
        (
            mode,
            figure(median(pair[mode].load.p50_ms for pair in one)),
            figure(median(pair[mode].load.per_second for pair in many)),
            figure(median(pair[mode].processor_ms for pair in many)),
            figure(micros[mode]),
        )
        for mode in _MODES
    ]
    note = (
        f"Of {len(one)} pairs: a key adds {figure(added, 'ms')} to p50, costs {figure(cost, '%')} of throughput and "
        f"{figure(work, '%')} of the server's processor time."
    )
    clients = f"{options.clients} clients"
    columns = ("`auth.mode`", "p50 ms", f"runs/s, {clients}", f"processor ms a call, {clients}", "middleware alone, µs")
    return Report(
        bench="auth",
        tables=(Table(title="Keys", columns=columns, rows=tuple(rows), note=note),),
        goals=(
            Goal(name="a key: added to p50", measured=added, bound=0.2, at_least=False, unit="ms"),
            Goal(name="a key: cost of throughput", measured=cost, bound=3, at_least=False, unit="%"),
            Goal(name="a key: cost of the server's processor time", measured=work, bound=3, at_least=False, unit="%"),
        ),
        failures=failures,
        numbers={"added_ms": added, "cost_percent": cost, "processor_percent": work, "middleware_us": micros},
    )


async def _middleware(database: str, pepper: str) -> tuple[str, dict[str, float]]:
    """The secret of a new key, and the microseconds that the middleware alone takes by mode, the best of some."""
    configure(LogSettings(level="error"))
    store = SqlStore(database)
    await store.start()
    try:
        ring = KeyRing(store.api_keys, Pepper(pepper.encode()))
        _, secret = await ring.create(KeyCall(name="bench", role=Role.OPERATOR).draft(time.time()))
        access = RouteAccess(route for router in ROUTERS for route in router.routes)
        headers = [(b"host", b"x"), (b"authorization", f"Bearer {secret}".encode())]
        scope = {"type": "http", "method": "POST", "path": "/api/scrape", "query_string": b"", "headers": headers}
        found = {}
        for mode in _MODES:
            middleware = Authentication(_app, Authenticator([ring], mode), access, ring.fault)  # type: ignore[arg-type]
            found[mode] = min([await _micros(middleware, scope) for _ in range(_BEST_OF)])
        return secret, found
    finally:
        await store.stop()


async def _micros(middleware: Authentication, scope: dict[str, Any]) -> float:
    began = time.perf_counter()
    for _ in range(_CALLS):
        await middleware(dict(scope), _app, _app)
    return (time.perf_counter() - began) / _CALLS * 1e6


async def _app(*_: Any) -> Any:
    return None
