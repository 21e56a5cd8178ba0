"""Who wrote an article and when, beside what trafilatura says: made pages that tell it in different ways."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from benchmarks.page_kinds import made_pages
from benchmarks.report import Goal, Options, Report, Table
from scrapeyard.builtin.pages.page import extract_page

PARTS = ("made",)
_NAMES = ("Anna Kowalska", "José García", "Li Wei", "Mary O'Neil", "Jean-Luc Martin", "Ute Weber")
_DAYS = ("2021-03-04", "2019-11-30", "2023-07-15", "2020-01-02", "2024-12-24", "2022-05-09")
_SPELLED = (
    "4 March 2021",
    "30. November 2019",
    "July 15, 2023",
    "2 janvier 2020",
    "24 de diciembre de 2024",
    "9 maja 2022",
)


class Credited(NamedTuple):
    """An article, with who wrote it and when."""

    way: str
    html: str
    url: str
    authors: list[str]
    published: str


def credited_pages() -> Iterator[Credited]:
    """Every page, in order."""
    bodies = [page.html for page in made_pages() if page.kind == "article"]
    for way, (head, body, url) in WAYS.items():
        for number, (name, day, spelled) in enumerate(zip(_NAMES, _DAYS, _SPELLED, strict=True)):
            authors = [name] if number % 2 else [name, _NAMES[(number + 1) % len(_NAMES)]]
            html = _filled(bodies[number % len(bodies)], head, body, authors, day, spelled)
            yield Credited(way, html, f"https://news.invalid{url.format(slashed=day.replace('-', '/'))}", authors, day)


def _filled(page: str, head: str, body: str, authors: list[str], day: str, spelled: str) -> str:
    data = {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "datePublished": f"{day}T08:30:00+01:00",
        "author": [{"name": each} for each in authors],
    }
    words = {"names": " and ".join(authors), "day": day, "spelled": spelled, "json": json.dumps(data)}
    comment = "<div class='comments'><p class='author'>Troll Face</p><time datetime='2011-01-01'>2011</time></div>"
    for key, value in words.items():
        head, body = head.replace(f"[{key}]", value), body.replace(f"[{key}]", value)
    page = page.replace("</head>", f"{head}</head>", 1) if "</head>" in page else f"<head>{head}</head>{page}"
    shown = page.replace("</h1>", f"</h1>{body}", 1)
    return shown.replace("</body>", f"{comment}</body>") if "</body>" in shown else shown + comment


_LD = '<script type="application/ld+json">[json]</script>'
_META = '<meta name="author" content="[names]"><meta property="article:published_time" content="[day]T10:00:00Z">'
WAYS: dict[str, tuple[str, str, str]] = {
    "json-ld": (_LD, "", "/story"),
    "meta": (_META, "", "/story"),
    "microdata": (
        "",
        '<p><span itemprop="author">[names]</span> <time itemprop="datePublished" datetime="[day]">x</time></p>',
        "/story",
    ),
    "byline and time": ("", '<p class="byline">By [names]</p><time datetime="[day]T07:00:00Z">today</time>', "/story"),
    "byline in words": ("", '<div class="byline">By [names] | <span class="date">[spelled]</span></div>', "/story"),
    "author class and words": (
        "",
        '<span class="post-author">[names]</span><span class="post-date">[spelled]</span>',
        "/story",
    ),
    "link and address": ("", '<a rel="author" href="/a">[names]</a>', "/{slashed}/story"),
}


def run(options: Options, say: Callable[[str], None]) -> Report:
    """One pass over the made pages."""
    import trafilatura

    if not options.wants("made"):
        return Report(bench="articles", tables=())
    pages = list(credited_pages())
    say(f"{len(pages)} made pages")
    right: defaultdict[str, list[tuple[bool, ...]]] = defaultdict(list)
    for page in pages:
        ours = extract_page(page.html, page.url, include=[])
        theirs: Any = trafilatura.bare_extraction(page.html, url=page.url, with_metadata=True)
        right[page.way].append(
            (
                sorted(ours["authors"]) == sorted(page.authors),
                _same_names(theirs.author if theirs else None, page.authors),
                (ours["published"] or "")[:10] == page.published,
                bool(theirs) and theirs.date == page.published,
            )
        )
    rows = tuple((way, *_shares(found)) for way, found in right.items())
    every = [each for found in right.values() for each in found]
    columns = ("told by", "authors", "trafilatura", "date", "trafilatura")
    table = Table(title=f"{len(pages)} articles, share right", columns=columns, rows=(*rows, ("all", *_shares(every))))
    goals = [
        Goal(name=name, measured=sum(each[at] for each in every) / len(every), bound=0.9, at_least=True, unit="")
        for name, at in (("authors", 0), ("date", 2))
    ]
    return Report(bench="articles", tables=(table,), goals=tuple(goals))


def _same_names(said: Any, authors: list[str]) -> bool:
    return sorted(name.strip() for name in (said or "").split(";")) == sorted(authors)


def _shares(found: list[tuple[bool, ...]]) -> tuple[str, ...]:
    return tuple(f"{sum(each) / len(found):.2f}" for each in zip(*found, strict=True))
