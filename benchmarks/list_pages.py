"""Listing pages with known records and a known next page, in many layouts, and pages that list nothing.

They are made here, so that everybody can measure. Around each list stands what real sites have: menus, breadcrumbs,
filters, a sidebar with bestsellers, links in columns at the foot.
"""

# ruff: noqa: E501, RUF001, SIM905 - pages are written as they are served

import random
from collections.abc import Callable, Iterator
from html import escape
from typing import NamedTuple

DRAWS = 6
"""Pages of each layout."""
_NOUNS = "Lamp Kettle Chair Radio Basket Mirror Clock Vase Blanket Teapot Ladder Bicycle Violin Lantern Carpet".split()
_KINDS = "Aurora Birch Cobalt Delta Ember Fjord Granite Harbor Indigo Juniper Kestrel Linden Maple Nordic Opal".split()
_WORDS = "light quiet sturdy made by hand from old oak with brass fittings and a cover of grey wool felt".split()
_NEXT_WORDS = (
    *("Next", "Next »", "next page", "Weiter", "Nächste Seite", "Suivant", "Page suivante", "Siguiente", "Próxima"),
    *("Successiva", "Volgende", "Nästa", "Seuraava", "Następna", "Další", "Следующая", "Далее", "Sonraki", "次へ"),
    *("下一页", "다음", "التالي", "Older posts", "Load more", "Mehr laden", "›", "»", "→"),
)


class Listed(NamedTuple):
    """One record."""

    title: str
    url: str
    price: str
    text: str


class ListPage(NamedTuple):
    """A page, its records and its next page."""

    layout: str
    pager: str
    url: str
    html: str
    records: list[Listed]
    next_page: str | None


def list_pages() -> Iterator[ListPage]:
    """Every page, in order."""
    for layout, (draw, count) in LAYOUTS.items():
        for number in range(DRAWS):
            dice = random.Random(f"{layout} {number}")
            pager = PAGERS[(list(LAYOUTS).index(layout) + number * 5) % len(PAGERS)]
            yield _page(layout, draw, pager, dice, count)
    for number in range(len(_NEXT_WORDS)):
        dice = random.Random(f"words {number}")
        yield _page("cards", _cards, _words(_NEXT_WORDS[number]), dice, 12)


def _page(layout: str, draw: "Draw", pager: "Pager", dice: random.Random, count: int) -> ListPage:
    records = [_listed(dice, number) for number in range(dice.randint(count, count + 8) if count > 3 else count)]
    url, shown, following = pager(dice) if count > 1 else ("https://shop.invalid/list", "", None)
    body = draw(records, dice)
    html = _HEAD + _furniture(dice) + f"<div class='content'><h1>Things to buy</h1>{body}{shown}</div>" + _SIDE + _FOOT
    return ListPage(
        layout, getattr(pager, "__name__", "words").strip("_"), url, html, records if count > 1 else [], following
    )


def _listed(dice: random.Random, number: int) -> Listed:
    title = f"{dice.choice(_KINDS)} {dice.choice(_NOUNS)} {number + 1}{dice.choice('ABCDEF')}"
    price = f"{dice.randint(3, 900)}.{dice.choice(('00', '49', '90', '99'))}"
    text = " ".join(dice.choice(_WORDS) for _ in range(dice.randint(8, 25))).capitalize() + "."
    return Listed(title, f"https://shop.invalid/item/{number}-{dice.randint(100, 999)}", price, text)


_HEAD = "<!doctype html><html lang='en'><head><title>Shop</title></head><body>"
_MENU = ("Home", "Furniture", "Kitchen", "Garden", "Outlet", "About us", "Contact", "Help")


def _furniture(dice: random.Random) -> str:
    menu = "".join(f"<li><a href='/{word.lower()}'>{word}</a></li>" for word in _MENU)
    crumbs = "<ol class='breadcrumb'><li><a href='/'>Home</a></li><li><a href='/all'>All</a></li></ol>"
    filters = "".join(
        f"<li><a href='?color={color}'>{color} <span>({dice.randint(1, 60)})</span></a></li>"
        for color in ("red", "green", "blue", "black", "white", "grey", "brown")
    )
    return f"<header><nav><ul>{menu}</ul></nav></header>{crumbs}<div class='filters'><ul>{filters}</ul></div>"


_SIDE = (
    "<aside class='sidebar'><h3>Bestsellers</h3>"
    + "".join(
        f"<div class='mini'><a href='/best/{n}'><img src='/b{n}.jpg' alt=''>Best {n} of all</a><b>€ {n}9.00</b></div>"
        for n in range(5)
    )
    + "</aside>"
)
_FOOT = (
    "<footer>"
    + "".join(
        "<ul>" + "".join(f"<li><a href='/foot/{c}/{n}'>Customer service {n}</a></li>" for n in range(8)) + "</ul>"
        for c in range(4)
    )
    + "<p>© Shop</p></footer></body></html>"
)


