"""What was tried for one fetch, and how it ends when nothing helped."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.engines.blocks import Block
from scrapeyard.engines.blocks.words import visible_text
from scrapeyard.engines.escalation.planner import SoftBlockHistory
from scrapeyard.engines.port import FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.telemetry.events import get_log

log = get_log("ways")
_CHALLENGES = ("captcha", "challenge")
_TEXT = 4000
"""Characters of two pages that are compared."""


class _Try(Struct, frozen=True, kw_only=True):
    name: str
    remembered: str
    """The name under which the way's success is counted."""
    cost: float = 0.0
    response: FetchResponse | None = None
    block: Block | None = None
    error: FetchFailed | None = None

    def shown(self) -> dict[str, Any]:
        if self.block is None or self.response is None:
            reason = self.error.reason.value if self.error else ""
            return {"way": self.name, "reason": reason, "message": self.error.message if self.error else ""}
        told = {"way": self.name, "status": self.response.status, "kind": self.block.kind, "reason": self.block.reason}
        return told | ({"vendor": self.block.vendor} if self.block.vendor else {})


class RouteReport:
    """The tries of one fetch, in order."""

    def __init__(self, site: str, doubts: SoftBlockHistory) -> None:
        self._site = site
        self._doubts = doubts
        self._tries: list[_Try] = []

    def blocked(self, name: str, remembered: str, cost: float, response: FetchResponse, block: Block) -> None:
        """The site answered, and it was a refusal."""
        self._tries.append(_Try(name=name, remembered=remembered, cost=cost, response=response, block=block))
        told = {"way": name, "status": response.status, "kind": block.kind, "reason": block.reason}
        log.info("ways.blocked", site=self._site, **told)

    def failed(self, name: str, error: FetchFailed) -> None:
        """The way did not lead to the site."""
        self._tries.append(_Try(name=name, remembered=name, error=error))

    @property
    def is_empty(self) -> bool:
        """Whether nothing was tried yet."""
        return not self._tries

    @property
    def was_answered(self) -> bool:
        """Whether the site has had the request."""
        return any(each.response is not None for each in self._tries)

    @property
    def was_challenged(self) -> bool:
        """Whether the site answered with a page that a browser or a person may pass."""
        return any(each.block is not None and each.block.kind in _CHALLENGES for each in self._tries)

    @property
    def shell(self) -> FetchResponse | None:
        """The page that its scripts would fill; None: there was none."""
        found = (each.response for each in self._tries if each.block is not None and each.block.kind == "shell")
        return next(found, None)

    def same_refusal(self, page: FetchResponse) -> Block | None:
        """The block whose page reads like this one; None: there is none."""
        text = _text(page)
        for each in self._tries:
            if each.block is not None and each.response is not None and text and _text(each.response) == text:
                return each.block
        return None

    @property
    def proxy_failed(self) -> bool:
        """Whether the last try failed at the proxy."""
        error = self._tries[-1].error if self._tries else None
        return error is not None and error.reason is ExitReason.FETCH_PROXY

    def shown(self) -> tuple[dict[str, Any], ...]:
        """Every try, as `explain` shows it."""
        return tuple(each.shown() for each in self._tries)

    def doubtful(self) -> list[tuple[str, float]]:
        """Ways whose answers were refusals perhaps; called when another way got the page, so they were."""
        found = [each for each in self._tries if each.block is not None and not each.block.certain]
        if found:
            self._doubts.helped(self._site)
        return [(each.remembered, each.cost) for each in found]

    def end(self) -> FetchResponse:
        """The doubtful answer, where there is no more than doubt. Raises FetchFailed otherwise."""
        answered = [(each.block, each.response) for each in self._tries if each.block and each.response]
        for block, response in reversed(answered):
            if block.certain:
                raise self._refused(block, response)
        if not answered:
            raise self._no_way()
        if len(self._tries) > 1:
            self._doubts.in_vain(self._site)
        return replace(answered[0][1], tried=self.shown())

    def _refused(self, block: Block, response: FetchResponse) -> FetchFailed:
        names = ", ".join(dict.fromkeys(each.name for each in self._tries))
        by = f" by {block.vendor}" if block.vendor else ""
        return FetchFailed(
            ExitReason.FETCH_CAPTCHA if block.kind in _CHALLENGES else ExitReason.FETCH_BLOCKED,
            f"{self._site} refuses us{by} ({block.reason}); tried: {names}; slow down, or set up dearer proxies or a "
            "solver (escalation.solver_url)",
            site_status=response.status,
            kind=block.kind,
            vendor=block.vendor,
            block=block.reason,
            tried=self.shown(),
        )

    def _no_way(self) -> FetchFailed:
        error = next((each.error for each in reversed(self._tries) if each.error is not None), None)
        if error is None:
            return FetchFailed(ExitReason.FETCH_TIMEOUT, f"no time was left to try a way to {self._site}")
        details = error.details | {"tried": self.shown()}
        return FetchFailed(error.reason, error.message, site_status=error.site_status, **details)


def _text(response: FetchResponse) -> str:
    return visible_text(response.body, response.encoding, _TEXT).text
