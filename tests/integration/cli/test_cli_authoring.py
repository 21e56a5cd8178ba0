"""The author's loop by the real program: new, test, record, certify; and everything that can be wrong on the way."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_stand import Stand, on_terminal

MANIFEST = """
id = "lab/{name}"
version = "1.0.0"
description = "x"
allowed_hosts = ["127.0.0.1"]
[output]
"""


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    stand = Stand(tmp_path_factory.mktemp("authoring"))
    yield stand
    assert list(stand.temporary.iterdir()) == [], "a command left temporary files"


@pytest.fixture(scope="module")
def shop(stand: Stand) -> Iterator[str]:
    with stand.serving("demo-site", "--port", "0", says=b"open at ") as url:
        yield url.rstrip("/")


def scraper(folder: Path, script: str, more: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "scraper.py").write_text(script)
    (folder / "scraper.toml").write_text(more + MANIFEST.format(name=folder.name))
    return folder


@pytest.fixture(scope="module")
def recorded(stand: Stand, shop: str) -> Path:
    """A new scraper with one case of its own, recorded from the shop that is open here."""
    folder = stand.folder / "recorded"
    assert stand.cli("new", "lab/page", "--dir", str(folder)).status == 0
    shutil.rmtree(folder / "tests")
    words = ("record", str(folder), "--url", f"{shop}/product/1", "--name", "lamp", "--allow-private")
    assert stand.cli(*words).status == 0
    return folder


@pytest.fixture
def page(recorded: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return shutil.copytree(recorded, tmp_path / "page")


@pytest.mark.parametrize("template", ["http", "generator"])
def test_a_new_scraper_passes_its_test_at_once_and_offline(stand: Stand, tmp_path: Path, template: str) -> None:
    assert stand.cli("new", "lab/one", "--template", template, "--folder", str(tmp_path / "one")).status == 0
    ended = stand.cli("test", str(tmp_path / "one"))
    assert (ended.status, ended.out.split()[0]) == (0, "pass"), ended.out
    assert "passed: 1, failed: 0" in ended.err
    valid = stand.cli("validate", str(tmp_path), "--json")
    assert (valid.status, valid.json[0]["valid"]) == (0, True)
    assert {point["state"] for point in valid.json[0]["points"]} == {"ok"}
    assert "loads" in {point["point"] for point in valid.json[0]["points"]}


def test_packages_that_cannot_be_had_are_told_apart_from_a_script_that_cannot_be_loaded(
    stand: Stand, tmp_path: Path
) -> None:
    scraper(tmp_path / "needy", "def run(ctx, n: int): ...\n", 'requirements = ["no-such-package"]\n')
    scraper(tmp_path / "broken", "def run(ctx, n: int): ...\nraise ValueError('at the top')\n")
    ended = stand.cli("validate", str(tmp_path), "--json", SCRAPEYARD_ENVIRONMENTS__OFFLINE="true")
    assert ended.status == 1
    broken, needy = (each["points"][-1] for each in ended.json)
    assert (needy["point"], "no-such-package" in needy["detail"]) == ("requirements", True)
    assert "requirements" in needy["remedy"]
    assert (broken["point"], "at the top" in broken["detail"]) == ("loads", True)
    assert "top level" in broken["remedy"]


def test_the_loop_from_new_to_certified(stand: Stand, shop: str, page: Path) -> None:
    first = stand.cli("certify", str(page))
    assert first.status == 1
    assert "different inputs: 1; a release needs 3" in first.out
    assert "→ `scrapeyard record` another input" in first.out
    for number in (2, 3):
        ended = stand.cli("record", str(page), f"url={shop}/product/{number}", "--allow-private")
        assert ended.status == 0
        assert f"recorded product-{number}: succeeded, 1 page" in ended.err
    last = stand.cli("certify", str(page))
    assert last.status == 0, last.out
    assert last.out.splitlines()[-1].strip() == "certified"
    assert "memory_mb" in last.out


def test_what_is_recorded(page: Path, shop: str) -> None:
    case = page / "tests" / "lamp"
    assert json.loads((case / "input.json").read_text()) == {"url": f"{shop}/product/1"}
    assert json.loads((case / "expected.json").read_text())["title"] == "Aurora Lamp"
    cassette = json.loads((case / "cassette.json").read_text())
    assert cassette["pages"] == [
        {
            "method": "GET",
            "url": f"{shop}/product/1",
            "status": 200,
            "headers": [["content-type", "text/html; charset=utf-8"]],
            "encoding": "utf-8",
            "file": "001-product-1.html",
        }
    ]
    assert "<h1>Aurora Lamp</h1>" in (case / "pages" / "001-product-1.html").read_text()
    assert not (case / "case.toml").exists()


def test_a_case_is_overwritten_only_by_force_and_keeps_what_it_ignores(stand: Stand, shop: str, page: Path) -> None:
    words = ("record", str(page), "--input", json.dumps({"url": f"{shop}/product/2"}), "--name", "lamp")
    refused = stand.cli(*words, "--allow-private")
    assert (refused.status, "--force" in refused.err) == (2, True)
    (page / "tests" / "lamp" / "case.toml").write_text('ignore = ["title"]\n')
    assert stand.cli(*words, "--allow-private", "--force").status == 0
    assert (page / "tests" / "lamp" / "case.toml").read_text() == 'ignore = ["title"]\n'
    assert json.loads((page / "tests" / "lamp" / "input.json").read_text()) == {"url": f"{shop}/product/2"}


def test_a_bad_end_is_recorded_only_when_it_is_asked_for(stand: Stand, shop: str, page: Path) -> None:
    words = ("record", str(page), f"url={shop}/status/500", "--name", "broken", "--allow-private")
    refused = stand.cli(*words)
    assert (refused.status, "--ends failed records it so" in refused.err) == (1, True)
    assert not (page / "tests" / "broken").exists()
    assert stand.cli(*words, "--ends", "failed").status == 0
    assert (page / "tests" / "broken" / "case.toml").read_text() == 'ends = "failed"\n'
    assert stand.cli("test", str(page), "--case", "broken").status == 0


def test_what_cannot_be_replayed_is_not_recorded(stand: Stand, shop: str, page: Path, tmp_path: Path) -> None:
    private = stand.cli("record", str(page), f"url={shop}/product/1")
    assert (private.status, "fetch_private_address" in private.err) == (1, True)
    folder = scraper(tmp_path / "boom", "def run(ctx):\n    raise ValueError('boom')\n")
    ended = stand.cli("record", str(folder), "--ends", "script_error")
    assert (ended.status, "cannot be replayed" in ended.err, "boom" in ended.err) == (1, True, True)
    assert not (folder / "tests").exists()


def test_failed_fetches_are_recorded_and_replayed(stand: Stand, shop: str, tmp_path: Path) -> None:
    script = """
