"""Pages through the browser engine beside the same steps in raw Playwright, in turns: one at a time, eight at once; a
hundred contexts open at once; and two thousand pages, during which nothing may grow."""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from benchmarks import web
from benchmarks.processes import StartFailed
from benchmarks.quantiles import median
from benchmarks.report import Goal, Options, Report, Table, figure, ratio
from scrapeyard.engines.browser.found import find_browser
from scrapeyard.engines.browser.operations import Content, Goto
from scrapeyard.engines.browser.port import BrowserEngine, ContextOptions, Evidence
from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.settings import Settings
from scrapeyard.wiring.local_engine import start_local_engine
from scrapeyard.wiring.pipeline import Engine

PARTS = ("page", "eight", "hundred", "flat")
_PAGES = 60
_BLOCKS, _BLOCK = 4, 24
"""Pages of one turn where eight are opened at once."""
_MANY = 100
_LONG = 2000
_AT_ONCE = 8
_PAGE = "<!doctype html><title>Kettle</title><h1>Kettle</h1>" + "<p>A kettle of enamelled steel.</p>" * 200
_PLAIN = ContextOptions(evidence=Evidence(screenshot_on_failure=False, console=False))

Say = Callable[[str], None]
Open = Callable[[], Awaitable[int]]
"""Opens the page in a context of its own; the length of its HTML."""


def run(options: Options, say: Say) -> Report:
    """Measure what was asked for."""
    with tempfile.TemporaryDirectory(prefix="scrapeyard-bench-") as name:
        Path(name).chmod(0o755)  # nginx reads as another user
        try:
            with web.site(Path(name) / "site", {"page.html": _PAGE}) as url:
                return asyncio.run(_measure(options, say, url))
        except StartFailed as error:
            return Report(bench="browser", tables=(), failures={"browser": str(error)})


async def _measure(options: Options, say: Say, url: str) -> Report:
    if words := find_browser(Settings().browser).missing:
        raise StartFailed(words)
    seconds: dict[str, list[float]] = {}
    numbers: dict[str, float] = {}
    async with _engine() as engine, _raw() as raw:
        alone: dict[str, Open] = {
            "page ours": lambda: _ours(engine, url),
            "page raw": lambda: raw(url),
            "fetch": lambda: _fetch(engine, url),
        }
        together: dict[str, Open] = {"eight ours": alone["page ours"], "eight raw": alone["page raw"]}
        for open_page in alone.values():
            await open_page()
        for number in range(options.rounds):
            if options.wants("page"):
                say(f"round {number + 1} of {options.rounds}: {_PAGES} pages of each, in turns")
                await _in_turns(alone, 1, _PAGES, seconds)
            if options.wants("eight"):
                say(f"round {number + 1} of {options.rounds}: {_BLOCKS} blocks of {_BLOCK} pages of each, in turns")
                await _in_turns(together, _AT_ONCE, _BLOCKS, seconds)
    if options.wants("hundred"):
        say(f"{_MANY} contexts at once")
        numbers |= await _hundred(url)
    if options.wants("flat"):
        count = max(100, int(_LONG * min(1.0, options.pace)))
        say(f"{count} pages, one after another")
        numbers |= await _flat(url, count)
    return _report(seconds, numbers)


@asynccontextmanager
async def _engine(**browser: object) -> AsyncIterator[Engine]:
    settings = Settings.model_validate({"http": {"allow_private": True}, "browser": browser})
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="scrapeyard-bench-"))
        yield await start_local_engine(settings, Path(folder), stack)


def _browsers(engine: Engine) -> BrowserEngine:
    if engine.browsers is None:
        raise StartFailed("there is no browser")
    return engine.browsers


async def _ours(engine: Engine, url: str) -> int:
    async with _browsers(engine).open(_PLAIN, Caller()) as page:
        await page.perform(Goto(url=url))
        return len((await page.perform(Content())).raw)


async def _fetch(engine: Engine, url: str) -> int:
    return len((await engine.fetch(FetchRequest(url=url, engine="browser"), Caller())).body)


@asynccontextmanager
async def _raw() -> AsyncIterator[Callable[[str], Awaitable[int]]]:
    from playwright.async_api import async_playwright

    found = find_browser(Settings().browser)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=found.executable or None, chromium_sandbox=os.geteuid() != 0
        )

        async def open_page(url: str) -> int:
            context = await browser.new_context()
            try:
                page = await context.new_page()
                await page.goto(url)
                return len(await page.content())
            finally:
                await context.close()

        yield open_page
        await browser.close()


