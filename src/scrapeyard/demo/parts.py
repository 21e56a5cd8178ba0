"""Pieces of HTML that every page of the shop is made of, and its one stylesheet."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from scrapeyard.demo.goods import CATEGORIES, CURRENCY, Product

CSS = """\
:root { --ink: #1d2430; --soft: #5c6675; --line: #e4e7ec; --paper: #fff; --wash: #f6f7f9; --accent: #1f6f5c; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--wash); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, sans-serif; }
a { color: inherit; text-decoration: none; }
a:hover, a:focus-visible { color: var(--accent); }
:focus-visible { outline: 3px solid #8fd0bf; outline-offset: 2px; border-radius: 4px; }
.wrap { max-width: 1080px; margin: 0 auto; padding: 0 20px; }
.top { background: var(--paper); border-bottom: 1px solid var(--line); }
.top .wrap { display: flex; flex-wrap: wrap; gap: 12px 24px; align-items: center; padding-block: 14px; }
.logo { font-weight: 700; font-size: 20px; letter-spacing: -.02em; }
.logo span { color: var(--accent); }
.top nav { display: flex; flex-wrap: wrap; gap: 4px 18px; flex: 1; color: var(--soft); }
input { font: inherit; padding: 8px 12px; border: 1px solid #7d8794; border-radius: 8px; background: var(--paper); }
button, .button { font: inherit; font-weight: 600; padding: 9px 18px; border: 0; border-radius: 8px;
  background: var(--accent); color: #fff; cursor: pointer; }
main { padding-block: 28px 56px; }
h1 { font-size: 32px; line-height: 1.2; letter-spacing: -.02em; margin: 8px 0; }
.blurb { color: var(--soft); margin: 0 0 24px; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(220px, 1fr)); gap: 20px; list-style: none;
  margin: 0; padding: 0; }
.card { display: block; height: 100%; background: var(--paper); border: 1px solid var(--line); border-radius: 14px;
  overflow: hidden; transition: box-shadow .15s; }
.card:hover { box-shadow: 0 8px 24px rgb(29 36 48 / 12%); }
.card img { display: block; width: 100%; aspect-ratio: 4 / 3; object-fit: cover; }
.card div { padding: 14px 16px 16px; }
.card h2, .card h3 { margin: 0 0 4px; font-size: 17px; }
.card p { margin: 0; color: var(--soft); font-size: 14px; }
.price { font-weight: 700; color: var(--ink); }
.row { display: flex; justify-content: space-between; gap: 8px; }
.out { color: #a3312a; }
.crumbs { font-size: 14px; color: var(--soft); }
.crumbs ol { display: flex; flex-wrap: wrap; gap: 8px; list-style: none; margin: 0; padding: 0; }
.crumbs li + li::before { content: "/"; margin-right: 8px; color: #9aa3af; }
.product { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 36px; margin-top: 20px; }
.product img { width: 100%; border-radius: 18px; border: 1px solid var(--line); }
.product .price { font-size: 28px; margin: 12px 0; }
.stars { color: #8a5a00; }
dl { display: grid; grid-template-columns: auto 1fr; gap: 6px 20px; margin: 20px 0; }
dt { color: var(--soft); }
dd { margin: 0; }
.pages { display: flex; gap: 8px; margin-top: 28px; justify-content: center; }
.pages a, .pages span { min-width: 40px; text-align: center; padding: 7px 12px; border: 1px solid var(--line);
  border-radius: 8px; background: var(--paper); }
.pages [aria-current] { background: var(--accent); border-color: var(--accent); color: #fff; }
.form { max-width: 360px; display: grid; gap: 14px; background: var(--paper); border: 1px solid var(--line);
  border-radius: 14px; padding: 24px; }
.form label { display: grid; gap: 4px; font-size: 14px; color: var(--soft); }
.orders { border-collapse: collapse; background: var(--paper); border: 1px solid var(--line); }
.orders th, .orders td { text-align: left; padding: 10px 18px; border-bottom: 1px solid var(--line); }
footer { border-top: 1px solid var(--line); color: var(--soft); font-size: 14px; padding-block: 20px; }
"""


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
