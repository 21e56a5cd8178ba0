"""Cases as files: read whole or refused in words, written whole or not at all; never part of what runs."""

import json
from pathlib import Path

import pytest

from scrapeyard.authoring.cases import Options, case_folders, read_case, write_case
from scrapeyard.authoring.cassette import CassetteEntry, RecordedPage
from scrapeyard.authoring.recording import case_folder
from scrapeyard.errors import BadRequest, ScraperInvalid
from scrapeyard.model import ExitReason, Limits
from scrapeyard.repository.archive.files import find_scrapers
from scrapeyard.repository.catalogue.loading import load_folder

PAGES = (RecordedPage(entry=CassetteEntry(method="GET", url="http://x.example/", status=200), body=b"<p>"),)


def scraper(folder: Path, scraper_id: str = "a/b") -> Path:
    folder.mkdir(parents=True)
    (folder / "scraper.py").write_text("def run(ctx, url: str): ...\n")
    (folder / "scraper.toml").write_text(f'id = "{scraper_id}"\nversion = "1.0.0"\n')
    return folder


def test_a_case_comes_back_as_it_was_written(tmp_path: Path) -> None:
    options = Options(ends=ExitReason.SKIPPED, ignore=("a[].b", 'odd "key"'), artifacts=("x.csv",))
    folder = tmp_path / "tests" / "one"
    write_case(folder, {"url": "é"}, {"a": [1]}, Options(ends=ExitReason.SKIPPED, ignore=("a[].b",)), PAGES)
    case = read_case(folder)
    assert (case.name, case.input, case.expected, case.pages[0].body) == ("one", {"url": "é"}, {"a": [1]}, b"<p>")
    assert (case.options.ends, case.options.ignore) == (ExitReason.SKIPPED, ("a[].b",))
    write_case(folder, {}, None, options, ())
    assert (folder / "case.toml").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["one"]
    assert not (folder / "pages").exists()
    with pytest.raises(ScraperInvalid, match="not a path"):
        read_case(folder)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("input.json", "[]", "an object is needed"),
        ("input.json", "{", "not JSON"),
        ("input.json", '{"a": NaN}', "NaN is not JSON"),
        ("input.json", None, "input.json: cannot be read"),
        ("expected.json", None, "expected.json: cannot be read"),
        ("expected.json", "\udcff", "not JSON"),
        ("expected.json", "[" * 100_000, "not JSON"),
        ("case.toml", "ends = 1", "ends: must be one of"),
        ("case.toml", 'ends = "crashed"', "ends: must be one of"),
        ("case.toml", "ignore = 1", "ignore: must be a list"),
        ("case.toml", "ignore = ['a..b']", "not a path"),
        ("case.toml", "other = 1", "other: no such key"),
        ("case.toml", "=", "not TOML"),
        ("case.toml", "#" * 70_000, "larger than"),
        ("cassette.json", None, "cassette.json: cannot be read"),
    ],
)
def test_a_bad_case_is_refused_in_words(file: str, text: str | None, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "one"
    write_case(folder, {}, None, Options(), PAGES)
    (folder / file).unlink(missing_ok=True)
    if text is not None:
        (folder / file).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ScraperInvalid) as refusal:
        read_case(folder)
    assert said in refusal.value.message


def test_a_case_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tests" / "one"
    write_case(folder, {"old": 1}, None, Options(), PAGES)
    monkeypatch.setattr("scrapeyard.authoring.cases.MAX_EXPECTED_BYTES", 10)
    with pytest.raises(BadRequest, match="larger than"):
        write_case(folder, {"new": 1}, "x" * 100, Options(), ())
    assert json.loads((folder / "input.json").read_text()) == {"old": 1}
    assert [path.name for path in folder.parent.iterdir()] == ["one"]


def test_names_of_cases(tmp_path: Path) -> None:
    given = {"url": "http://x.example/Product/1?a=b"}
    assert case_folder(tmp_path, None, given, force=False).name == "product-1-a-b"
    (tmp_path / "tests" / "product-1-a-b").mkdir(parents=True)
    assert case_folder(tmp_path, None, given, force=False).name == "product-1-a-b-2"
    assert case_folder(tmp_path, None, {"url": "http://x.example/"}, force=False).name == "index"
    assert case_folder(tmp_path, None, {"url": 3}, force=False).name == "case"
    assert case_folder(tmp_path, "product-1-a-b", given, force=True).name == "product-1-a-b"
    for bad in ("../x", "", "A", "a/b", ".hidden"):
        with pytest.raises(BadRequest):
            case_folder(tmp_path, bad, given, force=True)
    with pytest.raises(BadRequest, match="--force"):
        case_folder(tmp_path, "product-1-a-b", given, force=False)


def test_cases_are_no_part_of_what_runs(tmp_path: Path) -> None:
    folder = scraper(tmp_path / "one")
    before = load_folder(folder, tmp_path / "cache", Limits())
    write_case(folder / "tests" / "x", {}, None, Options(), PAGES)
    after = load_folder(folder, tmp_path / "cache", Limits())
    assert after.ref.digest == before.ref.digest
    assert after.folder is not None
    assert sorted(path.name for path in after.folder.iterdir()) == ["scraper.py", "scraper.toml"]
    assert [each.name for each in case_folders(folder)] == ["x"]


def test_only_the_folder_at_the_top_is_left_out(tmp_path: Path) -> None:
    """`tests` may be a site, a folder of scrapers, a package of the script, or a file."""
    folder = scraper(tmp_path / "tests" / "tests" / "tests", "tests/tests")
    (folder / "lib" / "tests").mkdir(parents=True)
    (folder / "lib" / "tests" / "data.txt").write_text("x")
    assert find_scrapers(tmp_path).folders == (folder,)
    copy = load_folder(folder, tmp_path / "cache", Limits()).folder
    assert copy is not None
    assert (copy / "lib" / "tests" / "data.txt").exists()
    (folder / "tests").write_text("a file")
    copy = load_folder(folder, tmp_path / "cache", Limits()).folder
    assert copy is not None
    assert (copy / "tests").read_text() == "a file"
