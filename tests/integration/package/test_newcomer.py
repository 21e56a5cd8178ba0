"""What a newcomer wants in the first hour, each from an empty folder with the wheel, by at most three commands."""

import csv
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.integration.package.installed import Installed
from tests.leaks import PATIENCE, until
from tests.programs import Program, Shop
from tests.services.postgres import PostgresServer
from tests.services.valkey import ValkeyServer

MOST_COMMANDS = 3


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, real_servers: None) -> Iterator[Installed]:
    installed = Installed(tmp_path_factory.mktemp("newcomer"), "[redis,postgres]")
    yield installed
    installed.remove()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    shop = Shop(tmp_path_factory.mktemp("shop") / "home")
    yield shop.url
    shop.stop()


@pytest.fixture(scope="module")
def up(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`scrapeyard up`, which counts as one of the commands of those who need it."""
    program = start(installed, tmp_path_factory.mktemp("up") / "home", "up", "--port", "0", "--allow-private")
    try:
        yield str(program.wait_for("gateway.listening")["url"])
    finally:
        program.stop()


def start(installed: Installed, home: Path, *words: str, **more: str) -> Program:
    command = [str(installed.python.with_name("scrapeyard")), *words]
    return Program(command, home, {**installed.environment(), "SCRAPEYARD_LOG__FORMAT": "json", **more})


class Newcomer:
    """Types commands in an empty folder, and counts them."""

    def __init__(self, installed: Installed, folder: Path) -> None:
        self._installed = installed
        self.folder = folder
        self.commands = 0
        self.server = ""

    def with_server(self, url: str) -> "Newcomer":
        self.server = url
        self.commands += 1
        return self

    def does(self, *words: str) -> str:
        """The command's output. It must end well."""
        ended = self.tries(*words)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def tries(self, *words: str) -> "subprocess.CompletedProcess[str]":
        self.commands += 1
        more = {"SCRAPEYARD_SERVER": self.server} if self.server else {}
        return self._installed.cli(self.folder, *words, **more)

    def runs_python(self, program: str) -> str:
        self.commands += 1
        command = [str(self._installed.python), "-c", program]
        given = self._installed.environment()
        ended = subprocess.run(
            command, cwd=self.folder, env=given, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def rows(self, name: str) -> list[dict[str, str]]:
        with (self.folder / name).open(encoding="utf-8-sig", newline="") as stream:
            return list(csv.DictReader(stream))


@pytest.fixture
def newcomer(
    installed: Installed, tmp_path: Path, record_property: Callable[[str, object], None]
) -> Iterator[Newcomer]:
    made = Newcomer(installed, tmp_path)
    begun = time.monotonic()
    yield made
    record_property("commands", made.commands)
    record_property("seconds", round(time.monotonic() - begun, 2))
    assert made.commands <= MOST_COMMANDS


def test_first_page_as_markdown(newcomer: Newcomer, up: str, shop: str) -> None:
    newcomer.with_server(up).does("scrape", f"{shop}/product/1", "-o", "page.md")
    assert "# Aurora Lamp" in (newcomer.folder / "page.md").read_text("utf-8")


def test_a_site_to_csv(newcomer: Newcomer, shop: str) -> None:
    newcomer.does("crawl", shop, "--limit", "20", "--allow-private", "-o", "site.csv")
    rows = newcomer.rows("site.csv")
    assert len(rows) == 20
    assert {row["http_status"] for row in rows} == {"200"}
    assert not (newcomer.folder / "site.csv.crawl").exists()


def test_three_fields_without_a_script(newcomer: Newcomer, shop: str) -> None:
    fields = ("--field", "title=h1", "--field", "price=.price", "--field", "sku=.sku")
    found = json.loads(newcomer.does("run", f"{shop}/product/1", *fields, "--allow-private"))
    assert (found["title"], found["price"], found["sku"]) == ("Aurora Lamp", "€217.71", "LIG-0001")


def test_an_own_scraper_from_a_url(newcomer: Newcomer, shop: str) -> None:
    newcomer.does("new", "shop/lamp", "--url", f"{shop}/product/1", "--allow-private")
    (folder,) = (path.parent for path in newcomer.folder.rglob("scraper.toml"))
    found = json.loads(newcomer.does("run", str(folder), f"url={shop}/product/2", "--allow-private"))
    assert found["title"]


def test_test_and_publish_it(newcomer: Newcomer, shop: str) -> None:
    newcomer.does("new", "shop/lamp", "--url", f"{shop}/product/1", "--allow-private")
    (folder,) = (path.parent for path in newcomer.folder.rglob("scraper.toml"))
    newcomer.does("test", str(folder))
    newcomer.does("publish", str(folder), "--to", str(newcomer.folder / "published"))
    assert list((newcomer.folder / "published").rglob("*.tar.gz"))


def test_a_job_from_a_csv_that_excel_made(newcomer: Newcomer, up: str, shop: str) -> None:
    rows = f"Name;URL\r\nLampe groß;{shop}/product/1\r\nKissen;{shop}/product/2\r\n"
    (newcomer.folder / "list.csv").write_bytes(b"\xef\xbb\xbf" + rows.encode())
    words = ("jobs", "create", "list.csv", "--scraper", "builtin/product", "-o", "out.csv")
    refused = newcomer.with_server(up).tries(*words)
    assert "--column URL=url" in refused.stderr
    newcomer.does(*words, "--column", "URL=url")
    assert [row["item_status"] for row in newcomer.rows("out.csv")] == ["success", "success"]


def test_a_schedule_with_a_diff(newcomer: Newcomer, up: str, shop: str) -> None:
    newcomer.with_server(up)
    source = ("--start-url", shop, "--depth", "0", "--export", "diff:csv", "--name", "home")
    (newcomer.folder / "job.json").write_text(newcomer.does("jobs", "create", *source, "--print"))
    name = newcomer.does("schedule", "create", "--job", "@job.json", "--every", "1h", "--name", "hourly").strip()
    with httpx.Client(base_url=up, timeout=PATIENCE, trust_env=False) as api:
        for count in (1, 2):  # what the clock would do
            assert api.post(f"/api/schedule/{name}/run").status_code < 300
            until(lambda: len(_made(api, "home")) == count, "the job ended", seconds=PATIENCE)  # noqa: B023
        newest = _made(api, "home")[0]
        (export,) = api.get(f"/api/jobs/{newest}/exports").json()["exports"]
        assert (export["type"], export["state"]) == ("diff", "done")


def _made(api: httpx.Client, name: str) -> list[str]:
    jobs = api.get("/api/jobs").json()["jobs"]
    return [job["id"] for job in jobs if job["name"] == name and job["status"] == "completed"]


def test_a_call_from_python(newcomer: Newcomer, up: str, shop: str) -> None:
    newcomer.with_server(up)
    program = f"""
from scrapeyard_client import Client
with Client({up!r}) as client:
    print(client.scrape("{shop}/product/1", formats=["markdown"]).result["h1"])
"""
    assert newcomer.runs_python(program).strip() == "Aurora Lamp"


def test_a_cluster_of_two_workers(newcomer: Newcomer, installed: Installed, tmp_path: Path) -> None:
    with ExitStack() as stack:
        valkey, postgres = stack.enter_context(ValkeyServer()), stack.enter_context(PostgresServer())
        stack.callback(postgres.close)
        data = str(tmp_path / "data")  # with the master key, which every process of a cluster needs
        shared = {"REDIS_URL": valkey.url, "DATABASE_URL": postgres.url, "SCRAPEYARD_DATA_DIR": data}
        first = start(installed, tmp_path / "first", "up", "--port", "0", **shared)
        stack.callback(first.stop)
        newcomer.with_server(str(first.wait_for("gateway.listening")["url"]))
        second = start(installed, tmp_path / "second", "worker", **shared)
        stack.callback(second.stop)
        newcomer.commands += 1
        with httpx.Client(base_url=newcomer.server, timeout=PATIENCE, trust_env=False) as api:
            until(lambda: len(api.get("/api/workers").json()["workers"]) == 2, "both workers are heard")
        assert newcomer.does("workers").count("worker_") == 2


def test_find_why_a_run_failed(newcomer: Newcomer, up: str) -> None:
    failed = newcomer.with_server(up).tries("scrape", "http://127.0.0.1:9/")
    assert failed.returncode == 1
    assert "fetch_connect" in failed.stderr
    assert "127.0.0.1:9" in newcomer.does("runs", "explain", "last")
