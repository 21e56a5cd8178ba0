"""The captcha engine of a worker: what policy allows, the local model first, then the vendor."""

import asyncio

from scrapeyard.engines.captcha.ocr import LocalOcr
from scrapeyard.engines.captcha.port import MAX_CALLS, MAX_IMAGE, CaptchaAnswer, Click, Widget
from scrapeyard.engines.captcha.vendor import CaptchaVendor
from scrapeyard.engines.port import Caller
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import CaptchaSettings

_NEEDS_VENDOR = 'a token without a click comes from a vendor; set captcha.vendor_url, and policy.captcha to "vendor"'


class Captchas:
    """As `CaptchaEngine`."""

    def __init__(self, settings: CaptchaSettings) -> None:
        self._settings = settings
        self._local = LocalOcr()
        self._vendor = CaptchaVendor(settings) if settings.vendor_url else None
        self._free = asyncio.Semaphore(settings.concurrency)

    async def start(self) -> None:
        """Ready. Starts nothing."""

    async def stop(self) -> None:
        """End the model's process and close connections. May be called twice."""
        await self._local.stop()
        if self._vendor is not None:
            await self._vendor.stop()

    async def solve_image(self, image: bytes, caller: Caller) -> CaptchaAnswer:
        """As `CaptchaEngine.solve_image`."""
        allowed = self._allowed(caller)
        if not 0 < len(image) <= MAX_IMAGE:
            raise _refused(f"a picture of a captcha has 1 to {MAX_IMAGE:,} bytes, not {len(image):,}")
        _count_call(caller)
        async with self._free:
            answer = await self._read(image, allowed)
        return _counted(answer, caller)

    async def solve_widget(self, widget: Widget, caller: Caller, click: Click | None = None) -> CaptchaAnswer:
        """As `CaptchaEngine.solve_widget`."""
        paid = self._allowed(caller) == "vendor" and self._vendor is not None
        if click is None and not paid:
            raise _refused(_NEEDS_VENDOR)
        _count_call(caller)
        if click is not None and (token := await click()):
            return _counted(CaptchaAnswer(text=token, solver="browser"), caller)
        if self._vendor is None or not paid:
            raise FetchFailed(ExitReason.FETCH_CAPTCHA, f"a click did not satisfy the {widget.kind}; {_NEEDS_VENDOR}")
        async with self._free:
            return _counted(await self._vendor.solve_widget(widget), caller)

    async def _read(self, image: bytes, allowed: str) -> CaptchaAnswer:
        """By the local model; by the vendor where that is not sure, and policy allows it."""
        failed: FetchFailed | None = None
        answer: CaptchaAnswer | None = None
        try:
            answer = await self._local.solve(image)
        except FetchFailed as error:
            failed = error
        if allowed != "vendor" or self._vendor is None:
            if answer is None:
                raise failed or _refused("no solver")
            return answer
        if answer is not None and (answer.confidence or 0) >= self._settings.sure:
            return answer
        return await self._vendor.solve_image(image)

    def _allowed(self, caller: Caller) -> str:
        allowed = caller.policy.captcha or self._settings.allow
        if allowed == "off":
            raise _refused('captchas are not solved unless policy allows it; set policy.captcha to "local" or "vendor"')
        return allowed


def _count_call(caller: Caller) -> None:
    if caller.ledger.captcha_calls >= MAX_CALLS:
        raise _refused(f"a run may have {MAX_CALLS} captchas solved")
    caller.ledger.captcha_calls += 1


def _counted(answer: CaptchaAnswer, caller: Caller) -> CaptchaAnswer:
    caller.ledger.captcha_successes += 1
    caller.ledger.captcha_cost += answer.cost
    return answer


def _refused(message: str) -> FetchFailed:
    return FetchFailed(ExitReason.FETCH_NOT_ALLOWED, message)
