"""Scrapers of installed packages: found without importing, imported elsewhere, written as folders like any other."""

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.model import Limits, Scraper
from scrapeyard.repository.archive.copies import Cache
from scrapeyard.repository.archive.files import scraper_files
from scrapeyard.repository.catalogue.loading import LoadTerms, load_files
from scrapeyard.repository.sources.installed import discovery
from scrapeyard.repository.sources.installed import source as installed
from scrapeyard.repository.sources.installed.discovery import Discovered
from scrapeyard.repository.sources.installed.packages import Package, is_readable_to_children
from scrapeyard.repository.sources.installed.source import InstalledSource
from scrapeyard.repository.sources.port import Offer, Release
from tests.leaks import PATIENCE, processes, until
from tests.services.packages import MODULE, install


@pytest.fixture
def site(tmp_path: Path) -> Path:
    place = tmp_path / "site"
    place.mkdir()
    return place


@pytest.fixture
def source(tmp_path: Path, site: Path) -> InstalledSource:
    return yard(tmp_path, site)


def yard(tmp_path: Path, site: Path) -> InstalledSource:
    return InstalledSource(tmp_path / "home", search=(site,), is_readable=lambda _: True, seconds=PATIENCE)


async def offer(source: InstalledSource, mark: str = "") -> Offer:
    found = await source.poll(mark)
    assert found is not None
    return found


async def load(source: InstalledSource, release: Release, tmp_path: Path) -> Scraper:
    folder = tmp_path / f"fetched-{release.mark[:8]}"
    folder.mkdir()
    where = await source.fetch(release, folder)
    files = scraper_files(where, where.resolve(), release.place)
    return load_files(files, Cache(tmp_path / "cache"), LoadTerms(ceiling=Limits()), release.place)


async def test_a_decorated_function_becomes_a_scraper(source: InstalledSource, site: Path, tmp_path: Path) -> None:
    install(site, "parcel", {"echoes": MODULE}, {"echoes": "parcel.echoes"})
    found = await offer(source)
    assert found.faults == ()
    (release,) = found.releases
    assert (release.id, release.version, release.place) == ("parcel/echo", "1.0.0", "parcel 1.0.0, parcel.echoes:echo")
    scraper = await load(source, release, tmp_path)
    assert scraper.input_schema == {
        "type": "object",
        "properties": {"text": {"type": "string"}, "times": {"type": "integer", "default": 1}},
        "required": ["text"],
        "additionalProperties": False,
    }
    assert scraper.description == "Says it again."
    assert scraper.limits.wall_seconds == 5
    assert scraper.config == {"greeting": "hello é \x7f"}
    assert "parcel" not in sys.modules
    assert list((tmp_path / "home").iterdir()) == []
    assert not list(site.rglob("__pycache__"))


async def test_a_registered_class_becomes_a_scraper(source: InstalledSource, site: Path, tmp_path: Path) -> None:
    module = """
        from scrapeyard_sdk import BaseHttpScraper, registry

        @registry.register("county-az", version="1.0.0")
        class CountyScraper(BaseHttpScraper):
            '''One parcel.'''
            async def scrape(self, parcel_id: str, history: bool = False) -> dict: ...
        """
    install(site, "parcel", {"county": module}, {"county": "parcel.county"})
    found = await offer(source)
    assert found.faults == ()
    (release,) = found.releases
    scraper = await load(source, release, tmp_path)
    assert (scraper.ref.id, scraper.description) == ("county-az/scrape", "One parcel.")
    assert scraper.input_schema is not None
    assert scraper.input_schema["required"] == ["parcel_id"]


async def test_every_word_of_the_decorator_reaches_the_scraper(
    source: InstalledSource, site: Path, tmp_path: Path
) -> None:
    module = """
        from scrapeyard_sdk import scraper

        @scraper(
            "parcel/all", version="2.0.0-rc.1", name='A "quoted" name', description="Told.",
            input={"type": "object", "properties": {"x": {"const": None}}}, output={"type": "array"},
            capabilities=["http"], allowed_hosts=["shop.example"], lane="heavy",
            config={"key": {"secret": "api_key"}, "deep": [{"a b": [1, 2.5, True]}]},
            policy={"retries": 2, "priority": "low"}, limits={"memory_mb": 64},
        )
        async def everything(ctx): ...

        def validate_result(result): ...
    """
    install(site, "parcel", {"m": module}, {"m": "parcel.m:everything"})
    (release,) = (await offer(source)).releases
    scraper = await load(source, release, tmp_path)
    assert scraper.name == 'A "quoted" name'
    assert scraper.description == "Told."
    assert scraper.input_schema == {"type": "object", "properties": {"x": {"const": None}}}
    assert scraper.output_schema == {"type": "array"}
    assert (scraper.capabilities, scraper.allowed_hosts, scraper.lane) == (("http",), ("shop.example",), "heavy")
    assert scraper.config == {"key": {"secret": "api_key"}, "deep": [{"a b": [1, 2.5, True]}]}
    assert (scraper.policy.retries, scraper.policy.priority, scraper.limits.memory_mb) == (2, "low", 64)
    assert scraper.folder is not None
    assert "import validate_result" in (scraper.folder / "scraper.py").read_text()


