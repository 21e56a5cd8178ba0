"""Steps in a browser: what each did, how long it took, and the pictures and files that stay.

`builtin/actions` and `builtin/replay` both perform their steps through it.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import msgspec

from scrapeyard.builtin.services import Services
from scrapeyard.engines.browser import operations as browser
from scrapeyard.engines.browser.port import Done, Perform
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, RunProgress

MAX_PERFORMED: Final = 10_000
MAX_OUTCOMES: Final = 1000
"""Outcomes that a result shows; that of the step which ended the run is always among them."""
MAX_PICTURES: Final = 200
MAX_FILE_BYTES: Final = 50 * 1024 * 1024
"""Of all artifacts of a run."""
_EVIDENCE_SECONDS: Final = 5.0
_HIDDEN: Final = "•••"
_HIDE_FROM: Final = 3
"""Shorter texts are part of too many words to be hidden."""
_FATAL: Final = frozenset({ExitReason.BROWSER_CRASHED, ExitReason.BROWSER_UNAVAILABLE, ExitReason.FETCH_BUDGET})
"""After these, no further step can be done."""

STEPS_OUTPUT: dict[str, Any] = {
    "type": "array",
    "description": "What was done, in order.",
    "items": {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "description": "Number of the step, from 1, as it was performed."},
            "path": {"type": "string", "description": "Where it stands in the input, such as `steps[3].then[0]`."},
            "do": {"type": "string", "description": "What it does."},
            "ok": {"type": "boolean", "description": "Whether it succeeded."},
            "ms": {"type": "number", "description": "How long it took."},
            "error": {"type": "string", "description": "Why it failed."},
            "note": {"type": "string", "description": "What else is to be said of it."},
            "screenshot": {"type": "string", "description": "The artifact that shows the page after it."},
        },
        "required": ["n", "path", "do", "ok", "ms"],
    },
}
END_OUTPUT: dict[str, Any] = {
    "performed": {"type": "integer", "description": "Steps that were performed; `steps` shows at most 1,000 of them."},
    "url": {"type": ["string", "null"], "description": "Where the page was at the end."},
    "title": {"type": ["string", "null"], "description": "The page's title at the end."},
}

Outcome = dict[str, Any]


class BrowserRun:
    """The steps of one run, in one context."""

    def __init__(self, services: Services, perform: Perform, screenshots: str, total: int) -> None:
        self.services = services
        self.tab = 0
        self.outcomes: list[Outcome] = []
        self.plain = perform
        """Performs operations that are known to be valid."""
        self._screenshots = screenshots
        self._total = total
        self._performed = 0
        self._pictures = 0
        self._file_bytes = 0
        self._hidden: set[str] = set()

    async def perform(self, operation: browser.Operation, raw: bytes = b"") -> Done:
        """Perform a valid operation. Raises FetchFailed."""
        try:
            checked = browser.read_operation(msgspec.json.encode(operation))
        except msgspec.ValidationError as error:
            raise FetchFailed(ExitReason.BROWSER_STEP, str(error)) from None
        return await self.plain(checked, raw)

    async def value(self, operation: browser.Operation) -> Any:
        """The JSON value that an operation returns."""
        return msgspec.json.decode((await self.perform(operation)).value)

    def hide(self, text: str) -> None:
        """From now on, this text appears in no outcome and in no error."""
        if len(text) >= _HIDE_FROM:
            self._hidden.add(text)

    @asynccontextmanager
    async def step(self, path: str, do: str, *, optional: bool = False, shown: bool = True) -> AsyncIterator[Outcome]:
        """Note how a step goes. A failure passes on with `step` among its details, unless the step is optional."""
        self._performed += 1
        if self._performed > MAX_PERFORMED:
            raise FetchFailed(ExitReason.BROWSER_STEP, f"more than {MAX_PERFORMED} steps are performed", step=path)
        began = time.perf_counter()
        outcome: Outcome = {"n": self._performed, "path": path, "do": do, "ok": True, "ms": 0.0}
        if len(self.outcomes) < MAX_OUTCOMES:
            self.outcomes.append(outcome)
        total = max(self._total, self._performed)
        self.services.progress(RunProgress(done=self._performed, total=total, message=f"{path} {do}"))
        await asyncio.sleep(0)  # steps that only set variables would keep the worker from everything else
        try:
            yield outcome
        except FetchFailed as error:
            outcome |= {"ok": False, "error": self._without_secrets(error.message)[:1000]}
            if not optional or error.reason in _FATAL or self._performed > MAX_PERFORMED:
                raise self._named(error, path, do, outcome) from None
        finally:
            outcome["ms"] = round((time.perf_counter() - began) * 1000, 1)
        if shown and self._screenshots == "each" and self._pictures < MAX_PICTURES:
            await self._show(outcome)

    async def keep(self, name: str, content_type: str, data: bytes) -> str:
        """Keep a file as an artifact, under a name that is safe. Returns the name."""
        self._file_bytes += len(data)
        if self._file_bytes > MAX_FILE_BYTES:
            raise FetchFailed(ExitReason.BROWSER_STEP, f"the files of a run may take {MAX_FILE_BYTES >> 20} MB")
        safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).lstrip(".-_")[:128] or "file"
        await self.services.artifact(safe, content_type, data)
        return safe

    async def end(self) -> dict[str, Any]:
        """What a result says of the steps and of the page at the end."""
        url, title = await self._place()
        return {"steps": self.outcomes, "performed": self._performed, "url": url, "title": title}

    async def explain(self, error: FetchFailed, data: dict[str, Any]) -> FetchFailed:
        """The failure with what was done before it. Keeps the page as it is, and what was extracted so far."""
        url, _ = await self._place()
        if self._screenshots != "none" and error.reason not in _FATAL:
            await self._keep_page()
        if data:
            with suppress(FetchFailed):
                await self.keep("data.json", "application/json", json.dumps(data).encode())
        told = {**error.details, "steps": self.outcomes[-50:], "performed": self._performed, "url": url}
        return FetchFailed(error.reason, error.message, site_status=error.site_status, **told)

    async def _keep_page(self) -> None:
        with suppress(FetchFailed):  # a page that does not give its HTML gives no picture either
            page = await self.perform(browser.Content(tab=self.tab, timeout=_EVIDENCE_SECONDS))
            await self.keep("failure.html", "text/html; charset=utf-8", page.raw)
            shot = browser.Screenshot(tab=self.tab, timeout=_EVIDENCE_SECONDS)
            await self.keep("failure.png", "image/png", (await self.perform(shot)).raw)

    async def _show(self, outcome: Outcome) -> None:
        self._pictures += 1
        with suppress(FetchFailed):
            shot = await self.perform(browser.Screenshot(tab=self.tab, format="jpeg", timeout=_EVIDENCE_SECONDS))
            outcome["screenshot"] = await self.keep(f"step-{outcome['n']:04d}.jpg", "image/jpeg", shot.raw)

    async def _place(self) -> tuple[str | None, str | None]:
        try:
            tabs = await self.value(browser.Tabs(timeout=_EVIDENCE_SECONDS))
        except FetchFailed:
            return None, None
        here: dict[str, Any] = next((tab for tab in tabs if tab["tab"] == self.tab), {})
        return here.get("url"), here.get("title")

    def _named(self, error: FetchFailed, path: str, do: str, outcome: Outcome) -> FetchFailed:
        if "step" in error.details:
            return error
        if all(outcome is not each for each in self.outcomes):
            self.outcomes.append(outcome)
        message = f"{path} ({do}): {outcome['error']}"
        return FetchFailed(error.reason, message, site_status=error.site_status, **error.details, step=path)

    def _without_secrets(self, text: str) -> str:
        for hidden in sorted(self._hidden, key=len, reverse=True):
            text = text.replace(hidden, _HIDDEN)
        return text
