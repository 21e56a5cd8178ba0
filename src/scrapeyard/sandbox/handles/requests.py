"""What a child asks for while it runs: pages, downloads and artifacts. Serves them within the run's limits."""

import asyncio
import re
from typing import Any, Protocol

import msgspec

from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import BadRequest, FetchFailed, ScrapeyardError, Unavailable
from scrapeyard.model import ExitReason, Limits
from scrapeyard.sandbox.handles.frames import FetchFrame, KeepArtifact, failure_head, page_head, request_of
from scrapeyard.sandbox.handles.unread import FetchGate
from scrapeyard.sandbox.port import ChildServices
from scrapeyard_sdk.context import too_many_fetches

ARTIFACT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_BAD_NAME = "an artifact's name is letters, digits, dots, dashes; at most 128"
_WAITING_REQUESTS = 64 * 1024 * 1024
"""Maximum bytes of requests that wait for their answer, heads and bodies."""
_REQUEST_COST = 1024
"""Minimum bytes counted for each of them."""
_ARTIFACT_COST = 4096
"""Minimum bytes counted for each artifact: even a tiny file costs the store something."""
_MB = 1024 * 1024


class Asker(Protocol):
    """The conversation that the requests belong to."""

    def answer(self, head: dict[str, Any], raw: bytes = b"") -> None:
        """Send a frame to the child."""

    def spawn(self, work: "asyncio._CoroutineLike[None]") -> None:
        """Run until it is done or the conversation ends."""

    def count_refusal(self, why: str) -> None:
        """A request was refused; too many end the run."""


class ChildRequests:
    """Serves one run."""

    def __init__(self, asker: Asker, limits: Limits, services: ChildServices, gate: FetchGate) -> None:
        self._asker = asker
        self._limits = limits
        self._services = services
        self._gate = gate
        self._fetches = 0
        self._waiting_bytes = 0
        self._artifact_bytes = 0
        self._downloading = asyncio.Lock()
        self.store_fault = ""
        """Why the platform could not save something for the run; empty if it could."""

    def fetch(self, frame: FetchFrame, raw: bytes) -> None:
        """The child wants a page, or one downloaded."""
        self._fetches += 1
        size = _REQUEST_COST + len(raw) + frame.head_size
        refusal = self._fetch_refusal(size)
        if refusal is not None:
            self._asker.answer(failure_head(frame.n, refusal))
            self._asker.count_refusal(refusal.message)
            return
        self._waiting_bytes += size
        self._asker.spawn(self._answer(frame, request_of(frame, raw), size))

    def artifact(self, frame: KeepArtifact, raw: bytes) -> None:
        """The child wants bytes saved."""
        self._artifact_bytes += max(len(raw), _ARTIFACT_COST)
        if not ARTIFACT_NAME.fullmatch(frame.name):
            self._refuse_artifact(frame.n, _BAD_NAME)
        elif self._artifact_bytes > self._limits.artifact_mb * _MB:
            self._refuse_artifact(frame.n, self._no_room())
        else:
            self._asker.spawn(self._keep(frame, raw))

    def _fetch_refusal(self, size: int) -> FetchFailed | None:
        if self._fetches > self._limits.fetches:
            return FetchFailed(ExitReason.FETCH_LIMIT, too_many_fetches(self._limits.fetches))
        if self._waiting_bytes + size > _WAITING_REQUESTS:
            words = "the requests that wait are too large together; wait for some answers first"
            return FetchFailed(ExitReason.FETCH_NOT_ALLOWED, words)
        return None

    async def _answer(self, frame: FetchFrame, request: FetchRequest, size: int) -> None:
        try:
            page = await (self._download(frame.keep, request) if frame.keep else self._fetch(request))
            self._asker.answer(page_head(frame.n, page), page.body)
        except FetchFailed as failure:
            self._asker.answer(failure_head(frame.n, failure))
        except ScrapeyardError as error:
            self._not_saved(frame.n, error)
        except ValueError as error:
            large = FetchFailed(ExitReason.FETCH_TOO_LARGE, f"the page does not fit: {error}")
            self._asker.answer(failure_head(frame.n, large))
        finally:
            self._waiting_bytes -= size

    async def _fetch(self, request: FetchRequest) -> FetchResponse:
        async with self._gate:
            page = await self._services.fetch(request)
            self._gate.note_size(len(page.body))
            return page

    async def _download(self, name: str, request: FetchRequest) -> FetchResponse:
        """One download at a time, because each reserves the artifact bytes it may use."""
        if not ARTIFACT_NAME.fullmatch(name):
            raise BadRequest(_BAD_NAME)
        async with self._downloading:
            room = int(self._limits.artifact_mb * _MB) - self._artifact_bytes
            if room <= 0:
                raise BadRequest(self._no_room())
            taken = room if request.max_bytes is None else min(room, request.max_bytes)
            self._artifact_bytes += taken
            try:
                page = await self._services.download(msgspec.structs.replace(request, max_bytes=taken), name)
            except BaseException:
                self._artifact_bytes += _ARTIFACT_COST - taken
                raise
            self._artifact_bytes += max(page.kept or 0, _ARTIFACT_COST) - taken
            return page

    async def _keep(self, frame: KeepArtifact, raw: bytes) -> None:
        try:
            await self._services.artifact(frame.name, frame.content_type, raw)
        except ScrapeyardError as error:
            self._not_saved(frame.n, error)
        else:
            self._asker.answer({"t": "kept", "n": frame.n})

    def _not_saved(self, number: int, error: ScrapeyardError) -> None:
        if isinstance(error, Unavailable):
            self.store_fault = error.message
        self._refuse_artifact(number, error.message)

    def _no_room(self) -> str:
        return f"artifacts may take {self._limits.artifact_mb:g} MB; limits.artifact_mb"

    def _refuse_artifact(self, number: int, message: str) -> None:
        self._asker.answer({"t": "kept_error", "n": number, "message": message})
        self._asker.count_refusal(message)
