"""From a folder to a scraper: what this installation offers, what it grants, and which functions may be called."""

from pathlib import Path

import pytest

from scrapeyard.errors import ScraperInvalid
from scrapeyard.model import Defaults, Limits, Scraper
from scrapeyard.repository.archive.copies import Cache
from scrapeyard.repository.archive.files import scraper_files
from scrapeyard.repository.catalogue.loading import LoadTerms, load_files

HEAD = 'id = "shop/product"\nversion = "1.0.0"\n'
SCRIPT = "def run(ctx): ...\n"


def load(folder: Path, manifest: str = "", script: str = SCRIPT, terms: LoadTerms | None = None) -> Scraper:
    place = folder / "product"
    place.mkdir(exist_ok=True)
    (place / "scraper.toml").write_text(HEAD + manifest)
    (place / "scraper.py").write_text(script)
    files = scraper_files(place, place.resolve(), "product")
    return load_files(files, Cache(folder / "cache"), terms or LoadTerms(ceiling=Limits()), "product")


def refusal(folder: Path, manifest: str = "", script: str = SCRIPT) -> str:
    with pytest.raises(ScraperInvalid) as caught:
        load(folder, manifest, script)
    return caught.value.message


def test_a_capability_that_is_not_here_is_refused(tmp_path: Path) -> None:
    told = refusal(tmp_path, 'capabilities = ["http", "browser", "ai"]')
    assert told.startswith("product/scraper.toml: capabilities: ai is not offered")
    assert told.endswith("which has: browser, captcha, http")
    assert load(tmp_path, 'capabilities = ["browser"]').capabilities == ("browser",)
    with pytest.raises(ScraperInvalid, match="browser is not offered"):
        load(tmp_path, 'capabilities = ["browser"]', terms=LoadTerms(ceiling=Limits(), capabilities=("http",)))


def test_a_lock_is_checked_before_the_first_run(tmp_path: Path) -> None:
    (tmp_path / "product").mkdir()
    lock = tmp_path / "product" / "requirements.lock"
    lock.write_text(f"lxml==5.0 --hash=sha256:{'a' * 64}\n")
    assert load(tmp_path, 'requirements = ["lxml>=5"]').requirements == ("lxml>=5",)
    assert refusal(tmp_path).startswith("product/scraper.toml: requirements: missing, but there is a requirements.lock")
    lock.write_text("-r /etc/passwd\n")
    assert refusal(tmp_path, 'requirements = ["lxml>=5"]').startswith("product/requirements.lock: '-r /etc/passwd'")


def test_what_a_manifest_says_reaches_the_scraper(tmp_path: Path) -> None:
    scraper = load(
        tmp_path,
        'requirements = [" price-parser >=0.3 "]\nconfig.key = { secret = "api_key" }\npolicy.retries = 3\n',
    )
    assert scraper.requirements == ("price-parser >=0.3",)
    assert scraper.config == {"key": {"secret": "api_key"}}
    assert scraper.policy == Defaults(retries=3)


def test_an_imported_function_needs_an_input_schema(tmp_path: Path) -> None:
    for script in ("from lib import run\n", "def run(): ...\nfrom lib import go as run\n"):
        assert "no function run" in refusal(tmp_path, script=script)
        assert load(tmp_path, "input.type = 'object'\n", script).input_schema == {"type": "object"}
    assert "no function run" in refusal(tmp_path, "input.type = 'object'\n", "from lib import *\n")
    assert "takes no ctx" in refusal(tmp_path, "input.type = 'object'\n", "from lib import run\ndef run(): ...\n")