def _inner(record: Listed, number: int) -> str:
    """The parts of a card, some of which not every record has."""
    old = f"<del>€ {float(record.price) + 10:.2f}</del>" if number % 3 == 0 else ""
    stars = "<span class='stars' aria-label='4.5 out of 5'></span>" if number % 2 else ""
    return (
        f"<a href='{record.url}'><img src='/i/{number}.jpg' alt=''></a><h3><a href='{record.url}'>{escape(record.title)}</a></h3>"
        f"<p>{record.text}</p>{stars}<div class='price'>{old}<span>€ {record.price}</span></div><button>Add to cart</button>"
    )


def _cards(records: list[Listed], _dice: random.Random) -> str:
    return (
        "<div class='grid'>"
        + "".join(f"<div class='card'>{_inner(r, n)}</div>" for n, r in enumerate(records))
        + "</div>"
    )


def _list(records: list[Listed], _dice: random.Random) -> str:
    return (
        "<ul>"
        + "".join(
            f"<li><a href='{r.url}'>{r.title}</a> <span>${r.price}</span> <em>{r.text}</em></li>" for r in records
        )
        + "</ul>"
    )


def _links(records: list[Listed], _dice: random.Random) -> str:
    """Nothing but titles."""
    return "<ul>" + "".join(f"<li><a href='{r.url}'>{r.title} {r.text[:40]}</a></li>" for r in records) + "</ul>"


def _table(records: list[Listed], _dice: random.Random) -> str:
    rows = "".join(
        f"<tr><td><a href='{r.url}'>{r.title}</a></td><td>{r.text[:30]}</td><td>{r.price} €</td></tr>" for r in records
    )
    return f"<table><thead><tr><th>Name</th><th>Material</th><th>Cost</th></tr></thead><tbody>{rows}</tbody></table>"


def _plain_table(records: list[Listed], _dice: random.Random) -> str:
    """Without links and header."""
    return (
        "<table>"
        + "".join(f"<tr><td>{r.title}</td><td>{r.text}</td><td>{r.price} €</td></tr>" for r in records)
        + "</table>"
    )


def _rows(records: list[Listed], _dice: random.Random) -> str:
    """A grid of rows with three cells each."""
    cells = [f"<div class='cell'>{_inner(r, n)}</div>" for n, r in enumerate(records)]
    rows = ["".join(cells[n : n + 3]) for n in range(0, len(cells), 3)]
    return "<div class='rows'>" + "".join(f"<div class='row'>{row}</div>" for row in rows) + "</div>"


def _table_grid(records: list[Listed], _dice: random.Random) -> str:
    cells = [f"<td>{_inner(r, n)}</td>" for n, r in enumerate(records)]
    rows = ["".join(cells[n : n + 4]) for n in range(0, len(cells), 4)]
    return "<table class='layout'>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


def _nested(records: list[Listed], _dice: random.Random) -> str:
    """Deep boxes without any class."""
    return (
        "<div><div>"
        + "".join(f"<div><div><div><div>{_inner(r, n)}</div></div></div></div>" for n, r in enumerate(records))
        + "</div></div>"
    )


def _with_ads(records: list[Listed], _dice: random.Random) -> str:
    """An advertisement after every fourth record, in a box of the same tag."""
    ad = "<div class='slot'><ins data-ad='1'></ins><span>Advertisement</span></div>"
    return (
        "<div class='results'>"
        + "".join(
            f"<div class='result'>{_inner(r, n)}</div>" + (ad if n % 4 == 3 else "") for n, r in enumerate(records)
        )
        + "</div>"
    )


def _two_lists(records: list[Listed], dice: random.Random) -> str:
    """A shorter list of other things after the main one."""
    news = "".join(
        f"<li><a href='/news/{n}'>News {n} of the house</a><small>{dice.randint(1, 28)} May 2024</small></li>"
        for n in range(4)
    )
    return f"{_cards(records, dice)}<div class='news'><h2>News</h2><ul>{news}</ul></div>"


def _with_related(records: list[Listed], dice: random.Random) -> str:
    """Cards of the same kind in a box of recommendations."""
    other = "".join(f"<div class='card'>{_inner(_listed(dice, 900 + n), n)}</div>" for n in range(4))
    return f"{_cards(records, dice)}<section class='recommended'><h2>You may like</h2><div class='strip'>{other}</div></section>"


def _with_sizes(records: list[Listed], _dice: random.Random) -> str:
    """Each record has a list of its own."""
    sizes = "<ul class='sizes'>" + "".join(f"<li>{size}</li>" for size in ("S", "M", "L", "XL")) + "</ul>"
    return "<ul class='products'>" + "".join(f"<li>{_inner(r, n)}{sizes}</li>" for n, r in enumerate(records)) + "</ul>"


