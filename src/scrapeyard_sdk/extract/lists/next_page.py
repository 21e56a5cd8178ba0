"""The link to the next page of a list: by `rel`, by words, by numbers, or by the pattern of addresses."""

# ruff: noqa: RUF001 - the letters of other scripts are meant

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from scrapeyard_sdk.extract.page import absolute, base_of, folded

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_LINKS = 5000
_WORDS = frozenset(
    """next|next page|next →|older|older posts|older entries|more results|load more|show more|view more|see more results
    |weiter|nächste|nächste seite|vor|mehr laden|mehr anzeigen|weitere laden|ältere beiträge|ältere artikel
    |suivant|suivante|page suivante|suivants|charger plus|voir plus|afficher plus|articles plus anciens
    |siguiente|página siguiente|siguientes|cargar más|ver más|mostrar más|entradas antiguas
    |próximo|próxima|próxima página|seguinte|página seguinte|carregar mais|ver mais|mostrar mais
    |successivo|successiva|pagina successiva|avanti|prossimo|prossima|carica altri|mostra altri
    |volgende|volgende pagina|meer laden|toon meer|nästa|nästa sida|visa fler|ladda fler|næste|næste side|vis flere
    |neste|neste side|seuraava|seuraava sivu|näytä lisää|następna|następny|następna strona|dalej|pokaż więcej
    |další|další stránka|následující|načíst další|ďalšia|ďalej|następne|következő|következő oldal|tovább
    |următoarea|înainte|pagina următoare|следующая|следующая страница|далее|вперед|вперёд|показать еще|показать ещё
    |наступна|далі|показати ще|следваща|sonraki|sonraki sayfa|ileri|daha fazla|επόμενη|επόμενο|επόμενη σελίδα
    |הבא|הבאה|לדף הבא|التالي|التالية|الصفحة التالية|بعدی|次|次へ|次のページ|次ページ|もっと見る|さらに表示
    |下一页|下一頁|下页|下頁|后页|加载更多|載入更多|다음|다음 페이지|다음페이지|더보기|더 보기|berikutnya|selanjutnya
    |trang sau|tiếp|tiếp theo|kế tiếp|ถัดไป|หน้าถัดไป|अगला""".replace("\n", "")
    .replace("    ", "")
    .split("|")
)
_SIGNS = frozenset(
    {"»", "›", ">", "→", "⟩", "▶", "►", "❯", "⇒", ">>", "chevron_right", "navigate_next", "arrow_forward"}
)
_TRIMMED = " \t\r\n»›>→⟩▶►❯⇒…:.·|«‹<\u200e\u200f\xa0"
_NEXT_CLASS = re.compile(r"(?:^|[-_])next(?:$|[-_])|load-?more|show-?more", re.IGNORECASE)
_OFF = re.compile(r"(?:^|[-_])(?:disabled|inactive|hidden)(?:$|[-_])", re.IGNORECASE)
_PAGER = re.compile(r"pag(?:er|ing|ination|inator|enav)|page-?(?:numbers|list|nav)|wp-pagenavi", re.IGNORECASE)
_NOT_PAGER = re.compile(
    r"carousel|slick|swiper|slider|calendar|datepicker|lightbox|gallery|glide|post-navigation|post-nav|nav-post|"
    r"nav-single|wizard|tour|comment",
    re.IGNORECASE,
)
_CURRENT = re.compile(r"(?:^|[-_])(?:current|active|selected|on)(?:$|[-_])", re.IGNORECASE)
_PAGE_KEY = re.compile(
    r"^(?:p|pg|page|paged|pagina|pagenum|pageno|page_?number|page_?no|seite|strana|sivu|currentpage|pn|"
    r"start|offset|from|skip|first|startrow|begin)$",
    re.IGNORECASE,
)
_PATH_NUMBER = re.compile(
    r"(?:^|[/_-])(?:page|p|seite|pagina|strona|stranka|sivu|pg)[/_=-]?(\d{1,5})(?=$|[/.?_-])", re.I
)
_BUTTON_LINKS = ("data-url", "data-href", "data-next", "data-next-url", "data-next-page-url", "data-load-more-url")
_CLIMB = 5


