"""Scrapy projects read without running them: settings, spiders, arguments, requirements, and the scrapers of them."""

import json
import tomllib
from pathlib import Path

import pytest

from scrapeyard.errors import BadRequest
from scrapeyard.repository.manifest.manifest import read_manifest
from scrapeyard.repository.scrapy.project import SpiderProject, read_project
from scrapeyard.repository.scrapy.requirements import requirements_of
from scrapeyard.repository.scrapy.scrapers import input_schema, slug, write_scrapers
from scrapeyard.repository.scrapy.told import settings_told

BOMB = "raise SystemExit('this must never run')\n"
SPIDERS = '''
import scrapy
from typing import Optional
from odd.base import Named, Nameless
PREFIX = "made"

class Mixin:
    name = "no spider"

class First(scrapy.Spider):
    """Reads one.

    And more."""
    name = "first"
    custom_settings = {"HTTPCACHE_ENABLED": True, "DOWNLOAD_DELAY": 2}
    def __init__(self, url, pages: int = 3, since: Optional[str] = None, *args, limit: "int | None" = None, **kwargs):
        self.tag = kwargs.get("tag")
        kwargs.pop("other", None)
        self.name = self.name
    def parse(self, response):
        getattr(self, "depth", 1), getattr(self, "name", 1), getattr(response, "nothing", 1)

class Second(Named, Mixin):
    pass

class Third(Nameless):
    name = f"{PREFIX}-{__name__}"

class Fourth(Nameless):
    name: str = PREFIX + " Up"
'''
BASE = """
from scrapy.spiders import CrawlSpider

class Named(CrawlSpider):
    name = "inherited"

class Nameless(CrawlSpider):
    def parse(self, response): ...
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "odd-project"
    files = {
        "scrapy.cfg": "[settings]\ndefault = odd.config.live\n[deploy]\nurl = http://localhost:6800/%(x)s\n",
        "requirements.txt": "# needs\nScrapy==2.13.3  # this one\n-r more.txt\ngit+https://example.com/a\nPrice_Parser>=0.3\n",
        "odd/__init__.py": "",
        "odd/config/__init__.py": "",
        "odd/config/common.py": 'BOT_NAME = "Odd Bot"\nUSER_AGENT = "odd"\n',
        "odd/config/live.py": f'from .common import *\nimport os\nSPIDER_MODULES = ["odd." + "deep"]\n'
        f'FEEDS = {{"s3://bucket/%(name)s.csv": {{"format": "csv"}}}}\nKEY = os.environ.get("KEY")\n{BOMB}',
        "odd/base.py": BASE + BOMB,
        "odd/deep/__init__.py": "",
        "odd/deep/er/__init__.py": "",
        "odd/deep/er/spiders.py": SPIDERS + "import pymongo, yaml, strange\nfrom price_parser import Price\n" + BOMB,
        "odd/elsewhere.py": 'import scrapy\nclass Not(scrapy.Spider):\n    name = "not"\n',
        ".env": "SECRET=1",
        "venv/pyvenv.cfg": "",
        "venv/x.py": "",
        "data/start.txt": "a\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def _names(project: SpiderProject) -> list[str]:
    return sorted(spider.name for spider in project.spiders)


def test_spiders_are_found_where_the_settings_lead(root: Path) -> None:
    project = read_project(root.parent)
    assert (project.name, project.settings_module, project.modules) == ("Odd Bot", "odd.config.live", ("odd.deep",))
    assert _names(project) == ["first", "inherited", "made Up"]
    assert project.notes == ("odd/deep/er/spiders.py: the name of Third is no constant; it is left out",)


def test_arguments_become_the_input(root: Path) -> None:
    (first,) = [spider for spider in read_project(root).spiders if spider.name == "first"]
    schema = input_schema(first)
    assert (first.description, schema["required"]) == ("Reads one.", ["url"])
    kinds = {name: each["type"] for name, each in schema["properties"].items()}
    assert kinds.pop("scrapy") == "object"
    assert {name for name, kind in kinds.items() if len(kind) > 3} == {"url", "tag", "other", "depth", "limit"}
    assert (kinds["pages"], kinds["since"]) == (["integer", "null", "string"], ["string", "null"])


def test_an_argument_that_a_subclass_fills_in_is_not_required(tmp_path: Path) -> None:
    bases = "class Base(scrapy.Spider):\n    def __init__(self, url, *args, **kwargs): ...\n"
    own = "    def __init__(self, shelf, *args, **kwargs):\n        super().__init__('http://site', *args, **kwargs)\n"
    text = f"import scrapy\n{bases}class Own(Base):\n    name = 'own'\n{own}class Plain(Base):\n    name = 'plain'\n"
    (tmp_path / "two.py").write_text(text)
    found = {spider.name: input_schema(spider) for spider in read_project(tmp_path / "two.py").spiders}
    assert (found["own"]["required"], found["plain"]["required"]) == (["shelf"], ["url"])
    assert "url" in found["own"]["properties"]


def test_settings_and_requirements_are_told(root: Path) -> None:
    project = read_project(root)
    told = {each.name: each.instead for each in settings_told(project)}
    assert [name for name, instead in told.items() if not instead] == [
        *("BOT_NAME", "DOWNLOAD_DELAY", "FEEDS", "KEY", "SPIDER_MODULES", "USER_AGENT")
    ]
    assert "policy" in told["HTTPCACHE_ENABLED"]
    assert "artifact" in told["s3://bucket/%(name)s.csv"]
    requirements, notes = requirements_of(project)
    assert requirements == ["Scrapy==2.13.3", "Price_Parser>=0.3", "twisted<25.5", "w3lib<2.4", "pymongo", "pyyaml"]
    assert [note.partition(":")[0] for note in notes] == [
        *("a requirement is left out", "a requirement is left out"),
        *("odd/deep/er/spiders.py imports pymongo", "odd/deep/er/spiders.py imports pymongo"),
        *("odd/deep/er/spiders.py imports yaml", "odd/deep/er/spiders.py imports strange"),
    ]


def test_scrapers_are_whole_and_replaced_only_if_asked(root: Path, tmp_path: Path) -> None:
    done = write_scrapers(read_project(root), tmp_path / "to", version="2.0.0")
    assert done.scrapers == ("odd-bot/first", "odd-bot/inherited", "odd-bot/made-up")
    folder = done.folders[0]
    manifest = read_manifest(
        (folder / "scraper.toml").read_bytes(), "scraper.toml", lambda name: (folder / name).read_bytes()
    )
    assert (manifest.id, str(manifest.version), manifest.policy.retries) == ("odd-bot/first", "2.0.0", 0)
    table = tomllib.loads((folder / "scraper.toml").read_text())
    assert table["config"]["typed_arguments"] == ["pages", "since"]
    assert json.loads((folder / "input.json").read_text())["properties"]["scrapy"]
    copied = {path.relative_to(folder / "project").as_posix() for path in (folder / "project").rglob("*.*")}
    assert {"scrapy.cfg", "data/start.txt", "odd/deep/er/spiders.py"} <= copied
    assert not {name for name in copied if "env" in name}
    with pytest.raises(BadRequest, match="already there"):
        write_scrapers(read_project(root), tmp_path / "to")
    write_scrapers(read_project(root), tmp_path / "to", version="2.0.1", replace=True)
    assert "2.0.1" in (folder / "scraper.toml").read_text()
    assert [path.name for path in (tmp_path / "to" / "odd-bot").iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"scrapy.cfg": "[deploy]\n"}, "no .settings."),
        ({"scrapy.cfg": "[settings]\ndefault = gone.settings\n"}, "gone.settings of scrapy.cfg is not there"),
        ({"a.py": "print(1)"}, "no spider found"),
        ({"a/scrapy.cfg": "", "b/scrapy.cfg": ""}, "several projects; name one"),
    ],
)
def test_what_is_no_project_is_refused(tmp_path: Path, files: dict[str, str], words: str) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(BadRequest, match=words):
        read_project(tmp_path)


def test_a_file_is_a_project_without_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text('import scrapy\nclass One(scrapy.Spider):\n    name = "One!"\n')
    (tmp_path / "two.py").write_text('import scrapy\nclass Two(scrapy.Spider):\n    name = "two"\n')
    done = write_scrapers(read_project(tmp_path / "one.py"), tmp_path / "to")
    assert done.scrapers == ("one/one",)
    assert [path.name for path in (done.folders[0] / "project").iterdir()] == ["one.py"]
    assert _names(read_project(tmp_path)) == ["One!", "two"]


def test_a_project_is_found_from_above_and_from_within(tmp_path: Path) -> None:
    root = _made(tmp_path / "a" / "b" / "c", "", settings="BOT_NAME = 'deep'").root
    for place in (tmp_path, root, root / "made", root / "made" / "spiders"):
        assert (read_project(place).name, read_project(place).settings_module) == ("deep", "made.settings")
    alone = read_project(root / "made" / "spiders" / "one.py")
    assert alone.settings_module == ""
    assert alone.notes == (f"the settings of the project {root} are not used: import that folder to have them",)
    (root / "scrapy.cfg").unlink()
    without = read_project(root)
    assert without.modules == ("made.spiders.one",)
    assert without.notes[0] == "there is no scrapy.cfg, so made/settings.py is not used"


def test_spiders_are_found_where_scrapy_finds_them(tmp_path: Path) -> None:
    spider = "import scrapy\nclass Old(scrapy.Spider):\n    name = 'old'\n"
    root = _made(tmp_path, "").root
    for folder in ("kept", "kept/deep", "old/deep"):
        (root / "made" / "spiders" / folder).mkdir(parents=True)
        (root / "made" / "spiders" / folder / "__init__.py").write_text("")
    (root / "made" / "spiders" / "old" / "deep" / "old.py").write_text(spider)
    (root / "made" / "spiders" / "kept" / "deep" / "kept.py").write_text(spider.replace("old", "kept"))
    project = read_project(root)
    assert _names(project) == ["kept", "one"]
    assert project.notes[1:] == ("made/spiders/old has no __init__.py, so Scrapy does not look into it",)


@pytest.mark.parametrize("name", ["", "…", "builtin", "---"])
def test_some_names_are_no_ids(name: str) -> None:
    with pytest.raises(BadRequest):
        slug(name)


def test_spiders_whose_names_are_no_ids_get_others(tmp_path: Path) -> None:
    names = {"One": "quotes", "Two": "Quotes", "Three": "名言", "Four": "…", "Five": "quotes!"}
    spiders = "".join(f"class {each}(scrapy.Spider):\n    name = {name!r}\n" for each, name in names.items())
    (tmp_path / "one.py").write_text(f"import scrapy\n{spiders}")
    done = write_scrapers(read_project(tmp_path / "one.py"), tmp_path / "to")
    assert done.scrapers == ("one/quotes", "one/quotes-2", "one/spider-three", "one/spider-four", "one/quotes-3")
    assert "'名言'" in (done.folders[2] / "scraper.py").read_text()


LONE = """
import os
import scrapy
from scrapy.crawler import CrawlerProcess
from bases import Named

