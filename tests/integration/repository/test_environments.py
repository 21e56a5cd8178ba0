"""Environments as uv really builds them, from wheels that the tests write, without a network."""

import asyncio
import contextlib
import fcntl
import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.model import Environment, EnvironmentStatus, Scraper, ScraperRef
from scrapeyard.repository.environments.environments import Environments
from scrapeyard.repository.environments.store import EnvironmentStore
from scrapeyard.settings import EnvironmentSettings
from tests.leaks import PATIENCE, descendants, killed_after, living, until
from tests.services.package_index import PackageIndex, serve_packages
from tests.services.wheels import write_wheel

PROJECT = Path(__file__).parents[3]


class Stand(Struct, frozen=True):
    """A folder of wheels, a folder of environments, and scrapers that require things."""

    folder: Path

    @property
    def wheels(self) -> Path:
        return self.folder / "wheels"

    @property
    def place(self) -> Path:
        return self.folder / "environments"

    def scraper(self, *requirements: str, lock: str = "") -> Scraper:
        name = re.sub(r"\W", "-", "".join(requirements) + lock)[:50] or "none"
        folder = self.folder / "scrapers" / name
        folder.mkdir(parents=True, exist_ok=True)
        if lock:
            (folder / "requirements.lock").write_text(lock)
        ref = ScraperRef(id="test/case", version="1.0.0", digest=f"{requirements}{lock}")
        return Scraper(ref=ref, folder=folder, requirements=requirements)

    @contextlib.asynccontextmanager
    async def open(self, **settings: object) -> AsyncIterator[Environments]:
        given = {"find_links": (str(self.wheels),), "offline": True, **settings}
        environments = Environments(EnvironmentSettings.model_validate(given), self.place)
        await environments.start()
        try:
            yield environments
        finally:
            await environments.stop()
            await environments.stop()

    def folders(self) -> set[str]:
        """Environments, and whatever was left behind."""
        known = {"locks", "turns", "uv"}
        return {each.name for each in self.place.iterdir() if each.name not in known}


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    made = Stand(tmp_path)
    write_wheel(made.wheels, "tiny", "1.0", {"tiny/__init__.py": "VERSION = 1\n"})
    write_wheel(made.wheels, "tiny", "2.0", {"tiny/__init__.py": "VERSION = 2\n"})
    write_wheel(made.wheels, "needy", "1.0", {"needy.py": ""}, requires=("tiny>=2",))
    write_wheel(made.wheels, "greedy", "1.0", {f"greedy/{n}.txt": os.urandom(200_000) for n in range(10)})
    before = {each.pid for each in descendants(os.getpid())}
    yield made

    def left() -> list[str]:
        return [each.words for each in living(descendants(os.getpid())) if each.pid not in before]

    until(lambda: not left(), f"no process outlives its build: {left()}")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """uv gives up neither a download that a test holds back nor one that a busy machine is slow to bring."""
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "600")


@pytest.fixture
def index(stand: Stand) -> Iterator[PackageIndex]:
    with serve_packages(stand.wheels) as served:
        yield served


def online(index: PackageIndex) -> dict[str, object]:
    return {"find_links": (), "offline": False, "index_url": index.url}


async def test_wheels_come_from_every_folder_whatever_its_name(stand: Stand) -> None:
    odd = stand.folder / "odd, name"
    write_wheel(odd, "rare", "1.0", {"rare.py": ""})
    async with stand.open(find_links=(str(stand.wheels), str(odd))) as environments:
        assert await environments.ready(stand.scraper("rare", "tiny==1.0")) is not None