from scrapeyard_sdk import FetchError

def run(ctx, url: str):
    try:
        ctx.fetch(url, timeout=0.2)
    except FetchError as error:
        return {"reason": error.reason, "message": error.message}
"""
    folder = scraper(tmp_path / "slow", script)
    assert stand.cli("record", str(folder), f"url={shop}/slow?seconds=10", "--allow-private").status == 0
    expected = json.loads((folder / "tests" / "slow-seconds-10" / "expected.json").read_text())
    assert expected["reason"] == "fetch_timeout"
    assert stand.cli("test", str(folder)).status == 0


def test_an_unknown_request_fails_with_the_nearest_even_if_the_script_goes_on(
    stand: Stand, shop: str, page: Path
) -> None:
    script = (page / "scraper.py").read_text()
    (page / "scraper.py").write_text(
        script.replace(
            "    ctx.log(",
            "    try:\n        await ctx.fetch(url + '0')\n    except Exception:\n        pass\n    ctx.log(",
        )
    )
    ended = stand.cli("test", str(page))
    assert ended.status == 1
    asked = (
        f"asked for what was not recorded: GET {shop}/product/10 is not on the cassette; nearest: GET {shop}/product/1"
    )
    assert asked in ended.out
    assert stand.cli("test", str(page), "--update").status == 1


def test_a_recorded_page_that_is_not_asked_for_is_a_warning_and_no_certificate(stand: Stand, page: Path) -> None:
    path = page / "tests" / "lamp" / "cassette.json"
    cassette = json.loads(path.read_text())
    cassette["pages"].append({"method": "GET", "url": "http://127.0.0.1:8800/more", "status": 404})
    path.write_text(json.dumps(cassette))
    ended = stand.cli("test", str(page))
    assert (ended.status, "never asked for: GET http://127.0.0.1:8800/more" in ended.out) == (0, True)
    assert "recorded pages that are never asked for: lamp" in stand.cli("certify", str(page)).out


def test_another_result_shows_a_diff_and_update_takes_it(stand: Stand, page: Path) -> None:
    script = (page / "scraper.py").read_text()
    (page / "scraper.py").write_text(script.replace('page.text("h1")', 'page.text("h1").upper()'))
    ended = stand.cli("test", str(page))
    assert ended.status == 1
    lines = [line.strip() for line in ended.out.splitlines()]
    assert '-  "title": "Aurora Lamp",' in lines
    assert '+  "title": "AURORA LAMP",' in lines
    document = stand.cli("test", str(page), "--json").json[0]
    assert (document["passed"], document["cases"][0]["exit_reason"]) == (False, "succeeded")
    updated = stand.cli("test", str(page), "--update")
    assert (updated.status, updated.out.split()[0]) == (0, "new")
    assert stand.cli("test", str(page)).status == 0
    assert json.loads((page / "tests" / "lamp" / "expected.json").read_text())["title"] == "AURORA LAMP"


def test_a_terminal_gets_colours(stand: Stand, page: Path) -> None:
    (page / "tests" / "lamp" / "expected.json").write_text("{}")
    status, shown = on_terminal(stand, "test", str(page))
    assert status == 1
    assert "\x1b[31mfail" in shown
    assert "\x1b[32m+" in shown


def test_fields_that_change_are_ignored_and_found_by_certify(stand: Stand, tmp_path: Path) -> None:
    script = "import time\ndef run(ctx, n: int):\n    return {'n': n, 'items': [{'at': time.monotonic_ns()}]}\n"
    folder = scraper(tmp_path / "clock", script, "")
    for number in range(3):
        assert stand.cli("record", str(folder), f"n={number}", "--name", f"n{number}").status == 0
    assert stand.cli("test", str(folder)).status == 1
    certificate = stand.cli("certify", str(folder), "--json").json[0]
    states = {point["point"]: point["state"] for point in certificate["points"]}
    assert (states["deterministic"], states["cases"], certificate["certified"]) == ("fail", "fail", False)
    for case in (folder / "tests").iterdir():
        (case / "case.toml").write_text('ignore = ["items[].at"]\n')
    assert stand.cli("certify", str(folder)).status == 0


def test_artifacts_are_part_of_a_case(stand: Stand, tmp_path: Path) -> None:
    folder = scraper(tmp_path / "keep", "def run(ctx, name: str):\n    ctx.artifact(name, b'x')\n    return {}\n")
    assert stand.cli("record", str(folder), "name=a.txt", "--name", "one").status == 0
    assert (folder / "tests" / "one" / "case.toml").read_text() == 'artifacts = ["a.txt"]\n'
    (folder / "tests" / "one" / "input.json").write_text('{"name": "b.txt"}')
    ended = stand.cli("test", str(folder))
    assert (ended.status, "kept the artifacts b.txt, not a.txt" in ended.out) == (1, True)


def test_secrets_stay_out_of_a_case_and_are_not_needed_to_replay_it(stand: Stand, shop: str, tmp_path: Path) -> None:
    script = """
