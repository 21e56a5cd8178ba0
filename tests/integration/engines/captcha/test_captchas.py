"""Captchas: pictures read by the local model, a vendor with 2captcha's API, and the policy that allows them."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from scrapeyard.engines.captcha.engine import Captchas
from scrapeyard.engines.captcha.port import MAX_CALLS, MAX_IMAGE, Widget
from scrapeyard.engines.ledger import Ledger
from scrapeyard.engines.port import Caller
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, FetchPolicy
from scrapeyard.settings import CaptchaSettings
from tests.services.captchas import LETTERS, CaptchaVendorSite, picture, vendor_site

__all__ = ["vendor_site"]


def caller(mode: str = "local") -> Caller:
    return Caller(policy=FetchPolicy(captcha=mode), ledger=Ledger())


@pytest.fixture
async def captchas() -> AsyncIterator[Captchas]:
    made = Captchas(CaptchaSettings())
    await made.start()
    yield made
    await made.stop()
    await made.stop()


async def test_the_local_model_reads_nine_of_ten_plain_captchas(captchas: Captchas) -> None:
    mine, right = caller(), 0
    for seed in range(60):
        chance = random.Random(1000 + seed)
        text = "".join(chance.choice(LETTERS) for _ in range(chance.randint(4, 6)))
        answer = await captchas.solve_image(picture(text, seed), mine)
        right += answer.text.lower() == text
    assert right >= 54, f"{right} of 60"
    assert (mine.ledger.captcha_calls, mine.ledger.captcha_successes, mine.ledger.captcha_cost) == (60, 60, 0)


@pytest.mark.parametrize(
    "image",
    [b"GIF89a", b"\x89PNG\r\n\x1a\n" + b"x" * 100, b"<html>", picture("abcd", 1)[:200]],
    ids=["gif", "png", "html", "cut"],
)
async def test_what_is_no_picture_is_refused_and_the_next_is_read(captchas: Captchas, image: bytes) -> None:
    with pytest.raises(FetchFailed) as failed:
        await captchas.solve_image(image, caller())
    assert failed.value.reason is ExitReason.FETCH_CAPTCHA
    assert (await captchas.solve_image(picture("h4km", 5), caller())).text.lower() == "h4km"


@pytest.mark.parametrize("image", [b"", b"x" * (MAX_IMAGE + 1)], ids=["empty", "large"])
async def test_sizes_are_bounded(captchas: Captchas, image: bytes) -> None:
    with pytest.raises(FetchFailed, match="bytes") as failed:
        await captchas.solve_image(image, caller())
    assert failed.value.reason is ExitReason.FETCH_NOT_ALLOWED


@pytest.mark.parametrize("mode", ["", "off"])
async def test_nothing_is_solved_unless_policy_allows_it(captchas: Captchas, mode: str) -> None:
    with pytest.raises(FetchFailed, match=r"policy\.captcha"):
        await captchas.solve_image(picture("abcd", 1), caller(mode))


async def test_a_cancelled_reading_leaves_nothing_and_the_next_is_read(captchas: Captchas) -> None:
    task = asyncio.create_task(captchas.solve_image(picture("abcd", 1), caller()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await captchas.solve_image(picture("h4km", 5), caller())).text.lower() == "h4km"


@pytest.fixture
async def paid(vendor_site: CaptchaVendorSite) -> AsyncIterator[Captchas]:
    settings = CaptchaSettings(vendor_url=vendor_site.url, vendor_key="secret", poll_seconds=0.01, sure=1)  # type: ignore[arg-type]
    made = Captchas(settings)
    yield made
    await made.stop()


async def test_the_vendor_is_asked_where_the_model_is_not_sure_and_its_cost_is_told(
    paid: Captchas, vendor_site: CaptchaVendorSite
) -> None:
    mine = caller("vendor")
    answer = await paid.solve_image(picture("h4km", 5), mine)
    assert (answer.text, answer.solver, mine.ledger.captcha_cost) == ("seen", "vendor", 0.002)
    assert vendor_site.tasks[0]["type"] == "ImageToTextTask"
    mine = caller("local")
    assert (await paid.solve_image(picture("h4km", 5), mine)).solver == "local"


async def test_a_widget_gets_a_token_from_the_vendor_alone(paid: Captchas, vendor_site: CaptchaVendorSite) -> None:
    widget = Widget(kind="turnstile", site_key="0x4", url="https://shop.test/")
    answer = await paid.solve_widget(widget, caller("vendor"))
    assert answer.text in ("seen", "t0ken")
    assert vendor_site.tasks == [
        {"type": "TurnstileTaskProxyless", "websiteURL": "https://shop.test/", "websiteKey": "0x4"}
    ]
    with pytest.raises(FetchFailed, match="vendor"):
        await paid.solve_widget(widget, caller("local"))


async def test_the_vendors_refusal_is_told(paid: Captchas, vendor_site: CaptchaVendorSite) -> None:
    vendor_site.error = {"errorId": 1, "errorCode": "ERROR_ZERO_BALANCE", "errorDescription": "no funds"}
    mine = caller("vendor")
    with pytest.raises(FetchFailed, match="ERROR_ZERO_BALANCE: no funds"):
        await paid.solve_image(picture("h4km", 5), mine)
    assert (mine.ledger.captcha_calls, mine.ledger.captcha_successes) == (1, 0)


async def test_a_run_has_so_many_captchas_solved_and_no_more(paid: Captchas, vendor_site: CaptchaVendorSite) -> None:
    mine, widget = caller("vendor"), Widget(kind="hcaptcha", site_key="k", url="https://shop.test/")
    mine.ledger.captcha_calls = MAX_CALLS - 1
    await paid.solve_widget(widget, mine)
    for _ in range(2):
        with pytest.raises(FetchFailed, match="100 captchas") as failed:
            await paid.solve_widget(widget, mine)
        assert failed.value.reason is ExitReason.FETCH_NOT_ALLOWED
        with pytest.raises(FetchFailed, match="100 captchas"):
            await paid.solve_image(picture("h4km", 5), mine)
    assert len(vendor_site.tasks) == 1


async def test_a_click_that_is_enough_costs_nothing(paid: Captchas, vendor_site: CaptchaVendorSite) -> None:
    async def click() -> str:
        return "clicked"

    mine = caller("vendor")
    answer = await paid.solve_widget(Widget(kind="recaptcha", site_key="k", url="https://shop.test/"), mine, click)
    assert (answer.text, answer.solver, vendor_site.tasks) == ("clicked", "browser", [])
    assert (mine.ledger.captcha_calls, mine.ledger.captcha_successes, mine.ledger.captcha_cost) == (1, 1, 0)


async def test_the_model_knows_which_pictures_it_guessed(captchas: Captchas) -> None:
    mine, plain, hard = caller(), [], []
    for seed in range(10):
        plain.append((await captchas.solve_image(picture("h4km", seed), mine)).confidence or 0)
        hard.append((await captchas.solve_image(picture("h4km", seed, lines=60, tilt=60), mine)).confidence or 0)
    assert sorted(plain)[5] > 0.9 > sorted(hard)[5], (plain, hard)