@dataclass(frozen=True, slots=True)
class _Link:
    url: str
    text: str
    node: "LexborNode"

    @property
    def number(self) -> int | None:
        return int(self.text) if self.text.isascii() and self.text.isdigit() and len(self.text) <= 5 else None


def read_next_page(tree: "LexborHTMLParser", url: str) -> str | None:
    """Where the next page is; None on the last page, and on a page that is no part of a list."""
    base = base_of(tree, url)
    declared = _declared(tree, base, url)
    if declared:
        return declared
    links = list(_links(tree, base, url))
    return _by_words(links) or _by_numbers(links, url) or _by_button(tree, base, url)


def _declared(tree: "LexborHTMLParser", base: str, url: str) -> str | None:
    """What `rel="next"` says. On articles it may lead to the next article, so an anchor needs a place in a pager."""
    for node in tree.css('link[rel~="next" i][href], a[rel~="next" i][href]')[:20]:
        link = absolute(base, node.attributes.get("href"))
        if link and _is_other(link, url) and not _is_off(node) and not _is_in(node, _NOT_PAGER):
            return link
    return None


def _links(tree: "LexborHTMLParser", base: str, url: str) -> Iterator[_Link]:
    for node in tree.css("a[href]")[:MAX_LINKS]:
        href = (node.attributes.get("href") or "").strip()
        link = None if href.startswith("#") else absolute(base, href)
        if link and _is_other(link, url):
            yield _Link(link, folded(node.text()), node)


def _is_other(link: str, url: str) -> bool:
    """Whether it leads to another page of the same host."""
    try:
        there, here = urlsplit(link), urlsplit(url)
    except ValueError:
        return False
    same_host = (there.hostname or "").removeprefix("www.") == (here.hostname or "").removeprefix("www.")
    return same_host and (there.path.rstrip("/"), there.query) != (here.path.rstrip("/"), here.query)


def _by_words(links: list[_Link]) -> str | None:
    """The best link that says `next` in its words, label or class."""
    best = max(((_points(link), -place, link) for place, link in enumerate(links)), default=None, key=lambda x: x[:2])
    return best[2].url if best is not None and best[0] >= 3 else None


def _points(link: _Link) -> float:
    attributes = link.node.attributes
    said = [link.text, attributes.get("aria-label") or "", attributes.get("title") or "", _image_words(link.node)]
    words = any(_says_next(text) for text in said)
    named = _NEXT_CLASS.search(_class_of(link.node)) or _NEXT_CLASS.search(_class_of(link.node.parent))
    sign = link.text in _SIGNS
    points = 3.0 * words + 2.0 * bool(named) + 1.5 * sign
    if not points or _is_off(link.node) or _is_in(link.node, _NOT_PAGER) or len(link.text) > 40:
        return 0.0
    in_pager, numbered = _is_in(link.node, _PAGER), _page_number(link.url) is not None
    return points + 1.5 * in_pager + 1.0 * numbered - (0.5 if not in_pager and not numbered else 0.0)


def _says_next(text: str) -> bool:
    return len(text) <= 40 and text.strip(_TRIMMED).lower() in _WORDS


def _image_words(node: "LexborNode") -> str:
    image = node.css_first("img[alt]")
    return (image.attributes.get("alt") or "") if image is not None else ""


def _class_of(node: "LexborNode | None") -> str:
    """Class and id, each word apart."""
    if node is None or not node.is_element_node:
        return ""
    return f"{node.attributes.get('class') or ''} {node.attributes.get('id') or ''}"


def _any_word(pattern: re.Pattern[str], words: str) -> bool:
    return any(pattern.search(word) for word in words.split())


