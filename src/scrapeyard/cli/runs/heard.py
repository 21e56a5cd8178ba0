"""What a run says while it goes on, passed on to whoever started it here."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from scrapeyard.builtin.registry import Builtin
from scrapeyard.builtin.services import Run, Services
from scrapeyard.model import LogLine, RunProgress, Scraper
from scrapeyard.repository.trust.secrets import redact
from scrapeyard.sandbox.handles.sandbox import ForkSandbox
from scrapeyard.sandbox.port import ChildServices, Verdict, Work
from scrapeyard.wiring.builtins import all_builtins

Hear = Callable[[LogLine], None]


class HeardSandbox:
    """A sandbox that passes on log lines while scripts run."""

    def __init__(self, inner: ForkSandbox, hear: Hear, hidden: tuple[str, ...]) -> None:
        self._inner = inner
        self._receive = hear
        self._hidden = hidden
        self.start, self.stop, self.check, self.walls = inner.start, inner.stop, inner.check, inner.walls
        self.series = inner.series  # log lines of items are not passed on

    async def run(self, scraper: Scraper, work: Work, services: ChildServices) -> Verdict:
        return await self._inner.run(scraper, work, _HeardServices(services, self._receive, self._hidden))


class _HeardServices:
    def __init__(self, inner: ChildServices, hear: Hear, hidden: tuple[str, ...]) -> None:
        self._inner = inner
        self._receive = hear
        self._hidden = hidden
        self.fetch, self.download, self.artifact = inner.fetch, inner.download, inner.artifact
        self.open_browser, self.browse, self.close_browser = inner.open_browser, inner.browse, inner.close_browser
        self.solve_image, self.solve_widget, self.extract = inner.solve_image, inner.solve_widget, inner.extract
        self.enqueue, self.read_state, self.change_state = inner.enqueue, inner.read_state, inner.change_state

    def progress(self, progress: RunProgress) -> None:
        self._inner.progress(progress)
        self._receive(_progress_line(progress, self._hidden))

    def log(self, line: LogLine) -> None:
        text, fields = redact(line.text, self._hidden), redact(line.fields, self._hidden)
        self._receive(msgspec.structs.replace(line, text=text, fields=fields))
        self._inner.log(line)


def heard_builtins(hear: Hear, extract: Run | None = None) -> dict[str, Builtin]:
    """Built-ins that tell their progress."""

    def heard(builtin: Builtin) -> Builtin:
        def run(services: Services, given: dict[str, Any]) -> Awaitable[dict[str, Any]]:
            def progress(progress: RunProgress) -> None:
                services.progress(progress)
                hear(_progress_line(progress))

            return builtin.run(msgspec.structs.replace(services, progress=progress), given)

        return msgspec.structs.replace(builtin, run=run)

    return {name: heard(builtin) for name, builtin in all_builtins(extract=extract).items()}


def _progress_line(progress: RunProgress, hidden: tuple[str, ...] = ()) -> LogLine:
    of = "" if progress.total is None else f" of {progress.total:g}"
    text = redact(f"{progress.done:g}{of} {progress.message}".strip(), hidden)
    return LogLine(at_ms=0.0, stream="progress", text=text)