async def test_a_package_without_a_wheel_is_refused_and_none_of_its_code_runs(stand: Stand) -> None:
    marker = stand.folder / "ran"
    setup = f"open({str(marker)!r}, 'w')\nfrom setuptools import setup\nsetup(name='built', version='1.0')\n"
    with tarfile.open(stand.wheels / "built-1.0.tar.gz", "w:gz") as archive:
        for name, text in (("setup.py", setup), ("PKG-INFO", "Metadata-Version: 2.1\nName: built\nVersion: 1.0\n")):
            member = tarfile.TarInfo(f"built-1.0/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    async with stand.open() as environments:
        with pytest.raises(ScraperInvalid, match="wheel"):
            await environments.ready(stand.scraper("built"))
    assert not marker.exists()


async def test_a_scraper_that_requires_nothing_has_the_base(stand: Stand) -> None:
    async with stand.open() as environments:
        scraper = stand.scraper()
        assert await environments.ready(scraper) is None
        assert environments.at_hand(scraper) is None
        assert not environments.requires(scraper)
        assert environments.state(scraper).status is EnvironmentStatus.NONE


async def test_requirements_are_installed_with_what_they_need(stand: Stand) -> None:
    began = time.time()
    async with stand.open() as environments:
        scraper = stand.scraper("needy")
        assert environments.state(scraper).status is EnvironmentStatus.WAITING
        built = await environments.ready(scraper)
        assert built is not None
        assert environments.at_hand(scraper) == built
        state = environments.state(scraper)
    there = {each.name for each in built.packages.iterdir()}
    assert {"needy.py", "tiny", "selectolax"} <= there
    assert "VERSION = 2" in (built.packages / "tiny/__init__.py").read_text()
    assert list((built.packages / "tiny/__pycache__").glob("*.pyc")), "a walled script could not write them"
    assert state.status is EnvironmentStatus.READY
    assert state.key == built.key
    assert state.size_bytes > 1_000_000
    assert began <= (state.built_at or 0) <= time.time()


async def test_nothing_in_an_environment_may_be_written(stand: Stand) -> None:
    async with stand.open() as environments:
        built = await environments.ready(stand.scraper("tiny"))
    assert built is not None
    for each in built.packages.rglob("*"):
        mode = each.stat().st_mode & 0o777
        assert mode == 0o755 if each.is_dir() else mode in (0o444, 0o555), each


async def test_equal_locks_share_one_environment(stand: Stand) -> None:
    async with stand.open() as environments:
        some = [stand.scraper("tiny==1.0"), stand.scraper("tiny<2"), stand.scraper("tiny <2", "tiny==1.0")]
        built = [await environments.ready(each) for each in some]
    assert built[0] == built[1] == built[2]
    assert len(stand.folders()) == 1


async def test_a_restart_needs_neither_index_nor_resolver(stand: Stand) -> None:
    async with stand.open() as environments:
        first = await environments.ready(stand.scraper("tiny"))
    for wheel in stand.wheels.iterdir():
        wheel.unlink()
    async with stand.open() as environments:
        assert await environments.ready(stand.scraper("tiny")) == first


async def test_a_lock_of_the_scrapers_own_is_used_as_it_is(stand: Stand) -> None:
    async with stand.open() as environments:
        await environments.ready(stand.scraper("tiny==1.0"))
        (kept,) = (stand.place / "locks").iterdir()
        text = "# made by its author\n" + kept.read_text()
        built = await environments.ready(stand.scraper("tiny>=2", lock=text))
    assert built is not None
    assert "VERSION = 1" in (built.packages / "tiny/__init__.py").read_text()


@pytest.mark.parametrize(
    "lock",
    [
        "tiny==1.0\n",
        "tiny>=1.0 --hash=sha256:" + "0" * 64,
        "--index-url http://127.0.0.1/\n",
        "-r /etc/passwd\n",
        "tiny @ file:///etc/passwd --hash=sha256:" + "0" * 64,
        "./tiny-1.0-py3-none-any.whl --hash=sha256:" + "0" * 64,
        "x" * 2_000_000,
    ],
)
async def test_a_lock_that_reaches_out_is_refused(stand: Stand, lock: str) -> None:
    async with stand.open() as environments:
        scraper = stand.scraper("tiny", lock=lock)
        with pytest.raises(ScraperInvalid, match=r"requirements\.lock"):
            await environments.ready(scraper)
        assert environments.state(scraper).status is EnvironmentStatus.FAILED


async def test_a_lock_whose_hash_is_not_the_wheels_is_refused(stand: Stand) -> None:
    async with stand.open() as environments:
        with pytest.raises(ScraperInvalid, match=r"(?i)hash"):
            await environments.ready(stand.scraper("tiny", lock=f"tiny==1.0 --hash=sha256:{'0' * 64}"))
    assert stand.folders() == set()


async def test_what_cannot_be_resolved_is_told_in_the_resolvers_words(stand: Stand) -> None:
    async with stand.open() as environments:
        scraper = stand.scraper("needy", "tiny==1.0")
        with pytest.raises(ScraperInvalid) as caught:
            await environments.ready(scraper)
        state = environments.state(scraper)
        assert await environments.ready(stand.scraper("tiny")) is not None, "others are built all the same"
    assert "unsatisfiable" in caught.value.message
    assert "needy" in caught.value.message
    assert str(stand.folder) not in caught.value.message
    assert state.status is EnvironmentStatus.FAILED
    assert "unsatisfiable" in state.problem


async def test_a_package_that_the_sdk_cannot_work_with_is_a_conflict(stand: Stand) -> None:
    write_wheel(stand.wheels, "selectolax", "0.0.1", {"selectolax/__init__.py": ""})
    async with stand.open() as environments:
        with pytest.raises(ScraperInvalid, match=r"selectolax==0\.0\.1"):
            await environments.ready(stand.scraper("selectolax==0.0.1"))


async def test_a_failure_is_remembered_then_tried_again(stand: Stand) -> None:
    async with stand.open(retry_seconds=3600) as environments:
        scraper = stand.scraper("late")
        with pytest.raises(ScraperInvalid):
            await environments.ready(scraper)
        write_wheel(stand.wheels, "late", "1.0", {"late.py": ""})
        with pytest.raises(ScraperInvalid):
            await environments.ready(scraper)
    async with stand.open(retry_seconds=0.001) as environments:
        assert await environments.ready(scraper) is not None


async def test_an_index_that_is_down_is_told_without_its_address(stand: Stand, index: PackageIndex) -> None:
    async with stand.open(**online(index)) as environments:
        with pytest.raises(ScraperInvalid) as caught:
            await environments.ready(stand.scraper("nowhere"))
    assert "nowhere" in caught.value.message
    for hidden in ("hidden-password", "127.0.0.1", "://"):
        assert hidden not in caught.value.message


async def test_a_build_that_takes_too_long_is_killed(stand: Stand, index: PackageIndex) -> None:
    index.gate.clear()
    async with stand.open(**online(index), build_seconds=1) as environments:
        with pytest.raises(SourceUnavailable, match="build_seconds"):
            await environments.ready(stand.scraper("tiny"))
    assert not index.gate.is_set(), "it would have waited for ever"
    assert stand.folders() == set()


async def test_one_that_is_too_large_is_refused(stand: Stand) -> None:
    async with stand.open(max_mb=1) as environments:
        with pytest.raises(ScraperInvalid, match="MB"):
            await environments.ready(stand.scraper("greedy"))
    assert stand.folders() == set()


async def test_a_wheel_that_swells_is_stopped_while_it_is_unpacked(stand: Stand) -> None:
    write_wheel(stand.wheels, "bomb", "1.0", {"bomb.bin": bytes(64 << 20)})
    async with stand.open(max_mb=20) as environments:
        with pytest.raises(ScraperInvalid, match=r"MB|large"):
            await environments.ready(stand.scraper("bomb"))
    assert stand.folders() == set()
    assert sum(each.stat().st_size for each in (stand.place / "uv").rglob("*") if each.is_file()) < 1 << 20


async def test_wanting_builds_in_the_background_and_a_waiting_run_goes_first(stand: Stand, index: PackageIndex) -> None:
    for number in range(5):
        write_wheel(stand.wheels, f"calm{number}", "1.0", {f"calm{number}.py": ""})
    async with stand.open(**online(index)) as environments:
        for number in range(5):
            environments.want(stand.scraper(f"calm{number}"))
        assert await environments.ready(stand.scraper("tiny==1.0")) is not None
        calm = [environments.state(stand.scraper(f"calm{number}")).status for number in range(5)]
        assert calm.count(EnvironmentStatus.READY) <= 2
        for number in range(5):
            assert await environments.ready(stand.scraper(f"calm{number}")) is not None


async def test_whoever_waits_may_leave_and_the_build_goes_on(stand: Stand, index: PackageIndex) -> None:
    index.gate.clear()
    async with stand.open(**online(index)) as environments:
        scraper = stand.scraper("tiny")
        waiting = asyncio.create_task(environments.ready(scraper))
        await asyncio.to_thread(index.asked.wait, PATIENCE)
        assert environments.state(scraper).status is EnvironmentStatus.BUILDING
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        index.gate.set()
        assert await environments.ready(scraper) is not None
    assert index.downloads.count("tiny-2.0-py3-none-any.whl") <= 2, "once to read what it needs, once to install"


async def test_stopping_ends_a_build_and_whoever_waits(stand: Stand, index: PackageIndex) -> None:
    index.gate.clear()
    async with stand.open(**online(index)) as environments:
        waiting = asyncio.create_task(environments.ready(stand.scraper("tiny")))
        later = asyncio.create_task(environments.ready(stand.scraper("needy")))
        await asyncio.to_thread(index.asked.wait, PATIENCE)
        await environments.stop()
        assert not index.gate.is_set(), "it did not wait for the build"
        for task in (waiting, later):
            with pytest.raises(SourceUnavailable, match="stopped"):
                await task
    assert stand.folders() == set()


BUILDER = """
import asyncio, sys
from pathlib import Path
from scrapeyard.model import Scraper, ScraperRef
from scrapeyard.repository.environments.environments import Environments
from scrapeyard.settings import EnvironmentSettings

async def main():
    environments = Environments(EnvironmentSettings(index_url=sys.argv[1]), Path(sys.argv[2]))
    await environments.start()
    ref = ScraperRef(id="a/b", version="1.0.0", digest="x")
    print((await environments.ready(Scraper(ref=ref, folder=Path(sys.argv[3]), requirements=("tiny",)))).key)
    await environments.stop()

asyncio.run(main())
"""


@contextlib.contextmanager
def builder(stand: Stand, index: PackageIndex) -> Iterator[subprocess.Popen[str]]:
    empty = stand.folder / "empty"
    empty.mkdir(exist_ok=True)
    command = [sys.executable, "-c", BUILDER, index.url, str(stand.place), str(empty)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=PROJECT)
    with killed_after(process):
        yield process


def test_a_build_that_begins_is_not_taken_for_rubbish(stand: Stand) -> None:
    shelf, others = EnvironmentStore(stand.place), EnvironmentStore(stand.place)
    shelf.open()
    ended = threading.Event()

    def tidy() -> None:
        while not ended.is_set():
            others.remove_rubbish()

    threads = [threading.Thread(target=tidy) for _ in range(3)]
    for thread in threads:
        thread.start()
    lost = 0
    try:
        for _ in range(100):
            with shelf.workbench() as bench:
                lost += not bench.is_dir()
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert lost == 0
    assert stand.folders() == set()


async def test_a_builder_killed_midway_leaves_only_rubbish(stand: Stand, index: PackageIndex) -> None:
    index.gate.clear()
    with builder(stand, index) as process:
        assert await asyncio.to_thread(index.asked.wait, PATIENCE)
        family = descendants(process.pid)
        assert any("uv" in each.words for each in family)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        await asyncio.to_thread(until, lambda: not living(family), "uv dies with its builder")
    assert all(name.startswith(".new-") for name in stand.folders())
    index.gate.set()
    async with stand.open(**online(index)) as environments:
        assert await environments.ready(stand.scraper("tiny")) is not None
    (left,) = stand.folders()
    assert not left.startswith(".")


async def test_two_processes_build_it_once(stand: Stand, index: PackageIndex) -> None:
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(builder(stand, index)) for _ in range(3)]
        keys = {(await asyncio.to_thread(each.communicate))[0].split()[-1] for each in processes}
    assert [each.returncode for each in processes] == [0, 0, 0]
    assert stand.folders() == keys
    assert len(index.downloads) <= 2, index.downloads


