"""What a series promises: one child for many inputs, limits for each, a fresh child where one is not fit."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.model import ExitReason, Limits, Scraper
from scrapeyard.sandbox.handles.series import ChildSeries
from scrapeyard.sandbox.port import Verdict, Work
from tests.contract.sandbox_scripts import result
from tests.contract.sandboxes import CONFIGURATIONS, SMALL, Bench, Served, Walls, bench, descendants, eventually
from tests.leaks import PATIENCE

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

COUNTS = """
import asyncio, os, sys, threading, time
from scrapeyard_sdk import Fail, Retry, Skip
seen = 0
kept = []
def run(ctx, case, n=0):
    global seen
    seen += 1
    if case == 'who': return [os.getpid(), seen, ctx.run_id]
    if case == 'raise': raise ValueError('no')
    if case == 'fail': raise Fail('no')
    if case == 'retry': raise Retry('later', after=7)
    if case == 'exit': raise SystemExit(3)
    if case == 'print': print('line', n); os.write(1, b'bare\\n'); return n
    if case == 'crash': import ctypes; ctypes.string_at(0)
    if case == 'leave': os._exit(0)
    if case == 'sleep': time.sleep(600)
    if case == 'spin':
        while True: pass
    if case == 'work':
        until = time.process_time() + 0.05
        while time.process_time() < until: pass
        return seen
    if case == 'eat': return len([bytearray(1024 * 1024) for _ in range(10_000)])
    if case == 'hoard': kept.append(bytearray(b'x' * 8 * 1024 * 1024)); return [os.getpid(), len(kept)]
    if case == 'large': return 'x' * 2_000_000
    if case == 'file': open('left.txt', 'w').write('x'); return os.getpid()
    if case == 'read': return sorted(os.listdir('.'))
    if case == 'thread': threading.Thread(target=time.sleep, args=(600,), daemon=True).start(); return os.getpid()
    if case == 'open': kept.extend(open('/dev/null') for _ in range(40)); return os.getpid()
    if case == 'hold': kept.append(ctx); return None
    if case == 'old': kept[0].log('from the grave'); return None
    if case == 'fetch': return ctx.fetch('http://a.test/').status
    if case == 'artifact': ctx.artifact('a.txt', 'x' * 600_000); return None
    if case == 'replace': sys.stdout = None; return None
    raise Skip(case)
"""
ASYNC = """
import asyncio, os
async def run(ctx, case):
    if case == 'who': return os.getpid()
    if case == 'task': asyncio.ensure_future(asyncio.sleep(600)); return os.getpid()
    if case == 'asks and leaves':
        asyncio.get_running_loop()
        task = asyncio.ensure_future(ctx.fetch('http://forever.test/'))
        await asyncio.sleep(0)
        task.cancel()
        return os.getpid()
    pages = await ctx.fetch_all(['http://a.test/'] * 3)
    return [page.status for page in pages]
"""


class Items:
    """A series and what a test says to it."""

    def __init__(self, stand: Bench, scraper: Scraper, limits: Limits) -> None:
        self.series: ChildSeries = stand.sandbox.series(scraper)
        self.limits = limits
        self.served = Served()
        self._number = 0

    async def run(self, case: str, *, limits: Limits | None = None, **given: Any) -> Verdict:
        self._number += 1
        work = Work(
            run_id=f"item_{self._number}",
            attempt=1,
            input=Raw(msgspec.json.encode({"case": case, **given})),
            limits=limits or self.limits,
        )
        return await self.series.run(work, self.served)

    async def value(self, case: str, **given: Any) -> Any:
        return result(await self.run(case, **given))


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CONFIGURATIONS, ids=lambda walls: walls.name)
async def stand(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    walls: Walls = request.param
    async with bench(walls) as made:
        yield made


@pytest.fixture
def items(stand: Bench) -> Any:
    opened: list[Items] = []

    def make(source: str = COUNTS, **limits: float) -> Items:
        chosen = replace(SMALL, **limits)
        opened.append(Items(stand, stand.scraper(source, chosen), chosen))
        return opened[-1]

    yield make
    for each in opened:
        each.series.close()
        each.series.close()


async def test_one_child_serves_all_and_keeps_what_its_modules_hold(items: Any) -> None:
    one = items()
    told = [await one.value("who") for _ in range(5)]
    assert {pid for pid, _, _ in told} == {told[0][0]}
    assert [(seen, run_id) for _, seen, run_id in told] == [(n, f"item_{n}") for n in range(1, 6)]


async def test_two_series_never_share_a_child(items: Any) -> None:
    one, other = items(), items()
    assert (await one.value("who"))[:2] != (await other.value("who"))[:2]
    assert (await other.value("who"))[1] == 2


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("raise", ExitReason.SCRIPT_ERROR),
        ("fail", ExitReason.FAILED),
        ("retry", ExitReason.RETRY),
        ("exit", ExitReason.SCRIPT_ERROR),
        ("large", ExitReason.OUTPUT_LIMIT),
        ("other", ExitReason.SKIPPED),
    ],
)
async def test_what_a_script_raises_ends_its_item_and_not_the_child(items: Any, case: str, reason: ExitReason) -> None:
    one = items()
    before = await one.value("who")
    verdict = await one.run(case)
    assert verdict.exit_reason is reason
    assert verdict.retry_after == (7 if case == "retry" else None)
    assert (await one.value("who"))[:2] == [before[0], 3]


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("crash", ExitReason.CRASHED),
        ("leave", ExitReason.CRASHED),
        ("eat", ExitReason.MEMORY_LIMIT),
        ("sleep", ExitReason.TIMEOUT),
        ("spin", ExitReason.CPU_LIMIT),
    ],
)
async def test_a_child_that_is_lost_takes_only_its_item_along(items: Any, case: str, reason: ExitReason) -> None:
    one = items()
    before = await one.value("who")
    short = {"sleep": {"wall_seconds": 0.5}, "spin": {"cpu_seconds": 0.5}}.get(case, {})
    assert (await one.run(case, limits=replace(one.limits, **short))).exit_reason is reason
    after = await one.value("who")
    assert after[1] == 1
    assert after[0] != before[0] or case == "leave"  # in its own namespace a number may come back
    assert (await one.value("who"))[1] == 2


async def test_processor_time_is_each_items_own(items: Any) -> None:
    one = items(cpu_seconds=0.2)
    assert [await one.value("work") for _ in range(5)] == [1, 2, 3, 4, 5]


async def test_an_items_wall_clock_begins_with_it(items: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has an alarm of its own, for its whole time, which ends with it."""
    one = items(wall_seconds=1234.5)
    loop = asyncio.get_running_loop()
    real, alarms = loop.call_later, []

    def noted(seconds: float, *rest: Any, **more: Any) -> asyncio.TimerHandle:
        timer = real(seconds, *rest, **more)
        if seconds == 1234.5:
            alarms.append(timer)
        return timer

    monkeypatch.setattr(loop, "call_later", noted)
    for number in range(1, 5):
        assert (await one.value("who"))[1] == number
        assert len(alarms) == number
        assert alarms[-1].cancelled()


