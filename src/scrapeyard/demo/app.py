"""The practice shop as an ASGI application. Fixed pages come from memory; the rest misbehaves on request."""

import asyncio
import itertools
import math
import re
from collections.abc import Mapping
from html import escape

from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from scrapeyard.demo.county import County
from scrapeyard.demo.goods import make_products
from scrapeyard.demo.http import address, html_answer, read_form
from scrapeyard.demo.pages import build, product_page
from scrapeyard.demo.parts import BASE, CSS, card, crumbs, document, grid
from scrapeyard.demo.scripted import PASSWORD, SESSION, SESSION_COOKIE, USER, Scripted

_BASE = BASE.encode()


class PrebuiltPages:
    """Answers GET for known addresses; everything else goes on to `app`."""

    def __init__(self, app: ASGIApp, pages: Mapping[str, tuple[str, bytes]]) -> None:
        self._app = app
        self._pages = {path: (_content_type(media_type), body) for path, (media_type, body) in pages.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        found = self._find(scope) if scope["type"] == "http" and scope["method"] == "GET" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        content_type, body = found
        body = body.replace(_BASE, address(scope))
        headers = [(b"content-type", content_type), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _find(self, scope: Scope) -> tuple[bytes, bytes] | None:
        query = scope["query_string"].decode("latin-1")
        return self._pages.get(f"{scope['path']}?{query}" if query else scope["path"])


def _content_type(media_type: str) -> bytes:
    return f"{media_type}; charset=utf-8".encode() if media_type.startswith("text/") else media_type.encode()


MAX_SLOW_SECONDS = 10.0
MAX_HITS = 24


def create_app() -> ASGIApp:
    """The shop. Every page but a few is built here, once."""
    shop = _Shop()
    routes = [
        Route("/style.css", shop.style),
        Route("/robots.txt", shop.robots),
        Route("/search", shop.search),
        Route("/slow", shop.slow),
        Route("/status/{code}", shop.status, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        Route("/redirect", shop.redirect),
        Route("/login", shop.login, methods=["GET", "POST"]),
        Route("/account", shop.account),
        Route("/changing", shop.changing),
        *County().routes,
        *Scripted(shop.products).routes,
        Route("/{path:path}", shop.fixed),
    ]
    return PrebuiltPages(Starlette(routes=routes, exception_handlers={HTTPException: _error_page}), shop.pages)


class _Shop:
    def __init__(self) -> None:
        self.products = make_products()
        self.pages = build(self.products)
        self._visits = itertools.count(1)

    async def fixed(self, request: Request) -> Response:
        """A prebuilt page for requests that PrebuiltPages does not handle: HEAD, other query keys."""
        path = request.url.path
        page = request.query_params.get("page", "1")
        found = self.pages.get(path if page == "1" else f"{path}?page={page[:9]}")
        if found is None:
            raise HTTPException(404, "There is no such page in the shop.")
        media_type, body = found
        return Response(body.replace(BASE.encode(), address(request.scope)), media_type=media_type)

    async def style(self, _request: Request) -> Response:
        """The stylesheet."""
        return Response(CSS, media_type="text/css", headers={"Cache-Control": "max-age=3600"})

    async def robots(self, request: Request) -> Response:
        """What crawlers may see."""
        home = address(request.scope).decode()
        return PlainTextResponse(f"User-agent: *\nDisallow: /account\nDisallow: /slow\n\nSitemap: {home}/sitemap.xml\n")

    async def search(self, request: Request) -> Response:
        """Products whose title, category or sku has every word."""
        query = request.query_params.get("q", "").strip()[:100]
        words = query.lower().split()
        hits = [
            each
            for each in self.products
            if words and all(word in f"{each.title} {each.category.name} {each.sku}".lower() for word in words)
        ]
        body = (
            f"{crumbs([('Home', '/'), ('Search', '/search')])}<h1>Search</h1>"
            f'<p class="blurb"><span class="hits">{len(hits)}</span> found for “{escape(query)}”'
            f"{f', the first {MAX_HITS} shown' if len(hits) > MAX_HITS else ''}.</p>"
            f"{grid(card(each) for each in hits[:MAX_HITS])}"
        )
        return html_answer(request, document("Search", "/search", body))

    async def slow(self, request: Request) -> Response:
        """Answers after `seconds`, at most ten."""
        seconds = _number(request.query_params.get("seconds", "1"))
        await asyncio.sleep(min(max(seconds, 0.0), MAX_SLOW_SECONDS))
        return html_answer(request, document("Slow", "/slow", f"<h1>Slow page</h1><p>It took {seconds:g} seconds.</p>"))

    async def status(self, request: Request) -> Response:
        """Answers with that status, 200 to 599."""
        code = request.path_params["code"]
        if not re.fullmatch(r"[2-5]\d\d", code, re.ASCII):
            raise HTTPException(400, "Write a status from 200 to 599, such as /status/503.")
        if code in ("204", "205", "304"):
            return Response(status_code=int(code))
        headers = {"Retry-After": "1"} if code in ("429", "503") else None
        return PlainTextResponse(f"status {code}\n", status_code=int(code), headers=headers)

    async def redirect(self, request: Request) -> Response:
        """Leads to `to`: a path, or an http or https address. Open by design: this shop is for practice."""
        target = request.query_params.get("to", "/")
        if len(target) > 2000 or not re.match(r"/|https?://", target):
            raise HTTPException(400, "Write to=/some/path or to=http://host/path.")
        return RedirectResponse(target, status_code=302)

    async def login(self, request: Request) -> Response:
        """A form that sets a cookie."""
        if request.method == "POST":
            form = await read_form(request)
            if (form.get("user"), form.get("password")) == (USER, PASSWORD):
                answer = RedirectResponse("/account", status_code=303)
                answer.set_cookie(SESSION_COOKIE, SESSION, httponly=True, samesite="lax")
                return answer
            return html_answer(request, _login_form("That is not the right password."), status=401)
        return html_answer(request, _login_form(""))

    async def account(self, request: Request) -> Response:
        """Only for those who logged in."""
        if request.cookies.get(SESSION_COOKIE) != SESSION:
            return RedirectResponse("/login", status_code=303)
        body = f"<h1>Your account</h1><p class='user'>Signed in as {USER}.</p><p class='points'>Points: 1250</p>"
        body += '<p><a class="button" href="/account/orders">Your orders</a></p>'
        return html_answer(request, document("Account", "/account", body))

    async def changing(self, request: Request) -> Response:
        """A product whose price changes at each visit."""
        visit = next(self._visits)
        product = replace(self.products[0], cents=1000 + visit * 37 % 9000)
        answer = html_answer(request, product_page(product, path="/changing"))
        answer.headers["Cache-Control"] = "no-store"
        return answer


def _login_form(problem: str) -> str:
    warning = f'<p class="out" role="alert">{problem}</p>' if problem else ""
    body = f"""<h1>Log in</h1><p class="blurb">Use <b>{USER}</b> and <b>{PASSWORD}</b>.</p>{warning}
<form class="form" method="post" action="/login">
<label>User <input name="user" autocomplete="username" required></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button>Log in</button></form>"""
    return document("Log in", "/login", body)


def _number(text: str) -> float:
    try:
        value = float(text[:20])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise HTTPException(400, "Write a number of seconds, such as /slow?seconds=2.")
    return value


async def _error_page(request: Request, error: Exception) -> Response:
    status, detail = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "")
    title = "Not found" if status == 404 else "That did not work"
    body = f'<h1>{title}</h1><p class="blurb">{escape(detail)}</p><p><a class="button" href="/">To the shop</a></p>'
    return html_answer(request, document(title, "/", body), status)
