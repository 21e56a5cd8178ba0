"""The doors of scrapyrt and scrapyd on a whole server, with the clients that people have for them."""

import io
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from scrapyd_api import ScrapydAPI
from scrapyd_client.pyclient import ScrapydClient

from scrapeyard.errors import NotFound
from scrapeyard.gateway.doors.scrapy.spiders import Spider, find, names_of
from tests.integration.cli_stand import Stand
from tests.leaks import until

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory, real_servers: None) -> Stand:
    return Stand(tmp_path_factory.mktemp("doors"))


@pytest.fixture(scope="module")
def shop(stand: Stand) -> Iterator[str]:
    with stand.serving("demo-site", "--port", "0", says=b"open at ") as url:
        yield url.rstrip("/")


@pytest.fixture(scope="module")
def server(stand: Stand, shop: str) -> Iterator[str]:
    """A server with the shelf spider, which finds Scrapy among the packages of this machine."""
    imported = stand.cli("import", "scrapy", str(ROOT / "examples" / "scrapy" / "shelves"), "--to", "scrapers")
    assert imported.status == 0, imported.err
    folder = stand.scrapers / "shelves" / "shelf"
    manifest = (folder / "scraper.toml").read_text()
    (folder / "scraper.toml").write_text(manifest.replace('requirements = ["scrapy==2.19.*"]', "requirements = []"))
    spider = folder / "project" / "shelves" / "spiders" / "shelf.py"
    spider.write_text(spider.read_text().replace("http://127.0.0.1:8800", shop))
    words = ("up", "--port", "0", "--allow-private", "--scrapers", "scrapers", "--data-dir", "data")
    uploads = str(stand.folder / "uploads")
    with stand.serving(*words, says=b"listens on ", SCRAPEYARD_REPOSITORY__UPLOADS=uploads) as url:
        yield url.rstrip("/")


def _egg(stand: Stand, *, spider: str = "shelf") -> io.BytesIO:
    """As `scrapyd-deploy` builds it: the packages, compiled files, and the entry point."""
    raw = io.BytesIO()
    source = stand.scrapers / "shelves" / "shelf" / "project"
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((source / "shelves").rglob("*.py")):
            text = path.read_text().replace('name = "shelf"', f'name = "{spider}"')
            archive.writestr(path.relative_to(source).as_posix(), text)
        archive.writestr("shelves/__pycache__/settings.cpython-311.pyc", b"\0")
        archive.writestr("EGG-INFO/PKG-INFO", "Metadata-Version: 1.0\n")
        archive.writestr("EGG-INFO/entry_points.txt", "[scrapy]\nsettings = shelves.settings\n")
        archive.writestr("EGG-INFO/not-zip-safe", "\n")
    raw.seek(0)
    return raw


def test_the_examples_of_scrapyrt(server: str, shop: str) -> None:
    with httpx.Client(base_url=server, timeout=120) as client:
        query = {"spider_name": "shelf", "url": f"{shop}/category/office", "callback": "parse_shelf"}
        missing = client.get("/crawl.json", params=query).json()
        assert missing["status"] == "ok"
        assert missing["items"] == []
        assert "missing 1 required positional argument: 'category'" in missing["errors"][0]
        request = {**query, "cb_kwargs": {"category": "office"}, "meta": {"a": 1}}
        request.pop("spider_name")
        body = {"spider_name": "shelf", "request": request, "max_requests": 2, "crawl_args": {"unused": 1}}
        found = client.post("/crawl.json", json=body).json()
        assert (found["status"], found["spider_name"], found["errors"]) == ("ok", "shelf", [])
        assert {item["category"] for item in found["items"]} == {"office"}
        assert 12 <= len(found["items"]) <= 24, "two pages at most"
        assert found["stats"]["item_scraped_count"] == len(found["items"])
        assert found["items_dropped"] == []
        args = json.dumps({"category": "garden"})
        whole = client.get(
            "/crawl.json", params={"spider_name": "shelves/shelf", "start_requests": "true", "crawl_args": args}
        ).json()
        assert len(whole["items"]) == 40
        assert {item["category"] for item in whole["items"]} == {"garden"}


