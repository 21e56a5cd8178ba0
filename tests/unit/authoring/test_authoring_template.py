"""New scrapers from templates are good scrapers."""

from pathlib import Path

import pytest

from scrapeyard.authoring.cases import case_folders, read_case
from scrapeyard.authoring.template import TEMPLATES, create
from scrapeyard.authoring.validating import check_files
from scrapeyard.errors import BadRequest
from scrapeyard.model import Limits
from scrapeyard.repository.catalogue.loading import load_folder
from scrapeyard.settings import LimitSettings


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_scraper_loads(tmp_path: Path, template: str) -> None:
    folder = tmp_path / "shop" / "new-one"
    written = create(folder, "shop/new-one", template)
    assert (written[0].name, written[-1].name) == ("scraper.py", "scraper.toml")
    assert not any("{{" in path.read_text() for path in written)
    scraper = load_folder(folder, tmp_path / "cache", Limits())
    assert (scraper.ref.id, scraper.name) == ("shop/new-one", "New one")
    assert scraper.input_schema["required"] == ["url"]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_scraper_has_nothing_to_mend_and_a_case(tmp_path: Path, template: str) -> None:
    create(tmp_path, "shop/new-one", template)
    assert [finding for finding in check_files(tmp_path, LimitSettings().as_limits())[1] if finding.state != "ok"] == []
    (case,) = [read_case(folder) for folder in case_folders(tmp_path)]
    assert all(page.body for page in case.pages)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "scraper.toml").write_text("mine")
    with pytest.raises(BadRequest, match="already there"):
        create(tmp_path, "shop/x", "http")
    assert [path.name for path in tmp_path.iterdir()] == ["scraper.toml"]


@pytest.mark.parametrize(("scraper_id", "template"), [("Shop", "http"), ("../x", "http"), ("a/b", "../http")])
def test_bad_names_are_refused(tmp_path: Path, scraper_id: str, template: str) -> None:
    with pytest.raises(BadRequest):
        create(tmp_path / "new", scraper_id, template)
    assert not (tmp_path / "new").exists()
