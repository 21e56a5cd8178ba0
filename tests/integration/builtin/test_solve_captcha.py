"""`solve_captcha` in a real browser, on pages of our own that imitate the widgets."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from scrapeyard.builtin.actions.interpreter import run_actions
from scrapeyard.engines.browser.port import Perform
from scrapeyard.engines.browser.widgets import solve_widget
from scrapeyard.engines.captcha.engine import Captchas
from scrapeyard.engines.ledger import Ledger
from scrapeyard.engines.port import Caller
from scrapeyard.errors import FetchFailed, InputInvalid
from scrapeyard.model import ExitReason, FetchPolicy
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.settings import CaptchaSettings
from scrapeyard.wiring.builtins import all_builtins
from tests.services.browser_contexts import LocalBrowser, local_browser
from tests.services.captchas import CaptchaVendorSite, picture, vendor_site
from tests.services.static_site import StaticSite, static_site

__all__ = ["static_site", "vendor_site"]
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
KEY = "0x4AAAAAAAC3DHQFLr1Gavr"
KINDS = {
    "turnstile": (f"cdn-cgi/challenge-platform/turnstile/if/ov2/{KEY}/auto", "cf-turnstile"),
    "recaptcha": (f"recaptcha/api2/anchor?ar=1&k={KEY}&size=normal", "g-recaptcha"),
    "hcaptcha": (f"captcha/v1/hcaptcha.html#frame=checkbox&id=0&sitekey={KEY}", "h-captcha"),
}
PAGE = """<!doctype html><form><div class="CLASS" data-sitekey="SITEKEY" data-callback="passed"></div></form>
<script>
const holder = document.querySelector('.CLASS');
holder.innerHTML = '<textarea name="CLASS-response" style="display:none"></textarea>';
const field = holder.firstChild;
onmessage = event => { field.value = event.data };
window.passed = token => { document.title = 'called with ' + token };
setTimeout(() => {
    const host = holder.appendChild(document.createElement('div'));
    const root = HIDDEN ? host.attachShadow({mode: 'closed'}) : host;
    root.innerHTML = '<iframe src="http://widget.test:PORT/FRAME" width=304 height=78></iframe>';
}, 400);
</script>"""
WIDGET = """<!doctype html><body style="margin:0"><div id=host style="padding:20px"></div><script>
const host = document.querySelector('#host');
const root = HIDDEN ? host.attachShadow({mode: 'closed'}) : host;
root.innerHTML = BOX;
let moves = 0;
addEventListener('mousemove', () => { moves += 1 });
root.firstChild.addEventListener('click', event => {
    if (event.isTrusted && moves && SATISFIED) setTimeout(() => parent.postMessage('clicked', '*'), 300);
});
</script>"""
BOXES = {
    "turnstile": "'<label><input type=checkbox> I am human</label>'",
    "recaptcha": "'<div id=recaptcha-anchor role=checkbox aria-checked=false style=\"width:28px;height:28px\"></div>'",
    "hcaptcha": "'<div id=checkbox aria-checked=false style=\"width:28px;height:28px\"></div>'",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[LocalBrowser]:
    async with local_browser() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def captchas() -> AsyncIterator[Captchas]:
    made = Captchas(CaptchaSettings())
    yield made
    await made.stop()


def caller(mode: str = "local") -> Caller:
    return Caller(policy=FetchPolicy(captcha=mode), ledger=Ledger())


SHOWN = {"do": "wait_for", "selector": "iframe", "timeout": 60}
"""A busy machine may take long to load the widget."""


def embed(site: StaticSite, kind: str, *, satisfied: bool = True, key: str = KEY) -> str:
    """The URL of a page with a widget, which comes half a second later, from another host."""
    frame, name = KINDS[kind]
    words = {
        "CLASS": name,
        "SITEKEY": key,
        "PORT": str(site.port),
        "FRAME": frame,
        "HIDDEN": "true" if kind == "turnstile" else "false",
        "SATISFIED": "true" if satisfied else "false",
        "BOX": BOXES[kind],
    }
    known = re.compile("|".join(words))
    for path, text in {"page.html": PAGE, re.split("[?#]", frame)[0]: WIDGET}.items():
        file = site.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(known.sub(lambda found: words[found[0]], text), "utf-8")
    return f"{site.url}page.html"


async def run(browser: LocalBrowser, captchas: Captchas | None, mine: Caller, url: str, *steps: Any) -> Any:
    async def read(image: bytes) -> str:
        assert captchas is not None
        return (await captchas.solve_image(image, mine)).text

    async def solve(perform: Perform, tab: int, seconds: float | None) -> str:
        return await solve_widget(perform, captchas, mine, tab=tab, seconds=seconds)

    given = {"url": url, "steps": list(steps), "screenshots": "none"}
    scraper = all_builtins()["builtin/actions"].scraper
    assert InputChecker().errors(scraper, given) == []
    services = msgspec.structs.replace(browser.services(), solve_image=read, solve_widget=solve)
    result = await run_actions(services, given)
    assert InputChecker().output_errors(scraper, json.loads(json.dumps(result))) == []
    return result


@pytest.mark.parametrize("kind", KINDS)
async def test_a_click_satisfies_the_widget(
    browser: LocalBrowser, captchas: Captchas, static_site: StaticSite, kind: str
) -> None:
    mine = caller()
    result = await run(
        browser,
        captchas,
        mine,
        embed(static_site, kind),
        {"do": "solve_captcha", "name": "token", "timeout": 60},
        {"do": "extract", "name": "field", "selector": "textarea", "what": "value"},
        {"do": "solve_captcha", "name": "again"},
    )
    assert result["data"] == {"token": "clicked", "field": "clicked", "again": "clicked"}
    assert (mine.ledger.captcha_calls, mine.ledger.captcha_successes) == (1, 1)


@pytest.mark.parametrize("kind", KINDS)
async def test_the_vendor_helps_where_a_click_does_not(
    browser: LocalBrowser, vendor_site: CaptchaVendorSite, static_site: StaticSite, kind: str
) -> None:
    mine = caller("vendor")
    captchas = Captchas(CaptchaSettings(vendor_url=vendor_site.url, vendor_key="secret", poll_seconds=0.01))  # type: ignore[arg-type]
    url = embed(static_site, kind, satisfied=False)
    try:
        result = await run(
            browser,
            captchas,
            mine,
            url,
            SHOWN,
            {"do": "solve_captcha", "timeout": 2},
            {"do": "extract", "name": "field", "selector": "textarea", "what": "value"},
            {"do": "wait_for", "expression": "document.title == 'called with seen'"},
        )
    finally:
        await captchas.stop()
    assert result["data"] == {"field": "seen"}
    assert [(task["websiteURL"], task["websiteKey"]) for task in vendor_site.tasks] == [(url, KEY)]
    assert (mine.ledger.captcha_calls, mine.ledger.captcha_successes, mine.ledger.captcha_cost) == (1, 1, 0.002)


async def test_the_key_comes_from_the_frame_where_the_page_does_not_say(
    browser: LocalBrowser, vendor_site: CaptchaVendorSite, static_site: StaticSite
) -> None:
    captchas = Captchas(CaptchaSettings(vendor_url=vendor_site.url, vendor_key="secret", poll_seconds=0.01))  # type: ignore[arg-type]
    url = embed(static_site, "recaptcha", satisfied=False, key="")
    try:
        await run(browser, captchas, caller("vendor"), url, SHOWN, {"do": "solve_captcha", "timeout": 1})
    finally:
        await captchas.stop()
    assert vendor_site.tasks[0]["websiteKey"] == KEY


async def test_a_widget_that_is_not_satisfied_is_told(
    browser: LocalBrowser, captchas: Captchas, static_site: StaticSite
) -> None:
    url, mine = embed(static_site, "hcaptcha", satisfied=False), caller()
    with pytest.raises(FetchFailed, match="a click did not satisfy the hcaptcha") as failed:
        await run(browser, captchas, mine, url, SHOWN, {"do": "solve_captcha", "timeout": 2})
    assert failed.value.reason is ExitReason.FETCH_CAPTCHA
    assert (mine.ledger.captcha_calls, mine.ledger.captcha_successes) == (1, 0)


async def test_nothing_is_clicked_unless_policy_allows_it(
    browser: LocalBrowser, captchas: Captchas, static_site: StaticSite
) -> None:
    url = embed(static_site, "recaptcha")
    with pytest.raises(FetchFailed, match=r"policy\.captcha") as failed:
        await run(browser, captchas, caller("off"), url, {"do": "solve_captcha"})
    assert failed.value.reason is ExitReason.FETCH_NOT_ALLOWED
    with pytest.raises(FetchFailed, match="not solved here"):
        await run(browser, None, caller(), url, {"do": "solve_captcha"})


async def test_a_page_without_a_widget_is_told(
    browser: LocalBrowser, captchas: Captchas, static_site: StaticSite
) -> None:
    (static_site.folder / "page.html").write_text("<!doctype html><h1>No captcha</h1><iframe src=x></iframe>")
    with pytest.raises(FetchFailed, match="no Turnstile, reCAPTCHA or hCaptcha") as failed:
        await run(browser, captchas, caller(), f"{static_site.url}page.html", {"do": "solve_captcha", "timeout": 1})
    assert failed.value.reason is ExitReason.BROWSER_STEP


async def test_a_picture_is_read_and_filled_in(
    browser: LocalBrowser, captchas: Captchas, static_site: StaticSite
) -> None:
    (static_site.folder / "captcha.png").write_bytes(picture("h4km", 5))
    (static_site.folder / "page.html").write_text("<!doctype html><img src=captcha.png><input id=text>")
    mine = caller()
    result = await run(
        browser,
        captchas,
        mine,
        f"{static_site.url}page.html",
        {"do": "solve_captcha", "selector": "img", "into": "#text", "name": "text"},
        {"do": "extract", "name": "field", "selector": "#text", "what": "value"},
    )
    assert result["data"]["text"].lower() == "h4km"
    assert result["data"]["field"] == result["data"]["text"]
    assert (mine.ledger.captcha_calls, mine.ledger.captcha_successes) == (1, 1)


@pytest.mark.parametrize("fields", [{"selector": "img"}, {"into": "#text"}], ids=["selector", "into"])
async def test_a_picture_needs_an_input(browser: LocalBrowser, fields: dict[str, str]) -> None:
    with pytest.raises(InputInvalid, match="both selector and into"):
        await run(browser, None, caller(), "", {"do": "solve_captcha", **fields})
