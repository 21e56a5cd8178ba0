"""The answers that a context's pages got: the newest few hundred. Their bodies stay in the browser until asked for."""

import asyncio
import re
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from scrapeyard.engines.browser.inside.steps.deadline import within

if TYPE_CHECKING:
    from patchright.async_api import Response

MAX_KEPT: Final = 500


class KeptResponse:
    """One answer."""

    def __init__(self, number: int, response: "Response") -> None:
        self.number = number
        self.was_awaited = False
        self._response = response
        self.url = response.url
        self.status = response.status

    async def read(self, driver_error: type[Exception], seconds: float) -> bytes | None:
        """Its body, when all of it has come; None where it is not to be had any more."""
        try:
            return await within(seconds, self._response.body())
        except (driver_error, TimeoutError):
            return None

    def tell(self) -> dict[str, Any]:
        """As `Responses` returns it, without the size."""
        request, headers = self._response.request, self._response.headers
        return {
            "id": self.number,
            "url": self.url,
            "status": self.status,
            "method": request.method,
            "type": request.resource_type,
            "content_type": headers.get("content-type", ""),
            "headers": headers,
        }


class ResponseLog:
    """The newest answers of a context, and those who wait for one."""

    def __init__(self) -> None:
        self.count = 0
        """Answers so far: the number of the next."""
        self._kept: deque[KeptResponse] = deque(maxlen=MAX_KEPT)
        self._arrived = asyncio.Event()

    def note(self, response: "Response") -> None:
        """It came."""
        self._kept.append(KeptResponse(self.count, response))
        self.count += 1
        self._arrived.set()

    def last_with(self, status: int) -> KeptResponse | None:
        """The newest with this status; None: there is none."""
        return next((each for each in reversed(self._kept) if each.status == status), None)

    def matching(self, pattern: re.Pattern[str], limit: int) -> list[KeptResponse]:
        """The newest that match, the oldest of them first."""
        return [each for each in self._kept if pattern.fullmatch(each.url)][-limit:]

    async def wait(self, pattern: re.Pattern[str], since: int) -> KeptResponse:
        """The first that matches from number `since` on and that nobody has waited for before."""
        while True:
            for each in self._kept:
                if each.number >= since and not each.was_awaited and pattern.fullmatch(each.url):
                    each.was_awaited = True
                    return each
            self._arrived.clear()
            await self._arrived.wait()
