"""Pictures of captchas, and a vendor of answers on a free loopback port."""

import io
import json
import random
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from threading import Thread
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from tests.services.threads import ThreadedServer

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


class CaptchaVendorSite(ThreadedServer):
    """Speaks 2captcha's API: ready at the second question."""

    def __init__(self) -> None:
        super().__init__(_Answering)
        self.tasks: list[dict[str, Any]] = []
        self.asked = 0
        self.error: dict[str, Any] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answering(BaseHTTPRequestHandler):
    server: CaptchaVendorSite

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
def vendor_site() -> Iterator[CaptchaVendorSite]:
    with CaptchaVendorSite() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