def test_what_scrapyrt_refuses(server: str, shop: str) -> None:
    with httpx.Client(base_url=server, timeout=120) as client:
        cases = {
            "spider_name": {"url": shop},
            "'url' is required": {"spider_name": "shelf"},
            "Spider not found: gone": {"spider_name": "gone", "url": shop},
            "crawl_args": {"spider_name": "shelf", "url": shop, "crawl_args": "{"},
            "max_requests": {"spider_name": "shelf", "url": shop, "max_requests": "many"},
            "nobody": {"spider_name": "shelf", "url": shop, "callback": "nobody"},
        }
        for words, query in cases.items():
            answer = client.get("/crawl.json", params=query)
            told = answer.json()
            assert told["status"] == "error", told
            assert told["code"] == answer.status_code
            assert answer.status_code in (400, 404)
            assert words in told["message"]


def test_a_spider_is_found_by_its_id_and_by_a_name_with_a_slash() -> None:
    known = [Spider(id=f"{site}/rss-html", name="rss/html", version="1.0.0") for site in ("news", "rss")]
    assert [find(known[:1], name) for name in ("rss/html", "news/rss-html", "rss-html")] == known[:1] * 3
    assert find(known, "rss/rss-html") == known[1]
    with pytest.raises(NotFound):
        find(known, "gone/rss-html")


def test_every_name_that_is_listed_is_found() -> None:
    """Two scrapers may have one display name, or one the name of another's id, also in an older version only."""
    names = {
        "shop/a": ["Price"],
        "shop/b": ["Lamps", "Price"],
        "shop/price": ["price", "The prices"],
        "shop/c": ["Old", "New"],
        "shop/d": ["Old"],
        "shop/e": ["rss/html"],
        "other/a": ["Price"],
    }
    known = [
        Spider(id=spider, name=name, version=f"{number}.0.0")
        for spider, given in names.items()
        for number, name in enumerate(given)
    ]
    told = names_of(known)
    assert told == {
        "shop/a": "a",
        "shop/b": "b",
        "shop/price": "The prices",
        "shop/c": "New",
        "shop/d": "d",
        "shop/e": "rss/html",
        "other/a": "Price",
    }
    for spider, name in told.items():
        of_project = [each for each in known if each.project == spider.partition("/")[0]]
        assert find(of_project, name) == [each for each in known if each.id == spider][-1]


def test_scrapyd_clients_work(stand: Stand, server: str) -> None:
    api, client = ScrapydAPI(server), ScrapydClient(server)
    assert api.list_projects() == client.projects() == ["lab", "shelves"]
    assert client.spiders("shelves") == ["shelf"]
    assert client.versions("shelves") == ["1.0.0"]
    job = api.schedule("shelves", "shelf", settings={"CLOSESPIDER_ITEMCOUNT": "5"}, category="kitchen")
    until(lambda: api.job_status("shelves", job) == "finished", "the crawl did not end")
    (done,) = [each for each in client.jobs("shelves")["finished"] if each["id"] == job]
    assert (done["project"], done["spider"]) == ("shelves", "shelf")
    assert done["start_time"] < done["end_time"]
    run = httpx.get(server + done["items_url"]).json()
    assert {item["category"] for item in run["result"]} == {"kitchen"}
    assert run["input"] == {"category": "kitchen", "scrapy": {"settings": {"CLOSESPIDER_ITEMCOUNT": "5"}}}
    assert client.status(job)["currstate"] == "finished"
    assert client.status("run_00000000000000000000000000000000")["currstate"] is None
    assert client.daemonstatus()["finished"] >= 1