async def test_a_damaged_environment_is_built_again(stand: Stand) -> None:
    async with stand.open() as environments:
        built = await environments.ready(stand.scraper("tiny"))
    assert built is not None
    (built.packages / "tiny/__init__.py").unlink()
    async with stand.open() as environments:
        again = await environments.ready(stand.scraper("tiny"))
    assert again == built
    assert (built.packages / "tiny/__init__.py").exists()


def aged(environment: Environment | None) -> Environment:
    """As if it had been asked for an hour ago."""
    assert environment is not None
    os.utime(environment.marker, (time.time() - 3600,) * 2)
    return environment


async def test_the_least_recently_used_makes_room(stand: Stand) -> None:
    async with stand.open() as environments:
        old = aged(await environments.ready(stand.scraper("tiny==1.0")))
        size = json.loads(old.marker.read_bytes())["extent"]["size_bytes"]
    async with stand.open(cache_mb=1.5 * size / (1 << 20)) as environments:
        new = await environments.ready(stand.scraper("tiny==2.0"))
        assert new is not None
        assert stand.folders() == {new.key}
        assert await environments.ready(stand.scraper("tiny==1.0")) == old, "and is built again when it is called"


async def test_one_that_is_in_use_stays(stand: Stand) -> None:
    async with stand.open() as environments:
        old = aged(await environments.ready(stand.scraper("tiny==1.0")))
        new = aged(await environments.ready(stand.scraper("tiny==2.0")))
    shelf = EnvironmentStore(stand.place)
    with old.marker.open() as lease:
        fcntl.flock(lease, fcntl.LOCK_SH)
        assert shelf.make_room(0) == [new.key]
    assert stand.folders() == {old.key}
    assert shelf.make_room(0) == [old.key]


async def test_one_that_another_process_removed_is_built_again(stand: Stand) -> None:
    async with stand.open() as environments:
        scraper = stand.scraper("tiny")
        built = aged(await environments.ready(scraper))
        assert EnvironmentStore(stand.place).make_room(0) == [built.key]
        assert environments.at_hand(scraper) is None
        assert await environments.ready(scraper) == built


async def test_the_builder_sees_no_secret_of_the_worker(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_WORKER", "x")
    monkeypatch.setenv("UV_INDEX_STRATEGY", "first-index")
    from scrapeyard.repository.environments.uv import Uv

    given = Uv(EnvironmentSettings(), stand.place)._environment(os.environ)
    assert "SECRET_OF_THE_WORKER" not in given
    assert given["UV_INDEX_STRATEGY"] == "first-index"
    assert set(given) >= {"PATH", "UV_CACHE_DIR", "UV_SYSTEM_CERTS"}
