"""Scripts that speak on the wire themselves, or tamper with the code that encloses them."""

import asyncio
import gc
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from scrapeyard.model import ExitReason
from tests.contract.sandboxes import CONFIGURATIONS, Bench, Served, bench, descendants, eventually
from tests.security.yard import PLENTY

pytestmark = [pytest.mark.security, pytest.mark.asyncio(loop_scope="module")]
GOOD = "def run(ctx): return 'good'"
PROTOCOL, SUCCEEDED = ExitReason.PROTOCOL_ERROR, ExitReason.SUCCEEDED

PRELUDE = """
import array, json, os, socket, stat, struct, sys, threading, time

def wire():
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode): return socket.socket(fileno=os.dup(fd))
        except OSError: pass

def frame(head, raw=b""):
    packed = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack("<II", 4 + len(packed) + len(raw), len(packed)) + packed + raw

def stay(): time.sleep(600)

def run(ctx):
    sock = wire()
"""

FORGED: dict[str, tuple[str, set[ExitReason]]] = {
    "garbage": ("sock.sendall(b'\\xff' * 5000); stay()", {PROTOCOL}),
    "truncated": ("sock.sendall(frame({'t': 'log'})[:9]); os._exit(0)", {ExitReason.CRASHED}),
    "huge length": ("sock.sendall(struct.pack('<II', 0xffffffff, 4)); stay()", {PROTOCOL}),
    "zero length": ("sock.sendall(struct.pack('<II', 0, 0)); stay()", {PROTOCOL}),
    "huge head": ("sock.sendall(struct.pack('<II', 10_000_000, 9_000_000)); stay()", {PROTOCOL}),
    "head over frame": ("sock.sendall(struct.pack('<II', 8, 900) + b'12345678'); stay()", {PROTOCOL}),
    "not json": ("sock.sendall(frame(b'{nope')); stay()", {PROTOCOL}),
    "deep head": ("sock.sendall(frame(b'[' * 100_000)); stay()", {PROTOCOL}),
    "no type": ("sock.sendall(frame({'n': 1})); stay()", {PROTOCOL}),
    "unknown type": ("sock.sendall(frame({'t': 'sudo'})); stay()", {PROTOCOL}),
    "our own type": ("sock.sendall(frame({'t': 'run'})); stay()", {PROTOCOL}),
    "ready twice": ("sock.sendall(frame({'t': 'ready', 'version': 1})); stay()", {PROTOCOL}),
    "wrong types": ("sock.sendall(frame({'t': 'log', 'stream': 1, 'text': []})); stay()", {PROTOCOL}),
    "strange stream": ("sock.sendall(frame({'t': 'log', 'stream': 'x', 'text': ''})); stay()", {PROTOCOL}),
    "negative number": ("sock.sendall(frame({'t': 'fetch', 'n': -1, 'url': 'x'})); stay()", {PROTOCOL}),
    "negative usage": ("sock.sendall(frame({'t': 'result', 'cpu_ms': -5}, b'1')); stay()", {PROTOCOL}),
    "infinite usage": ("sock.sendall(frame(b'{\"t\":\"result\",\"cpu_ms\":1e999}', b'1')); stay()", {PROTOCOL}),
    "huge number": ("sock.sendall(frame({'t': 'log', 'stream': 'log', 'text': '', 'fields': {'a': 10**4000,"
                    " 'b': [10**4000]}})); return 1", {PROTOCOL, SUCCEEDED}),
    "false result": ("sock.sendall(frame({'t': 'result'}, b'\"forged\"')); stay()", {SUCCEEDED}),
    "result and on": ("sock.sendall(frame({'t': 'result'}, b'1') * 3 + frame({'t': 'record'}, b'2')); stay()",
                      {SUCCEEDED}),
    "result not json": ("sock.sendall(frame({'t': 'result'}, b'{')); stay()", {PROTOCOL}),
    "result not utf-8": ("sock.sendall(frame({'t': 'result'}, b'\"\\xff\"')); stay()", {PROTOCOL}),
    "result out of range": ("sock.sendall(frame({'t': 'result'}, b'1e999')); stay()", {PROTOCOL}),
    "result of nothing": ("sock.sendall(frame({'t': 'result'}, b'')); stay()", {PROTOCOL}),
    "surrogate result": ("sock.sendall(frame({'t': 'result'}, b'\"\\\\ud800\"')); stay()", {PROTOCOL}),
    "nested result": ("sock.sendall(frame({'t': 'result'}, b'[' * 300_000 + b']' * 300_000)); stay()",
                      {ExitReason.BAD_RESULT}),
    "records that join": ("sock.sendall(frame({'t': 'record'}, b'1],[2') + frame({'t': 'result', 'records': True}));"
                          " stay()", {PROTOCOL}),
    "empty records": ("sock.sendall(frame({'t': 'record'}) * 10); stay()", {PROTOCOL}),
    "claims": ("sock.sendall(frame({'t': 'error', 'reason': 'lost_worker'})); stay()", {PROTOCOL}),
    "strange reason": ("sock.sendall(frame({'t': 'error', 'reason': 'x' * 100})); stay()",
                       {ExitReason.SCRIPT_ERROR}),
    "strange status": ("sock.sendall(frame({'t': 'error', 'reason': 'failed', 'site_status': 10**30})); stay()",
                       {PROTOCOL}),
    "strange after": ("sock.sendall(frame({'t': 'error', 'reason': 'retry', 'after': -1})); stay()", {PROTOCOL}),
    "log flood": ("data = frame({'t': 'log', 'stream': 'log', 'text': 'x'}) * 1000\n"
                  "    for _ in range(1000): sock.sendall(data)", {PROTOCOL}),
    "field flood": ("one = frame({'t': 'log', 'stream': 'log', 'text': '',"
                    " 'fields': {str(n): 'x' * 2000 for n in range(20)}})\n"
                    "    for _ in range(500): sock.sendall(one)", {SUCCEEDED}),
    "fetch flood": ("for n in range(10_000): sock.sendall(frame({'t': 'fetch', 'n': n, 'url': 'http://forever.test/'}))\n"
                    "    stay()", {PROTOCOL}),
    "body flood": ("for n in range(24):\n"
                   "        sock.sendall(frame({'t': 'fetch', 'n': n, 'url': 'http://forever.test/'}, b'x' * 2**23))\n"
                   "    return 1", {SUCCEEDED, ExitReason.CPU_LIMIT, ExitReason.MEMORY_LIMIT}),
    "artifact flood": ("for n in range(50_000): sock.sendall(frame({'t': 'artifact', 'n': n, 'name': f'a{n}'}))\n"
                       "    stay()", {PROTOCOL}),
    "same number": ("sock.sendall(frame({'t': 'fetch', 'n': 1, 'url': 'http://a.test/'}) * 20); return 1", {SUCCEEDED}),
    "another run": ("sock.sendall(frame({'t': 'result', 'run_id': 'run_other'}, b'2')); stay()", {SUCCEEDED}),
    "descriptors": ("own = array.array('i', [os.open('/dev/null', 0) for _ in range(200)])\n"
                    "    one = frame({'t': 'log', 'stream': 'log', 'text': 'fd'})\n"
                    "    for _ in range(100): sock.sendmsg([one], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, own)])\n"
                    "    return 1", {SUCCEEDED, ExitReason.SCRIPT_ERROR}),
    "credentials": ("sock.sendmsg([frame({'t': 'log', 'stream': 'log', 'text': ''})],"
                    " [(socket.SOL_SOCKET, 2, struct.pack('iII', 1, 0, 0))]); return 1", {ExitReason.SCRIPT_ERROR}),
    "shut": ("sock.shutdown(socket.SHUT_RDWR); stay()", {ExitReason.CRASHED}),
    "never reads": ("for n in range(40): sock.sendall(frame({'t': 'fetch', 'n': n, 'url': 'http://a.test/'}))\n"
                    "    stay()", {ExitReason.TIMEOUT}),
    "unlinks": ("os.unlink('.output'); os.symlink('/etc/passwd', '.output'); os._exit(3)", {ExitReason.CRASHED}),
}  # fmt: skip

