"""`replay --to-scraper`: the script that is made of a recording."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from scrapeyard.authoring.recorded_script import id_for, write_scraper
from scrapeyard.builtin.replay.recording import read_recording
from scrapeyard.cli.main import app
from scrapeyard.model import Limits
from scrapeyard.repository.catalogue.loading import load_folder

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"
FLOWS: list[dict[str, Any]] = json.loads((RECORDINGS / "flows.json").read_text("utf-8"))


def script_of(recording: dict[str, Any], folder: Path) -> str:
    write_scraper(folder, read_recording(recording))
    return (folder / "scraper.py").read_text("utf-8")


@pytest.mark.parametrize("at", range(len(FLOWS)))
def test_every_flow_becomes_a_scraper(tmp_path: Path, at: int) -> None:
    folder = tmp_path / "shop" / "flow"
    compile(script_of(FLOWS[at]["flow"], folder), "scraper.py", "exec")
    assert tomllib.loads((folder / "scraper.toml").read_text("utf-8"))["id"] == "shop/flow"


def test_the_script_has_the_steps_in_the_words_of_the_sdk(tmp_path: Path) -> None:
    recording = {
        "title": 'Log "in"',
        "steps": [
            {"type": "setViewport", "width": 800, "height": 600, "deviceScaleFactor": 1},
            {"type": "navigate", "url": "https://shop.example/login"},
            {"type": "change", "selectors": [["aria/User"], ["#user"]], "value": "me"},
            {"type": "change", "selectors": [["#password"]], "value": "secret"},
            {"type": "keyDown", "key": "Enter"},
            {"type": "keyUp", "key": "Enter"},
            {
                "type": "click",
                "selectors": [["my-app", "button"]],
                "frame": [0, 1],
                "assertedEvents": [{"type": "navigation", "url": "https://shop.example/account", "title": ""}],
            },
            {"type": "customStep", "name": "measure", "parameters": {}},
        ],
    }
    script = script_of(recording, tmp_path / "shop" / "login")
    assert "async def run(ctx: Context, password: str) -> dict[str, Any]:" in script
    assert "async with ctx.browser(width=800, height=600) as page:" in script
    assert [line.strip() for line in script.splitlines() if "await page." in line][:-1] == [
        'await page.goto("https://shop.example/login")',
        'await page.change("aria/User", "me")',
        'await page.change("#password", password)',
        'await page.press_key("Enter")',
        'await page.frame(0, 1).click("my-app >>> button")',
        'await page.frame(0, 1).wait_for_url("https://shop.example/account")',
        '# rows = await page.extract(".product", {"title": "h2", "price": ".price", "link": "a::attr(href)"})',
    ]
    assert "secret" not in script
    assert "step of an extension here: measure" in script
    manifest = tomllib.loads((tmp_path / "shop" / "login" / "scraper.toml").read_text("utf-8"))
    assert manifest["allowed_hosts"] == ["shop.example"]


def test_the_command_writes_a_scraper_that_loads(tmp_path: Path) -> None:
    folder = tmp_path / "people" / "boutique"
    file = RECORDINGS / "real" / "splunk-online-boutique.json"
    done = CliRunner().invoke(app, ["replay", str(file), "--to-scraper", str(folder)])
    assert done.exit_code == 0
    assert str(folder / "scraper.py") in done.stdout
    assert load_folder(folder, tmp_path / "cache", Limits()).ref.id == "people/boutique"
    again = CliRunner().invoke(app, ["replay", str(file), "--to-scraper", str(folder)])
    assert again.exit_code != 0
    assert "is already there" in str(again.exception)


@pytest.mark.parametrize(
    ("folder", "scraper_id"),
    [("shop/order", "shop/order"), ("order", "recorded/order"), ("/x/My Shop/Log In", "my-shop/log-in")],
)
def test_the_id_is_that_of_the_folder(folder: str, scraper_id: str) -> None:
    assert id_for(Path(folder)) == scraper_id
