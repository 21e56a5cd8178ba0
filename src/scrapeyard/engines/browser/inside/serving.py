"""Calls of the worker: contexts are opened, operations performed, contexts closed."""

import asyncio
import functools
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from scrapeyard.engines.browser import wire
from scrapeyard.engines.browser.inside import evidence
from scrapeyard.engines.browser.inside.context import HeldContext
from scrapeyard.engines.browser.inside.enclosure import children
from scrapeyard.engines.browser.inside.film import Film
from scrapeyard.engines.browser.inside.forwarder import Forwarder
from scrapeyard.engines.browser.inside.launch import LaunchedBrowser
from scrapeyard.engines.browser.inside.live import show
from scrapeyard.engines.browser.inside.looks import context_arguments
from scrapeyard.engines.browser.inside.steps.deadline import within
from scrapeyard.engines.browser.inside.steps.failures import crashed, explain, step_failed
from scrapeyard.engines.browser.operations import read_operation
from scrapeyard.engines.browser.port import ContextEnd, HostContext, LogMessage
from scrapeyard.errors import FetchFailed
from scrapeyard.framed_process import HEAD
from scrapeyard.model import ExitReason

_MAX_CALLS: Final = 4000
"""Performed or waiting at once; further ones are refused."""
_MAX_UNREAD: Final = 8 * 1024 * 1024
"""Bytes that the worker has not read; events are dropped meanwhile."""
_OPEN_SECONDS: Final = 60
_DRIVER_GONE: Final = "Connection closed while reading from the driver"
_decode_context: Final = msgspec.msgpack.Decoder(HostContext).decode


