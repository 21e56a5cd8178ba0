"""What a request prefers: a dialect (`Prefer`) and a language (`Accept-Language`)."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrapeyard.gateway.http import dialects, languages
from scrapeyard.gateway.http.dialects import DIALECTS, Dialect


class Preferences:
    """Sets the dialect and the language of each answer, and those of requests that do not say."""

    def __init__(self, app: ASGIApp, dialect: str, language: str) -> None:
        self._app = app
        self._dialect = DIALECTS[dialect]
        self._language = language

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        asked, language = None, self._language
        if scope["type"] == "http":
            for name, value in scope["headers"]:
                if name == b"prefer":
                    asked = dialects.preferred(value) or asked
                elif name == b"accept-language":
                    language = languages.accepted(value) or language
        spoken = dialects.speak(asked or self._dialect, asked is not None)
        speaks = languages.speak(language)
        try:
            await self._app(scope, receive, _telling(send, asked) if asked else send)
        finally:
            dialects.stop(spoken)
            languages.stop(speaks)


def _telling(send: Send, dialect: Dialect) -> Send:
    async def telling(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).append("Preference-Applied", f"dialect={dialect.name}")
        await send(message)

    return telling
