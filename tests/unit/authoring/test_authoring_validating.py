"""Every point that `validate` makes."""

from pathlib import Path

import pytest

from scrapeyard.authoring.certifying import TIGHT, headroom
from scrapeyard.authoring.findings import Finding, is_good, scraper_folder, scraper_folders
from scrapeyard.authoring.testing import CaseReport, offline
from scrapeyard.authoring.validating import check_files
from scrapeyard.errors import BadRequest
from scrapeyard.model import ExitReason, Limits, Outcome, Scraper, ScraperRef, Usage

SCRIPT = "def run(ctx, url: str, n: int = 1): ...\n"
MANIFEST = """
id = "a/b"
version = "1.0.0"
description = "x"
allowed_hosts = ["x.example"]
[output]
type = "object"
"""


def findings(folder: Path, manifest: str = MANIFEST, script: str = SCRIPT) -> list[Finding]:
    folder.mkdir(exist_ok=True)
    (folder / "scraper.toml").write_text(manifest)
    (folder / "scraper.py").write_text(script)
    return check_files(folder, Limits())[1]


def test_a_good_one_lacks_only_cases(tmp_path: Path) -> None:
    odd = [finding for finding in findings(tmp_path) if finding.state != "ok"]
    assert [(finding.point, finding.state) for finding in odd] == [("tests", "warn")]


@pytest.mark.parametrize(
    ("manifest", "script", "point", "state", "said"),
    [
        ("id = 1\nversion = '1.0.0'", SCRIPT, "manifest", "fail", "id: must be site/task"),
        (MANIFEST, "def run(ctx:", "compiles", "fail", "scraper.py:1"),
        (MANIFEST, "def run(ctx, url: str): '\\d'", "compiles", "warn", "invalid escape"),
        (MANIFEST, "def other(ctx): ...", "entry", "fail", "no function run"),
        (MANIFEST, "from other import run", "entry", "fail", "no function run"),
        (MANIFEST + "[input]", "from other import run", "entry", "ok", ""),
        ('entry = "x.py:run"\n' + MANIFEST, SCRIPT, "entry", "fail", "x.py"),
        ('requirements = ["-r x"]\n' + MANIFEST, SCRIPT, "manifest", "fail", "requirements"),
        ('allowed_hosts = ["http://x"]\nid = "a/b"\nversion = "1.0.0"', SCRIPT, "manifest", "fail", "not a host"),
        (MANIFEST.replace('description = "x"', ""), SCRIPT, "description", "warn", "none"),
        (MANIFEST.replace("[output]\ntype", "[output]\nkind"), SCRIPT, "output", "ok", ""),
        (MANIFEST.partition("[output]")[0], SCRIPT, "output", "warn", "any result is good"),
        (MANIFEST.replace("[output]", "[output]\nminimum = 'x'"), SCRIPT, "manifest", "fail", "output"),
        (MANIFEST.replace('allowed_hosts = ["x.example"]', ""), SCRIPT, "hosts", "warn", "any host"),
        (MANIFEST.replace("1.0.0", "1.0.0-rc.1"), SCRIPT, "version", "warn", "before a release"),
        ('network = "direct"\n' + MANIFEST, SCRIPT, "network", "warn", "operator"),
        (MANIFEST + "[limits]\nmemory_mb = 9999", SCRIPT, "limits", "warn", "memory_mb 9999 → 512"),
        (MANIFEST, "def run(ctx, url, n=1): ...", "input", "warn", "url, n without a type hint"),
        (MANIFEST, "def run(ctx): ...", "input", "warn", "any object"),
        (
            MANIFEST + "[input.properties]\nx.type = 'string'\n[input]\nrequired = ['url']",
            SCRIPT,
            "input",
            "fail",
            "has x, which run",
        ),
        (MANIFEST + "[input.properties]\nurl.type = 'string'", SCRIPT, "input", "warn", "run needs url"),
    ],
)
def test_each_point(tmp_path: Path, manifest: str, script: str, point: str, state: str, said: str) -> None:
    found = {finding.point: finding for finding in findings(tmp_path, manifest, script)}
    if state == "ok":
        assert point not in found or found[point].state == "ok"
        return
    assert (found[point].state, said in found[point].detail) == (state, True), found[point]
    assert state == "fail" or found[point].remedy


def test_every_python_file_is_compiled_and_none_is_run(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "late.py").write_text("x = (")
    (tmp_path / "boom.py").write_text("raise SystemExit(9)")
    found = [finding for finding in findings(tmp_path) if finding.state == "fail"]
    assert [finding.point for finding in found] == ["compiles"]
    assert "late.py" in found[0].detail


def test_a_folder_that_leads_out_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "x.py").symlink_to("/etc/passwd")
    assert not is_good(findings(folder))


def test_copies_of_a_server_that_ran_here_are_not_the_authors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("shop/product", "scrapeyard-data/cache/scrapers/0123"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "scraper.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert scraper_folders([Path()]) == [Path("shop/product")]


def test_paths_name_one_scraper_or_many(tmp_path: Path) -> None:
    for name in ("a", "b"):
        findings(tmp_path / name)
    assert scraper_folders([tmp_path, tmp_path / "a"]) == [tmp_path / "a", tmp_path / "b"]
    assert scraper_folder(tmp_path / "a" / "scraper.toml") == tmp_path / "a"
    with pytest.raises(BadRequest, match="2 scrapers"):
        scraper_folder(tmp_path)
    (tmp_path / "empty").mkdir()
    for wrong in (tmp_path / "empty", tmp_path / "none"):
        with pytest.raises(BadRequest):
            scraper_folders([wrong])


def test_tests_have_neither_network_nor_secrets() -> None:
    scraper = Scraper(
        ref=ScraperRef(id="a/b", version="1.0.0"),
        folder=None,
        network="direct",
        config={"key": {"secret": "x"}, "n": 1},
    )
    assert (offline(scraper).network, offline(scraper).config) == ("engines", {"key": "secret-x", "n": 1})


def test_headroom_tells_the_case_that_used_most() -> None:
    def report(name: str, **usage: float) -> CaseReport:
        outcome = Outcome(run_id="r", attempt=1, exit_reason=ExitReason.SUCCEEDED, usage=Usage(**usage))  # type: ignore[arg-type]
        return CaseReport(name=name, outcome=outcome)

    reports = [
        report("small", memory_mb=1.0),
        report("large", memory_mb=450.0, wall_ms=10.0),
        CaseReport(name="unread"),
    ]
    room = {each.limit: each for each in headroom(Limits(), reports)}
    assert (room["memory_mb"].case, room["memory_mb"].percent > TIGHT) == ("large", True)
    assert room["wall_seconds"].used == 0.01
    assert headroom(Limits(), [CaseReport(name="unread")]) == []
