"""What a script is told when it meets a wall or a limit, and what works in a child although a wall is near."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec.structs import replace

from scrapeyard.model import ExitReason
from tests.contract.sandbox_scripts import result
from tests.contract.sandboxes import CONFIGURATIONS, SMALL, Bench, Served, bench

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROOMY = replace(SMALL, memory_mb=256)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CONFIGURATIONS[:2], ids=lambda walls: walls.name)
async def stand(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    async with bench(request.param) as made:
        yield made


async def told(stand: Bench, source: str, reason: ExitReason = ExitReason.SCRIPT_ERROR) -> str:
    verdict = await stand.run(source, limits=ROOMY)
    assert verdict.exit_reason is reason, verdict
    assert verdict.error is not None
    return verdict.error.message


@pytest.mark.parametrize(
    "call",
    [
        "urllib.request.urlopen('http://example.test/')",
        "socket.create_connection(('127.0.0.1', 80))",
        "socket.getaddrinfo('example.test', 80)",
        "socket.socket()",
        "asyncio.run(asyncio.open_connection('example.test', 80))",
        "httpx.get('http://example.test/', trust_env=False)",
    ],
)
async def test_a_network_call_is_pointed_to_ctx_fetch(stand: Bench, call: str) -> None:
    imports = "import asyncio, socket, urllib.request" + (", httpx" if "httpx" in call else "")
    assert "ctx.fetch" in await told(stand, f"{imports}\ndef run(ctx): {call}")


@pytest.mark.parametrize(
    "call",
    [
        "subprocess.run(['true'])",
        "os.fork()",
        "multiprocessing.get_context('fork').Process(target=print).start()",
        "mmap.mmap(-1, 4096)",
    ],
)
async def test_a_process_is_refused_in_words(stand: Bench, call: str) -> None:
    message = await told(stand, f"import mmap, multiprocessing, os, subprocess\ndef run(ctx): {call}")
    assert "scripts may not start programs or processes" in message


@pytest.mark.parametrize("path", ["/tmp/mine", "/dev/shm/mine"])
async def test_shared_folders_are_refused_in_words(stand: Bench, path: str) -> None:
    assert "tempfile" in await told(stand, f"def run(ctx): open({path!r}, 'w')")


async def test_a_missing_module_is_pointed_to_the_requirements(stand: Bench) -> None:
    assert "requirements" in await told(stand, "def run(ctx): import nowhere_to_be_found")
    at_import = "import nowhere_to_be_found\ndef run(ctx): return 1"
    assert "requirements" in await told(stand, at_import, ExitReason.SCRAPER_INVALID)


async def test_a_debugger_is_refused_in_words(stand: Bench) -> None:
    assert "scripts have no terminal" in await told(stand, "def run(ctx):\n    breakpoint()\n    return 1\n")


async def test_words_of_the_script_stay_as_they_are(stand: Bench) -> None:
    assert await told(stand, "def run(ctx): raise RuntimeError('no stock')") == "no stock"
    assert "ctx.fetch" not in await told(stand, "def run(ctx): open('/etc/shadow')")


async def test_too_large_a_file_names_the_limit(stand: Bench) -> None:
    source = "def run(ctx):\n    with open('big', 'wb') as file: file.truncate(1 << 40)"
    assert "limits.disk_mb" in await told(stand, source, ExitReason.DISK_LIMIT)


async def test_too_many_threads_name_the_limit(stand: Bench) -> None:
    source = """
import threading, time
def run(ctx):
    threading.stack_size(64 << 20)
    while True: threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
"""
    assert "limits.threads" in await told(stand, source, ExitReason.PROCESS_LIMIT)


async def test_memory_that_a_mapping_lacks_is_the_memory_limit(stand: Bench) -> None:
    source = "import mmap\ndef run(ctx): mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)"
    assert "limits.memory_mb" in await told(stand, source, ExitReason.MEMORY_LIMIT)


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_more_pages_than_the_limit_name_it(stand: Bench, kind: str) -> None:
    served = Served()
    waits = "await " if kind == "async def" else ""
    source = f"{kind} run(ctx): return len({waits}ctx.fetch_all(['http://a.test/'] * 2500))"
    verdict = await stand.run(source, served)
    assert verdict.exit_reason is ExitReason.FETCH_LIMIT
    assert verdict.error is not None
    assert "limits.fetches" in verdict.error.message
    assert len(served.asked) <= SMALL.fetches


async def test_a_script_may_go_on_after_its_last_fetch(stand: Bench) -> None:
    source = """
from scrapeyard_sdk import FetchError
def run(ctx):
    refused = 0
    for _ in range(3000):
        try: ctx.fetch("http://a.test/")
        except FetchError as error: refused += error.reason == "fetch_limit"
    return refused
"""
    assert result(await stand.run(source)) == 3000 - SMALL.fetches


async def test_threads_share_locks_and_pools(stand: Bench) -> None:
    source = """
import getpass, multiprocessing, multiprocessing.dummy, os, tempfile, threading
from multiprocessing.pool import ThreadPool