def test_the_commands_that_deploy_work(server: str, tmp_path: Path) -> None:
    """`scrapyd-deploy` builds an egg of a project and sends it; `scrapyd-client` schedules its spider."""
    project = shutil.copytree(ROOT / "examples" / "scrapy" / "shelves", tmp_path / "shelves")
    target = f"[deploy]\nurl = {server}/\nproject = deployed\n"
    (project / "scrapy.cfg").write_text(f"[settings]\ndefault = shelves.settings\n{target}")

    def command(*words: str) -> str:
        program = Path(sys.executable).with_name(words[0])
        done = subprocess.run([program, *words[1:]], cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert json.loads(command("scrapyd-deploy", "--version", "r1"))["spiders"] == 1
    assert command("scrapyd-client", "spiders", "-p", "deployed").split() == ["deployed:", "shelf"]
    job = command("scrapyd-client", "schedule", "-p", "deployed", "shelf").split()[-1]
    api = ScrapydAPI(server)
    api.cancel("deployed", job)
    until(lambda: api.job_status("deployed", job) == "finished", "it was not cancelled")
    assert api.delete_project("deployed")


def test_an_egg_becomes_scrapers(stand: Stand, server: str) -> None:
    api, client = ScrapydAPI(server), ScrapydClient(server)
    assert api.add_version("My Shop", "1763464000", _egg(stand)) == 1
    assert api.add_version("My Shop", "r2", _egg(stand, spider="Shelf Two")) == 1
    assert client.projects() == ["lab", "my-shop", "shelves"]
    assert client.versions("My Shop") == ["1763464000", "r2"]
    assert client.spiders("My Shop") == ["Shelf Two", "shelf"]
    assert api.list_spiders("My Shop") == ["Shelf Two", "shelf"]
    job = api.schedule("My Shop", "Shelf Two", _version="r2")
    assert api.cancel("My Shop", job) in ("pending", "running")
    until(lambda: api.job_status("My Shop", job) == "finished", "it was not cancelled")
    assert api.add_version("My Shop", "r2", _egg(stand)) == 1
    assert client.versions("My Shop") == ["1763464000", "r2"], "the same version again takes the place of the first"
    listed = httpx.get(f"{server}/api/projects/my-shop").json()["versions"]
    assert listed == ["0.1.0+1763464000", "0.3.0+r2"]
    assert api.delete_version("My Shop", "1763464000")
    assert client.versions("My Shop") == ["r2"]
    assert api.delete_project("My Shop")
    assert client.projects() == ["lab", "shelves"]
    assert [path.name for path in (stand.folder / "uploads").iterdir()] == []


@pytest.mark.parametrize(
    ("egg", "words"),
    [
        (b"no zip", "not a zip"),
        (b"", "egg is not a file"),
        ({"a.py": ""}, "names no settings"),
        ({"EGG-INFO/entry_points.txt": "[scrapy]\nsettings = gone.settings\n", "a.py": ""}, "gone.settings"),
        ({"../a.py": "", "b.py": ""}, "not a plain path"),
        ({"EGG-INFO/entry_points.txt": "[scrapy]\nsettings = a\n", "a.py": "SPIDER_MODULES = ['a']"}, "no spider"),
        ({"bomb.py": "0" * (60 << 20)}, "larger than 50 MB"),
    ],
    ids=["no zip", "nothing", "no entry", "no settings", "outside", "no spider", "bomb"],
)
def test_eggs_that_are_refused(stand: Stand, server: str, egg: bytes | dict[str, str], words: str) -> None:
    raw = io.BytesIO(egg if isinstance(egg, bytes) else b"")
    if isinstance(egg, dict):
        with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in egg.items():
                archive.writestr(name, text)
    files = {"egg": ("project.egg", raw.getvalue())}
    answer = httpx.post(f"{server}/addversion.json", data={"project": "bad", "version": "1"}, files=files, timeout=60)
    told = answer.json()
    assert (answer.status_code, told["status"]) == (400, "error")
    assert words in told["message"]
    assert str(stand.folder) not in told["message"]
    assert list((stand.folder / "uploads").iterdir()) == []
