"""Pieces of HTML that every page of the shop is made of.

`BASE` stands where the shop's own address belongs; it is put in when a page is sent, so that pages are built once.
"""

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from scrapeyard.demo.goods import CATEGORIES, CURRENCY, Product

BASE = "https://base.invalid"
NAME = "Practice Shop"

Crumb = tuple[str, str]
"""Name and path."""


def document(title: str, path: str, body: str, *, description: str = "", head: str = "") -> str:
    """A whole page. `path` is its canonical address; `body` and `head` are HTML already."""
    links = "".join(f'<a href="/category/{shelf.slug}">{shelf.name}</a>' for shelf in CATEGORIES)
    summary = f'<meta name="description" content="{escape(description)}">' if description else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} · {NAME}</title>
{summary}
<link rel="canonical" href="{BASE}{escape(path)}">
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/style.css">
{head}
</head>
<body>
<header class="top"><div class="wrap">
<a class="logo" href="/">Practice<span>Shop</span></a>
<nav aria-label="Categories">{links}</nav>
<form action="/search" role="search"><input type="search" name="q" placeholder="Search" aria-label="Search"></form>
</div></header>
<main class="wrap">
{body}
</main>
<footer><div class="wrap">A shop for practice: nothing here is for sale. <a href="/login">Log in</a></div></footer>
</body>
</html>
"""


def crumbs(trail: Sequence[Crumb]) -> str:
    """Where the reader is; the last one is this page."""
    items = "".join(f'<li><a href="{escape(path)}">{escape(name)}</a></li>' for name, path in trail[:-1])
    return (
        f'<nav class="crumbs" aria-label="Breadcrumb"><ol>{items}<li aria-current="page">{escape(trail[-1][0])}</li>'
        "</ol></nav>"
    )


def card(product: Product) -> str:
    """A product in a list."""
    state = "" if product.stock else ' class="out"'
    return f"""<li><article><a class="card product-card" href="/product/{product.number}">
<img src="/image/{product.number}.svg" alt="{escape(product.title)}" width="400" height="300" loading="lazy">
<div><h2>{escape(product.title)}</h2>
<p class="row"><span class="price">{product.shown_price}</span><span{state}>{product.availability}</span></p></div>
</a></article></li>"""


def grid(items: Iterable[str]) -> str:
    """List items side by side."""
    return f'<ul class="grid">{"".join(items)}</ul>'


def pager(path: str, page: int, pages: int) -> str:
    """Links to the other pages of a list; empty when there is one page."""
    if pages < 2:
        return ""
    before = f'<a rel="prev" href="{_page(path, page - 1)}">Previous</a>' if page > 1 else ""
    after = f'<a rel="next" href="{_page(path, page + 1)}">Next</a>' if page < pages else ""
    numbers = "".join(
        f'<span aria-current="page">{number}</span>'
        if number == page
        else f'<a href="{_page(path, number)}">{number}</a>'
        for number in range(1, pages + 1)
    )
    return f'<nav class="pages" aria-label="Pages">{before}{numbers}{after}</nav>'


def _page(path: str, number: int) -> str:
    return path if number == 1 else f"{path}?page={number}"


def json_ld(data: dict[str, Any]) -> str:
    """Structured data as a script that cannot end early."""
    text = json.dumps({"@context": "https://schema.org", **data}).replace("<", "\\u003c")
    return f'<script type="application/ld+json">{text}</script>'


def product_data(product: Product) -> dict[str, Any]:
    """A product as schema.org knows it."""
    return {
        "@type": "Product",
        "name": product.title,
        "sku": product.sku,
        "description": product.description,
        "image": f"{BASE}/image/{product.number}.svg",
        "brand": {"@type": "Brand", "name": product.brand},
        "category": product.category.name,
        "offers": {
            "@type": "Offer",
            "url": f"{BASE}/product/{product.number}",
            "price": product.price,
            "priceCurrency": CURRENCY,
            "availability": f"https://schema.org/{'InStock' if product.stock else 'OutOfStock'}",
        },
        "aggregateRating": {
            "@type": "AggregateRating",
            "ratingValue": product.rating,
            "reviewCount": product.reviews,
        },
    }


def trail_data(trail: Sequence[Crumb]) -> dict[str, Any]:
    """A trail of crumbs as schema.org knows it."""
    items = [
        {"@type": "ListItem", "position": at, "name": name, "item": BASE + path}
        for at, (name, path) in enumerate(trail, 1)
    ]
    return {"@type": "BreadcrumbList", "itemListElement": items}


def open_graph(product: Product) -> str:
    """Open Graph tags of a product."""
    tags = {
        "og:type": "product",
        "og:title": product.title,
        "og:description": product.description,
        "og:url": f"{BASE}/product/{product.number}",
        "og:image": f"{BASE}/image/{product.number}.svg",
        "og:site_name": NAME,
        "product:price:amount": product.price,
        "product:price:currency": CURRENCY,
    }
    return "\n".join(f'<meta property="{name}" content="{escape(value)}">' for name, value in tags.items())


def picture(number: int, hue: int) -> str:
    """A product's picture: a few shapes, different for each number."""
    turn, size = number * 37 % 90, 60 + number * 13 % 40
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 300" width="400" height="300" role="img">
<defs><linearGradient id="g" x2="1" y2="1"><stop stop-color="hsl({hue} 55% 88%)"/>
<stop offset="1" stop-color="hsl({(hue + 30) % 360} 45% 72%)"/></linearGradient></defs>
<rect width="400" height="300" fill="url(#g)"/>
<ellipse cx="200" cy="236" rx="{size + 26}" ry="14" fill="hsl({hue} 30% 40%)" opacity=".25"/>
<rect x="{200 - size // 2}" y="{150 - size // 2}" width="{size}" height="{size + 36}" rx="{12 + number % 5 * 6}"
 fill="hsl({hue} 45% 46%)" transform="rotate({turn % 24 - 12} 200 160)"/>
<circle cx="{200 + turn - 45}" cy="{112 + number % 30}" r="{26 + number % 18}" fill="hsl({(hue + 40) % 360} 60% 62%)"/>
</svg>
"""
