"""The life of a worker's browsers: one at a time takes contexts, and each ends when it is worn or idle."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.engines.browser.engine import contexts_by_memory
from scrapeyard.engines.browser.hosts import BrowserHosts
from scrapeyard.engines.browser.inside.launch import NoBrowser, launch
from scrapeyard.engines.browser.port import HostKind
from scrapeyard.engines.browser.wire import HostPlan
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import BrowserSettings
from tests.contract.sandboxes import eventually


class Host:
    """Stands for a process: only its life matters here."""

    def __init__(self, pid: int, language: str) -> None:
        self.pid = pid
        self.language = language
        self.is_alive = True
        self.megabytes = 100.0
        self.ended = 0

    async def memory_mb(self) -> float:
        return self.megabytes

    async def end(self) -> None:
        self.is_alive = False
        self.ended += 1


class Yard:
    def __init__(self, **settings: object) -> None:
        self.made: list[Host] = []
        self.fails = False
        self.lent: Any = None
        given = BrowserSettings.model_validate({"idle_seconds": 0.2, **settings})
        self.hosts = BrowserHosts(given, self._start)

    async def _start(self, kind: HostKind) -> Any:
        if self.fails:
            raise FetchFailed(ExitReason.BROWSER_UNAVAILABLE, "it does not start")
        self.made.append(Host(len(self.made), kind.language))
        return self.made[-1]

    async def take(self, language: str = "en-US") -> AsyncExitStack:
        stack = AsyncExitStack()
        self.lent = await stack.enter_async_context(self.hosts.lent(HostKind(language=language)))
        return stack


@pytest.fixture
async def yards() -> AsyncIterator[list[Yard]]:
    made: list[Yard] = []
    yield made
    for yard in made:
        await yard.hosts.stop()
        await yard.hosts.stop()
        assert all(host.ended for host in yard.made), "a browser is left"


async def started(yards: list[Yard], **settings: object) -> Yard:
    yards.append(Yard(**settings))
    await yards[-1].hosts.start()
    return yards[-1]


async def test_contexts_share_a_browser_that_starts_on_need_and_stops_when_idle(yards: list[Yard]) -> None:
    yard = await started(yards)
    assert not yard.made
    one, other = await yard.take(), await yard.take()
    assert len(yard.made) == 1
    await one.aclose()
    await other.aclose()
    await eventually(lambda: yard.made[0].ended == 1)
    await (await yard.take()).aclose()
    assert len(yard.made) == 2


async def test_a_worn_browser_keeps_its_contexts_and_takes_no_more(yards: list[Yard]) -> None:
    yard = await started(yards, contexts_each=2, idle_seconds=60)
    one, two = await yard.take(), await yard.take()
    three = await yard.take()
    assert [host.ended for host in yard.made] == [0, 0]
    await one.aclose()
    assert yard.made[0].ended == 0
    await two.aclose()
    assert [host.ended for host in yard.made] == [1, 0]
    await three.aclose()


async def test_a_dead_browser_is_replaced(yards: list[Yard]) -> None:
    yard = await started(yards, idle_seconds=60)
    one = await yard.take()
    yard.made[0].is_alive = False
    other = await yard.take()
    assert len(yard.made) == 2
    await one.aclose()
    await other.aclose()


async def test_a_browser_that_grew_is_replaced(yards: list[Yard]) -> None:
    yard = await started(yards, idle_seconds=0.4, memory_mb=256)
    one = await yard.take()
    yard.made[0].megabytes = 300
    await eventually(lambda: len(yard.hosts.pids) == 1 and not yard.hosts._current)
    await one.aclose()
    assert yard.made[0].ended == 1


async def test_one_that_does_not_start_is_told_and_tried_again_later(yards: list[Yard]) -> None:
    yard = await started(yards)
    yard.fails = True
    for _ in range(2):
        with pytest.raises(FetchFailed, match="does not start"):
            await yard.take()
    yard.fails = False
    with pytest.raises(FetchFailed, match="does not start"):
        await yard.take()
    yard.hosts._failed.clear()
    await (await yard.take()).aclose()


@pytest.mark.parametrize(
    ("limit", "contexts"),
    [(None, 51), ("max", 51), (str(2**31), 6), (str(2**30), 2)],
    ids=["no", "max", "2 GB", "full"],
)
def test_contexts_fit_into_the_memory_of_machine_and_container(
    tmp_path: Path, limit: str | None, contexts: int
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(f"MemTotal: {16 * 2**20} kB\nMemAvailable: {8 * 2**20} kB\n")
    if limit is not None:
        (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
        (tmp_path / "sys/fs/cgroup/memory.max").write_text(f"{limit}\n")
        (tmp_path / "sys/fs/cgroup/memory.current").write_text(f"{2**30}\n")
    assert contexts_by_memory(tmp_path) == contexts


async def test_others_than_chromium_need_a_network_namespace() -> None:
    plan = HostPlan(
        driver="playwright",
        name="firefox",
        executable="",
        sandbox="auto",
        namespace="auto",
        arguments=(),
        socket="",
        folder="",
        language="en-US",
    )
    with pytest.raises(NoBrowser, match="firefox needs a network namespace"):
        await launch(plan, 1, "not permitted")


async def test_each_language_has_a_browser_of_its_own_up_to_four(yards: list[Yard]) -> None:
    yard = await started(yards, idle_seconds=60)
    held = [await yard.take(language) for language in ("en-US", "de-DE", "ko-KR", "ja-JP", "de-DE")]
    assert [host.language for host in yard.made] == ["en-US", "de-DE", "ko-KR", "ja-JP"]
    fifth = await yard.take("fr-FR")
    assert yard.lent.language == "en-US", "all are in use: the usual one serves"
    await held[2].aclose()
    sixth = await yard.take("fr-FR")
    assert (yard.lent.language, yard.made[2].ended) == ("fr-FR", 1)
    for each in (*held, fifth, sixth):
        await each.aclose()