class Clean:
    def process_item(self, item, spider):
        return item

class Lone(Named):
    name = "lone"
    def __init__(self, urls: list = None, zip: str = None):
        open("data/urls.txt")

process = CrawlerProcess(settings={"ITEM_PIPELINES": {"__main__.Clean": 1}, "LOG_LEVEL": os.getenv("LEVEL")})
process.crawl(Lone)
process.start()
"""


def test_a_file_brings_what_it_imports_names_and_sets(tmp_path: Path) -> None:
    files = {
        "lone.py": LONE,
        "bases.py": "import scrapy, names\nclass Named(scrapy.Spider):\n    name = 'named'\n",
        "names.py": "",
        "other.py": "",
        "data/urls.txt": "",
        "data/more.txt": "",
        ".env": "LEVEL=INFO",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    done = write_scrapers(read_project(tmp_path / "lone.py"), tmp_path / "to")
    assert done.scrapers == ("lone/lone",)
    place = done.folders[0] / "project"
    copied = {path.relative_to(place).as_posix() for path in place.rglob("*.*")}
    assert copied == {"lone.py", "bases.py", "names.py", "data/urls.txt"}
    assert "given={'ITEM_PIPELINES': {'lone.Clean': 1}}" in (done.folders[0] / "scraper.py").read_text()
    assert "# The project reads: LEVEL\n" in (done.folders[0] / "scraper.toml").read_text()
    assert [note.partition(":")[0] for note in done.notes] == [
        "the setting LOG_LEVEL of the file is no constant; set it in [config.settings]",
        "the code reads environment variables",
        ".env is not copied, because it may hold secrets",
    ]
    schema = json.loads((done.folders[0] / "input.json").read_text())
    assert schema["properties"]["urls"]["type"] == ["array", "null", "string"]


CLASSES = '{"ITEM_PIPELINES": {Clean: 1, __name__ + ".Own": 2, ImagesPipeline: 3}}'


@pytest.mark.parametrize(
    ("lines", "expected", "notes"),
    [
        ("given = {'A': 1, **{'B': 2}}\n    CrawlerProcess(given)", {"A": 1, "B": 2}, 0),
        (
            "given = Settings()\n    given.set('A', 1)\n    given['B'] = 2\n    CrawlerProcess(given)",
            {"A": 1, "B": 2},
            0,
        ),
        ("s = get_project_settings()\n    s.update({'A': 1})\n    CrawlerRunner(settings=s)", {"A": 1}, 0),
        ("CrawlerProcess(dict(A=1, B=time()))", {"A": 1}, 1),
        ("p = CrawlerProcess(get_project_settings())\n    p.crawl(One)", {}, 0),
        ("p = CrawlerProcess({'A': 1})\n    p.crawl(One, tag='humor')", {"A": 1}, 1),
        ("CrawlerProcess(read())", {}, 1),
        ("CrawlerProcess({'A': 1, **read()})", {"A": 1}, 1),
        ("CrawlerProcess({'ITEM_PIPELINES': {read(): 1}})", {}, 1),
        (
            f"CrawlerProcess({CLASSES})",
            {"ITEM_PIPELINES": {"one.Clean": 1, "one.Own": 2, "scrapy.pipelines.images.ImagesPipeline": 3}},
            0,
        ),
    ],
)
def test_settings_of_a_file_are_read_where_it_makes_them(
    tmp_path: Path, lines: str, expected: dict[str, object], notes: int
) -> None:
    start = "import scrapy\nfrom scrapy.pipelines.images import ImagesPipeline\nclass Clean: ...\n"
    spider = "class One(scrapy.Spider):\n    name = 'one'\n"
    (tmp_path / "one.py").write_text(f"{start}{spider}def main():\n    {lines}\n")
    project = read_project(tmp_path / "one.py")
    assert (project.settings, len(project.notes)) == (expected, notes)


PSYCOPG = "psycopg2-binary==2.9.6 ; sys_platform == 'linux'"


def _made(root: Path, requirements: str, spider: str = "", settings: str = "") -> SpiderProject:
    files = {
        "scrapy.cfg": "[settings]\ndefault = made.settings\n",
        "requirements.txt": requirements,
        "made/settings.py": settings,
        "made/spiders/one.py": f"import scrapy\n{spider}\nclass One(scrapy.Spider):\n    name = 'one'\n",
        "made/spiders/two.py": "print 'Python 2'\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return read_project(root)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Scrapy==2.5.1\nlxml==4.6.3\nrequests==2.1", ["scrapy==2.8.*", "requests==2.1", "twisted<25.5", "w3lib<2.4"]),
        ("scrapy~=1.8\nTwisted==20.3.0\n", ["scrapy==2.8.*", "twisted<25.5", "w3lib<2.4"]),
        ("scrapy~=2.11.0", ["scrapy~=2.11.0", "twisted<25.5", "w3lib<2.4"]),
        ("scrapy>=2.9,<2.12", ["scrapy>=2.9,<2.12", "twisted<25.5", "w3lib<2.4"]),
        ("scrapy>=2.5", ["scrapy>=2.5"]),
        ("Scrapy==2.8.0\nTwisted==22.10.0", ["Scrapy==2.8.0", "Twisted==22.10.0", "w3lib<2.4"]),
        ("pywin32==306\nscrapy==2.19.0\ntwisted-iocpsupport==1.0.4", ["scrapy==2.19.0"]),
        ("scrapy==2.19.0\npkg-resources==0.0.0\nmysqlclient>=1.4", ["scrapy==2.19.0"]),
        ("scrapy @ file:///conda\nTwisted==20.3.0\nlxml==4.6.3\nsix==1.16.0", ["scrapy==2.19.*", "six==1.16.0"]),
        ("scrapy==2.19.0\nlxml==4.6.3\npandas==2.2.3", ["scrapy==2.19.0", "lxml>=4.6.3", "pandas==2.2.3"]),
        ("scrapy==2.19.0\npsycopg2==2.9.6 ; sys_platform == 'linux'", ["scrapy==2.19.0", PSYCOPG]),
    ],
)
def test_pins_that_cannot_be_installed_are_replaced(tmp_path: Path, given: str, expected: list[str]) -> None:
    requirements, notes = requirements_of(_made(tmp_path, given))
    assert requirements == expected
    assert bool(notes) == (given.splitlines() != expected[: len(given.splitlines())])


def test_a_list_that_powershell_wrote_is_read(tmp_path: Path) -> None:
    _made(tmp_path, "")
    (tmp_path / "requirements.txt").write_bytes("Scrapy==2.19.0\r\nsix==1.16.0\r\n".encode("utf-16"))
    assert requirements_of(read_project(tmp_path)) == (["Scrapy==2.19.0", "six==1.16.0"], [])


def test_a_list_takes_in_others_of_its_folder(tmp_path: Path) -> None:
    project = _made(tmp_path / "made", "-r requirements/base.txt\n-r ../above.txt\nsix\n")
    (tmp_path / "made" / "requirements").mkdir()
    (tmp_path / "above.txt").write_text("w3lib\n")
    (tmp_path / "made" / "requirements" / "base.txt").write_text("scrapy==2.19.0\n-r base.txt\n")
    requirements, notes = requirements_of(project)
    assert requirements == ["scrapy==2.19.0", "six"]
    assert ["option" in note for note in notes] == [True, True]


POETRY = """[tool.poetry.dependencies]
python = "^3.10"
scrapy = "^2.16"
price-parser = "^0.3.4"
w3lib = "~2.2.1"
six = "1.16.0"
itemloaders = "*"
extruct = {version = ">=0.13,<1", extras = ["cli"]}
own = {git = "https://example.com/own"}
"""
PIPFILE = '[packages]\nscrapy = "==2.19.0"\nitemloaders = "*"\n[dev-packages]\npytest = "*"\n'


def test_dependencies_of_poetry_and_pipfile_are_read(tmp_path: Path) -> None:
    root = _made(tmp_path / "made", "").root
    (root / "requirements.txt").unlink()
    (tmp_path / "pyproject.toml").write_text(POETRY)
    requirements, notes = requirements_of(read_project(root))
    assert requirements == [
        *("scrapy>=2.16,<3", "price-parser>=0.3.4,<0.4", "w3lib>=2.2.1,<2.3", "six==1.16.0", "itemloaders"),
        "extruct[cli]>=0.13,<1",
    ]
    assert [note for note in notes if "own @" not in note] == []
    (root / "Pipfile").write_text(PIPFILE)
    assert requirements_of(read_project(root)) == (["scrapy==2.19.0", "itemloaders"], [])


def test_modules_beside_the_project_come_with_it(tmp_path: Path) -> None:
    spider = "from misc.log import info\nimport helpers, absent, yaml, scrapy"
    _made(tmp_path / "made", "scrapy", spider)
    for name in ("misc/log.py", "misc/.env", "helpers.py", "other.py", "yaml.py", "absent/x.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "made" / "misc").symlink_to(tmp_path / "misc")
    done = write_scrapers(read_project(tmp_path / "made"), tmp_path / "to")
    place = done.folders[0] / "project"
    copied = {path.relative_to(place).as_posix() for path in place.rglob("*.*")}
    assert {"misc/log.py", "helpers.py", "made/spiders/one.py"} <= copied
    assert not {name for name in copied if name.startswith(("other", "yaml", "absent", "misc/.env"))}
    assert "made/spiders/one.py imports misc, which is beside the project's folder: it is copied too" in done.notes


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("scrapy", "scrapy==2.11.*"),
        ("Scrapy>=1.7.3", "scrapy==2.11.*"),
        ("scrapy>=2.12", "scrapy>=2.12"),
        ("scrapy>=2.8,<3", "scrapy>=2.8,<3"),
        ("scrapy==2.13.3", "scrapy==2.13.3"),
        ("scrapy==2.19.*", "scrapy==2.19.*"),
    ],
)
def test_a_version_that_is_named_is_taken(tmp_path: Path, given: str, expected: str) -> None:
    project = _made(tmp_path, f"six\n{given}", "from scrapy.spiders.init import InitSpider")
    assert expected in requirements_of(project)[0]


def test_scrapy_is_one_that_has_what_the_code_imports(tmp_path: Path) -> None:
    imported = "from scrapy.spiders.init import InitSpider\nfrom scrapy.utils.request import request_fingerprint"
    project = _made(tmp_path, "", imported)
    assert requirements_of(project)[0] == ["scrapy==2.11.*", "twisted<25.5", "w3lib<2.4"]
    (tmp_path / "made" / "spiders" / "new.py").write_text("class New(Spider):\n    async def start(self): ...\n")
    assert requirements_of(read_project(tmp_path))[0] == ["scrapy==2.19.*"]
    (tmp_path / "requirements.txt").write_text("scrapy==2.19.0")
    assert requirements_of(project)[0] == ["scrapy==2.19.0"]


@pytest.mark.parametrize(
    ("setting", "methods", "is_before"),
    [
        ("SPIDER_MIDDLEWARES = {'made.parts.Part': 1}", "def process_spider_output(self, response, result): ...", True),
        ("SPIDER_MIDDLEWARES = {'made.parts.Part': 1}", "async def process_spider_output(self, response): ...", False),
        ("SPIDER_MIDDLEWARES = {'made.parts.Other': 1}", "def process_start_requests(self, requests): ...", False),
        ("ITEM_PIPELINES = {'made.parts.Part': 1}", "def from_settings(cls, settings): ...", True),
        (
            "ITEM_PIPELINES = {'made.parts.Part': 1}",
            "def file_path(self, request, response=None, info=None): ...",
            True,
        ),
        ("ITEM_PIPELINES = {'made.parts.Part': 1}", "def file_path(self, request, *, item=None): ...", False),
        ("ITEM_PIPELINES = {'made.parts.Part': 1}", "def thumb_path(self, *args, **kwargs): ...", False),
        ("ITEM_PIPELINES = {'made.parts.Part': 1}", "def from_crawler(c): ...\n    def from_settings(c): ...", False),
    ],
)
def test_scrapy_is_one_that_calls_the_parts_as_they_are(
    tmp_path: Path, setting: str, methods: str, is_before: bool
) -> None:
    _made(tmp_path, "", settings=setting)
    (tmp_path / "made" / "parts.py").write_text(f"class Part:\n    {methods}\n")
    requirements, notes = requirements_of(read_project(tmp_path))
    assert requirements[0] == ("scrapy==2.11.*" if is_before else "scrapy==2.19.*")
    assert any("the newest does without Part." in note for note in notes) == is_before


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("from scrapy.loader.processors import MapCompose, TakeFirst", "scrapy.loader.processors"),
        ("from scrapy.pipelines.images import DropItem", "scrapy.pipelines.images.DropItem"),
        ("class R(RetryMiddleware):\n    def f(self, r, s):\n        return self._retry(r, 'x', s) or r", "R: _retry"),
        ("class R(RetryMiddleware):\n    def f(self, r):\n        return self._retry(r, reason='x')", ""),
        (
            "class R(RetryMiddleware):\n    def f(self):\n        return self.EXCEPTIONS_TO_RETRY",
            "R: EXCEPTIONS_TO_RETRY",
        ),
        ("class D(RFPDupeFilter):\n    def f(self, x):\n        self.fingerprints.add(x)", "D: fingerprints.add"),
        ("class S(Spider):\n    def f(self):\n        return super(S, self).start_requests()", "S: start_requests"),
        ("class S(Spider):\n    def f(self):\n        return self.start_requests()", ""),
        ("class Part(ImagesPipeline):\n    def __init__(self, store_uri): ...", "Part.__init__ without crawler"),
        ("class Part(ImagesPipeline):\n    def __init__(self, *args, **kwargs): ...", ""),
        ("from scrapy.contrib.pipeline import images", "scrapy.contrib.old.Part"),
    ],
)
def test_scrapy_is_one_that_has_what_the_code_takes_from_its_bases(tmp_path: Path, code: str, told: str) -> None:
    old = ", 'scrapy.contrib.old.Part': None" if "contrib" in told else ""
    _made(tmp_path, "", settings=f"ITEM_PIPELINES = {{'made.parts.Part': 1{old}}}")
    (tmp_path / "made" / "parts.py").write_text(code)
    (tmp_path / "setup.py").write_text("import setuptools")
    requirements, notes = requirements_of(read_project(tmp_path))
    assert requirements[0] == ("scrapy==2.11.*" if told else "scrapy==2.19.*")
    assert any(f"the newest does without {told}" in note for note in notes) == bool(told)
    assert not [note for note in notes if "setuptools" in note]


def test_a_spider_may_derive_from_a_class_elsewhere(tmp_path: Path) -> None:
    text = """