async def _in_turns(work: dict[str, Open], at_once: int, turns: int, seconds: dict[str, list[float]]) -> None:
    """Seconds for one page, by name. Short turns: what else the machine does slows all of them alike."""
    for _ in range(turns):
        for name, open_page in work.items():
            took = await _timed(open_page, at_once, 1 if at_once == 1 else _BLOCK)
            seconds.setdefault(name, []).append(took)


async def _timed(open_page: Open, at_once: int, pages: int) -> float:
    """Seconds for one of so many pages, with so many at once."""
    left = list(range(pages))

    async def lane() -> None:
        while left:
            left.pop()
            await open_page()

    began = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(at_once)))
    return (time.perf_counter() - began) / pages


async def _hundred(url: str) -> dict[str, float]:
    async with _engine(max_contexts=_MANY, memory_mb=64 * 1024) as engine, AsyncExitStack() as stack:
        began = time.perf_counter()
        pages = [await stack.enter_async_context(_browsers(engine).open(_PLAIN, Caller())) for _ in range(_MANY)]
        for page in pages:
            await page.perform(Goto(url=url, timeout=120))
        answers = await asyncio.gather(*(page.perform(Content(timeout=120)) for page in pages))
        seconds = time.perf_counter() - began
        memory = _memory_mb(os.getpid())
        return {"contexts": float(sum(bool(each.raw) for each in answers)), "memory_mb": memory, "seconds": seconds}


async def _flat(url: str, count: int) -> dict[str, float]:
    """Memory and processes after a tenth of the pages, and at the end."""
    async with _engine(contexts_each=10**6, minutes_each=600, memory_mb=64 * 1024) as engine:
        found: dict[str, float] = {}
        for number in range(count):
            await _ours(engine, url)
            if number + 1 in (count // 10, count):
                when = "early" if number + 1 < count else "late"
                found |= {f"{when}_mb": _memory_mb(os.getpid()), f"{when}_processes": float(len(_family(os.getpid())))}
        return found


def _family(pid: int) -> list[int]:
    """The process's descendants."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(folder.name))
    found, waiting = [], [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def _memory_mb(pid: int) -> float:
    """Of the process and its descendants; what several share counts once."""
    total = 0
    for each in (pid, *_family(pid)):
        try:
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def _report(seconds: dict[str, list[float]], numbers: dict[str, float]) -> Report:
    took = {
        name: median(seconds.get(name, ())) for name in ("page ours", "page raw", "eight ours", "eight raw", "fetch")
    }
    names = ("contexts", "memory_mb", "late_mb", "early_mb", "late_processes", "early_processes")
    got = {name: numbers.get(name, float("nan")) for name in names}
    rows = (
        ("context, goto, content: ours", figure(took["page ours"] * 1000, "ms")),
        ("the same in raw Playwright", figure(took["page raw"] * 1000, "ms")),
        (f"the same, {_AT_ONCE} at once: ours", figure(1 / took["eight ours"], "pages/s")),
        (f"the same, {_AT_ONCE} at once, in raw Playwright", figure(1 / took["eight raw"], "pages/s")),
        ('a warm fetch with engine="browser", median', figure(took["fetch"] * 1000, "ms")),
        (f"{_MANY} contexts open at once: those that answer", figure(got["contexts"])),
        ("their memory, with the browser", figure(got["memory_mb"], "MB")),
        ("memory after a tenth of many pages", figure(got["early_mb"], "MB")),
        ("memory after all of them", figure(got["late_mb"], "MB")),
        ("processes after a tenth of many pages", figure(got["early_processes"])),
        ("processes after all of them", figure(got["late_processes"])),
    )
    goals = (
        Goal(name="page / raw", measured=ratio(took["page ours"], took["page raw"]), bound=1.15, at_least=False),
        Goal(name="pages/s / raw", measured=ratio(took["eight raw"], took["eight ours"]), bound=0.9, at_least=True),
        Goal(name="contexts that answer", measured=got["contexts"], bound=_MANY, at_least=True, unit=""),
        Goal(name="their memory", measured=got["memory_mb"], bound=8192, at_least=False, unit="MB"),
        Goal(name="memory late / early", measured=ratio(got["late_mb"], got["early_mb"]), bound=1.2, at_least=False),
        Goal(
            name="more processes late than early",
            measured=got["late_processes"] - got["early_processes"],
            bound=3,
            at_least=False,
            unit="",
        ),
    )
    table = Table(title="Pages in a browser", columns=("", "measured"), rows=rows)
    return Report(bench="browser", tables=(table,), goals=goals, numbers={"seconds": seconds, **numbers})
