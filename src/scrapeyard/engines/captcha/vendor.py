"""A vendor of captcha answers that speaks 2captcha's JSON API (version 2), as several others do."""

import asyncio
import base64
import time
from datetime import timedelta
from typing import Any

import msgspec
from wreq import Client
from wreq.redirect import Policy
from wreq.wreq import Method

from scrapeyard.engines.captcha.port import CaptchaAnswer, Widget
from scrapeyard.engines.http.body import read_wire
from scrapeyard.engines.http.failures import WREQ_ERRORS
from scrapeyard.engines.http.url import parse_target
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import CaptchaSettings
from scrapeyard.telemetry.events import get_log

log = get_log("captcha")
_MAX_ANSWER = 256 * 1024
_CONNECT_SECONDS = 10.0
_NO_ANSWER: tuple[type[Exception], ...] = (*WREQ_ERRORS, FetchFailed, TimeoutError)
_TASKS = {
    "turnstile": "TurnstileTaskProxyless",
    "recaptcha": "RecaptchaV2TaskProxyless",
    "hcaptcha": "HCaptchaTaskProxyless",
}


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    error_id: int = msgspec.field(default=0, name="errorId")
    error_code: str = msgspec.field(default="", name="errorCode")
    error_words: str = msgspec.field(default="", name="errorDescription")
    task_id: int | str = msgspec.field(default="", name="taskId")
    status: str = ""
    solution: dict[str, Any] = msgspec.field(default_factory=dict)
    cost: float = 0.0


_decoder = msgspec.json.Decoder(_Answer, strict=False)


class CaptchaVendor:
    """Asks for an answer and waits until it is there."""

    def __init__(self, settings: CaptchaSettings) -> None:
        self._settings = settings
        self._client: Client | None = None

    async def stop(self) -> None:
        """Close connections. May be called twice."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    async def solve_image(self, image: bytes) -> CaptchaAnswer:
        """Raises FetchFailed (`fetch_captcha`)."""
        return await self._solve({"type": "ImageToTextTask", "body": base64.b64encode(image).decode()})

    async def solve_widget(self, widget: Widget) -> CaptchaAnswer:
        """Raises FetchFailed (`fetch_captcha`)."""
        return await self._solve({"type": _TASKS[widget.kind], "websiteURL": widget.url, "websiteKey": widget.site_key})

    async def _solve(self, task: dict[str, Any]) -> CaptchaAnswer:
        ends = time.monotonic() + self._settings.seconds
        made = await self._say("createTask", {"task": task})
        while time.monotonic() < ends:
            await asyncio.sleep(self._settings.poll_seconds)
            answer = await self._say("getTaskResult", {"taskId": made.task_id})
            if answer.status == "ready":
                return CaptchaAnswer(text=_text(answer.solution), solver="vendor", cost=answer.cost)
        raise _failed(f"the vendor had no answer within {self._settings.seconds:g} s")

    async def _say(self, method: str, words: dict[str, Any]) -> _Answer:
        key = self._settings.vendor_key.get_secret_value()
        door = parse_target(f"{self._settings.vendor_url.rstrip('/')}/{method}")
        body = msgspec.json.encode({"clientKey": key, **words})
        try:
            response = await self._made().request(
                Method.POST, door.url, headers={"content-type": "application/json"}, body=body
            )
            answer = _decoder.decode(await read_wire(door, response.status.as_int(), response, _MAX_ANSWER))
        except _NO_ANSWER as error:
            log.warning("captcha.vendor_away", error=type(error).__name__)
            raise _failed("the vendor does not answer; check captcha.vendor_url") from None
        except msgspec.MsgspecError:
            raise _failed("the vendor's answer is not of its API; check captcha.vendor_url") from None
        if answer.error_id:
            raise _failed(f"the vendor says {answer.error_code[:60]}: {answer.error_words[:200]}")
        return answer

    def _made(self) -> Client:
        if self._client is None:
            self._client = Client(
                redirect=Policy.none(), no_proxy=True, connect_timeout=timedelta(seconds=_CONNECT_SECONDS)
            )
        return self._client


def _text(solution: dict[str, Any]) -> str:
    for name in ("text", "token", "gRecaptchaResponse"):
        if isinstance(found := solution.get(name), str) and found:
            return found[:8192]
    raise _failed("the vendor's answer has no text")


def _failed(message: str) -> FetchFailed:
    return FetchFailed(ExitReason.FETCH_CAPTCHA, message)