class ContextServer:
    """Serves one worker over its pipes."""

    def __init__(
        self,
        plan: wire.HostPlan,
        launched: LaunchedBrowser,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._folder = Path(plan.folder)
        self._socket = plan.socket
        self._launched = launched
        self._reader = reader
        self._writer = writer
        self._contexts: dict[int, HeldContext] = {}
        self._forwarders: dict[int, Forwarder] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._over = asyncio.Event()

    async def run(self) -> None:
        """Until the worker closes its end, or the browser is gone."""
        self._launched.browser.on("disconnected", lambda _: self._over.set())
        self._watch_driver()
        await self._send(wire.HELLO, wire.encode(self._launched.facts))
        reading = asyncio.ensure_future(self._read())
        over = asyncio.ensure_future(self._over.wait())
        await asyncio.wait((reading, over), return_when=asyncio.FIRST_COMPLETED)
        for task in (reading, over):
            task.cancel()

    def _watch_driver(self) -> None:
        """The driver does not tell when its process dies."""
        if sys.platform == "linux":
            for child in children():
                asyncio.get_running_loop().add_reader(os.pidfd_open(child), self._over.set)

    async def _read(self) -> None:
        with suppress(asyncio.IncompleteReadError):
            while True:
                size, letter = wire.FRAMING.parse_head(await self._reader.readexactly(HEAD))
                body = await self._reader.readexactly(size)
                if letter == wire.CALL:
                    self._begin(wire.decode_call(body))
                elif letter == wire.CANCEL and (task := self._tasks.get(int.from_bytes(body))):
                    task.cancel()

    def _begin(self, call: wire.HostCall) -> None:
        if len(self._tasks) >= _MAX_CALLS and call.do == "perform":
            call = msgspec.structs.replace(call, do="refuse")
        task = asyncio.create_task(self._answer(call), name=f"browser-{call.do}")
        self._tasks[call.number] = task
        task.add_done_callback(lambda _: self._tasks.pop(call.number, None))

    async def _answer(self, call: wire.HostCall) -> None:
        try:
            answer = await self._serve(call)
        except FetchFailed as failure:
            answer = wire.HostAnswer(
                number=call.number, reason=failure.reason, message=failure.message, details=failure.details
            )
        except msgspec.MsgspecError as error:
            answer = wire.HostAnswer(number=call.number, reason=ExitReason.BROWSER_STEP, message=str(error)[:500])
        except Exception as error:  # noqa: BLE001 - a call costs itself, not the process
            if _DRIVER_GONE in str(error):
                self._over.set()
                return  # the end of this process is the answer
            answer = wire.HostAnswer(number=call.number, reason=ExitReason.INTERNAL_ERROR, message=repr(error)[:500])
        body = wire.encode(answer)
        if len(body) > wire.FRAMING.max_bytes:  # both parts of an answer, or files and state together
            words = f"what it returned is larger than {wire.FRAMING.max_bytes} bytes"
            body = wire.encode(
                wire.HostAnswer(number=call.number, reason=ExitReason.FETCH_TOO_LARGE, message=f"{call.do}: {words}")
            )
        await self._send(wire.ANSWER, body)

    async def _serve(self, call: wire.HostCall) -> wire.HostAnswer:
        match call.do:
            case "open":
                await self._open(call.context, _decode_context(call.body))
            case "perform":
                done = await self._find(call.context).perform(read_operation(call.body), call.raw)
                return wire.HostAnswer(number=call.number, body=bytes(done.value), raw=done.raw)
            case "close":
                return wire.HostAnswer(number=call.number, body=wire.encode(await self._close(call.context)))
            case "watch":
                self._watch(call.context, call.body == b"on")
            case "refuse":
                raise step_failed(f"the browser has {_MAX_CALLS} operations to perform already")
        return wire.HostAnswer(number=call.number)

    async def _open(self, number: int, context: HostContext) -> None:
        launched, folder = self._launched, self._folder / "contexts" / str(number)
        folder.mkdir(parents=True)
        arguments = context_arguments(context, launched, await self._proxy(number, context))
        arguments |= evidence.evidence_arguments(context.options.evidence, folder, launched.facts.no_video)
        try:
            await within(_OPEN_SECONDS, self._make(number, context, arguments))
        except TimeoutError:
            raise crashed(f"no new context within {_OPEN_SECONDS} s") from None
        except launched.driver.error as error:
            raise explain(error, "open a context") from None
        if context.options.evidence.video and launched.facts.no_video and not launched.films:
            self._contexts[number].warn(f"no video is recorded: {launched.facts.no_video}")

    async def _proxy(self, number: int, context: HostContext) -> dict[str, str]:
        """The context's own way out. On the loopback of the whole machine others could use it, too: without a namespace
        the browser itself has to show the credentials."""
        login = {"username": context.user, "password": context.password}
        shown = login if self._launched.facts.no_namespace else {}
        forwarder = Forwarder(self._socket) if shown else Forwarder(self._socket, context.user, context.password)
        await forwarder.start()
        self._forwarders[number] = forwarder
        return {"server": f"http://127.0.0.1:{forwarder.port}", **shown}

    async def _make(self, number: int, context: HostContext, arguments: dict[str, Any]) -> None:
        native = await self._launched.browser.new_context(**arguments)
        locale = context.options.locale if "locale" not in arguments else ""
        held = HeldContext(context, native, self._launched.driver, lambda message: self._log(number, message), locale)
        held.keeps_storage = "storage" in self._launched.facts.abilities
        self._contexts[number] = held
        await evidence.start_trace(held)
        await held.start()
        if context.options.evidence.video and self._launched.films:
            held.film = Film()
            held.film.start(held)

    async def _close(self, number: int) -> ContextEnd:
        folder = self._folder / "contexts" / str(number)
        held = self._contexts.pop(number, None)
        try:
            if held is None:
                return ContextEnd()
            return await evidence.close(held, folder)
        except FetchFailed:
            self._over.set()
            raise
        finally:
            if (forwarder := self._forwarders.pop(number, None)) is not None:
                forwarder.stop()
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def _watch(self, number: int, on: bool) -> None:
        held = self._find(number)
        if held.live_view is not None:
            held.live_view.cancel()
        if on:
            send = functools.partial(self._show, number)
            held.live_view = asyncio.create_task(show(held, send), name="browser-live-view")

    def _show(self, number: int, picture: bytes) -> None:
        self._tell(wire.HostEvent(context=number, kind="picture", body=picture))

    def _find(self, number: int) -> HeldContext:
        try:
            return self._contexts[number]
        except KeyError:
            raise crashed("there is no such context any more") from None

    def _log(self, number: int, message: LogMessage) -> None:
        self._tell(wire.HostEvent(context=number, kind="log", body=wire.encode(message)))

    def _tell(self, event: wire.HostEvent) -> None:
        if self._writer.transport.get_write_buffer_size() < _MAX_UNREAD:
            self._writer.write(wire.FRAMING.pack(wire.EVENT, wire.encode(event)))

    async def _send(self, letter: bytes, body: bytes) -> None:
        with suppress(ConnectionError):
            self._writer.write(wire.FRAMING.pack(letter, body))
            await self._writer.drain()
