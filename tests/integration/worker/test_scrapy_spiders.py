"""Scrapy projects as scrapers: imported, run in the sandbox with packages of their own, compared with Scrapy itself."""

import asyncio
import json
import shutil
import sqlite3
import sys
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from scrapeyard.cli.runs.local import LocalYard, open_yard
from scrapeyard.model import ExitReason, Outcome
from scrapeyard.repository.scrapy.project import read_project
from scrapeyard.repository.scrapy.scrapers import write_scrapers
from scrapeyard.settings import Settings
from tests.integration.worker.test_county_example import county
from tests.services.scrapy_wheels import pack_installed

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROOT = Path(__file__).parents[3]
PROJECTS = {"shelves": "shelf", "products": "product", "members": "account", "prices": "prices"}
"""Spider by project. The last one reads a file of its folder, so plain Scrapy works there."""

UNRULY = """
import scrapy
from twisted.internet import reactor


class UnrulySpider(scrapy.Spider):
    name = "unruly"
    custom_settings = {"ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1}, "FILES_STORE": "files"}

    async def start(self):
        if self.way == "start":
            raise RuntimeError("no start")
        assert reactor.running
        for number in range(1, 13):
            yield scrapy.Request(f"{self.shop}/product/{number}")
        if self.way in ("status", "refused"):
            for number in range(1 if self.way == "status" else 5):
                yield scrapy.Request(f"{self.shop}/status/403?{number}")
        if self.way == "gone":
            yield scrapy.Request(f"{self.shop}/status/404")
        if self.way == "elsewhere":
            yield scrapy.Request("http://127.0.0.1:9/", errback=self.lost)

    def parse(self, response):
        if self.way == "few" and response.url.endswith("/1"):
            raise KeyError("one of many")
        if self.way == "all":
            raise KeyError("each of them")
        files = {"no file": ["/status/404"], "bad file": ["/status/403"]}.get(self.way, [])
        item = {"name": response.css("h1::text").get(), "kind": type(self.pages).__name__}
        yield {**item, "file_urls": [f"{self.shop}{path}?{response.url[-1]}" for path in files]}

    def lost(self, failure):
        yield {"name": "lost", "kind": type(failure.value).__name__}
"""


@dataclass
class SpiderYard:
    """A worker with a practice shop."""

    yard: LocalYard
    shop: str
    folder: Path

    def project(self, name: str) -> Path:
        """A copy of an example, made for this shop."""
        target = self.folder / name
        shutil.copytree(ROOT / "examples" / "scrapy" / name, target)
        for path in target.rglob("*.py"):
            path.write_text(path.read_text().replace("http://127.0.0.1:8800", self.shop))
        return target

    async def run(self, folder: Path, **given: Any) -> Outcome:
        scraper = self.yard.load(folder)
        _, outcome = await self.yard.run(scraper, self.yard.check(scraper, given))
        return outcome

    async def artifact(self, outcome: Outcome, name: str) -> bytes:
        (kept,) = [each for each in outcome.artifacts if each.name == name]
        return await self.yard.blobs.get(kept.key)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def spiders(tmp_path_factory: pytest.TempPathFactory, real_servers: None) -> AsyncIterator[SpiderYard]:
    folder = tmp_path_factory.mktemp("scrapy")
    folder.chmod(0o755)
    wheels = await asyncio.to_thread(pack_installed, ("scrapy", "itemadapter"), folder / "wheels")
    given = {
        "data_dir": folder / "data",
        "http": {"allow_private": True},
        "environments": {"find_links": (wheels,), "offline": True},
    }
    (folder / "data").mkdir(mode=0o755)
    async with county() as shop, open_yard(Settings.model_validate(given)) as yard:
        yield SpiderYard(yard, shop, folder)
    shutil.rmtree(folder)  # with its environments, for which a small disk has no room beside others


