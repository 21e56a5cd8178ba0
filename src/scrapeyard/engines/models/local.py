"""A model of this machine, a GGUF file, in a process of its own: it is killed if it takes too long or breaks."""

import asyncio
import sys
from typing import Any

import msgspec

from scrapeyard.engines.models.port import Completion, ModelFailed, Question
from scrapeyard.engines.models.remote import chat_answer, chat_body
from scrapeyard.extras import missing
from scrapeyard.framed_process import FramedProcess, Framing, PipeClosed, prepare_child, start_process
from scrapeyard.settings import AiProvider
from scrapeyard.telemetry.events import get_log

log = get_log("models")
FRAMING = Framing(16 * 2**20)
_START_SECONDS = 120.0
"""To load the file."""


class LocalModel:
    """One process that answers one question after another. Started on first need."""

    def __init__(self, provider: AiProvider) -> None:
        self.provider = provider
        self._process: FramedProcess | None = None
        self._turn = asyncio.Lock()

    async def stop(self) -> None:
        """End the process. May be called twice."""
        async with self._turn:
            await self._end()

    async def complete(self, question: Question) -> Completion:
        """As `ModelClient`."""
        if words := missing("local-ai"):
            raise ModelFailed("not_configured", words)
        if self.provider.path is None or not self.provider.path.is_file():
            raise ModelFailed("not_configured", f"{self.provider.name}: there is no file {self.provider.path}")
        async with self._turn:
            try:
                raw = await self._ask(msgspec.json.encode(chat_body(self.provider, question)))
            except TimeoutError:
                await self._end()
                words = f"{self.provider.name} had no answer within {self.provider.seconds:g} s"
                raise ModelFailed("timeout", words) from None
            except (EOFError, OSError, ValueError) as error:
                await self._end()
                log.warning("models.process_lost", model=self.provider.name, error=repr(error))
                words = f"the process of {self.provider.name} ended; the file may be damaged or the memory too small"
                raise ModelFailed("unavailable", words) from None
            except BaseException:
                await self._end()
                raise
        return chat_answer(self.provider.name, raw)

    async def _ask(self, body: bytes) -> bytes:
        if self._process is None:
            provider = self.provider
            self._process = await start_process(
                "scrapeyard.engines.models.local", str(provider.path), str(provider.context_tokens), framing=FRAMING
            )
            try:
                async with asyncio.timeout(_START_SECONDS):
                    await self._process.receive()
            except TimeoutError:
                words = f"{provider.name} was not loaded within {_START_SECONDS:g} s; the machine may be too busy"
                raise ModelFailed("timeout", words) from None
        async with asyncio.timeout(self.provider.seconds):
            await self._process.send(FRAMING.pack(b"q", body))
            return (await self._process.receive())[1]

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.end()


def _serve() -> None:
    """The process: a question in, an answer out. The library writes to stdout, so frames leave by a copy of it."""
    import os  # noqa: PLC0415 - only the process needs these
    import secrets  # noqa: PLC0415

    import xllamacpp  # noqa: PLC0415

    prepare_child()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.n_ctx = int(sys.argv[2])
    parameters.n_parallel = 1
    parameters.verbosity = 0
    parameters.ui = False
    parameters.api_keys = [secrets.token_hex(16)]  # the library also listens on loopback; nobody may use that
    server = xllamacpp.Server(parameters)
    _send(out, b"r", b"")
    while True:
        try:
            _, body = FRAMING.read(sys.stdin.buffer)
        except PipeClosed:
            return
        _send(out, b"a", _answer(server, body))


def _send(out: Any, letter: bytes, body: bytes) -> None:
    out.write(FRAMING.pack(letter, body))
    out.flush()


def _answer(server: Any, body: bytes) -> bytes:
    return msgspec.json.encode(server.handle_chat_completions(msgspec.json.decode(body)))


if __name__ == "__main__":
    _serve()
