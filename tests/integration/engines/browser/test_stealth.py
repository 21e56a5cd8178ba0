"""What pages can find out about the browser: that it is an ordinary one, and the same everywhere they look."""

import shutil
import subprocess
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec import json

from scrapeyard.engines.browser import operations as do
from scrapeyard.engines.browser.host import ProcessHost
from scrapeyard.engines.browser.port import HostKind
from tests.services.browser import hosted, opened
from tests.services.static_site import StaticSite

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
PAGES = Path(__file__).parent / "detectors"
KINDS = {".js": "text/javascript", ".html": "text/html"}
BOTD = "@fingerprintjs/botd@2.0.0"


@pytest.fixture(scope="module")
def driver() -> str:
    """The one that hides."""
    return "patchright"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def german(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ProcessHost]:
    async with hosted(tmp_path_factory.mktemp("german"), HostKind(language="de-DE")) as (host, _):
        yield host


@pytest.fixture(scope="module")
def probe(site: StaticSite) -> str:
    for path in PAGES.iterdir():
        _serve(site, path.name, path.read_bytes())
    site.habits["/headers"] = lambda handler, _: handler.answer(200, json.encode(_lower(handler.headers)))
    return site.url + "probe.html"


def _serve(site: StaticSite, name: str, content: bytes) -> None:
    (site.folder / name).write_bytes(content)
    kind = {"Content-Type": KINDS[Path(name).suffix]}
    site.habits[f"/{name}"] = lambda handler, found: handler.answer(200, found, kind)


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


async def _probe(host: ProcessHost, url: str, **options: Any) -> dict[str, Any]:
    async with opened(host, **options) as page:
        await page.do(do.Goto(url=url))
        seen: dict[str, Any] = await page.do(do.Evaluate(expression="probe()"))
        return seen


def _check_realms(seen: dict[str, Any], major: str) -> None:
    """Windows, frames and all kinds of workers say the same, and it fits together."""
    window = seen["realms"]["window"]
    for name, realm in seen["realms"].items():
        assert realm == window, name
    assert "Headless" not in str(seen["realms"])
    assert (window["webdriver"], window["read"]) == (False, 0)
    assert f"Chrome/{major}.0.0.0" in window["agent"]
    assert window["hints"]["uaFullVersion"].startswith(f"{major}.")
    assert {each["version"] for each in window["hints"]["fullVersionList"]} >= {window["hints"]["uaFullVersion"]}
    assert (window["platform"], window["hints"]["platform"]) == ("Linux x86_64", "Linux")
    assert "(X11; Linux x86_64)" in window["agent"]
    headers = seen["headers"]
    assert headers["user-agent"] == window["agent"]
    assert headers["sec-ch-ua-platform"] == '"Linux"'
    assert f'"Chromium";v="{major}"' in headers["sec-ch-ua"]
    assert [part.partition(";")[0] for part in headers["accept-language"].split(",")] == window["languages"]
    assert window["languages"][0] == window["language"] == window["locale"]
    assert not any(word in window["renderer"] for word in ("SwiftShader", "llvmpipe", "Mesa OffScreen", "VMware"))


async def test_nothing_tells(host: ProcessHost, probe: str) -> None:
    seen = await _probe(host, probe)
    _check_realms(seen, host.facts.version.partition(".")[0])
    assert (seen["foreign"], seen["traces"], seen["own"]) == ([], [], [])
    assert (len(seen["plugins"]), seen["types"], seen["pdf"], seen["pluginKind"]) == (
        5,
        2,
        True,
        "[object PluginArray]",
    )
    assert seen["chrome"] == ["app", "csi", "loadTimes"]
    assert seen["notification"] == "default"
    assert set(seen["permissions"].values()) == {"prompt"}
    assert seen["inner"][1] < seen["outer"][1] < seen["available"][1] < seen["screen"][1]
    assert seen["outer"][0] <= seen["screen"][0]
    assert seen["text"] < seen["inner"][0], "there is a scrollbar"
    assert (seen["mouse"], seen["depth"], seen["focus"], seen["seen"]) == ([True] * 3, 24, True, "visible")
    assert seen["codecs"] == ["probably"] * 3
    assert sorted(seen["devices"]) == ["audioinput", "audiooutput", "videoinput"]
    assert seen["rtt"] > 0
    assert seen["paused"] < 1000


async def test_a_context_is_of_one_country(german: ProcessHost, probe: str) -> None:
    seen = await _probe(german, probe, locale="de-DE", timezone="Asia/Seoul", width=800, height=600)
    _check_realms(seen, german.facts.version.partition(".")[0])
    window = seen["realms"]["window"]
    assert window["languages"][:2] == ["de-DE", "de"]
    assert (window["zone"], window["offset"], window["number"]) == ("Asia/Seoul", -540, "1.234,5")
    assert seen["inner"] == [800, 600]
    assert seen["outer"][1] < seen["screen"][1]


async def test_steps_look_like_a_person_s(host: ProcessHost, probe: str) -> None:
    async with opened(host) as page:
        await page.do(do.Goto(url=probe))
        await page.do(do.Click(selector="button"))
        await page.do(do.Type(selector="input", text="a"))
        await page.do(do.Read(selector="button"))
        await page.done(do.Content())
        events, stacks, corner = await page.do(
            do.Evaluate(expression="[events, stacks, [screenX, screenY + outerHeight - innerHeight]]")
        )
    assert stacks == [], "no step calls what the page has replaced"
    assert {event[0] for event in events} == {"mousemove", "pointerdown", "click", "keydown"}
    assert all(trusted for _, trusted, *_ in events)
    assert all(event[2:4] == corner for event in events if event[0] in ("mousemove", "click"))
    assert [event[4] for event in events if event[0] == "keydown"] == ["KeyA"]


async def test_botd_finds_no_bot(host: ProcessHost, site: StaticSite, probe: str) -> None:
    _serve(site, "botd.js", _botd())
    look = """async () => {
        const detector = await (await import('/botd.js')).load({monitoring: false});
        const found = detector.detect();
        const named = Object.entries(detector.getDetections()).filter(([, each]) => each.bot).map(([name]) => name);
        return [found.bot, named, Object.keys(detector.getComponents()).length];
    }"""
    async with opened(host) as page:
        await page.do(do.Goto(url=probe))
        bot, named, components = await page.do(do.Evaluate(expression=look))
    assert (bot, named) == (False, [])
    assert components > 10


def _botd() -> bytes:
    """BotD's own bundle, downloaded once. Skips where npm is missing or reaches nothing."""
    kept = Path(__file__).parents[4] / ".venv" / "botd.esm.js"
    if not kept.is_file():
        if shutil.which("npm") is None:
            pytest.skip(f"it needs npm, for {BOTD}")
        packed = subprocess.run(
            ["npm", "pack", BOTD], cwd=kept.parent, capture_output=True, text=True, timeout=120, check=False
        )
        if packed.returncode:
            pytest.skip(f"npm cannot download {BOTD}: {packed.stderr.strip()[-200:]}")
        archive = kept.parent / packed.stdout.split()[-1]
        with tarfile.open(archive) as files:
            content = files.extractfile("package/dist/botd.esm.js")
            assert content is not None
            kept.write_bytes(content.read())
        archive.unlink()
    return kept.read_bytes()