async def _plain(projects: dict[str, Path]) -> dict[str, Any]:
    """The items under Scrapy itself."""
    pairs = [part for name, place in projects.items() for part in (str(place), PROJECTS[name])]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.services.plain_scrapy", *pairs), cwd=ROOT, stdout=-1, stderr=-1
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()[-3000:]
    return dict(zip(projects, json.loads(out), strict=True))


def _sorted(items: list[Any]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in items)


async def test_projects_give_the_same_items_as_under_scrapy(spiders: SpiderYard) -> None:
    projects = {name: spiders.project(name) for name in PROJECTS}
    expected = await _plain({name: shutil.copytree(place, f"{place}-plain") for name, place in projects.items()})
    outcomes = {}
    for name, place in projects.items():
        done = await asyncio.to_thread(write_scrapers, read_project(place), spiders.folder / "scrapers")
        assert done.scrapers == (f"{name}/{PROJECTS[name]}",)
        outcomes[name] = await spiders.run(done.folders[0])
        assert outcomes[name].exit_reason is ExitReason.SUCCEEDED, outcomes[name].error
        found = msgspec.json.decode(await spiders.yard.result(outcomes[name]))
        assert len(found) > 4
        assert _sorted(found) == _sorted(expected[name])
    await _check_files(spiders, outcomes["prices"], len(expected["prices"]))


async def _check_files(spiders: SpiderYard, outcome: Outcome, items: int) -> None:
    """What pipelines, exporters and feeds wrote, and what the crawl reports of itself."""
    assert [each.name for each in outcome.artifacts] == [
        *("out.zip", "prices.csv", "prices.db", "prices.xml", "scrapy.json")
    ]
    place = spiders.folder / "prices.db"
    place.write_bytes(await spiders.artifact(outcome, "prices.db"))
    connection = sqlite3.connect(place)
    assert connection.execute("SELECT count(*) FROM price").fetchone() == (items,)
    connection.close()
    assert len((await spiders.artifact(outcome, "prices.csv")).splitlines()) == items + 1
    (spiders.folder / "out.zip").write_bytes(await spiders.artifact(outcome, "out.zip"))
    with zipfile.ZipFile(spiders.folder / "out.zip") as archive:
        assert len(archive.read("out/prices.jsonl").splitlines()) == items
    report = json.loads(await spiders.artifact(outcome, "scrapy.json"))
    assert report["stats"]["item_scraped_count"] == items
    assert (report["reason"], report["errors"], len(report["items_dropped"])) == ("finished", [], 80 - items)


async def test_the_crawler_of_the_guide_runs(spiders: SpiderYard) -> None:
    """It finds Crawlee among the packages of this machine."""
    guide = (ROOT / "docs" / "crawlee.md").read_text()
    toml, script = (guide.partition(f"```{kind}\n")[2].partition("```")[0] for kind in ("toml", "python"))
    folder = spiders.folder / "scrapers" / "crawlee"
    folder.mkdir(parents=True)
    (folder / "scraper.py").write_text(script)
    (folder / "scraper.toml").write_text(toml.replace('requirements = ["crawlee[parsel]==1.11.*"]', ""))
    outcome = await spiders.run(folder, url=f"{spiders.shop}/category/toys")
    assert outcome.exit_reason is ExitReason.SUCCEEDED, outcome.error
    assert len(msgspec.json.decode(await spiders.yard.result(outcome))) == 40


