"""A worker's engine in a thread of its own, for a prompt: the script's context without a script."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

import msgspec
import typer

from scrapeyard.cli.common.output import log_line
from scrapeyard.cli.runs.local import open_yard
from scrapeyard.engines.captcha.port import CaptchaEngine
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import BadRequest, FetchFailed
from scrapeyard.model import Artifact, ExitReason
from scrapeyard.sandbox.handles.frames import (
    BrowserFrame,
    FetchFrame,
    SolveFrame,
    browser_call,
    failure_head,
    page_head,
    parse,
    request_of,
    solved_head,
)
from scrapeyard.sandbox.handles.requests import browser_answer
from scrapeyard.settings import Settings
from scrapeyard.wiring.pipeline import Engine
from scrapeyard.worker.attempts.browsing import OpenBrowsers
from scrapeyard.worker.attempts.waiting import SiteWait
from scrapeyard_sdk import Context, Page
from scrapeyard_sdk.channel import Answer, Channel
from scrapeyard_sdk.context import LogRoom

_NO_LIMIT = 10**9
_NO_ARTIFACTS = "the shell keeps no artifacts; write a file instead"


class EngineThread:
    """The engine, as a context. Its pages are had from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engine", daemon=True)
        self._ended = asyncio.Event()
        self._ready: Future[_EngineChannel] = Future()

    def __enter__(self) -> "EngineThread":
        self._thread.start()
        self._serving = asyncio.run_coroutine_threadsafe(self._serve(), self._loop)
        try:
            self._channel = self._ready.result()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._serving.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run `work` beside the engine, and return what it returns. Ctrl-C cancels it."""
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return done.result()
        except KeyboardInterrupt:
            done.cancel()
            raise

    def fetch(self, url: str, **options: Any) -> Page:
        """Get a page; options and errors as in `ctx.fetch`."""
        page: Page = self.wait(self.context(url).fetch(url, **options))
        return page

    def context(self, url: str) -> Context:
        """The context of a script that was given this URL, without limits. It logs to stderr and keeps no artifacts."""
        start = {"seconds": _NO_LIMIT, "fetches": _NO_LIMIT, "run_id": "shell", "attempt": 1}
        given = {"input": {"url": url} if url else {}, "config": {}}
        return Context(self._channel, {**start, **given}, LogRoom(self._channel, _NO_LIMIT))

    async def _serve(self) -> None:
        try:
            async with open_yard(self._settings, has_scripts=False) as yard:
                channel = _EngineChannel(self._loop, await yard.engine(), yard.captchas)
                self._ready.set_result(channel)
                await self._ended.wait()
                await channel.close()
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)


class _EngineChannel(Channel):
    """A script's end of the wire with nobody behind it: requests go straight to the engine."""

    def __init__(self, loop: asyncio.AbstractEventLoop, engine: Engine, captchas: CaptchaEngine) -> None:
        self._loop = loop
        self._engine = engine
        self._captchas = captchas
        self._browsers = OpenBrowsers(
            engine.browsers, 1, Caller(), _ShellOwner(engine), SiteWait(None), captchas=captchas
        )

    async def close(self) -> None:
        """Close what is open in the browser. May be called twice."""
        await self._browsers.close()

    def send(self, head: dict[str, Any], raw: bytes = b"") -> None:  # noqa: ARG002  as the channel's
        """Show a line of the log."""
        typer.echo(log_line(head), err=True)

    async def request(self, head: dict[str, Any], raw: bytes = b"") -> Answer:
        """The answer of the engine, from whatever loop it is asked."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._answer(head, raw), self._loop))

    async def _answer(self, head: dict[str, Any], raw: bytes) -> Answer:
        frame = parse(msgspec.json.encode({**head, "n": 1}))
        try:
            if isinstance(frame, BrowserFrame):
                return await browser_answer(self._browsers, frame, browser_call(frame, raw), raw[frame.size :])
            if isinstance(frame, SolveFrame):
                return solved_head(1, (await self._captchas.solve_image(raw, Caller())).text), b""
            if not isinstance(frame, FetchFrame) or frame.keep:
                return {"t": "kept_error", "message": _NO_ARTIFACTS}, b""
            page = await self._engine.fetch(request_of(frame, raw), Caller())
        except FetchFailed as failure:
            return failure_head(1, failure), b""
        except BadRequest as error:
            return failure_head(1, FetchFailed(ExitReason.BROWSER_STEP, error.message)), b""
        return msgspec.to_builtins(page_head(1, page)), page.body


class _ShellOwner:
    """Shows what pages say, and keeps nothing."""

    artifact_room = 0

    def __init__(self, engine: Engine) -> None:
        self.artifacts: dict[str, Artifact] = {}
        self._engine = engine

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        return await self._engine.fetch(request, Caller())

    async def artifact(self, name: str, content_type: str, data: bytes) -> None:
        """There is no room for any."""

    def stepped(self, name: str, started: float, error: str) -> None:
        """Nobody traces it."""

    def say(self, words: str, level: str, **fields: str) -> None:
        typer.echo(log_line({"text": words, "level": level, "stream": "log", "fields": fields}), err=True)