def run(ctx, url: str):
    page = ctx.fetch(url, params={"q": ctx.config["key"]})
    return {"found": page.text(".blurb"), "key": ctx.config["key"]}
"""
    folder = scraper(tmp_path / "secret", script)
    with (folder / "scraper.toml").open("a") as manifest:
        manifest.write('[config]\nkey = { secret = "shop" }\n')
    secrets = tmp_path / "secrets.toml"
    secrets.write_text('["lab/secret"]\nshop = "hunter-22"\n')
    secrets.chmod(0o600)
    words = ("record", str(folder), f"url={shop}/search", "--allow-private")
    ended = stand.cli(*words, SCRAPEYARD_REPOSITORY__SECRETS_FILE=str(secrets))
    assert ended.status == 0, ended.err
    kept = [path.read_text() for path in (folder / "tests").rglob("*") if path.is_file()]
    assert not any("hunter-22" in text for text in kept)
    assert any("q=secret-shop" in text for text in kept)
    assert stand.cli("test", str(folder)).status == 0


def test_a_scraper_that_is_granted_the_network_has_none_in_a_test(stand: Stand, shop: str, tmp_path: Path) -> None:
    script = """
import urllib.request

def run(ctx, url: str):
    try:
        return {"reached": urllib.request.urlopen(url, timeout=5).status}
    except OSError as error:
        return {"reached": None}
