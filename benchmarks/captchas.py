"""How many drawn captchas the local model reads right, from plain to hard: `python -m benchmarks.captchas`."""

import asyncio
import io
import math
import random

from msgspec import Struct
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from scrapeyard.engines.captcha.ocr import LocalOcr
from scrapeyard.errors import FetchFailed

COUNT = 60
LETTERS = "abcdefhkmnprtuvwxy3478"
"""Without those that people mix up as well."""


class Kind(Struct, frozen=True, kw_only=True):
    """How pictures of one kind are drawn."""

    tilt: int = 8
    """Degrees that a letter is turned by, at most."""
    lines: int = 2
    curves: int = 0
    """In the colour of the letters."""
    width: int = 2
    """Of a curve."""
    step: int = 38
    """Pixels from letter to letter; they are about 24 wide."""
    wave: float = 0
    """Pixels that rows are moved by, at most."""


KINDS = {
    "letters turned by up to 8°, two thin lines": Kind(),
    "eight thin lines": Kind(lines=8),
    "turned by up to 30°, eight thin lines": Kind(tilt=30, lines=8),
    "two curves in the letters' own colour": Kind(curves=2),
    "letters that touch, curves, waves": Kind(tilt=20, curves=2, step=25, wave=3),
    "letters that overlap, turned by up to 40°, thick curves, waves": Kind(tilt=40, curves=3, width=4, step=20, wave=4),
}


def draw(text: str, kind: Kind, chance: random.Random) -> bytes:
    """A PNG."""
    image = Image.new("RGB", (kind.step * len(text) + 40, 70), "white")
    colour = (chance.randrange(110), chance.randrange(110), chance.randrange(110))
    for place, letter in enumerate(text):
        tile = Image.new("RGBA", (60, 60), (255, 255, 255, 0))
        ImageDraw.Draw(tile).text((12, 6), letter, fill=colour, font=ImageFont.load_default(40))
        tile = tile.rotate(chance.randint(-kind.tilt, kind.tilt), resample=Image.Resampling.BICUBIC)
        image.paste(tile, (10 + kind.step * place, chance.randint(0, 8)), tile)
    _strike(ImageDraw.Draw(image), image.size, kind, colour, chance)
    out = io.BytesIO()
    _bend(image, kind.wave, chance).filter(ImageFilter.SMOOTH).save(out, "PNG")
    return out.getvalue()


def _strike(
    pen: ImageDraw.ImageDraw, size: tuple[int, int], kind: Kind, colour: tuple[int, int, int], chance: random.Random
) -> None:
    width, height = size
    for _ in range(kind.lines):
        ends = [(chance.randrange(width), chance.randrange(height)) for _ in range(2)]
        pen.line(ends, fill=(150, 150, 150), width=1)
    for _ in range(kind.curves):
        middle, rise, turn = chance.randint(20, 50), chance.randint(5, 20), chance.uniform(0, 6)
        curve = [(x, middle + rise * math.sin(x / 25 + turn)) for x in range(0, width, 2)]
        pen.line(curve, fill=colour, width=kind.width)


def _bend(image: Image.Image, by: float, chance: random.Random) -> Image.Image:
    if not by:
        return image
    bent, turn = Image.new("RGB", image.size, "white"), chance.uniform(0, 6)
    for row in range(image.height):
        strip = image.crop((0, row, image.width, row + 1))
        bent.paste(strip, (round(by * math.sin(row / 9 + turn)), row))
    return bent


async def measure() -> dict[str, int]:
    """Read right, of COUNT of each kind. Upper and lower case count as the same."""
    reader = LocalOcr()
    found = {}
    for name, kind in KINDS.items():
        chance = random.Random(1)
        texts = ["".join(chance.choices(LETTERS, k=chance.randint(4, 6))) for _ in range(COUNT)]
        found[name] = sum([await _is_read(reader, text, draw(text, kind, chance)) for text in texts])
    await reader.stop()
    return found


async def _is_read(reader: LocalOcr, text: str, picture: bytes) -> bool:
    try:
        return (await reader.solve(picture)).text.lower() == text
    except FetchFailed:
        return False


if __name__ == "__main__":
    for kind_name, right in asyncio.run(measure()).items():
        print(f"| {kind_name} | {right} |")
