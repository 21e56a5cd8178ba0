"""The button that makes a list longer and has no address: chosen by its words and its place, never one that may send,
buy, delete or log out."""

# ruff: noqa: RUF001 - the letters of other scripts are meant

import re
from collections.abc import Iterator

from scrapeyard_sdk.extract.lists.groups import Element, ItemGroup
from scrapeyard_sdk.extract.page import folded

MORE_WORDS: dict[str, str] = {
    "en": "(load|show|view|see|display|get) more( N)?|more N"
    " : products|results|items|articles|posts|entries|offers|listings|jobs|events|news|stories",
    "de": "(mehr|weitere)( N)? (laden|anzeigen|ansehen|zeigen)|(weitere|mehr) N"
    " : produkte|ergebnisse|artikel|beiträge|einträge|angebote|treffer|anzeigen|jobs|termine|meldungen",
    "fr": "(charger|voir|afficher|montrer) (plus( (de |d'|d’)N)?|davantage|la suite)|plus (de |d'|d’)N"
    " : produits|résultats|articles|offres|annonces|actualités",
    "es": "(cargar|ver|mostrar) más( N)?|más N : productos|resultados|artículos|entradas|ofertas|anuncios|noticias",
    "pt": "(carregar|ver|mostrar|exibir) mais( N)?|mais N"
    " : produtos|resultados|artigos|itens|ofertas|anúncios|notícias",
    "it": "(carica|mostra|vedi|visualizza) (altri|altre|altro|di più)( N)?|altri N"
    " : prodotti|risultati|articoli|annunci|notizie",
    "nl": "(meer( N)? (laden|tonen|bekijken|weergeven))|(toon|laad|bekijk) meer( N)?|meer N"
    " : producten|resultaten|artikelen|berichten|aanbiedingen|vacatures",
    "sv": "(visa|ladda|hämta|se) (fler|mer)( N)?|fler N : produkter|resultat|artiklar|inlägg|annonser|nyheter",
    "da": "(vis|indlæs|hent|se) (flere|mere)( N)?|flere N : produkter|resultater|artikler|indlæg|annoncer|nyheder",
    "no": "(vis|last inn|hent|se) (flere|mer)( N)?|flere N : produkter|resultater|artikler|innlegg|annonser|nyheter",
    "fi": "(näytä|lataa|katso) (lisää|enemmän)( N)?|lisää N : tuotteita|tuloksia|artikkeleita|ilmoituksia|uutisia",
    "pl": "(pokaż|załaduj|zobacz|wczytaj|wyświetl) (więcej|kolejne)( N)?|więcej N"
    " : produktów|wyników|artykułów|ofert|ogłoszeń|wpisów",
    "cs": "(načíst|zobrazit|ukázat) (další|více)( N)?|další N|více N"
    " : produkty|produktů|výsledky|výsledků|články|článků|nabídky|inzeráty",
    "sk": "(načítať|zobraziť|ukázať) (ďalšie|viac)( N)?|ďalšie N : produkty|produktov|výsledky|výsledkov|články|ponuky",
    "hu": "(több|további)( N)? (betöltése|mutatása|megjelenítése|megtekintése)|további N"
    " : termék|termékek|találat|találatok|cikk|cikkek|hirdetés",
    "ro": "(încarcă|arată|afișează|vezi) mai (mult|multe)( N)?|mai multe N"
    " : produse|rezultate|articole|anunțuri|oferte",
    "ru": "(показать|загрузить|смотреть) (еще|ещё|больше)( N)?|(еще|ещё|больше) N"
    " : товары|товаров|результаты|результатов|статьи|статей|объявления|объявлений|новости|новостей",
    "uk": "(показати|завантажити|дивитися) (ще|більше)( N)?|(ще|більше) N"
    " : товари|товарів|результати|результатів|статті|статей|оголошення|оголошень|новини|новин",
    "bg": "(покажи|зареди|виж) (още|повече)( N)?|още N : продукти|резултати|статии|обяви|новини",
    "tr": "daha fazla( N)?( (yükle|göster|gör))?|daha fazlasını (yükle|göster|gör) : ürün|sonuç|makale|ilan|haber",
    "el": "(φόρτωση|εμφάνιση|προβολή|δείτε) περισσότερ(ων|α)( N)?|περισσότερα N"
    " : προϊόντα|προϊόντων|αποτελέσματα|αποτελεσμάτων|άρθρα|άρθρων",
    "he": "(טען|הצג|ראה) עוד( N)?|עוד N : מוצרים|תוצאות|כתבות|פריטים",
    "ar": "(تحميل|عرض|إظهار|شاهد) (المزيد( من N)?|مزيد من N)|المزيد من N : المنتجات|النتائج|المقالات|الأخبار",
    "fa": "(نمایش|بارگذاری|مشاهده) (بیشتر|موارد بیشتر|N بیشتر) : محصولات|نتایج|مقالات",
    "ja": "(N ?(を|の)?)?(もっと|さらに) ?(N ?(を)?)?(見る|表示|表示する|読み込む) : 商品|結果|記事|検索結果|ニュース",
    "zh": "(加载|載入|显示|顯示|查看|浏览)更多(N)?|更多N : 商品|产品|產品|结果|結果|文章|新闻|新聞|内容",
    "ko": "(N ?)?(더 ?보기|더 ?불러오기|더 ?로드) : 상품|제품|결과|검색결과|글|기사|뉴스|목록",
    "id": "(muat|tampilkan|lihat) lebih banyak( N)?|(muat|tampilkan) lagi : produk|hasil|artikel|iklan|berita",
    "vi": "(tải|xem|hiển thị) thêm( N)? : sản phẩm|kết quả|bài viết|tin",
    "th": "(โหลด|แสดง|ดู)(N)?เพิ่มเติม|(โหลด|แสดง|ดู)(N)?เพิ่ม : สินค้า|ผลลัพธ์|บทความ|ข่าว",
    "hi": "(और|अधिक)( N)? (लोड करें|देखें|दिखाएं|दिखाएँ) : उत्पाद|परिणाम|लेख|समाचार",
}
"""By language: what such a button says, with N for what is listed, and the words that N stands for."""
_COUNTS = re.compile(r"\([^)]*\)|[\d.,+/]+")
_TRIMMED = " \t\r\n»›>→▶►❯⇒…:.·|⌄↓▼▾+-\u200e\u200f\xa0"
_LONGEST = 60
_MAX_VALUE = 2000
_OFF = re.compile(r"(?:^|[-_])(?:disabled|inactive|hidden)(?:$|[-_])", re.IGNORECASE)
_SENDS = re.compile(r"submit|postback|checkout|logout|delete", re.IGNORECASE)
_METHODS = ("data-method", "hx-post", "hx-put", "hx-patch", "hx-delete", "formaction", "aria-haspopup", "aria-expanded")
"""Attributes of what sends something, or opens and closes something."""
_AROUND = frozenset({"nav", "footer", "aside", "header", "dialog", "label", "summary", "fieldset"})
_HEADINGS = frozenset({"h1", "h2", "h3"})
_NO_ADDRESS = re.compile(r"#|javascript: ?(?:void\(0?\)|;|//|$)", re.IGNORECASE)


