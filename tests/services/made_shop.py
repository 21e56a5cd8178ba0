"""Pages of a shop that is made up, in two templates: what tests and benchmarks of extraction read."""

import random
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

_THINGS = ("lamp", "chair", "kettle", "carpet", "mirror", "bench", "clock", "vase", "shelf", "basket")
_COLOURS = ("Blue", "Red", "Green", "Oak", "Copper", "Linen", "Walnut", "Ivory", "Slate", "Amber")
_MAKERS = ("Norholm", "Vester & Sons", "Atelier Kim", "Brightline", "Casa Lume")
FIELDS = "title, price: number, maker, in_stock: bool, weight?"


class MadePage(Struct, frozen=True, kw_only=True):
    """A page and the truth about it."""

    url: str
    html: str
    truth: dict[str, Any]
    shown: dict[str, str | None]
    """The same as the page writes it."""


def made_page(number: int, template: str = "old", *, extra: str = "") -> MadePage:
    """The page of one product. `extra` is HTML that stands in its text."""
    chance = random.Random(number)
    title = f"{chance.choice(_COLOURS)} {chance.choice(_THINGS)} no. {number}"
    price, before = chance.randrange(500, 90_000) / 100, chance.randrange(90_001, 99_999) / 100
    stock, maker = chance.random() < 0.7, chance.choice(_MAKERS)
    weight = f"{chance.randrange(1, 40)}.{chance.randrange(10)} kg" if chance.random() < 0.6 else None
    shown: dict[str, str | None] = {
        "title": title,
        "price": f"${price:,.2f}",
        "maker": maker,
        "in_stock": "In stock" if stock else "Sold out",
        "weight": weight,
    }
    truth = {"title": title, "price": price, "maker": maker, "in_stock": stock, "weight": weight}
    others = [f"{chance.choice(_COLOURS)} {chance.choice(_THINGS)}" for _ in range(4)]
    body = _OLD if template == "old" else _NEW
    rows = f"<tr><th>Weight</th><td>{weight}</td></tr>" if weight else ""
    html = body.format(
        rows=rows, before=f"${before:,.2f}", extra=extra, number=number, others=_others(others, chance), **shown
    )
    return MadePage(url=f"http://made.example/{template}/{number}", html=html, truth=truth, shown=shown)


def _others(names: Sequence[str], chance: random.Random) -> str:
    return "".join(
        f'<li class="also"><a href="/p/{chance.randrange(9999)}">{name}</a> <i>${chance.randrange(5, 900)}.00</i></li>'
        for name in names
    )


_OLD = """<!doctype html><html lang="en"><head><title>Made shop - things for a home</title></head><body>
<header class="top"><a href="/">Made shop</a>
<nav class="menu"><a href="/a">Lamps</a><a href="/b">Chairs</a></nav></header>
<main class="product"><div class="path"><a href="/">Home</a> / <span>Goods</span></div>
<div class="box"><p class="name">{title}</p><p class="by">by <b class="maker">{maker}</b></p>
<div class="cost"><span class="was">{before}</span> <span class="now">{price}</span></div>
<p class="state">{in_stock}</p>{extra}
<table class="facts"><tr><th>Article</th><td>A-{number}</td></tr>{rows}<tr><th>Origin</th><td>Denmark</td></tr></table>
</div></main><aside class="more"><ul>{others}</ul></aside>
<footer class="end"><p>Made shop, since 1999. All prices in dollars.</p></footer></body></html>"""
_NEW = """<!doctype html><html lang="en"><head><title>Made shop | home</title></head><body>
<div id="bar"><a class="logo" href="/">made</a></div>
<section id="item-view"><div class="grid-left"><figure class="shot"></figure></div>
<div class="grid-right"><div class="headline"><span class="txt">{title}</span></div>
<ul class="props"><li class="p-state"><em>{in_stock}</em></li><li class="p-maker">Maker: <em>{maker}</em></li></ul>
<div class="tag-price"><strong>{price}</strong><s>{before}</s></div>{extra}
<dl class="spec"><dt>Article</dt><dd>A-{number}</dd></dl><table class="spec-more">{rows}</table></div></section>
<section id="also-bought"><ul>{others}</ul></section><div id="foot">Made shop, since 1999</div></body></html>"""


class ShopModel:
    """What a good model answers about these pages; it knows them by the product's number."""

    def __init__(self) -> None:
        self.pages: dict[str, MadePage] = {}

    def add(self, page: MadePage) -> MadePage:
        """Know this page from now on."""
        self.pages[str(page.shown["title"])] = page
        return page

    def __call__(self, lines: list[str]) -> dict[str, Any]:
        """The script of a ModelServer."""
        text = "\n".join(lines)
        page = next((page for title, page in self.pages.items() if f"{title}\n" in f"{text}\n"), None)
        return dict(page.shown) if page is not None else {}