def _with_tags(records: list[Listed], dice: random.Random) -> str:
    """Posts with a varying number of tags."""

    def tags() -> str:
        return "".join(
            f"<a class='tag' href='/tag/{word}'>{word}</a>" for word in dice.sample(_WORDS, dice.randint(1, 5))
        )

    return (
        "<main>"
        + "".join(
            f"<article class='post post-{n}'><h2><a href='{r.url}'>{r.title}</a></h2><time datetime='2024-05-{n % 28 + 1:02}'>May</time>"
            f"<p>{r.text}</p><span>$ {r.price}</span><div class='tags'>{tags()}</div></article>"
            for n, r in enumerate(records)
        )
        + "</main>"
    )


def _sections(records: list[Listed], _dice: random.Random) -> str:
    """Records under the headings of two shelves."""
    half = len(records) // 2
    shelves = (("Upstairs", records[:half]), ("Downstairs", records[half:]))
    return "".join(
        f"<section class='shelf'><h2>{name}</h2><div class='items'>"
        + "".join(f"<div class='thing'>{_inner(r, n)}</div>" for n, r in enumerate(part))
        + "</div></section>"
        for name, part in shelves
    )


def _definitions(records: list[Listed], _dice: random.Random) -> str:
    return (
        "<dl>"
        + "".join(f"<dt><a href='{r.url}'>{r.title}</a></dt><dd>{r.text}</dd><dd>€ {r.price}</dd>" for r in records)
        + "</dl>"
    )


def _flat(records: list[Listed], _dice: random.Random) -> str:
    """Headings and paragraphs in turns, in no box."""
    return (
        "<div class='entries'>"
        + "".join(
            f"<h3><a href='{r.url}'>{r.title}</a></h3><p>{r.text}</p><div class='meta'>€ {r.price}</div>"
            for r in records
        )
        + "</div>"
    )


def _two_row_table(records: list[Listed], _dice: random.Random) -> str:
    return (
        "<table>"
        + "".join(
            f"<tr class='athing'><td>{n + 1}.</td><td><a href='{r.url}'>{r.title}</a></td></tr>"
            f"<tr class='sub'><td colspan='2'><span>€ {r.price}</span> <span>{r.text}</span></td></tr>"
            for n, r in enumerate(records)
        )
        + "</table>"
    )


def _link_cards(records: list[Listed], _dice: random.Random) -> str:
    return (
        "<div class='deck'>"
        + "".join(
            f"<a class='tile' href='{r.url}'><img src='/{n}.png'><div>{r.title}</div><div>£{r.price}</div></a>"
            for n, r in enumerate(records)
        )
        + "</div>"
    )


def _hashed(records: list[Listed], dice: random.Random) -> str:
    """Class names of a build tool, and states."""
    return (
        "<div class='sc-9f3 kXyz1'>"
        + "".join(
            f"<div class='css-1a2b{dice.randint(0, 9)} {dice.choice(('odd', 'even', 'first'))}'><div class='css-77x'>{_inner(r, n)}</div></div>"
            for n, r in enumerate(records)
        )
        + "</div>"
    )


def _article(_records: list[Listed], dice: random.Random) -> str:
    paragraphs = "".join(f"<p>{' '.join(dice.choice(_WORDS) for _ in range(60))}.</p>" for _ in range(12))
    return f"<article><p class='by'>By A. Writer</p>{paragraphs}</article>"


def _one(records: list[Listed], _dice: random.Random) -> str:
    return f"<div class='grid'><div class='card'>{_inner(records[0], 1)}</div></div>"


def _product(records: list[Listed], _dice: random.Random) -> str:
    facts = "".join(f"<li>{word}</li>" for word in ("Oak", "Brass", "Two years", "Made in Europe"))
    return f"<div class='product'>{_inner(records[0], 1)}<ul>{facts}</ul></div>"


def _form(_records: list[Listed], _dice: random.Random) -> str:
    fields = "".join(
        f"<div class='field'><label>{name}</label><input name='{name}'></div>" for name in ("name", "mail", "word")
    )
    return f"<form>{fields}<button>Send</button></form>"


Draw = Callable[[list[Listed], random.Random], str]
LAYOUTS: dict[str, tuple[Draw, int]] = {
    "cards": (_cards, 8),
    "list": (_list, 8),
    "links only": (_links, 10),
    "table": (_table, 6),
    "table without links": (_plain_table, 6),
    "rows of cells": (_rows, 9),
    "table as grid": (_table_grid, 9),
    "nested boxes": (_nested, 6),
    "with ads": (_with_ads, 8),
    "two lists": (_two_lists, 8),
    "with recommendations": (_with_related, 8),
    "list in list": (_with_sizes, 8),
    "with tags": (_with_tags, 6),
    "two shelves": (_sections, 8),
    "definitions": (_definitions, 6),
    "headings in turns": (_flat, 6),
    "two rows each": (_two_row_table, 8),
    "links as cards": (_link_cards, 8),
    "hashed classes": (_hashed, 8),
    "three records": (_cards, 3),
    "one record": (_one, 1),
    "article": (_article, 0),
    "product": (_product, 1),
    "form": (_form, 0),
}

