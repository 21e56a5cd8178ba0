"""Connections on which an answer is heard even when it comes before all of the call was sent."""

from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.request import HTTPHandler, HTTPSHandler, Request


class _Hearing(HTTPConnection):
    """A server that refuses an upload hangs up in the middle of it; why, it has said before."""

    def request(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().request(*args, **kwargs)
        except (BrokenPipeError, ConnectionResetError):
            if self.sock is None:
                raise


class _HearingTls(_Hearing, HTTPSConnection):
    """The same over TLS."""


class PlainHandler(HTTPHandler):
    """Calls by http."""

    def http_open(self, req: Request) -> HTTPResponse:
        """Called by urllib."""
        return self.do_open(_Hearing, req)


class TlsHandler(HTTPSHandler):
    """Calls by https."""

    def https_open(self, req: Request) -> HTTPResponse:
        """Called by urllib."""
        context = getattr(self, "_context", None)
        return self.do_open(_HearingTls, req, context=context)