async def test_failures_of_a_crawl_are_told(spiders: SpiderYard) -> None:
    """One scraper for all ways: its parent imports Scrapy once."""
    (spiders.folder / "unruly.py").write_text(UNRULY)
    done = write_scrapers(read_project(spiders.folder / "unruly.py"), spiders.folder / "scrapers")
    given = {"shop": spiders.shop, "pages": 3}

    async def crawl(way: str, **more: Any) -> tuple[str, int, str]:
        outcome = await spiders.run(done.folders[0], **given, way=way, **more)
        items = msgspec.json.decode(await spiders.yard.result(outcome)) or []
        assert all(item["kind"] == "str" for item in items if item["name"] != "lost"), "as with -a"
        return str(outcome.exit_reason), len(items), outcome.error.message if outcome.error else ""

    assert await crawl("good") == ("succeeded", 12, "")
    assert await crawl("few") == ("succeeded", 11, ""), "under a tenth failed: the log warns"
    assert await crawl("gone") == ("succeeded", 12, ""), "a page that is gone is no failure"
    assert await crawl("no file") == ("succeeded", 12, ""), "nor are files that are gone"
    quiet = {"settings": {"LOG_LEVEL": "ERROR"}}
    assert await crawl("no file", scrapy=quiet) == ("succeeded", 12, ""), "also where their warnings are not shown"
    reason, count, message = await crawl("bad file")
    assert (reason, count, message[:24]) == ("failed", 12, "10 failures on 22 pages,"), "files that are refused are"
    assert await crawl("status") == ("succeeded", 12, "")
    assert await crawl("elsewhere", scrapy={"settings": {"RETRY_ENABLED": False}}) == ("succeeded", 13, "")
    reason, count, message = await crawl("refused")
    assert (reason, count) == ("failed", 12)
    assert message == "5 failures on 17 pages, 5 by their status, and 12 items came"
    reason, count, message = await crawl("all")
    assert (reason, count) == ("failed", 0)
    assert message.startswith("12 failures on 12 pages, and 0 items came; the first: Spider error processing <GET http")
    assert message.endswith("KeyError: 'each of them'")
    reason, count, message = await crawl("start")
    assert (reason, count) == ("failed", 0)
    assert "no start" in message
    request = {"url": f"{spiders.shop}/product/7"}
    assert await crawl("good", scrapy={"request": request}) == ("succeeded", 1, "")
    assert await crawl("good", scrapy={"request": request, "start_requests": True}) == ("succeeded", 13, "")
    reason, count, message = await crawl("good", scrapy={"request": {**request, "callback": "nobody"}})
    assert (reason, count) == ("bad_input", 0)
    assert "nobody" in message


STRANGER = {
    "scrapy.cfg": "[settings]\ndefault = stranger.settings\n",
    "stranger/__init__.py": "",
    "stranger/settings.py": """
import os
from pathlib import Path
BASE = Path(__file__).resolve().parent.parent
SPIDER_MODULES = ["stranger.spiders"]
ITEM_PIPELINES = {"stranger.pipelines.Writer": 1}
FEEDS = {BASE / "results" / "%(name)s.csv": {"format": "csv"}, (BASE / "feed.jl").as_uri(): {"format": "jsonlines"}}
SHOP = os.environ["SHOP"]
""",
    "stranger/pipelines.py": """
import os
HERE = os.path.dirname(os.path.abspath(__file__))


class Writer:
    def open_spider(self, spider):
        os.makedirs(os.path.join(HERE, "..", "data"), exist_ok=True)
        self.file = open(os.path.join(HERE, "..", "data", "names.txt"), "w")
        with open(os.path.join(HERE, "..", "..", "above.txt"), "w") as above:
            above.write("above")
        os.makedirs(os.path.expanduser("~/.cache"))
        with open(os.path.expanduser("~/.cache/suffixes"), "w") as cache:
            cache.write("of a library")

    def process_item(self, item, spider):
        self.file.write(item["url"])
        return item

    def close_spider(self, spider):
        self.file.close()
""",
    "stranger/spiders/__init__.py": "",
    "stranger/spiders/a_broken.py": "import no_such_package\n",
    "stranger/spiders/wire.py": """
import scrapy
from scrapy import signals
from scrapy.exceptions import StopDownload


class Wire(scrapy.Spider):
    name = "wire"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.came, signals.headers_received)
        return spider

    def came(self, headers, body_length, request, spider):
        if request.url.endswith("/3"):
            raise StopDownload(fail=False)

    async def start(self):
        shop = self.settings["SHOP"]
        yield scrapy.Request(f"{shop}/product/1#reviews")
        yield scrapy.Request(f"{shop}/product/2", meta={"proxy": "http://user:password@127.0.0.1:9"})
        yield scrapy.Request(f"{shop}/product/3")

    def parse(self, response):
        length = int(response.headers.get("Content-Length"))
        yield {"url": response.url, "flags": response.flags, "whole": length == len(response.body)}
""",
}
ALONE = """
import scrapy
from scrapy.crawler import CrawlerProcess
from beside import SHOP


class Add:
    def process_item(self, item, spider):
        return {**item, "agent": spider.settings["USER_AGENT"]}


class Store:
    def open_spider(self, spider):
        import cassandra
        self.session = cassandra.connect()

    def process_item(self, item, spider):
        self.session.execute("INSERT", dict(item))
        return item


class Alone(scrapy.Spider):
    name = "alone"

    def start_requests(self):
        yield scrapy.Request(f"{SHOP}/product/1")

    def parse(self, response):
        yield {"name": response.css("h1::text").get()}


PIPELINES = {"__main__.Add": 1, "__main__.Store": 2}
process = CrawlerProcess({"USER_AGENT": "alone", "ITEM_PIPELINES": PIPELINES, "FEEDS": {"a.json": {}}})
process.crawl(Alone)
process.start()
"""