Pager = Callable[[random.Random], tuple[str, str, str | None]]
"""The address of a page, its pager, and the address of the next page."""


def _query(number: int) -> str:
    return f"https://shop.invalid/list?sort=name&page={number}"


def _rel(dice: random.Random) -> tuple[str, str, str | None]:
    page = dice.randint(1, 5)
    return _query(page), f"<a rel='next' href='?sort=name&amp;page={page + 1}'>more</a>", _query(page + 1)


def _words(word: str) -> Pager:
    def words(dice: random.Random) -> tuple[str, str, str | None]:
        page = dice.randint(2, 5)
        links = f"<a href='/list/{page - 1}'>‹</a> <a href='/list/{page + 1}'>{word}</a>"
        return (
            f"https://shop.invalid/list/{page}",
            f"<div class='pagination'>{links}</div>",
            f"https://shop.invalid/list/{page + 1}",
        )

    return words


def _numbers(dice: random.Random) -> tuple[str, str, str | None]:
    page = dice.randint(1, 6)
    cells = "".join(f"<span>{n}</span>" if n == page else f"<a href='/list/page/{n}/'>{n}</a>" for n in range(1, 8))
    return (
        f"https://shop.invalid/list/page/{page}/",
        f"<div class='pages'>{cells}</div>",
        f"https://shop.invalid/list/page/{page + 1}/",
    )


def _marked(dice: random.Random) -> tuple[str, str, str | None]:
    page = dice.randint(1, 6)
    cells = "".join(
        f"<li class='page-item{' active' if n == page else ''}'><a href='?sort=name&amp;page={n}'>{n}</a></li>"
        for n in range(1, 8)
    )
    return _query(page), f"<ul class='pagination'>{cells}</ul>", _query(page + 1)


def _offsets(dice: random.Random) -> tuple[str, str, str | None]:
    page = dice.randint(2, 5)
    cells = "".join(f"<a href='?start={20 * (n - 1)}'>{n}</a> " for n in range(1, 8) if n != page)
    return (
        f"https://shop.invalid/list?start={20 * (page - 1)}",
        f"<p class='pager'>{cells}</p>",
        f"https://shop.invalid/list?start={20 * page}",
    )


def _button(dice: random.Random) -> tuple[str, str, str | None]:
    page = dice.randint(1, 5)
    return (
        _query(page),
        f"<button class='load-more' data-url='/list?sort=name&amp;page={page + 1}'>Show more</button>",
        _query(page + 1),
    )


def _arrow(dice: random.Random) -> tuple[str, str, str | None]:
    page = dice.randint(1, 5)
    arrow = f"<a class='pager__next' href='?sort=name&amp;page={page + 1}' aria-label='Next page'><svg></svg></a>"
    return _query(page), f"<nav>{arrow}</nav>", _query(page + 1)


def _last(_dice: random.Random) -> tuple[str, str, str | None]:
    cells = "".join(f"<li><a href='?sort=name&amp;page={n}'>{n}</a></li>" for n in range(1, 5))
    return (
        _query(5),
        f"<ul class='pagination'>{cells}<li class='active'><a href='?sort=name&amp;page=5'>5</a></li></ul>",
        None,
    )


def _off(_dice: random.Random) -> tuple[str, str, str | None]:
    return (
        _query(5),
        "<ul class='pagination'><li><a href='?page=4'>Previous</a></li><li class='disabled'><a href='?page=6'>Next</a></li></ul>",
        None,
    )


def _carousel(_dice: random.Random) -> tuple[str, str, str | None]:
    return (
        "https://shop.invalid/list",
        "<div class='carousel'><a class='carousel-control-next' href='/list?slide=2'>Next</a></div>",
        None,
    )


def _posts(_dice: random.Random) -> tuple[str, str, str | None]:
    links = "<a href='/post/1'>Next: how we fire clay</a><a href='/post/3'>Previous: our shop</a>"
    return "https://shop.invalid/post/2", f"<div class='post-navigation'>{links}</div>", None


def _none(_dice: random.Random) -> tuple[str, str, str | None]:
    return "https://shop.invalid/list", "", None


PAGERS: list[Pager] = [_rel, _numbers, _marked, _offsets, _button, _arrow, _last, _off, _carousel, _posts, _none]
