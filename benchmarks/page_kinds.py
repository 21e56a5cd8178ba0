"""Pages of seven kinds with known main text: articles, docs, products, forums, listings, wikis and blogs.

They are made here, so that everybody can measure. Each kind has several layouts, from semantic elements to plain boxes,
and the furniture of real sites around its text: menus, banners, share buttons, teasers, links that run scripts.
"""

import random
from collections.abc import Callable, Iterator
from html import escape
from typing import NamedTuple

PAGES_OF_EACH = 10
_LONG = """kiln glaze clay potter wheel oven fire ash wood stone river valley market winter summer morning evening
window table letter history method temperature surface pattern colour vessel handle rim foot slip salt iron copper
cobalt tin recipe student teacher workshop village road bridge harbour engine signal record measure answer question
result reason problem solution number value change growth water light shadow sound silence garden forest field"""
_SHORT = "the a of in to and for with from by on at is was has had that which when while before after under over"
_WORDS, _SMALL = _LONG.split(), _SHORT.split()


class MadePage(NamedTuple):
    """A page and what a reader came for."""

    kind: str
    html: str
    text: str


class _Writer:
    """Words, the same for the same page in every run."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.said: list[str] = []

    def sentence(self, least: int = 8, most: int = 22) -> str:
        count = self._random.randint(least, most)
        words = [self._random.choice(_SMALL if place % 2 else _WORDS) for place in range(count)]
        return " ".join(words).capitalize() + "."

    def words(self, count: int) -> str:
        return " ".join(self._random.choice(_WORDS) for _ in range(count)).title()

    def number(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def keep(self, text: str) -> str:
        """The text as HTML; it belongs to what a reader came for."""
        self.said.append(text)
        return escape(text)

    def paragraph(self, sentences: int = 4) -> str:
        return f"<p>{self.keep(' '.join(self.sentence() for _ in range(sentences)))}</p>"

    def paragraphs(self, count: int) -> str:
        return "".join(self.paragraph(self.number(2, 6)) for _ in range(count))


def made_pages() -> Iterator[MadePage]:
    """Every page, in order."""
    for kind, write in _KINDS.items():
        for number in range(PAGES_OF_EACH):
            writer = _Writer(len(kind) * 1000 + number)
            main = write(writer, number)
            yield MadePage(kind, _framed(_Writer(number), main, number % 3), "\n".join(writer.said))


def _framed(noise: _Writer, main: str, layout: int) -> str:
    """The main part with the furniture of a site: semantic elements, boxes with names, or boxes without."""
    menu = "".join(f'<li><a href="/{n}">{noise.words(1)}</a></li>' for n in range(9))
    odd = '<a href="javascript:void(0)">Share</a> <a href="#"><i></i></a> <a href="/x"></a> <a>Print</a>'
    teasers = "".join(f'<li><a href="/t/{n}">{noise.words(6)}</a></li>' for n in range(8))
    foot = f"<p>{noise.words(4)}</p>" + "".join(f'<a href="/f/{n}">{noise.words(2)}</a> ' for n in range(12))
    cookie = '<div class="cookie-banner"><p>We use cookies. <button>Accept</button></p></div>'
    if layout == 0:
        body = (
            f"<header><nav><ul>{menu}</ul></nav></header><main>{main}<div class='share'>{odd}</div></main>"
            f"<aside><h3>Related</h3><ul>{teasers}</ul></aside><footer>{foot}</footer>{cookie}"
        )
    elif layout == 1:
        body = (
            f'<div id="nav" class="menu"><ul>{menu}</ul></div><div class="wrap"><div class="content">{main}'
            f'<div class="social">{odd}</div></div>'
            f'<div class="sidebar"><h4>Most read</h4><ul>{teasers}</ul></div></div>'
            f'<div id="footer">{foot}</div>{cookie}'
        )
    else:
        body = (
            f"<div><ul>{menu}</ul></div><div><div>{main}</div><div>{odd}</div></div><div><ul>{teasers}</ul></div>"
            f"<div>{foot}</div>"
        )
    return f"<!doctype html><html lang=en><head><title>{noise.words(3)}</title></head><body>{body}</body></html>"


def _article(w: _Writer, number: int) -> str:
    parts = [f"<h1>{w.keep(w.words(6))}</h1>", w.paragraphs(3 + number % 5)]
    for _ in range(number % 4):
        parts += [f"<h2>{w.keep(w.words(4))}</h2>", w.paragraphs(2)]
    if number % 2:
        parts.append(f"<blockquote>{w.paragraph(2)}</blockquote>")
    return f"<article>{''.join(parts)}</article>"


def _docs(w: _Writer, number: int) -> str:
    parts = [f"<h1>{w.keep(w.words(3))}</h1>", w.paragraphs(2)]
    for section in range(2 + number % 4):
        parts.append(f'<h2 id="s{section}">{w.keep(w.words(3))}</h2>{w.paragraphs(2)}')
        code = w.keep(f"{w.words(1).lower()} --{w.words(1).lower()} {section}")
        parts.append(f"<pre><code>{code}</code></pre>")
        parts.append("<ul>" + "".join(f"<li>{w.keep(w.sentence(5, 12))}</li>" for _ in range(3)) + "</ul>")
    return "".join(parts)


def _product(w: _Writer, number: int) -> str:
    rows = "".join(
        f"<tr><th>{w.keep(w.words(1))}</th><td>{w.keep(w.words(2))}</td></tr>" for _ in range(4 + number % 4)
    )
    name, price = w.keep(w.words(3)), w.keep(f"{w.number(5, 900)}.99 EUR")
    about = w.paragraphs(3)
    return f'<h1>{name}</h1><p class="price">{price}</p><button>Add to cart</button>{about}<table>{rows}</table>'


def _forum(w: _Writer, number: int) -> str:
    posts = "".join(
        f'<div class="post" id="p{n}"><div class="author">{w.keep(w.words(1))}</div>{w.paragraphs(2)}</div>'
        for n in range(4 + number % 5)
    )
    return f"<h1>{w.keep(w.words(5))}</h1>{posts}"


def _listing(w: _Writer, number: int) -> str:
    items = "".join(
        f'<li class="item"><h3><a href="/p/{n}">{w.keep(w.words(3))}</a></h3><p>{w.keep(w.sentence())}</p>'
        f'<span class="price">{w.keep(f"{w.number(5, 900)}.50 EUR")}</span></li>'
        for n in range(8 + number)
    )
    return f"<h1>{w.keep(w.words(2))}</h1><ul class='results'>{items}</ul>"


def _wiki(w: _Writer, number: int) -> str:
    parts = [f"<h1>{w.keep(w.words(2))}</h1>"]
    for section in range(3 + number % 3):
        heading = f'<h2>{w.keep(w.words(2))}<span class="mw-editsection"><a href="/edit">edit</a></span></h2>'
        text = " ".join(f'{w.keep(w.sentence())} <a href="/wiki/{section}">{w.keep(w.words(1))}</a>' for _ in range(5))
        parts.append(f"{heading}<p>{text}</p>{w.paragraphs(1)}")
    return f'<div class="mw-parser-output">{"".join(parts)}</div>'


def _blog(w: _Writer, number: int) -> str:
    head = f'<h1>{w.keep(w.words(5))}</h1><figure><img src="/i/{number}.jpg" alt=""></figure>'
    steps = "<ol>" + "".join(f"<li>{w.keep(w.sentence())}</li>" for _ in range(2 + number % 4)) + "</ol>"
    return f'<div class="post-body">{head}{w.paragraphs(3)}{steps}{w.paragraphs(2)}</div>'


_KINDS: dict[str, Callable[[_Writer, int], str]] = {
    "article": _article,
    "docs": _docs,
    "product": _product,
    "forum": _forum,
    "listing": _listing,
    "wiki": _wiki,
    "blog": _blog,
}