def _is_off(node: "LexborNode") -> bool:
    around = (node, node.parent)
    return any(
        _any_word(_OFF, _class_of(each)) or (each.attributes.get("aria-disabled") or "").lower() == "true"
        for each in around
        if each is not None and each.is_element_node
    )


def _is_in(node: "LexborNode", pattern: re.Pattern[str]) -> bool:
    """Whether the element or one of those around it has such a class."""
    place: LexborNode | None = node
    for _ in range(_CLIMB):
        if place is None or not place.is_element_node or place.tag in ("body", "html", "main"):
            return False
        if pattern.search(_class_of(place)) or pattern.search(place.attributes.get("aria-label") or ""):
            return True
        place = place.parent
    return False


def _by_numbers(links: list[_Link], url: str) -> str | None:
    """The page after the current one, in a row of numbered links."""
    numbered = [link for link in links if link.number is not None and not _is_in(link.node, _NOT_PAGER)]
    pages = [link for link in numbered if _is_in(link.node, _PAGER) or _page_number(link.url) is not None]
    if not pages:
        return None
    current = _marked(pages) or _current_of(url, pages)
    return next((link.url for link in pages if link.number == current + 1), None)


def _marked(pages: list[_Link]) -> int | None:
    """The number that is marked as the current page, or is no link, beside the links."""
    for link in pages[:3]:
        for row in _rows_around(link.node):
            cells = [(folded(cell.text()), cell) for cell in row.iter() if cell.is_element_node][:60]
            numbers = [(int(text), cell) for text, cell in cells if text.isascii() and text.isdigit() and len(text) < 6]
            if len(numbers) < 2:
                continue
            marked = [number for number, cell in numbers if _is_current(cell)]
            plain = [number for number, cell in numbers if cell.tag != "a" and cell.css_first("a[href]") is None]
            if marked or plain:
                return (marked or plain)[0]
    return None


def _rows_around(node: "LexborNode") -> "Iterator[LexborNode]":
    place = node.parent
    for _ in range(2):
        if place is None or not place.is_element_node:
            return
        yield place
        place = place.parent


def _is_current(cell: "LexborNode") -> bool:
    for node in (cell, cell.css_first("[aria-current], .current, .active, .selected")):
        if node is not None and ("aria-current" in node.attributes or _any_word(_CURRENT, _class_of(node))):
            return True
    return False


def _current_of(url: str, pages: list[_Link]) -> int:
    """The number in the address. The first page often has none, and addresses that count records tell little."""
    number = _page_number(url)
    by_number = {_page_number(link.url): link.number for link in pages}
    if number is None:
        return 1
    step = _step(by_number)
    return number if step is None else round(number / step) + 1


def _step(by_number: dict[int | None, int | None]) -> int | None:
    """Records of a page, where addresses count records; None where they count pages."""
    for address, shown in by_number.items():
        if address is not None and shown is not None and shown > 1 and address != shown and address % (shown - 1) == 0:
            return address // (shown - 1)
    return None


def _page_number(url: str) -> int | None:
    """The number of the page in an address, as `?page=2` and `/page/2/` have it."""
    try:
        split = urlsplit(url)
    except ValueError:
        return None
    for key, value in parse_qsl(split.query)[:50]:
        if _PAGE_KEY.match(key) and value.isascii() and value.isdigit() and len(value) < 8:
            return int(value)
    found = _PATH_NUMBER.findall(unquote(split.path))
    return int(found[-1]) if found else None


def _by_button(tree: "LexborHTMLParser", base: str, url: str) -> str | None:
    """The address that a button to load more has among its attributes."""
    for node in tree.css("button, div, a, span, section")[:MAX_LINKS]:
        attributes = node.attributes
        named = _NEXT_CLASS.search(_class_of(node)) or _says_next(folded(node.text())[:60])
        written = next((attributes[name] for name in _BUTTON_LINKS if attributes.get(name)), None)
        if written and named and (link := absolute(base, written)) and _is_other(link, url) and not _is_off(node):
            return link
    return None
