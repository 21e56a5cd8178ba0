"""What warm isolation promises: a child serves many runs of one version, and no run meets what another left."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.model import ExitReason, Limits, Scraper, ScraperRef
from scrapeyard.sandbox.port import Verdict, Work
from tests.contract.sandbox_scripts import result
from tests.contract.sandboxes import CONFIGURATIONS, SMALL, Bench, Served, Walls, bench, descendants, eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SCRIPT = """
import asyncio, contextvars, os, resource, signal, socket, sys, threading, time
from scrapeyard_sdk import Skip
kept = []
told = contextvars.ContextVar('told', default='')
def run(ctx, case='who'):
    if case == 'who':
        mask = os.umask(0)
        os.umask(mask)
        handlers = [signal.getsignal(n) for n in (signal.SIGUSR1, signal.SIGALRM)]
        return {
            'pid': os.getpid(), 'seen': len(kept),
            'files': sorted(os.listdir('.')), 'at': os.path.basename(os.getcwd()),
            'secret': os.environ.get('SECRET'), 'threads': threading.active_count(), 'told': told.get(),
            'handlers': [h == signal.SIG_DFL for h in handlers], 'timer': signal.getitimer(signal.ITIMER_REAL)[0],
            'umask': mask, 'path': 'left' in sys.path, 'output': os.fstat(1).st_size,
        }
    kept.append(case)
    if case == 'good': return os.getpid()
    if case == 'skip': raise Skip('nothing new')
    if case == 'raise': raise ValueError('no')
    if case == 'file': open('left.txt', 'w').write('x')
    if case == 'folder': os.mkdir('left'); os.chdir('left')
    if case == 'environment': os.environ['SECRET'] = 'x'
    if case == 'thread': threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    if case == 'socket': kept.extend(socket.socketpair())
    if case == 'gap': a = os.open('/dev/null', 0); kept.append(os.open('/dev/null', 0)); os.close(a)
    if case == 'handler': signal.signal(signal.SIGUSR1, print)
    if case == 'timer': signal.setitimer(signal.ITIMER_REAL, 600)
    if case == 'block': signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    if case == 'umask': os.umask(0)
    if case == 'limit': resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    if case == 'path': sys.path.append('left')
    if case == 'variable': told.set('x')
    if case == 'print': os.write(1, b'bare'); print('line')
    if case == 'import': import wave
    if case == 'hoard': kept.append(bytearray(b'x' * 8 * 1024 * 1024)); return os.getpid()
    if case == 'sleep': time.sleep(600)
    if case == 'crash': os._exit(3)
    if case == 'big': open('big', 'wb').write(b'x' * 3_000_000); time.sleep(600)
    return os.getpid()
"""
LEAVES = {
    "file": "files",
    "folder": "working directory, files",
    "environment": "environment",
    "thread": "threads",
    "socket": "descriptors",
    "gap": "descriptors",
    "handler": "signal handlers",
    "timer": "timers",
    "block": "blocked signals",
    "umask": "umask",
    "limit": "descriptors, limits",
    "path": "sys.path",
}
ASYNC = """
import asyncio, os
async def run(ctx, case='who'):
    if case == 'task': asyncio.ensure_future(asyncio.sleep(600))
    if case == 'fetch': return (await ctx.fetch('http://a.test/')).status
    return os.getpid()
