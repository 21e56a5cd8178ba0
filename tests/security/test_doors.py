"""Every door out of a child, tried while a script runs and while it is loaded, through the whole platform."""

import asyncio
import json
import os
import platform
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.contract.sandboxes import CONFIGURATIONS, bench, eventually
from tests.security import doors
from tests.security.yard import PLENTY, Yard, yard

pytestmark = [pytest.mark.security, pytest.mark.asyncio(loop_scope="module")]
SECRET = "the-secret-nobody-may-see"
PROJECT = Path(__file__).parents[2]

if platform.machine() != "x86_64":
    pytest.skip("the doors are numbered for x86-64", allow_module_level=True)


class Listeners:
    """Doors of the host that somebody stands behind; whoever comes through is counted."""

    def __init__(self) -> None:
        self.abstract, self.datagram = f"scrapeyard-test-{os.getpid()}", f"scrapeyard-test-d-{os.getpid()}"
        self._folder = Path(tempfile.mkdtemp(prefix="d-"))  # a test's own folder may be too long for a socket's path
        self._folder.chmod(0o755)
        self.path, self.datagram_path = str(self._folder / "stream"), str(self._folder / "datagram")
        self._streams = [socket.create_server(("127.0.0.1", 0))]
        self._datagrams: list[socket.socket] = []
        self.port: int = self._streams[0].getsockname()[1]
        try:
            self._listen()
        except BaseException:
            self.close()
            raise

    def _listen(self) -> None:
        for address in ("\0" + self.abstract, self.path):
            self._streams.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            self._streams[-1].bind(address)
            self._streams[-1].listen()
        for address in ("\0" + self.datagram, self.datagram_path):
            self._datagrams.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            self._datagrams[-1].bind(address)
        for path in (self.path, self.datagram_path):
            os.chmod(path, 0o777)
        for listener in self._streams + self._datagrams:
            listener.setblocking(False)

    def visitors(self) -> list[str]:
        """Who came."""
        found = []
        for listener in self._streams:
            try:
                connection, _ = listener.accept()
            except BlockingIOError:
                continue
            connection.close()
            found.append(str(listener.getsockname()))
        for receiver in self._datagrams:
            try:
                receiver.recv(10)
            except BlockingIOError:
                continue
            found.append(str(receiver.getsockname()))
        return found

    def close(self) -> None:
        for listener in self._streams + self._datagrams:
            listener.close()
        shutil.rmtree(self._folder)


SLEEPER = """
import time
def run(ctx):
    open("private", "w").write("{secret}")
    ctx.log("hidden")
    time.sleep(600)
"""
SNOOPER = """
import glob, os
def run(ctx):
    found = [p for p in glob.glob("/scrapeyard/work/**", recursive=True) + glob.glob("/scrapeyard/work/*/*")
             if not p.startswith(os.getcwd()) and p.strip("/") != "scrapeyard/work"]
    for slot in range(40):
        for path in (f"/scrapeyard/work/{slot}/private", f"../{slot}/private"):
            try: found.append(open(path).read())
            except OSError: pass
            try: found.append(os.listdir(os.path.dirname(path)) if str(slot) != os.path.basename(os.getcwd()) else 0)
            except OSError: pass
    return [f for f in found if f]
"""
BOTH = SLEEPER.replace("def run(ctx):", "def sleeper(ctx):") + SNOOPER.replace("def run(ctx):", "def snooper(ctx):")
BOTH += "\ndef run(ctx, snoop: bool): return snooper(ctx) if snoop else sleeper(ctx)\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Yard]:
    folder = tmp_path_factory.mktemp("yard")
    os.environ["SECRET_OF_THE_WORKER"] = SECRET
    snoops: dict[str, tuple[str, dict[str, float]]] = {
        "both": (BOTH.replace("{secret}", SECRET), {}),
        "snooper": (SNOOPER, {}),
    }
    try:
        async with yard(folder, snoops) as made:
            yield made
    finally:
        del os.environ["SECRET_OF_THE_WORKER"]


def facts_of(listeners: Listeners, secret: Path, **more: object) -> dict[str, object]:
    return {
        "worker": os.getpid(),
        "port": listeners.port,
        "listener": listeners.port,
        "abstract": listeners.abstract,
        "datagram": listeners.datagram,
        "path": listeners.path,
        "datagram_path": listeners.datagram_path,
        "project": str(PROJECT),
        "home": os.environ.get("HOME", "/root"),
        "secret": str(secret),
        **more,
    }


