"""Turns a fault of ours into a problem that tells nothing of its cause; the log has it."""

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrapeyard.gateway.http.problems import unexpected
from scrapeyard.telemetry.events import get_log

log = get_log("gateway")


class LastResort:
    """Catches what nothing else caught. An answer already begun is broken off, so that nobody takes it for whole."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            log.debug("gateway.client_gone", path=scope["path"])
        except Exception as error:
            log.error("gateway.unexpected_error", path=scope["path"], error=repr(error), exc_info=error)
            if begun:
                raise
            await unexpected()(scope, receive, send)