def run(ctx):
    lock, recursive, gate = multiprocessing.Lock(), multiprocessing.RLock(), multiprocessing.Semaphore(2)
    count = [0]
    def add(n):
        for _ in range(100):
            with lock, recursive, recursive, gate: count[0] += 1
        return n * n
    with ThreadPool(4) as pool: squares = pool.map(add, range(4))
    with multiprocessing.dummy.Pool(2) as pool: more = pool.map(str, range(2))
    queue, event = multiprocessing.Queue(), multiprocessing.Event()
    threading.Thread(target=lambda: (queue.put("hello"), event.set())).start()
    told = [queue.get(timeout=60), event.wait(60), lock.acquire(False), lock.acquire(timeout=0.01)]
    try: multiprocessing.Semaphore(0).release(), multiprocessing.BoundedSemaphore(1).release()
    except ValueError as error: told.append(str(error))
    try: recursive.release()
    except AssertionError: told.append("not mine")
    with open(os.path.join(tempfile.gettempdir(), "mine"), "w") as file: file.write("x")
    return [squares, more, count[0], told, getpass.getuser()]
"""
    assert result(await stand.run(source, limits=ROOMY)) == [
        [0, 1, 4, 9],
        ["0", "1"],
        400,
        ["hello", True, True, False, "semaphore or lock released too many times", "not mine"],
        "scrapeyard",
    ]


BAD_VALUES = {
    "nan": ("{'rows': [{'price': 1}, {'price': float('nan')}]}", "/rows/1/price"),
    "delta": ("{'a/b': {'when~': datetime.timedelta(1)}}", "/a~1b/when~0"),
    "in a set": ("[1, (2, {3, 1j})]", "/1/1"),
    "bytes": ("{'page': b'x'}", "at /page: bytes; decode them to text"),
    "surrogate": ("{'a': ['fine', '\\ud800']}", "/a/1"),
    "key": ("{'a': {(1, 2): 3}}", "at /a:"),
}


@pytest.mark.parametrize("name", BAD_VALUES)
async def test_a_bad_result_names_its_place(stand: Bench, name: str) -> None:
    value, place = BAD_VALUES[name]
    assert place in await told(stand, f"import datetime\ndef run(ctx): return {value}", ExitReason.BAD_RESULT)


async def test_a_bad_record_names_its_number(stand: Bench) -> None:
    source = "def run(ctx):\n    yield {'a': 1}\n    yield {'a': float('inf')}"
    assert "/1/a" in await told(stand, source, ExitReason.BAD_RESULT)
    source += "\ndef validate_result(record): assert record['a'] == 1, 'odd'"
    assert "validate_result at /1:" in await told(stand, source, ExitReason.BAD_RESULT)


PARTIAL = """
import asyncio, os, time
def run(ctx, end: str):
    for n in range(900): yield {"n": n}
    if end == "raise": raise KeyError("gone")
    if end == "bad": yield float("nan")
    if end == "sleep": time.sleep(600)
    if end == "kill": os._exit(1)
    if end == "large":
        while True: yield "x" * 100_000
"""


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("raise", ExitReason.SCRIPT_ERROR),
        ("bad", ExitReason.BAD_RESULT),
        ("sleep", ExitReason.TIMEOUT),
        ("kill", ExitReason.CRASHED),
        ("large", ExitReason.OUTPUT_LIMIT),
    ],
)
async def test_records_before_a_failure_are_kept(stand: Bench, end: str, reason: ExitReason) -> None:
    limits = replace(SMALL, wall_seconds=5) if end == "sleep" else SMALL
    verdict = await stand.run(PARTIAL, limits=limits, end=end)
    assert verdict.exit_reason is reason
    assert verdict.result is not None
    kept = json.loads(bytes(verdict.result))
    assert kept[:900] == [{"n": n} for n in range(900)]


async def test_a_failure_without_records_has_no_result(stand: Bench) -> None:
    assert (await stand.run("def run(ctx):\n    raise KeyError\n    yield 1")).result is None


async def test_a_store_that_fails_is_not_the_scripts_fault(stand: Bench) -> None:
    verdict = await stand.run("def run(ctx): ctx.artifact('full', 'x')")
    assert verdict.exit_reason is ExitReason.INTERNAL_ERROR
    assert verdict.exit_reason.retryable
    assert verdict.error is not None
    assert "disk is full" in verdict.error.message
    forged = "from scrapeyard_sdk import ArtifactError\ndef run(ctx): raise ArtifactError('the disk is full')"
    assert (await stand.run(forged)).exit_reason is ExitReason.SCRIPT_ERROR


async def test_a_script_that_leaves_no_descriptor_is_the_one_to_blame(stand: Bench) -> None:
    source = """
import os
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
def run(ctx): return len(held)
"""
    assert "before they are given a run" in await told(stand, source, ExitReason.CRASHED)


async def test_a_script_may_have_an_environment_of_its_own(stand: Bench) -> None:
    source = """
import os, tempfile
os.environ = {"MINE": "1", **os.environ}
def run(ctx): return [os.environ["MINE"], os.environ["HOME"] == os.getcwd() == os.path.dirname(tempfile.mkdtemp())]
"""
    assert result(await stand.run(source, limits=ROOMY)) == ["1", True]