from scrapy import Spider as Base
from shop import Shop
class One(Base):
    name = "one"
    start_urls = ["http://a"]
class Two(Shop):
    name = "two"
    def start_requests(self): ...
class Writer(Shop):
    name = "no spider"
class Plain(object):
    name = "none either"
    start_urls = []
"""
    (tmp_path / "all.py").write_text(text)
    assert _names(read_project(tmp_path / "all.py")) == ["one", "two"]


def test_packages_of_settings_are_required(tmp_path: Path) -> None:
    settings = (
        'ITEM_PIPELINES = {"scrapy.pipelines.images.ImagesPipeline": 1, "made.pipelines.Own": 2}\n'
        'DOWNLOADER_MIDDLEWARES = {"scrapy_user_agents.middlewares.RandomUserAgentMiddleware": 1, "odd.Thing": None}\n'
    )
    requirements, notes = requirements_of(_made(tmp_path, "scrapy", settings=settings))
    assert sorted(requirements) == ["pillow", "scrapy", "scrapy-user-agents"]
    assert "DOWNLOADER_MIDDLEWARES names odd: add its package to the requirements of the manifest" in notes
    assert not [note for note in notes if "made" in note]


def test_a_pipeline_of_images_brings_pillow(tmp_path: Path) -> None:
    project = _made(tmp_path, "scrapy", "from scrapy.pipelines.images import ImagesPipeline")
    assert requirements_of(project)[0] == ["scrapy", "pillow"]


def test_code_for_old_versions_is_told(tmp_path: Path) -> None:
    spider = "from scrapy.contrib.spiders import CrawlSpider\nfrom scrapy import log\nimport urlparse"
    done = write_scrapers(_made(tmp_path / "made", "scrapy", spider), tmp_path / "to")
    assert [note.partition(":")[0] for note in done.notes] == [
        "made/spiders/two.py is no Python 3 that can be read",
        "made/spiders/one.py imports urlparse",
        "made/spiders/one.py imports scrapy.contrib",
        "made/spiders/one.py imports scrapy.log",
    ]
