"""Captchas: pictures read by the local model, a vendor with 2captcha's API, and the policy that allows them."""

import asyncio
import io
import json
import random
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from scrapeyard.engines.captcha.engine import Captchas
from scrapeyard.engines.captcha.port import MAX_IMAGE, Widget
from scrapeyard.engines.ledger import Ledger
from scrapeyard.engines.port import Caller
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, FetchPolicy
from scrapeyard.settings import CaptchaSettings

LETTERS = "abcdefhkmnprtuvwxy3478"
"""Without those that people mix up as well."""


def picture(text: str, seed: int, *, lines: int = 2, tilt: int = 8) -> bytes:
    """A plain captcha: slightly turned letters, a few lines and dots."""
    chance = random.Random(seed)
    image = Image.new("RGB", (40 * len(text) + 20, 70), "white")
    for place, letter in enumerate(text):
        tile = Image.new("RGBA", (60, 60), (255, 255, 255, 0))
        colour = tuple(chance.randrange(0, 110) for _ in range(3))
        ImageDraw.Draw(tile).text((12, 6), letter, fill=colour, font=ImageFont.load_default(40))
        tile = tile.rotate(chance.randint(-tilt, tilt), resample=Image.Resampling.BICUBIC)
        image.paste(tile, (10 + 38 * place, chance.randint(0, 8)), tile)
    draw = ImageDraw.Draw(image)
    for _ in range(lines):
        ends = [(chance.randrange(image.width), chance.randrange(image.height)) for _ in range(2)]
        draw.line(ends, fill=(150, 150, 150), width=1)
    for _ in range(60):
        draw.point((chance.randrange(image.width), chance.randrange(image.height)), fill=(120, 120, 120))
    out = io.BytesIO()
    image.filter(ImageFilter.SMOOTH).save(out, "PNG")
    return out.getvalue()


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


class Vendor(ThreadingHTTPServer):
    """Speaks 2captcha's API: ready at the second question."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.tasks: list[dict[str, Any]] = []
        self.asked = 0
        self.error: dict[str, Any] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answering(BaseHTTPRequestHandler):
    server: Vendor

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert given["clientKey"] == "secret"
        answer: dict[str, Any] = {"errorId": 0, **self.server.error}
        if self.path == "/createTask":
            self.server.tasks.append(given["task"])
            answer["taskId"] = 7
        else:
            self.server.asked += 1
            ready = {"status": "ready", "solution": {"text": "seen", "token": "t0ken"}, "cost": "0.002"}
            answer |= ready if self.server.asked > 1 else {"status": "processing"}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    with Vendor() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
async def paid(vendor: Vendor) -> AsyncIterator[Captchas]:
    settings = CaptchaSettings(vendor_url=vendor.url, vendor_key="secret", poll_seconds=0.01, sure=1)  # type: ignore[arg-type]
    made = Captchas(settings)
    yield made
    await made.stop()


async def test_the_vendor_is_asked_where_the_model_is_not_sure_and_its_cost_is_told(
    paid: Captchas, vendor: Vendor
) -> None:
    mine = caller("vendor")
    answer = await paid.solve_image(picture("h4km", 5), mine)
    assert (answer.text, answer.solver, mine.ledger.captcha_cost) == ("seen", "vendor", 0.002)
    assert vendor.tasks[0]["type"] == "ImageToTextTask"
    mine = caller("local")
    assert (await paid.solve_image(picture("h4km", 5), mine)).solver == "local"


async def test_a_widget_gets_a_token_from_the_vendor_alone(paid: Captchas, vendor: Vendor) -> None:
    widget = Widget(kind="turnstile", site_key="0x4", url="https://shop.test/")
    answer = await paid.solve_widget(widget, caller("vendor"))
    assert answer.text in ("seen", "t0ken")
    assert vendor.tasks == [{"type": "TurnstileTaskProxyless", "websiteURL": "https://shop.test/", "websiteKey": "0x4"}]
    with pytest.raises(FetchFailed, match="vendor"):
        await paid.solve_widget(widget, caller("local"))


async def test_the_vendors_refusal_is_told(paid: Captchas, vendor: Vendor) -> None:
    vendor.error = {"errorId": 1, "errorCode": "ERROR_ZERO_BALANCE", "errorDescription": "no funds"}
    mine = caller("vendor")
    with pytest.raises(FetchFailed, match="ERROR_ZERO_BALANCE: no funds"):
        await paid.solve_image(picture("h4km", 5), mine)
    assert (mine.ledger.captcha_calls, mine.ledger.captcha_successes) == (1, 0)
