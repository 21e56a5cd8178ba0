"""The process of the browser: it is shut in, and nothing of it outlives its worker."""

import asyncio
import importlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scrapeyard.engines.browser import operations as do
from scrapeyard.engines.browser.host import start_host
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import BrowserSettings
from tests.leaks import Process, descendants, killed_after, living, until
from tests.services.browser import found_browser, hosted, opened
from tests.services.static_site import StaticSite

pytestmark = pytest.mark.browser
WORKER = """
import asyncio, sys
from pathlib import Path
from scrapeyard.engines.browser.host import start_host
from scrapeyard.settings import BrowserSettings

async def main():
    host = await start_host(BrowserSettings(namespace=sys.argv[2]), "/nowhere", Path(sys.argv[1]))
    print(host.pid, flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""


def _named(pid: int, words: str) -> Process:
    return next(each for each in descendants(pid) if words in each.words and "--type=" not in each.words)


async def _gone(some: list[Process]) -> None:
    await asyncio.to_thread(until, lambda: not living(some), f"all ends: {[each.words for each in living(some)]}")


async def test_the_browser_has_no_network_but_the_proxy(short_path: Path, static_site: StaticSite) -> None:
    (static_site.folder / "a.html").write_text("<!doctype html><p>x")
    async with hosted(short_path, driver="patchright") as (host, proxy):
        if host.facts.no_namespace:
            pytest.skip(f"no namespaces here: {host.facts.no_namespace}")
        browser = _named(host.pid, "chrom")
        assert os.readlink(f"/proc/{browser.pid}/ns/net") != os.readlink("/proc/self/ns/net")
        devices = Path(f"/proc/{browser.pid}/net/dev").read_text().splitlines()[2:]
        assert [line.split(":")[0].strip() for line in devices] == ["lo"]
        async with opened(host) as page, opened(host) as other:
            for each in (page, other):
                await each.do(do.Goto(url=static_site.url + "a.html"))
        assert {f"u{page.number}", f"u{other.number}"} <= {user for user, _, _ in proxy.asked}
        assert host.facts.no_sandbox == ""


@pytest.mark.parametrize("namespace", ["auto", "off"])
@pytest.mark.parametrize("victim", ["host", "node", "browser"])
async def test_whoever_is_killed_takes_all_along(short_path: Path, namespace: str, victim: str) -> None:
    async with hosted(short_path, namespace=namespace) as (host, _):
        everybody = descendants(host.pid)
        async with opened(host) as page:
            waiting = asyncio.create_task(page.fails(do.Evaluate(expression="new Promise(() => 0)")))
            pid = {"host": lambda: host.pid, "node": lambda: _named(host.pid, "cli.js").pid,
                   "browser": lambda: _named(host.pid, "/chrom").pid}[victim]()  # fmt: skip
            os.kill(pid, signal.SIGKILL)
            assert (await waiting).reason is ExitReason.BROWSER_CRASHED
            assert not host.is_alive
            with pytest.raises(FetchFailed):
                await host.perform(page.number, do.Content())
        await host.end()
        await _gone(everybody)
        assert list((short_path / "hosts").iterdir()) == []


@pytest.mark.parametrize("namespace", ["auto", "off"])
async def test_a_killed_worker_leaves_no_process(short_path: Path, namespace: str) -> None:
    found_browser()
    command = [sys.executable, "-c", WORKER, str(short_path / "hosts"), namespace]
    with killed_after(subprocess.Popen(command, stdout=subprocess.PIPE)) as worker:
        assert worker.stdout is not None
        await asyncio.to_thread(worker.stdout.readline)
        everybody = descendants(worker.pid)
        assert any("--type=" in each.words for each in everybody)
        worker.kill()
        await _gone(everybody)
    assert len(list((short_path / "hosts").iterdir())) == 1
    async with hosted(short_path) as (host, _):
        assert len(list((short_path / "hosts").iterdir())) == 1, "what the dead one left is removed"
        assert host.is_alive


@pytest.mark.parametrize("driver", ["patchright", "playwright"])
async def test_a_page_costs_one_process(short_path: Path, static_site: StaticSite, driver: str) -> None:
    """None is kept ready, and no window loads pages of its own."""
    (static_site.folder / "a.html").write_text("<!doctype html><p>x")
    arguments = ("--disable-features=NoStatePrefetch",)
    async with hosted(short_path, driver=driver, arguments=arguments) as (host, _), opened(host) as page:
        await page.do(do.Goto(url=static_site.url + "a.html"))
        await asyncio.to_thread(until, lambda: len(_renderers(host.pid)) == 1, "one process draws the page")
        started = Path(f"/proc/{_named(host.pid, '--user-data-dir').pid}/cmdline").read_text()
        disabled = started.rpartition("--disable-features=")[2].split("\0")[0].split(",")
        missing = _disabled_by(driver) - set(disabled) - {"MediaRouter", "TcpPortRandomizationWin"}
        assert {each for each in missing if not each.startswith("ms")} == set(), "of those that the driver disables"
        assert {"NoStatePrefetch", "SpareRendererForSitePerProcess"} <= set(disabled)


def _renderers(pid: int) -> list[Process]:
    return [each for each in descendants(pid) if "--type=renderer" in each.words]


def _disabled_by(driver: str) -> set[str]:
    """The features that it disables on its own; our list replaces its."""
    package = Path(importlib.import_module(driver).__file__ or "").parent
    listed = (package / "driver/package/lib/coreBundle.js").read_text().partition("disabledFeatures = [")[2]
    return set(re.findall(r'^ *"(\w+)"', listed.partition("]")[0], re.MULTILINE))


async def test_contexts_leave_nothing(short_path: Path, static_site: StaticSite) -> None:
    (static_site.folder / "a.html").write_text("<!doctype html><p>x")
    async with hosted(short_path) as (host, _):

        async def use(times: int) -> tuple[int, int, int]:
            for _ in range(times):
                async with opened(host) as page:
                    await page.do(do.Goto(url=static_site.url + "a.html"))
            return await asyncio.to_thread(_left, host.pid, short_path)

        before = await use(3)
        await use(12)
        await asyncio.to_thread(until, lambda: _is_flat(before, _left(host.pid, short_path)), f"it is flat: {before}")


def _is_flat(before: tuple[int, int, int], now: tuple[int, int, int]) -> bool:
    """The browser keeps a few processes ahead of need, and ends others a moment later."""
    return now[0] <= before[0] + 2 and now[1] <= before[1] + 10 and now[2] <= before[2] + 5


def _left(pid: int, folder: Path) -> tuple[int, int, int]:
    """Processes; descriptors of those whose number does not follow that of pages; folders."""
    processes = living(descendants(pid))
    lasting = [each for each in processes if "chrom" not in each.words or "NetworkService" in each.words]
    files = sum(len(os.listdir(f"/proc/{each.pid}/fd")) for each in lasting if each.lives)
    return len(processes), files, sum(path.is_dir() for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"executable": "/no/browser"}, "no program"),
        ({"enabled": False}, "off"),
        ({"name": "firefox"}, 'drives no firefox; set browser.driver = "playwright"'),
        ({"name": "webkit", "driver": "playwright"}, "browser install"),
        ({"executable": "/bin/true"}, "start"),
    ],
)
async def test_no_browser_says_why(short_path: Path, settings: dict[str, object], words: str) -> None:
    with pytest.raises(FetchFailed, match=words) as caught:
        await start_host(BrowserSettings(**settings), "/nowhere", short_path)  # type: ignore[arg-type]
    assert caught.value.reason is ExitReason.BROWSER_UNAVAILABLE
    assert list(short_path.iterdir()) == []
