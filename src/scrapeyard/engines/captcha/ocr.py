"""Pictures of text, read by a local model in a process of its own: a hostile picture costs that process."""

import asyncio
import sys

import msgspec

from scrapeyard.engines.captcha.port import MAX_IMAGE, CaptchaAnswer
from scrapeyard.errors import FetchFailed
from scrapeyard.extras import missing
from scrapeyard.framed_process import FramedProcess, Framing, PipeClosed, prepare_child, start_process
from scrapeyard.model import ExitReason
from scrapeyard.telemetry.events import get_log

log = get_log("captcha")
FRAMING = Framing(MAX_IMAGE)
_SECONDS = 20.0
_MAX_TEXT = 64
_MAX_SIDE = 2000
"""Pixels of a picture; a larger one is no captcha."""
_MEMORY = 2 * 2**30


class Reading(msgspec.Struct, frozen=True):
    """What the process answers. `fault` is empty unless the picture could not be read."""

    text: str = ""
    confidence: float = 0.0
    fault: str = ""


class LocalOcr:
    """One process that reads one picture after another. Started on first need."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._process: FramedProcess | None = None
        self._turn = asyncio.Lock()

    async def stop(self) -> None:
        """End the process. May be called twice."""
        async with self._turn:
            await self._end()

    async def solve(self, image: bytes) -> CaptchaAnswer:
        """Raises FetchFailed."""
        if words := missing("captcha"):
            raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, words)
        async with self._turn:
            try:
                async with asyncio.timeout(self._seconds):
                    reading = await self._ask(image)
            except (TimeoutError, EOFError, OSError, ValueError, msgspec.MsgspecError) as error:
                await self._end()
                log.warning("captcha.reader_lost", error=repr(error))
                raise FetchFailed(ExitReason.FETCH_CAPTCHA, "reading the picture ended its process") from None
            except BaseException:
                await self._end()
                raise
        if reading.fault or not reading.text:
            words = reading.fault or "there is no text in it"
            raise FetchFailed(ExitReason.FETCH_CAPTCHA, f"the picture could not be read: {words}")
        return CaptchaAnswer(text=reading.text, solver="local", confidence=reading.confidence)

    async def _ask(self, image: bytes) -> Reading:
        if self._process is None:
            self._process = await start_process("scrapeyard.engines.captcha.ocr", framing=FRAMING)
        await self._process.send(FRAMING.pack(b"i", image))
        _, body = await self._process.receive()
        return msgspec.json.decode(body, type=Reading)

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.end()


def _serve() -> None:
    """The process: a picture in, a reading out."""
    import resource  # noqa: PLC0415 - only the process needs it

    import ddddocr  # noqa: PLC0415

    prepare_child()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    reader = ddddocr.DdddOcr(show_ad=False)
    out = sys.stdout.buffer
    while True:
        try:
            _, image = FRAMING.read(sys.stdin.buffer)
        except PipeClosed:
            return
        out.write(FRAMING.pack(b"r", msgspec.json.encode(_read(reader, image))))
        out.flush()


def _read(reader: "object", image: bytes) -> Reading:
    import io  # noqa: PLC0415

    from PIL import Image  # noqa: PLC0415

    try:
        with Image.open(io.BytesIO(image)) as picture:
            if max(picture.size) > _MAX_SIDE or min(picture.size) < 4:
                return Reading(fault=f"{picture.size[0]} x {picture.size[1]} pixels are no captcha")
            plain = picture.convert("RGBA")
            ground = Image.new("RGBA", plain.size, "white")
            ground.alpha_composite(plain)
            found = reader.classification(ground.convert("RGB"), probability=True)  # type: ignore[attr-defined]
    except Exception as error:  # noqa: BLE001 - a picture may break a decoder in any way
        return Reading(fault=f"{type(error).__name__}: {error}"[:200])
    return _reading(found)


def _reading(found: "object") -> Reading:
    if not isinstance(found, dict):
        return Reading(text=str(found)[:_MAX_TEXT])
    return Reading(text=str(found.get("text", ""))[:_MAX_TEXT], confidence=_confidence(found.get("probabilities")))


def _confidence(probabilities: "object") -> float:
    """That of the least certain place: the mean, which the model gives, hides a letter that it guessed among gaps that
    are certain."""
    import numpy as np  # noqa: PLC0415 - comes with the model

    places = np.max(np.asarray(probabilities or [[0.0]], dtype=float), axis=-1)
    return float(np.min(places))


if __name__ == "__main__":
    _serve()