"""
    folder = scraper(tmp_path / "direct", script, 'network = "direct"\n')
    case = folder / "tests" / "out"
    case.mkdir(parents=True)
    (case / "input.json").write_text(json.dumps({"url": f"{shop}/"}))
    (case / "expected.json").write_text('{"reached": null}')
    (case / "cassette.json").write_text('{"format": 1, "pages": []}')
    ended = stand.cli("test", str(folder), SCRAPEYARD_SANDBOX__DIRECT_NETWORK="lab/direct")
    assert ended.status == 0, ended.out


def test_limits_hold_in_a_test(stand: Stand, page: Path) -> None:
    (page / "scraper.py").write_text("def run(ctx, url: str):\n    while True: pass\n")
    manifest = (page / "scraper.toml").read_text().replace("wall_seconds = 30", "wall_seconds = 0.5")
    (page / "scraper.toml").write_text(manifest)
    ended = stand.cli("test", str(page))
    assert (ended.status, "ended as timeout, not as succeeded" in ended.out) == (1, True)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("cassette.json", "{", "not JSON"),
        (
            "cassette.json",
            '{"format": 1, "pages": [{"method": "GET", "url": "x", "status": 200, "file": "../x"}]}',
            "file",
        ),
        ("input.json", '{"url": 3}', "does not fit the schema"),
        ("expected.json", "nope", "not JSON"),
        ("case.toml", "x = 1", "no such key"),
    ],
)
def test_a_broken_case_fails_in_words(stand: Stand, page: Path, file: str, text: str, said: str) -> None:
    (page / "tests" / "lamp" / file).write_text(text)
    ended = stand.cli("certify", str(page))
    assert (ended.status, "fail cases" in ended.out) == (1, True)
    ended = stand.cli("test", str(page))
    assert (ended.status, said in ended.out) == (1, True)
    assert "Traceback" not in ended.out + ended.err


def test_validate_tells_of_every_scraper_and_loads_their_scripts(stand: Stand, tmp_path: Path) -> None:
    scraper(tmp_path / "good", "def run(ctx, url: str): ...\n")
    scraper(tmp_path / "late", "import nothing_of_the_kind\ndef run(ctx, url: str): ...\n")
    scraper(tmp_path / "wrong", "def run(ctx, url: str):\n")
    ended = stand.cli("validate", str(tmp_path), "--json")
    found = {Path(each["folder"]).name: each for each in ended.json}
    assert (ended.status, {name: each["valid"] for name, each in found.items()}) == (
        1,
        {"good": True, "late": False, "wrong": False},
    )
    assert "nothing_of_the_kind" in found["late"]["points"][-1]["detail"]
    table = stand.cli("validate", str(tmp_path), "--no-load")
    assert table.status == 1
    assert "fail compiles" in table.out
    assert "scrapers: 3, to be mended: 2" in table.err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("test", "nowhere"), 2, "no such folder"),
        (("validate", "tmp"), 2, "no scraper.toml"),
        (("certify",), 2, "Missing argument"),
        (("record", "scrapers"), 2, "2 scrapers"),
        (("record", "scrapers/lab/lab", "--name", "../x"), 2, "not a name for a case"),
        (("record", "scrapers/lab/lab", "seconds=soon"), 2, "/seconds"),
        (("test", "scrapers/lab/lab", "--case", "none"), 2, "no case 'none'"),
        (("test", "scrapers/lab/lab"), 1, "no recorded case"),
        (("new", "a/b", "--template", "none"), 2, "no template"),
    ],
)
def test_wrong_usage_says_which_part(stand: Stand, words: tuple[str, ...], status: int, said: str) -> None:
    if not (stand.scrapers / "lab" / "other").exists():
        stand.write("lab/other", "def run(ctx): ...\n")
    ended = stand.cli(*words)
    assert (ended.status, said in ended.err) == (status, True), ended.err
    assert "Traceback" not in ended.err