def _pattern(written: str) -> str:
    pattern, _, nouns = written.partition(" : ")
    return pattern.replace("N", f"(?:{nouns})")


_MORE = re.compile("|".join(f"(?:{_pattern(each)})" for each in MORE_WORDS.values()))


def says_more(text: str) -> bool:
    """Whether a button with this text makes a list longer, in one of the languages of `MORE_WORDS`."""
    if len(text) > _LONGEST:
        return False
    words = folded(_COUNTS.sub(" ", text.lower())).strip(_TRIMMED)
    return _MORE.fullmatch(words) is not None


def find_more_button(body: Element, group: ItemGroup) -> str | None:
    """A CSS selector of the first such button between or after the records; None if there is none.

    One within a record belongs to the record, one behind the next heading to something else. Style sheets are not
    looked at: the button may not be seen.
    """
    button = next((node for node in _after(body, group) if _is_button(node) and _is_harmless(node)), None)
    return None if button is None else _selector(button)


def _after(body: Element, group: ItemGroup) -> Iterator[Element]:
    """The elements from the first record on, without the records, up to the first heading after the last one."""
    records = {id(part) for item in group.items for part in item}
    left = len(records)
    open_ = [body]
    while open_:
        node = open_.pop()
        if id(node) in records:
            left -= 1
            continue
        begun = left < len(records)
        if begun and _is_around(node):
            continue
        if not left and node.tag in _HEADINGS:
            return
        if begun:
            yield node
        open_ += reversed(node.children)


def _is_around(node: Element) -> bool:
    return node.tag in _AROUND or (node.attributes.get("role") or "") in ("dialog", "navigation", "contentinfo")


def _is_button(node: Element) -> bool:
    """Whether it is a button, or a link without an address, whose words are of a list."""
    attributes = node.attributes
    if node.tag == "a":
        kind = "href" not in attributes or bool(_NO_ADDRESS.match((attributes["href"] or "#").strip()))
    else:
        kind = node.tag == "button" or attributes.get("role") == "button"
    return kind and node.length <= _LONGEST and says_more(node.text() or attributes.get("aria-label") or "")


def _is_harmless(node: Element) -> bool:
    """Whether it sends no form, as far as the page tells, and is in use."""
    attributes = node.attributes
    if any(name in attributes for name in _METHODS) or _SENDS.search(_written(attributes)):
        return False
    in_form = "form" in attributes or any(above.tag == "form" for above in node.above())
    if in_form and not (node.tag == "button" and (attributes.get("type") or "").lower() == "button"):
        return False
    return not any(_is_off(each) for each in (node, node.parent) if each is not None)


def _written(attributes: dict[str, str | None]) -> str:
    """What may tell what a press does: scripts, classes, data."""
    return " ".join(value[:_MAX_VALUE] for name, value in attributes.items() if value and name != "type")


def _is_off(node: Element) -> bool:
    attributes = node.attributes
    words = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".split()
    style = (attributes.get("style") or "").replace(" ", "").lower()
    disabled = "disabled" in attributes or (attributes.get("aria-disabled") or "").lower() == "true"
    return disabled or "display:none" in style or any(_OFF.search(word) for word in words)


def _selector(node: Element) -> str:
    """From the nearest element with a plain id, or from the body."""
    path: list[str] = []
    for each in (node, *node.above()):
        named = each.attributes.get("id") or ""
        if re.fullmatch(r"[A-Za-z][\w-]{0,100}", named):
            return " > ".join([f'[id="{named}"]', *reversed(path)])
        path.append("body" if each.parent is None else f"{each.tag}:nth-child({each.number})")
    return " > ".join(reversed(path))
