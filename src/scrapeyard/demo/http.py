"""Requests and answers of the practice site: its own address, forms, pages."""

import re
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import Scope

from scrapeyard.demo.parts import BASE

MAX_FORM_BYTES = 10_000
_HOST = re.compile(rb"[A-Za-z0-9.-]{1,253}(:\d{1,5})?|\[[0-9a-f:.]{2,45}\](:\d{1,5})?")


def address(scope: Scope) -> bytes:
    """The site's address as the client wrote it; ignores a Host header that is not a valid host."""
    host: bytes = next((value for name, value in scope["headers"] if name == b"host"), b"")
    scheme: str = scope["scheme"]
    return scheme.encode() + b"://" + (host if _HOST.fullmatch(host) else b"localhost")


def html_answer(request: Request, text: str, status: int = 200) -> HTMLResponse:
    """A page whose own links have the site's address."""
    return HTMLResponse(text.replace(BASE, address(request.scope).decode()), status_code=status)


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a web form. Raises HTTPException for one that is too large."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise HTTPException(413, "The form is too large.")
    return dict(parse_qsl(body.decode("utf-8", "replace")))