async def test_a_project_may_write_beside_its_code(spiders: SpiderYard) -> None:
    root = spiders.folder / "stranger"
    for name, text in STRANGER.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (folder,) = (await asyncio.to_thread(write_scrapers, read_project(root), spiders.folder / "scrapers")).folders
    outcome = await spiders.run(folder)
    assert outcome.error is not None
    assert "reads the environment variable SHOP; set it in [config.environment]" in outcome.error.message
    manifest = folder / "scraper.toml"
    named = manifest.read_text().replace("[config.environment]", f'[config.environment]\nSHOP = "{spiders.shop}"')
    manifest.write_text(named.replace('version = "1.0.0"', 'version = "1.0.1"'))
    outcome = await spiders.run(folder)
    assert outcome.exit_reason is ExitReason.SUCCEEDED, outcome.error
    found = msgspec.json.decode(await spiders.yard.result(outcome))
    assert sorted(found, key=lambda item: str(item["url"])) == [
        {"url": f"{spiders.shop}/product/1", "flags": [], "whole": True},
        {"url": f"{spiders.shop}/product/2", "flags": [], "whole": True},
        {"url": f"{spiders.shop}/product/3", "flags": ["download_stopped"], "whole": False},
    ]
    names = sorted(each.name for each in outcome.artifacts)
    assert names == ["above.txt", "data.zip", "feed.jl", "results.zip", "scrapy.json"]
    (spiders.folder / "results.zip").write_bytes(await spiders.artifact(outcome, "results.zip"))
    with zipfile.ZipFile(spiders.folder / "results.zip") as archive:
        assert archive.namelist() == ["results/wire.csv"]


async def test_a_file_that_starts_its_own_crawl_runs(spiders: SpiderYard) -> None:
    place = spiders.folder / "alone"
    place.mkdir()
    (place / "alone.py").write_text(ALONE)
    (place / "beside.py").write_text(f'SHOP = "{spiders.shop}"\n')
    done = await asyncio.to_thread(write_scrapers, read_project(place / "alone.py"), spiders.folder / "scrapers")
    outcome = await spiders.run(done.folders[0])
    assert outcome.exit_reason is ExitReason.SUCCEEDED, outcome.error
    (item,) = msgspec.json.decode(await spiders.yard.result(outcome))
    assert (bool(item["name"]), item["agent"]) == (True, "alone")
    assert [line.text for line in outcome.logs if "skip_pipelines" in line.text] == [
        "config.skip_pipelines leaves out alone.Store"
    ]
    assert [each.name for each in outcome.artifacts] == ["a.json", "scrapy.json"]