"""


class Calls:
    """Warm calls of one scraper."""

    def __init__(self, stand: Bench, source: str = SCRIPT, limits: Limits = SMALL, version: str = "1.0.0") -> None:
        made = stand.scraper(source, limits, "warm/case")
        ref = ScraperRef(id="warm/case", version=version, digest=made.ref.digest + version)
        self.scraper: Scraper = replace(made, ref=ref, isolation="warm")
        self.stand = stand
        self.served = Served()

    async def run(self, case: str, *, warm: bool = True, **limits: float) -> Verdict:
        work = Work(
            run_id="run_1",
            attempt=1,
            input=Raw(msgspec.json.encode({"case": case})),
            limits=replace(self.scraper.limits, **limits),
            warm=warm,
        )
        return await self.stand.sandbox.run(self.scraper, work, self.served)

    async def value(self, case: str = "who", *, warm: bool = True) -> Any:
        return result(await self.run(case, warm=warm))

    @property
    def resting(self) -> list[Any]:
        return self.stand.sandbox._parents[self.scraper.ref.digest].resting


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CONFIGURATIONS[:2], ids=lambda walls: walls.name)
async def stand(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    walls: Walls = request.param
    async with bench(walls) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def calls(stand: Bench) -> AsyncIterator[Calls]:
    made = Calls(stand)
    yield made
    for parent in stand.sandbox._parents.values():
        parent.end_resting()


async def test_one_child_serves_calls_one_after_another(calls: Calls) -> None:
    first = await calls.run("good")
    pids = {await calls.value("good") for _ in range(5)}
    assert pids == {result(first)}
    assert not first.forked_ahead
    assert (await calls.run("good")).forked_ahead
    assert calls.served.text == []


async def test_calls_at_once_have_a_child_each(calls: Calls) -> None:
    pids = await asyncio.gather(*(calls.value("good") for _ in range(4)))
    assert len(set(pids)) == 4
    assert len(calls.resting) == 4


@pytest.mark.parametrize("case", LEAVES)
async def test_nothing_that_a_run_leaves_is_met_by_the_next(calls: Calls, case: str) -> None:
    clean = await calls.value()
    assert (await calls.run(case)).exit_reason is ExitReason.SUCCEEDED
    (line,) = calls.served.logs
    assert line.text.startswith(f"left behind: {LEAVES[case]};")
    assert line.level == "warning"
    assert calls.resting == []
    after = await calls.value()
    changing = {"pid", "at"}
    assert {k: v for k, v in after.items() if k not in changing} == {
        k: v for k, v in clean.items() if k not in changing
    }


async def test_output_and_context_variables_end_with_their_run(calls: Calls) -> None:
    pid = await calls.value("print")
    assert calls.served.text == ["line", "bare"]
    assert await calls.value("variable") == pid
    after = await calls.value()
    assert (after["pid"], after["told"], after["output"]) == (pid, "", 0)
    assert after["seen"] == 2  # what modules hold stays, as the docs say


async def test_tasks_of_an_async_script_end_its_child(calls: Calls) -> None:
    one = Calls(calls.stand, ASYNC)
    pid = await one.value("who")
    assert await one.value("fetch") == 200
    assert await one.value("who") == pid
    await one.value("task")
    assert [line.text.split(";")[0] for line in one.served.logs] == ["left behind: tasks"]
    assert one.resting == []


async def test_modules_that_a_run_imports_are_told(calls: Calls) -> None:
    await calls.value("import")
    (line,) = calls.served.logs
    assert "wave" in line.text
    assert line.level == "info"


@pytest.mark.parametrize(
    ("case", "limits", "reason"),
    [
        ("raise", {}, ExitReason.SCRIPT_ERROR),
        ("crash", {}, ExitReason.CRASHED),
        ("sleep", {"wall_seconds": 0.5}, ExitReason.TIMEOUT),
        ("big", {"disk_mb": 1}, ExitReason.DISK_LIMIT),
    ],
)
async def test_limits_hold_for_each_run_and_an_error_ends_its_child_alone(
    calls: Calls, case: str, limits: dict[str, float], reason: ExitReason
) -> None:
    await asyncio.gather(calls.run("good"), calls.run("good"))
    other, ended = calls.resting
    assert (await calls.run(case, **limits)).exit_reason is reason
    assert calls.resting == [other]
    await eventually(ended.exited.done)
    assert other.alive
    assert (await calls.run("good")).forked_ahead


async def test_cancelling_kills_only_the_child_of_its_run(calls: Calls) -> None:
    await asyncio.gather(calls.run("good"), calls.run("good"))
    other, ended = calls.resting
    task = asyncio.create_task(calls.run("sleep"))
    await eventually(lambda: calls.resting == [other])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: ended.pid not in descendants(os.getpid()))
    assert other.alive
    assert (await calls.run("good")).forked_ahead


async def test_a_skipped_run_keeps_its_child(calls: Calls) -> None:
    pid = await calls.value("good")
    assert (await calls.run("skip")).exit_reason is ExitReason.SKIPPED
    assert await calls.value("good") == pid


async def test_a_call_may_ask_for_a_child_of_its_own(calls: Calls) -> None:
    pid = await calls.value("good")
    fresh = await calls.value(warm=False)
    assert (fresh["pid"], fresh["seen"]) != (pid, 1)
    assert await calls.value("good") == pid


async def test_children_that_rest_make_room_for_runs_that_want_their_own(calls: Calls) -> None:
    await asyncio.gather(*(calls.run("good") for _ in range(8)))
    own = [asyncio.create_task(calls.run("sleep", warm=False)) for _ in range(8)]  # ten children may be there
    await eventually(lambda: len(calls.resting) <= 2)
    parent = calls.stand.sandbox._parents[calls.scraper.ref.digest]
    await eventually(lambda: len(parent._children) >= 8 and not parent._spares.wanted)
    for task in own:
        task.cancel()
    await asyncio.wait(own)


async def test_a_child_ends_after_so_many_runs(calls: Calls) -> None:
    settings = calls.stand.sandbox._warm._settings
    calls.stand.sandbox._warm._settings = settings.model_copy(update={"warm_runs": 3})
    try:
        pids = [await calls.value("good") for _ in range(6)]
    finally:
        calls.stand.sandbox._warm._settings = settings
    assert len(set(pids[:3])) == len(set(pids[3:])) == 1
    assert pids[0] != pids[3]


async def test_memory_that_grows_ends_the_child_in_time(calls: Calls) -> None:
    pids = [await calls.value("hoard") for _ in range(16)]
    assert len(set(pids)) > 1


async def test_a_child_that_rests_too_long_is_ended(calls: Calls) -> None:
    await calls.run("good")
    (child,) = calls.resting
    parents = list(calls.stand.sandbox._parents.values())
    warm = calls.stand.sandbox._warm
    warm.tidy(parents, child.rested_at + 299)
    assert calls.resting == [child]
    parent = calls.stand.sandbox._parents[calls.scraper.ref.digest]
    await eventually(lambda: not parent.busy)  # once children of other tests are gone
    warm.tidy(parents, child.rested_at + 301)
    assert calls.resting == []
    await eventually(child.exited.done)


async def test_a_child_that_works_without_a_run_is_killed(calls: Calls) -> None:
    await calls.run("good")
    (child,) = calls.resting
    calls.stand.sandbox._warm._seen[child] = (child.rested_at, -1.0)
    calls.stand.sandbox._warm.tidy(list(calls.stand.sandbox._parents.values()), child.rested_at)
    await eventually(child.exited.done)
    assert calls.resting == []


async def test_another_version_ends_what_rests_of_the_one_before(calls: Calls) -> None:
    await calls.run("good")
    (child,) = calls.resting
    newer = Calls(calls.stand, version="1.1.0")
    assert not (await newer.run("good")).forked_ahead
    assert calls.resting == []
    await eventually(child.exited.done)
    assert (await newer.run("good")).forked_ahead
