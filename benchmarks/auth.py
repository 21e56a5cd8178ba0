"""What keys add to a call: `scrapeyard up` that asks for a key beside one that does not, and the middleware alone.

Both servers are called at the same time, so that whatever else the machine does falls on both alike. A run takes
milliseconds, and what a key adds is lost in their noise. So the difference is measured on a call that runs nothing
(`GET /api/identity`), and compared with the processor time of a run. Figures are medians over the turns.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from msgspec import Struct

from benchmarks.core import ground_of
from benchmarks.load import Load, LoadFailed, Plan, Target, drive
from benchmarks.processes import StartFailed
from benchmarks.quantiles import median
from benchmarks.report import Goal, Options, Report, Table, figure, ratio
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
"""In each round."""
_SECONDS = 1.0
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


class KeyTurn(Struct, frozen=True, kw_only=True):
    """Both servers, each way once."""

    one: Pair
    """Asked who calls, by one client."""
    many: Pair
    """The same, by many."""
    runs: Pair
    """A no-op script, by many."""


def run(options: Options, say: Say) -> Report:
    """Measure all. What cannot be measured is named in `failures`."""
    turns: list[KeyTurn] = []
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
                    turns.append(_turn({"off": off, "on": on}, options))
        except (StartFailed, LoadFailed) as error:
            failures["auth"] = str(error)
    return _report(turns, micros, failures)


def _turn(servers: dict[str, Running], options: Options) -> KeyTurn:
    half, seconds = max(1, options.clients // 2), _SECONDS * options.pace
    return KeyTurn(
        one=_both(servers, 1, seconds, _identity),
        many=_both(servers, half, seconds, _identity),
        runs=_both(servers, half, seconds, lambda target: target),
    )


def _identity(target: Target) -> Target:
    return msgspec.structs.replace(target, method="GET", path="/api/identity", body="")


def _both(servers: dict[str, Running], clients: int, seconds: float, aim: Callable[[Target], Target]) -> Pair:
    def measured(server: Running) -> Measured:
        plan = Plan(target=aim(server.target), clients=clients, seconds=seconds, warmup_seconds=0)
        before = server.programs[0].processor_seconds()
        load = drive(plan)
        spent = server.programs[0].processor_seconds() - before
        return Measured(load=load, processor_ms=1000 * spent / load.answers)

    with ThreadPoolExecutor(len(servers)) as pool:
        return dict(zip(servers, pool.map(measured, servers.values()), strict=True))


def _report(turns: list[KeyTurn], micros: dict[str, float], failures: dict[str, str]) -> Report:
    added = median(turn.one["on"].load.p50_ms - turn.one["off"].load.p50_ms for turn in turns)
    work = median(turn.many["on"].processor_ms - turn.many["off"].processor_ms for turn in turns)
    run_ms = median(turn.runs["off"].processor_ms for turn in turns)
    cost = 100 * ratio(work, run_ms)
    rows = [
        (
            mode,
            figure(median(turn.one[mode].load.p50_ms for turn in turns)),
            f"{median(turn.many[mode].processor_ms for turn in turns):.3f}",
            figure(median(turn.runs[mode].load.per_second for turn in turns)),
            figure(median(turn.runs[mode].processor_ms for turn in turns)),
            figure(micros[mode]),
        )
        for mode in _MODES
    ]
    about = ("p50 ms", "processor ms", "runs/s", "processor ms of a run", "middleware alone, µs")
    note = (
        f"Medians of {len(turns)} turns. A key adds {added:.3f} ms to p50 and {work:.3f} ms of processor time to a "
        f"call, which is {figure(cost, '%')} of what the server spends on a run."
    )
    return Report(
        bench="auth",
        tables=(Table(title="Keys", columns=("`auth.mode`", *about), rows=tuple(rows), note=note),),
        goals=(
            Goal(name="a key: added to p50", measured=added, bound=0.2, at_least=False, unit="ms"),
            Goal(name="a key: share of a run's processor time", measured=cost, bound=3, at_least=False, unit="%"),
        ),
        failures=failures,
        numbers={"added_ms": added, "work_ms": work, "run_ms": run_ms, "middleware_us": micros},
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