async def test_an_unchanged_installation_is_not_imported_again(
    source: InstalledSource, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "trace"
    module = MODULE + f"\nwith open({str(trace)!r}, 'a') as stream:\n    stream.write('x')\n"
    install(site, "parcel", {"echoes": module}, {"echoes": "parcel.echoes"})
    first = await offer(source)
    assert await source.poll(first.mark) is None
    assert await source.poll("") == first
    install(site, "other", {"m": MODULE.replace("parcel/", "other/")}, {"m": "other.m"})
    assert len((await offer(source, first.mark)).releases) == 2
    assert trace.read_text() == "x"


async def test_an_upgrade_and_an_edit_change_the_digest(source: InstalledSource, site: Path, tmp_path: Path) -> None:
    install(site, "parcel", {"echoes": MODULE, "inner": "x = 1"}, {"echoes": "parcel.echoes"})
    before = await offer(source)
    digests = {(await load(source, before.releases[0], tmp_path)).ref.digest}
    install(site, "parcel", {"echoes": MODULE, "inner": "x = 2"}, {"echoes": "parcel.echoes"}, "1.0.1")
    after = await offer(source, before.mark)
    digests.add((await load(source, after.releases[0], tmp_path)).ref.digest)
    (site / "parcel" / "echoes.py").write_text(MODULE.replace("Says", "Tells"))
    edited = await offer(source, after.mark)
    scraper = await load(source, edited.releases[0], tmp_path)
    digests.add(scraper.ref.digest)
    assert len(digests) == 3
    assert scraper.description == "Tells it again."
    with pytest.raises(SourceUnavailable):
        await source.fetch(before.releases[0], tmp_path)


async def test_a_removed_package_is_no_longer_offered(source: InstalledSource, site: Path) -> None:
    install(site, "parcel", {"echoes": MODULE}, {"echoes": "parcel.echoes"})
    before = await offer(source)
    (site / "parcel-1.0.0.dist-info" / "entry_points.txt").unlink()
    os.utime(site)
    assert (await offer(source, before.mark)).releases == ()


async def test_what_was_offered_to_an_earlier_process_can_be_fetched(
    source: InstalledSource, site: Path, tmp_path: Path
) -> None:
    install(site, "parcel", {"echoes": MODULE}, {"echoes": "parcel.echoes"})
    (release,) = (await offer(source)).releases
    later = yard(tmp_path, site)
    assert (await load(later, release, tmp_path)).ref.id == "parcel/echo"


BROKEN = {
    "raises": ("raise ValueError('no good')", "ValueError: no good"),
    "imports": ("import not_there_at_all", "ModuleNotFoundError: No module named 'not_there_at_all'"),
    "syntax": ("def (", "SyntaxError"),
    "leaves": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "dies": ("import os; os._exit(4)", "ended with 4"),
    "hangs": ("while True: pass", "took longer than"),
    "nothing": ("x = 1", "no function there has @scraper"),
    "not_json": (
        "from scrapeyard_sdk import scraper\n@scraper('a/b', version='1.0.0', config={'x': object()})\ndef f(ctx): ...",
        "not JSON",
    ),
    "inner": (
        "from scrapeyard_sdk import scraper\ndef outer():\n    @scraper('a/b', version='1.0.0')\n"
        "    def f(ctx): ...\n    return f\ng = outer()",
        "top level",
    ),
    "id": ("from scrapeyard_sdk import scraper\n@scraper('A', version='1.0.0')\ndef f(ctx): ...", "site/task"),
    "number": ("from scrapeyard_sdk import scraper\n@scraper('a/b', version='1')\ndef f(ctx): ...", "semantic"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_package_is_a_fault_and_the_others_go_on(
    site: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the one that hangs has little time."""
    if name == "hangs":
        discover = installed.discover

        async def hurried(package: Package, *given: Any) -> Discovered:
            return await discover(package, *given[:-1], 1 if package.name == "broken" else PATIENCE)

        monkeypatch.setattr(installed, "discover", hurried)
    text, problem = BROKEN[name]
    install(site, "broken", {"m": text}, {"m": "broken.m"})
    install(site, "parcel", {"echoes": MODULE}, {"echoes": "parcel.echoes"})
    source = yard(tmp_path, site)
    found = await offer(source)
    assert [release.id for release in found.releases] == ["parcel/echo"]
    (fault,) = found.faults
    assert problem in fault.problem
    assert "broken" in fault.place
    assert await source.poll(found.mark) is None


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("broken.m:nothing", "AttributeError"),
        ("broken.m:plain", "plain has no @scraper"),
        ("broken.none", "ModuleNotFoundError"),
        ("bro ken; import os", "not a module's name"),
        ("broken.m:f[extra]", "not a module's name"),
    ],
)
async def test_an_announcement_that_leads_nowhere_is_a_fault(
    source: InstalledSource, site: Path, value: str, problem: str
) -> None:
    install(site, "broken", {"m": "def plain(ctx): ..."}, {"m": value})
    (fault,) = (await offer(source)).faults
    assert problem in fault.problem


async def test_a_function_that_no_input_can_call_is_invalid(
    source: InstalledSource, site: Path, tmp_path: Path
) -> None:
    for number, (head, problem) in enumerate(
        (("def f():", "takes no ctx"), ("def f(ctx, *rest):", "cannot be filled"))
    ):
        text = f"from scrapeyard_sdk import scraper\n@scraper('a/b', version='1.0.{number}')\n{head} ..."
        install(site, "parcel", {"m": text}, {"m": "parcel.m"}, f"1.0.{number}")
        (release,) = (await offer(source)).releases
        with pytest.raises(ScraperInvalid, match=problem):
            await load(source, release, tmp_path)


async def test_the_same_version_in_two_packages_is_a_fault(source: InstalledSource, site: Path) -> None:
    for name in ("one", "two"):
        install(site, name, {"m": MODULE}, {"m": f"{name}.m"})
    found = await offer(source)
    assert [release.place for release in found.releases] == ["one 1.0.0, one.m:echo"]
    assert "announced by one" in found.faults[0].problem
    assert found.faults[0].id == "parcel/echo"


async def test_an_import_sees_nothing_of_ours(
    source: InstalledSource, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://user:password@127.0.0.1/x")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    module = """
        import json, os, sys
        from scrapeyard_sdk import scraper
        print("noise")
        sys.stderr.write("noise")
        seen = {"environment": sorted(os.environ), "files": os.listdir(), "open": len(os.listdir("/proc/self/fd"))}

        @scraper("parcel/seen", version="1.0.0", config=seen)
        def f(ctx): ...
    """
    install(site, "parcel", {"m": module}, {"m": "parcel.m"})
    (release,) = (await offer(source)).releases
    seen = (await load(source, release, tmp_path)).config
    assert set(seen["environment"]) <= {"HOME", "LANG", "LC_CTYPE", "PATH", "TMPDIR"}
    assert seen["files"] == []
    assert seen["open"] < 12


async def test_too_much_told_is_cut_off(source: InstalledSource, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "MAX_OUTPUT", 10_000)
    much = "config={'x': 'y' * 10**6}"
    text = f"from scrapeyard_sdk import scraper\n@scraper('a/b', version='1.0.0', {much})\ndef f(ctx): ..."
    install(site, "parcel", {"m": text}, {"m": "parcel.m"})
    (fault,) = (await offer(source)).faults
    assert "tells more than" in fault.problem


async def test_processes_that_an_import_starts_are_ended(source: InstalledSource, site: Path, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    text = f"""
        import subprocess
        child = subprocess.Popen(["sleep", "1000"])
        open({str(pid_file)!r}, "w").write(str(child.pid))
    """
    install(site, "parcel", {"m": text}, {"m": "parcel.m"})
    await offer(source)
    started = processes().get(int(pid_file.read_text()))
    until(lambda: started is None or not started.lives, "the process of the import is gone")


async def test_odd_metadata_of_strangers_is_passed_over(source: InstalledSource, site: Path) -> None:
    install(site, "parcel", {"echoes": MODULE}, {"echoes": "parcel.echoes"})
    for number, content in enumerate((b"\xff\xfe", b"no section = x\n[a\n", b"[scrapeyard.scrapers]\nx", b"")):
        info = site / f"odd{number}-1.dist-info"
        info.mkdir()
        (info / "entry_points.txt").write_bytes(content)
        (info / "METADATA").write_bytes(b"\x00" * 100)
    assert [release.id for release in (await offer(source)).releases] == ["parcel/echo"]


async def test_no_package_no_process(source: InstalledSource, tmp_path: Path) -> None:
    found = await offer(source)
    assert (found.releases, found.faults) == ((), ())
    assert await source.poll(found.mark) is None
    assert not (tmp_path / "home").exists()


async def test_a_module_that_children_cannot_read_is_a_fault(tmp_path: Path, site: Path) -> None:
    """As after an editable install: its folder is outside of the interpreter's libraries."""
    install(site, "parcel", {"echoes": MODULE}, {"echoes": "parcel.echoes"})
    found = await offer(InstalledSource(tmp_path / "home", search=(site,)))
    assert found.releases == ()
    assert "editable install" in found.faults[0].problem
    assert str(tmp_path) not in found.faults[0].problem
    assert is_readable_to_children(Path(inspect.__file__))


def test_the_decorator_leaves_the_function_as_it_is() -> None:
    program = (
        "import sys\n"
        "from scrapeyard_sdk.registry import scraper\n"
        "def f(ctx, x): return x\n"
        "g = scraper('a/b', version='1.0.0')(f)\n"
        "assert g is f and g(None, 3) == 3\n"
        "print(sorted(name for name in sys.modules if 'selectolax' in name))\n"
    )
    told = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
