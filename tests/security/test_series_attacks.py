"""Scripts whose child serves many items, and who try to speak for an item that is not, or no longer, theirs."""

import asyncio
import itertools
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.model import ExitReason, Limits
from scrapeyard.sandbox.handles.series import ChildSeries
from scrapeyard.sandbox.port import Verdict, Work
from tests.contract.sandboxes import CONFIGURATIONS, Bench, Served, bench
from tests.security.yard import PLENTY

pytestmark = [pytest.mark.security, pytest.mark.asyncio(loop_scope="module")]
SHORT = replace(PLENTY, wall_seconds=2)
"""For an item that may be lost with its child: how long it waits does not matter."""
PROTOCOL, SUCCEEDED = ExitReason.PROTOCOL_ERROR, ExitReason.SUCCEEDED

PRELUDE = """
import gc, json, os, socket, stat, struct, threading, time
import scrapeyard_sdk.channel as channels

def wire():
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode): return socket.socket(fileno=os.dup(fd))
        except OSError: pass

def frame(head, raw=b""):
    packed = json.dumps(head).encode()
    return struct.pack("<II", 4 + len(packed) + len(raw), len(packed)) + packed + raw

def number():
    return max(c._item for c in gc.get_objects() if isinstance(c, channels.Channel) and not c._over)

def later(seconds, *frames):
    sock = wire()
    def speak():
        time.sleep(seconds)
        for one in frames: sock.sendall(one)
    threading.Thread(target=speak, daemon=True).start()

def honest(i, value):
    sock = wire()
    sock.sendall(frame({'t': 'result', 'i': i, 'left': []}, json.dumps(value).encode()))
    return sock

def run(ctx, turn):
    if turn == 'good': return 'good'
    if turn == 'slow': time.sleep(0.5); return 'good'
"""

SPEAKS: dict[str, tuple[str, set[ExitReason]]] = {
    "no number": ("wire().sendall(frame({'t': 'result'}, b'1')); time.sleep(600)", {PROTOCOL}),
    "the next number": ("wire().sendall(frame({'t': 'result', 'i': number() + 1}, b'1')); time.sleep(600)", {PROTOCOL}),
    "a log of another": (
        "wire().sendall(frame({'t': 'log', 'i': 1, 'stream': 'log', 'text': 'x'})); time.sleep(600)",
        {PROTOCOL},
    ),
    "a fetch of another": (
        "wire().sendall(frame({'t': 'fetch', 'i': 1, 'n': 1, 'url': 'http://a.test/'})); time.sleep(600)",
        {PROTOCOL},
    ),
    "a record of another": ("wire().sendall(frame({'t': 'record', 'i': 7}, b'1')); time.sleep(600)", {PROTOCOL}),
    "an error of another": (
        "wire().sendall(frame({'t': 'error', 'i': 7, 'reason': 'failed'})); time.sleep(600)",
        {PROTOCOL},
    ),
    "ready again": ("wire().sendall(frame({'t': 'ready', 'version': 1})); time.sleep(600)", {PROTOCOL}),
    "a number that is none": ("wire().sendall(frame({'t': 'result', 'i': -1}, b'1')); time.sleep(600)", {PROTOCOL}),
}
"""During its own item."""

GOES_ON: dict[str, str] = {
    "two results": "i = number(); honest(i, 1).sendall(frame({'t': 'result', 'i': i}, b'2') * 3); time.sleep(5)",
    "its own number": "i = number()\n"
    "    honest(i, 1).sendall(frame({'t': 'log', 'i': i, 'stream': 'log', 'text': 'late'})); time.sleep(5)",
    "guessed numbers": "i = number(); s = honest(i, 1)\n"
    "    for n in range(500): s.sendall(frame({'t': 'result', 'i': i + n}, b'\"forged\"'))\n    time.sleep(5)",
    "half a frame": "i = number()\n"
    "    honest(i, 1).sendall(frame({'t': 'result', 'i': i}, b'\"forged\"')[:-2]); time.sleep(5)",
    "a thread": "i = number()\n"
    "    later(0.2, frame({'t': 'result', 'i': i}, b'\"forged\"')); honest(i, 1); time.sleep(5)",
}
"""After its item has ended by a result that it sent itself, saying that it leaves nothing behind."""


class Items:
    def __init__(self, stand: Bench, body: str) -> None:
        self.scraper = stand.scraper(PRELUDE + f"    {body}\n", PLENTY)
        self.series: ChildSeries = stand.sandbox.series(self.scraper)
        self.served = Served()

    async def run(self, turn: str, served: Served | None = None, limits: Limits = PLENTY) -> Verdict:
        given = Raw(msgspec.json.encode({"turn": turn}))
        work = Work(run_id="item", attempt=1, input=given, limits=limits)
        return await self.series.run(work, served or self.served)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CONFIGURATIONS[:2], ids=lambda walls: walls.name)
async def stand(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    async with bench(request.param) as made:
        yield made


async def _is_well(items: Items) -> None:
    """The next items are served, each with its own result and by a child that was not the attacker's."""
    for turn in ("slow", "good"):
        verdict = await items.run(turn)
        assert verdict.exit_reason is SUCCEEDED, verdict
        assert bytes(verdict.result or b"") == b'"good"'


@pytest.mark.parametrize("name", SPEAKS)
async def test_nobody_speaks_for_another_item(stand: Bench, name: str) -> None:
    body, expected = SPEAKS[name]
    faults: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    items = Items(stand, body)
    assert (await items.run("good")).exit_reason is SUCCEEDED
    verdict = await items.run("attack")
    assert verdict.exit_reason in expected, verdict
    await _is_well(items)
    items.series.close()
    assert faults == []
    assert items.served.logs == []
    assert items.served.asked == []


@pytest.mark.parametrize("name", GOES_ON)
async def test_nobody_writes_after_the_end_of_his_item(stand: Bench, name: str) -> None:
    """The item at hand may be lost with the child; what is forged is never taken for its result."""
    faults: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    items = Items(stand, GOES_ON[name])
    verdict = await items.run("attack")
    assert verdict.exit_reason is SUCCEEDED
    assert bytes(verdict.result or b"") == b"1"
    after = Served()
    victim = await items.run("slow", after, SHORT)
    assert victim.exit_reason in {SUCCEEDED, PROTOCOL, ExitReason.CRASHED, ExitReason.TIMEOUT}
    assert victim.result is None or bytes(victim.result) == b'"good"'
    assert after.logs == []
    await _is_well(items)
    items.series.close()
    assert faults == []


async def test_an_items_number_cannot_be_foretold(stand: Bench) -> None:
    items = Items(stand, "return number()")
    numbers = [int(bytes((await items.run("tell")).result or b"0")) for _ in range(20)]
    items.series.close()
    assert len(set(numbers)) == 20
    steps = {later - sooner for sooner, later in itertools.pairwise(numbers)}
    assert len(steps) == 19
    assert all(abs(step) > 1000 for step in steps)


async def test_a_child_of_one_series_is_never_anothers(stand: Bench) -> None:
    """Neither by its number nor by its wire: each series has a child of its own, though the script is the same."""
    body = "return [os.getpid(), number()]"
    one, other = Items(stand, body), Items(stand, body)
    told = [msgspec.json.decode((await each.run("tell")).result or b"") for each in (one, other, one, other)]
    assert told[0][0] == told[2][0] != told[1][0] == told[3][0]
    assert len({number for _, number in told}) == 4
    for each in (one, other):
        each.series.close()