@pytest.mark.parametrize("moment", ["run", "import"])
async def test_every_door_is_shut_without_namespaces_too(tmp_path: Path, moment: str) -> None:
    """Before the others: it looks at what it leaves behind, and a platform in this process would be in its way."""
    secret, data, scrapers = tmp_path / "secret", tmp_path / "data", tmp_path / "scrapers"
    for file in (secret, data / "scrapeyard.db", scrapers / "attack" / "good" / "scraper.py"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(SECRET)
    listeners = Listeners()
    try:
        async with bench(CONFIGURATIONS[1]) as weaker:
            zygote = weaker.sandbox._zygotes[""].pid
            facts = facts_of(listeners, secret, zygote=zygote, data=str(data), scrapers=str(scrapers))
            verdict = await weaker.run(doors.script(facts, at_import=moment == "import"), limits=PLENTY)
        assert verdict.result is not None, verdict
        found = json.loads(bytes(verdict.result))
        del found["namespace file"]  # it can be opened there, and neither read nor entered
        assert {name: words for name, words in found.items() if not words.startswith("refused")} == {}
        assert listeners.visitors() == []
    finally:
        listeners.close()


@pytest.mark.parametrize("moment", ["run", "import"])
async def test_every_door_is_shut(stand: Yard, tmp_path: Path, moment: str) -> None:
    listeners, secret = Listeners(), tmp_path / "secret"
    secret.write_text(SECRET)
    interpreter = Path(os.__file__)
    before = (interpreter.stat().st_mode, interpreter.stat().st_size)
    try:
        facts = facts_of(
            listeners,
            secret,
            zygote=stand.sandbox._zygotes[""].pid,
            port=stand.port,
            data=str(stand.data_dir),
            scrapers=str(stand.scrapers),
        )
        name = stand.write(f"doors-{moment}", doors.script(facts, at_import=moment == "import"))
        await stand.refresh()
        told = await stand.run(name)
        assert told.get("exit_reason") == "succeeded", told
        found: dict[str, Any] = told["result"]
        assert {name: words for name, words in found.items() if not words.startswith("refused")} == {}
        assert SECRET not in str(told)
        assert listeners.visitors() == []
    finally:
        listeners.close()
    assert (interpreter.stat().st_mode, interpreter.stat().st_size) == before
    assert not list(Path("/tmp").glob("scrapeyard-was-here"))
    await stand.check()


@pytest.mark.parametrize("spy", ["attack/both", "attack/snooper"])
async def test_another_runs_folder_is_out_of_reach(stand: Yard, spy: str) -> None:
    sleeper = asyncio.create_task(stand.run("attack/both", snoop=False))
    try:
        await eventually(lambda: sleeper.done() or _someone_sleeps(stand))
        assert not sleeper.done(), sleeper.result()
        told = await stand.run(spy, **({"snoop": True} if spy == "attack/both" else {}))
        assert told["result"] == []
    finally:
        sleeper.cancel()
        await asyncio.gather(sleeper, return_exceptions=True)
    await eventually(lambda: not _someone_sleeps(stand))
    await stand.check()


def _someone_sleeps(stand: Yard) -> bool:
    return any(
        Path(f"{parent.run_folder(session.child.slot)}/private").exists()
        for session, (_, parent) in stand.sandbox._watch._sessions.items()
    )


async def test_what_is_allowed_still_works(stand: Yard) -> None:
    name = stand.write(
        "allowed",
        """
import asyncio, concurrent.futures, os, shutil, socket, tempfile, threading, sqlite3, ssl, time, zoneinfo
def run(ctx):
    one, two = socket.socketpair()
    one.send(b"hi")
    with tempfile.TemporaryDirectory() as folder:
        open(folder + "/a", "w").write("x")
        shutil.copytree(folder, "copy")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        squares = list(pool.map(lambda n: n * n, range(4)))
    base = sqlite3.connect("base.db")
    base.execute("create table t (a)")
    base.commit()
    async def wait():
        await asyncio.sleep(0.01)
        return await asyncio.to_thread(lambda: 5)
    return [two.recv(2).decode(), os.listdir("copy"), squares, asyncio.run(wait()), len(os.urandom(4)),
            os.cpu_count() > 0,
            str(zoneinfo.ZoneInfo("Asia/Seoul")), time.tzname[0] != ""]
""",
    )
    await stand.refresh()
    told = await stand.run(name)
    assert told.get("result") == ["hi", ["a"], [0, 1, 4, 9], 5, 4, True, "Asia/Seoul", True], told