TAMPER = """
import json, os, socket, sys, threading, time
from scrapeyard.sandbox.inside import parent
from scrapeyard import libc
from scrapeyard.sandbox.walls import landlock, seccomp, walls
import scrapeyard_sdk.child.run
forked = threading.Event()
os.register_at_fork(after_in_parent=forked.set)
"""
"""Children are forked when the script is loaded: who waits for the first acts neither too early nor too late."""
TAMPERED: dict[str, tuple[str, set[ExitReason]]] = {
    "no walls of its own": (
        "walls.enclose_child = lambda *a: ([], [])\n"
        "def run(ctx):\n    try: open('/etc/passwd'); return 'read'\n    except OSError: pass\n"
        "    try: socket.socket(); return 'net'\n    except OSError: return 'held'",
        {SUCCEEDED},
    ),
    "forks behind our back": (
        "walls.enclose_child = lambda *a: ([], [])\n"
        "def run(ctx):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(600)\n    return 'held'",
        {SUCCEEDED, ExitReason.PROCESS_LIMIT},
    ),
    "forks in a thread later": (
        "def later():\n    forked.wait()\n    if os.fork() == 0: time.sleep(600)\n"
        "threading.Thread(target=later, daemon=True).start()\n"
        "def run(ctx): time.sleep(600)",
        {ExitReason.PROCESS_LIMIT},
    ),
    "spins in a thread later": (
        "def later():\n    forked.wait()\n    while True: pass\n"
        "threading.Thread(target=later, daemon=True).start()\ndef run(ctx): time.sleep(600)",
        {ExitReason.CPU_LIMIT},
    ),
    "stillborn children": (
        "parent.run_child = lambda *a: os._exit(0)\ndef run(ctx): return 1",
        {ExitReason.CRASHED},
    ),
    "children that talk early": (
        "def early(sock, script):\n    while True: sock.sendall(b'\\x26\\0\\0\\0\\x22\\0\\0\\0'"
        " + json.dumps({'t': 'ready', 'version': 1}).ljust(34).encode())\n"
        "parent.run_child = early\ndef run(ctx): return 1",
        {ExitReason.CRASHED, ExitReason.PROTOCOL_ERROR},
    ),
    "refuses itself forks": (
        "import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (0, 0))\ndef run(ctx): return 'held'",
        {ExitReason.CRASHED, SUCCEEDED},  # the limit does not bind user 0
    ),
    "loads twice": (
        "s = socket.socket(fileno=os.dup(3))\nparent._say(s, loaded='sync')\ndef run(ctx): return 'held'",
        {SUCCEEDED},
    ),
    "nonsense to the worker": (
        "s = socket.socket(fileno=os.dup(3))\n"
        "for m in (b'{', b'[]', b'1', b'null', b'{\"exited\":1}', b'{\"exited\":NaN,\"status\":1e999}'): s.send(m)\n"
        "def run(ctx): return 1",
        {PROTOCOL},
    ),
    "false deaths": (
        "def lie():\n    s = socket.socket(fileno=os.dup(3))\n    forked.wait()\n"
        "    for slot in range(9): s.send(json.dumps({'exited': slot, 'status': 9, 'cpu': -1e400}).encode())\n"
        "threading.Thread(target=lie, daemon=True).start()\ndef run(ctx): time.sleep(600)",
        {PROTOCOL},
    ),
    "believable false deaths": (
        "def lie():\n    s = socket.socket(fileno=os.dup(3))\n    forked.wait()\n"
        "    while True:\n        time.sleep(0.3)\n"
        "        for slot in range(99): s.send(json.dumps({'exited': slot, 'status': 9}).encode())\n"
        "threading.Thread(target=lie, daemon=True).start()\ndef run(ctx): time.sleep(600)",
        {ExitReason.CRASHED, ExitReason.PROCESS_LIMIT},
    ),
    "closes its control": ("os.close(3)\ndef run(ctx): return 1", {ExitReason.SCRAPER_INVALID}),
    "hides its folder": (
        "real = walls.enclose_child\ndef hide(plan, folder, cpu):\n"
        "    os.rename(folder, folder + 'x'); os.symlink('/', folder); return [], []\n"
        "walls.enclose_child = hide\ndef run(ctx): time.sleep(0.7); return 'held'",
        {SUCCEEDED},
    ),
    "poisoned frames": (
        "import scrapeyard_sdk.wire as w\nreal = w.encode\n"
        "w.encode = lambda head, raw=b'': real(head, raw)[:-1] + b'!'\ndef run(ctx): return 1",
        {ExitReason.CRASHED, PROTOCOL},
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CONFIGURATIONS[:2], ids=lambda walls: walls.name)
async def stand(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    async with bench(request.param) as made:
        yield made


def _resident_mb() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1024 / 1024


@pytest.mark.parametrize("name", FORGED)
async def test_forged_frames_end_in_a_verdict(stand: Bench, name: str) -> None:
    body, expected = FORGED[name]
    faults: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    open_before, served = len(os.listdir("/proc/self/fd")), Served()
    if name == "descriptors":
        assert (await stand.run(GOOD)).exit_reason is SUCCEEDED
    limits = replace(PLENTY, wall_seconds=1) if expected == {ExitReason.TIMEOUT} else PLENTY
    verdict = await stand.run(PRELUDE + f"    {body}\n", served, limits=limits)
    assert verdict.exit_reason in expected, verdict
    assert (await stand.run(GOOD)).exit_reason is SUCCEEDED
    assert faults == []
    assert sum(len(str(line.fields)) + len(line.text) for line in served.logs) < 4 * PLENTY.log_kb * 1024
    assert len(os.listdir("/proc/self/fd")) < open_before + 60


async def test_floods_leave_the_worker_small(stand: Bench) -> None:
    before = _resident_mb()
    floods = [body for name, (body, _) in FORGED.items() if "flood" in name]
    await asyncio.gather(*(stand.run(PRELUDE + f"    {body}\n", limits=PLENTY) for body in floods))
    assert _resident_mb() - before < 150


@pytest.mark.parametrize("name", TAMPERED)
async def test_tampering_at_import_gains_nothing(stand: Bench, name: str) -> None:
    source, expected = TAMPERED[name]
    faults: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    limits = replace(PLENTY, cpu_seconds=0.6) if expected == {ExitReason.CPU_LIMIT} else PLENTY
    scraper = stand.scraper(TAMPER + source + f"\n# {name}", limits)
    verdict = await stand.run(scraper)
    assert verdict.exit_reason in expected, verdict
    if verdict.exit_reason is SUCCEEDED:
        assert bytes(verdict.result or b"") == b'"held"'
    assert (await stand.run(GOOD)).exit_reason is SUCCEEDED
    assert faults == []


async def test_strays_are_found_and_killed(stand: Bench) -> None:
    source = (
        TAMPER + "walls.enclose_child = lambda *a: ([], [])\n"
        "def run(ctx):\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0: time.sleep(600)\n"
        "        os._exit(0)\n    os.wait(); return 'held'\n# strays"
    )
    scraper = stand.scraper(source, PLENTY)
    others = {pid for pid in descendants(os.getpid()) if pid not in _known(stand)}
    await stand.run(scraper)

    def unknown() -> set[int]:
        return set(descendants(os.getpid())) - _known(stand) - others

    await eventually(lambda: not unknown(), lambda: f"strays {unknown()}")
    assert (await stand.run(GOOD)).exit_reason is SUCCEEDED


def _known(stand: Bench) -> set[int]:
    sandbox = stand.sandbox
    known = {zygote.pid for zygote in sandbox._zygotes.values()}
    for parent in sandbox._by_number.values():
        known |= {parent.pid, *(child.pid for child in parent._children.values())}
    return known
