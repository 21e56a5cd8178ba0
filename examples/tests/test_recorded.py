"""Recorded pages: each scraper is run on the pages of its cases, without shop, network or server."""

import json
import shutil
import subprocess
from pathlib import Path

from examples.tests.server import SCRAPERS, SCRAPEYARD


def replay(folder: Path) -> list[dict[str, object]]:
    """What `scrapeyard test` says about each case of a scraper."""
    ended = subprocess.run([SCRAPEYARD, "test", str(folder), "--json"], capture_output=True, check=False)
    return [case for scraper in json.loads(ended.stdout) for case in scraper["cases"]]


def test_every_case_passes() -> None:
    cases = replay(SCRAPERS / "shop" / "product")
    assert cases
    assert all(case["passed"] for case in cases)


def test_a_page_that_changes_is_noticed(tmp_path: Path) -> None:
    """Change the recorded page as the site may do, and see that the cases would catch it."""
    copy = Path(shutil.copytree(SCRAPERS / "shop" / "product", tmp_path / "product"))
    for page in copy.glob("tests/*/pages/*.html"):
        page.write_text(page.read_text().replace('class="sku"', 'class="code"'))
    assert not all(case["passed"] for case in replay(copy))
