"""`dev`: runs again on each save and shows what changed."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scrapeyard.cli.authoring.dev import snapshot
from tests.integration.cli_stand import PATIENCE, Stand, line_with

SCRIPT = "async def run(ctx, name: str):\n    return {{'name': name, 'price': {price}}}\n"


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    stand = Stand(tmp_path_factory.mktemp("dev"))
    yield stand
    assert list(stand.temporary.iterdir()) == [], "a command left temporary files"


def saver(script: Path) -> Callable[[str], None]:
    def save(text: str) -> None:
        """As editors do: a new file in the place of the old one."""
        fresh = script.with_name(".scraper.py.new")
        fresh.write_text(text)
        fresh.replace(script)

    return save


def test_each_save_runs_it_and_shows_the_difference(stand: Stand) -> None:
    folder = stand.write("dev/item", SCRIPT.format(price=1))
    save = saver(folder / "scraper.py")
    with stand.started("dev", str(folder), "name=lamp") as process:
        line_with(process, b"waiting for a change")
        save("def run(:\n")
        assert b"scraper.py:1" in line_with(process, b"invalid syntax")
        line_with(process, b"waiting for a change")
        save(SCRIPT.format(price=25))
        assert b"changed" in line_with(process, b"succeeded in")
        line_with(process, b"waiting for a change")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
    lines = out.decode().splitlines()
    assert lines[0] == '{"name":"lamp","price":1}'
    assert '-  "price": 1' in lines
    assert '+  "price": 25' in lines


def test_without_an_input_the_first_case_is_run_on_its_pages(stand: Stand) -> None:
    """There is no shop here: its page is the recorded one."""
    assert stand.cli("new", "shop/first").status == 0
    with stand.started("dev", "shop/first") as process:
        assert b"succeeded" in line_with(process, b"succeeded in")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    assert b"Aurora Lamp" in out


def test_hidden_files_are_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "scraper.py").write_text("x")
    before = snapshot(tmp_path)
    (tmp_path / ".swp").write_text("x")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "scraper.pyc").write_text("x")
    assert snapshot(tmp_path) == before
    (tmp_path / "more.py").write_text("x")
    assert snapshot(tmp_path) != before


def test_a_new_scraper_for_a_page_has_its_fields_and_passes_at_once(stand: Stand) -> None:
    with stand.serving("demo-site", "--port", "0", says=b"open at ") as shop:
        url = f"{shop.rstrip('/')}/product/1"
        made = stand.cli("new", "lamps/lamp", "--url", url, "--allow-private")
        assert made.status == 0, made.err
        assert stand.cli("new", "lamps/lamp", "--url", url, "--allow-private").status == 2
        gone = stand.cli("new", "lamps/gone", "--url", f"{shop.rstrip('/')}/status/404", "--allow-private")
        assert (gone.status, "answered 404" in gone.err) == (2, True)
        data = stand.cli("new", "lamps/data", "--url", f"{shop.rstrip('/')}/api/products.json", "--allow-private")
        assert data.status == 0, data.err
        assert 'data.get("items")' in (stand.folder / "scrapers/lamps/data/scraper.py").read_text()
        assert not (stand.folder / "scrapers" / "lamps" / "gone").exists()
    tested = stand.cli("test", "lamps/lamp")
    assert (tested.status, tested.out.split()[0]) == (0, "pass"), tested.out + tested.err
    assert stand.cli("validate", "lamps/lamp").status == 0
    missing = stand.cli("run", "./lamps/lamp", url)
    assert (missing.status, "no such folder" in missing.err) == (2, True)
    (case,) = (stand.folder / "scrapers" / "lamps" / "lamp" / "tests").iterdir()
    expected = json.loads((case / "expected.json").read_text())
    assert expected["url"] == url
    assert {"title": "Aurora Lamp", "price": 217.71, "currency": "EUR"}.items() <= expected.items()
