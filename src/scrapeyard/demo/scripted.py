"""Pages of the practice shop that need a browser: filled by a script, growing while one scrolls, behind a check.

Without JavaScript each of them is empty, as on many real sites. The goods come from `/api/products.json`.
"""

from collections.abc import Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from scrapeyard.demo.goods import Product
from scrapeyard.demo.http import html_answer
from scrapeyard.demo.parts import card, crumbs, document, grid, pager

USER, PASSWORD = "demo", "demo"
SESSION_COOKIE, SESSION = "session", "practice"
ENDLESS_PAGES = 5
"""Pages of the API that the endless list shows, 12 products each."""
ORDERS, ORDERS_PER_PAGE = 14, 5
_PASS_COOKIE, _PASS = "checked", "1764"

_CARDS = """\
const shelf = document.querySelector(".grid"), status = document.querySelector(".status");
let page = 0;
async function more() {
  const answer = await fetch(`/api/products.json?page=${page + 1}`);
  const found = await answer.json();
  page = found.page;
  for (const each of found.items) {
    const item = document.createElement("li");
    item.innerHTML = `<article><a class="card product-card"><img width="400" height="300">
<div><h2></h2><p class="row"><span class="price"></span><span class="stock"></span></p></div></a></article>`;
    const link = item.querySelector("a");
    link.href = `/product/${each.id}`;
    link.dataset.sku = each.sku;
    item.querySelector("img").src = `/image/${each.id}.svg`;
    item.querySelector("img").alt = item.querySelector("h2").textContent = each.title;
    item.querySelector(".price").textContent = `€${each.price}`;
    item.querySelector(".stock").textContent = each.in_stock ? "In stock" : "Out of stock";
    shelf.append(item);
  }
  status.textContent = `${shelf.children.length} products`;
}
"""
_BUTTON = """\
const button = document.querySelector("#more");
button.addEventListener("click", () => more().then(() => { button.hidden = page >= LAST; }));
more();
"""
_SENTINEL = """\
let busy = false;
async function fill() {
  const end = document.querySelector("#end");
  while (!busy && page < LAST && end.getBoundingClientRect().top < window.innerHeight + 200) {
    busy = true;
    await more();
    busy = false;
  }
  if (page >= LAST) end.textContent = "That is all.";
}
addEventListener("scroll", fill);
addEventListener("resize", fill);
fill();
"""
_CHECK = """\
document.cookie = "NAME=" + 42 * 42 + "; path=/; samesite=lax";
setTimeout(() => location.reload(), 300);
"""


class Scripted:
    """The pages, with the shop's own goods."""

    def __init__(self, products: Sequence[Product]) -> None:
        self._products = products

    @property
    def routes(self) -> list[Route]:
        """Where they are."""
        return [
            Route("/scripted", self.scripted),
            Route("/endless", self.endless),
            Route("/challenge", self.challenge),
            Route("/account/orders", self.orders),
        ]

    async def scripted(self, request: Request) -> Response:
        """Products that a script asks the API for, twelve at first and twelve more for each press of the button."""
        more = '<p><button id="more" type="button">Load more</button></p>'
        return html_answer(request, _filled("Scripted", "/scripted", more, _CARDS + _with_last(_BUTTON)))

    async def endless(self, request: Request) -> Response:
        """Products that appear while one scrolls, until there are sixty."""
        end = '<p id="end" class="blurb">Loading…</p>'
        return html_answer(request, _filled("Endless", "/endless", end, _CARDS + _with_last(_SENTINEL)))

    async def challenge(self, request: Request) -> Response:
        """A check that a browser passes by itself: its script sets a cookie and loads the page again."""
        trail = crumbs([("Home", "/"), ("Checked", "/challenge")])
        if request.cookies.get(_PASS_COOKIE) == _PASS:
            body = f"{trail}<h1>Behind the check</h1>{grid(card(each) for each in self._products[:12])}"
            return html_answer(request, document("Behind the check", "/challenge", body))
        body = f"""{trail}<h1>Checking your browser</h1>
<p class="blurb">Please wait while we check your browser. Enable JavaScript and cookies to continue.</p>
<script>{_CHECK.replace("NAME", _PASS_COOKIE)}</script>"""
        answer = html_answer(request, document("Checking your browser", "/challenge", body), 403)
        answer.headers["Cache-Control"] = "no-store"
        return answer

    async def orders(self, request: Request) -> Response:
        """The orders of whoever logged in, five to a page."""
        if request.cookies.get(SESSION_COOKIE) != SESSION:
            return RedirectResponse("/login", status_code=303)
        pages = -(-ORDERS // ORDERS_PER_PAGE)
        page = request.query_params.get("page", "1")[:3]
        if page not in map(str, range(1, pages + 1)):
            raise HTTPException(404, "There is no such page of orders.")
        first = (int(page) - 1) * ORDERS_PER_PAGE
        rows = "".join(self._order(number) for number in range(first + 1, min(first + ORDERS_PER_PAGE, ORDERS) + 1))
        body = f"""{crumbs([("Home", "/"), ("Account", "/account"), ("Orders", "/account/orders")])}<h1>Your orders</h1>
<table class="orders"><thead><tr><th>Order</th><th>Product</th><th>Total</th></tr></thead><tbody>{rows}</tbody></table>
{pager("/account/orders", int(page), pages)}"""
        return html_answer(request, document("Orders", "/account/orders", body))

    def _order(self, number: int) -> str:
        product = self._products[number * 7]
        link = f'<a href="/product/{product.number}">{product.title}</a>'
        return (
            f'<tr class="order"><td class="number">PO-{1000 + number}</td><td class="title">{link}</td>'
            f'<td class="total">{product.shown_price}</td></tr>'
        )


def _filled(title: str, path: str, end: str, script: str) -> str:
    body = (
        f"{crumbs([('Home', '/'), (title, path)])}<h1>{title}</h1>"
        '<p class="blurb status">A script fills this page.</p><noscript><p class="out">It needs JavaScript.</p>'
        f'</noscript><ul class="grid"></ul>{end}<script>{script}</script>'
    )
    return document(title, path, body)


def _with_last(script: str) -> str:
    return script.replace("LAST", str(ENDLESS_PAGES))