async def test_memory_that_grows_leads_to_a_fresh_child_in_time(items: Any) -> None:
    one = items()
    told = [await one.value("hoard") for _ in range(30)]
    assert len({pid for pid, _ in told}) > 1
    assert max(held for _, held in told) < 12


@pytest.mark.parametrize("case", ["file", "thread", "open"])
async def test_what_an_item_leaves_behind_is_not_met_by_the_next(items: Any, case: str) -> None:
    one = items()
    await one.value("who")
    assert (await one.run(case)).exit_reason is ExitReason.SUCCEEDED
    assert (await one.value("who"))[1] == 1
    assert await one.value("read") == [".output"]


async def test_a_task_left_behind_leads_to_a_fresh_child(items: Any) -> None:
    one = items(ASYNC)
    first = await one.value("who")
    assert await one.value("who") == first
    assert await one.value("task") == first
    assert await one.value("pages") == [200, 200, 200]


async def test_an_answer_that_nobody_waits_for_is_passed_over(items: Any) -> None:
    one = items(ASYNC)
    for _ in range(5):
        assert (await one.run("asks and leaves")).exit_reason is ExitReason.SUCCEEDED
    assert await one.value("pages") == [200, 200, 200]


async def test_lines_are_told_once_and_each_for_its_item(items: Any) -> None:
    one = items()
    for n in range(3):
        assert await one.value("print", n=n) == n
        assert one.served.text == [f"line {n}", "bare"]
        one.served.logs.clear()
    await one.value("replace")
    assert await one.value("print", n=9) == 9
    assert one.served.text == ["line 9", "bare"]


async def test_the_context_of_an_item_that_has_ended_is_of_no_use(items: Any) -> None:
    one = items()
    await one.run("hold")
    verdict = await one.run("old")
    assert verdict.exit_reason is ExitReason.SCRIPT_ERROR
    assert verdict.error.type == "ItemOver"
    assert one.served.text == []


async def test_fetches_and_artifacts_count_for_each_item(items: Any) -> None:
    one = items(fetches=1)
    assert [await one.value("fetch") for _ in range(3)] == [200] * 3
    for _ in range(3):
        assert (await one.run("artifact")).exit_reason is ExitReason.SUCCEEDED


async def test_cancelling_kills_the_child(items: Any) -> None:
    one = items()
    await one.value("who")
    before = set(descendants(os.getpid()))
    task = asyncio.create_task(one.run("sleep"))
    await asyncio.sleep(0)
    child = one.series._held[1]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: child.pid not in descendants(os.getpid()))
    assert child.pid in before
    assert (await one.value("who"))[1] == 1


async def test_a_child_that_was_killed_between_items_is_replaced(items: Any) -> None:
    one = items()
    await one.value("who")
    child = one.series._held[1]
    os.kill(child.pid, signal.SIGKILL)
    await child.exited
    assert (await one.value("who"))[1] == 1


async def test_a_script_that_does_not_load_is_not_loaded_for_each_item(items: Any) -> None:
    one = items("raise ValueError('at import')")
    verdicts = [await one.run("who") for _ in range(3)]
    assert {verdict.exit_reason for verdict in verdicts} == {ExitReason.SCRAPER_INVALID}
    assert {verdict.error.message for verdict in verdicts if verdict.error} == {"at import"}


async def test_a_closed_series_leaves_no_child(items: Any) -> None:
    one = items()
    await one.value("who")
    child = one.series._held[1]
    one.series.close()
    await asyncio.wait_for(child.exited, PATIENCE)
