"""Which button makes a list longer: by its words, its place, and what it may send."""

# ruff: noqa: RUF001 - the letters of other scripts are meant

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from scrapeyard_sdk.extract.lists import read_records
from scrapeyard_sdk.extract.lists.more_button import MORE_WORDS, says_more

SAID = {
    "en": ["Load more", "Show 24 more products", "LOAD MORE (24 of 120)", "See more results »", "More articles"],
    "de": ["Mehr laden", "Weitere Produkte anzeigen", "Mehr Ergebnisse"],
    "fr": ["Voir plus", "Charger plus de produits", "Afficher plus d’articles", "Voir la suite"],
    "es": ["Ver más", "Cargar más resultados"],
    "pt": ["Carregar mais", "Ver mais produtos"],
    "it": ["Carica altri", "Mostra altri risultati", "Mostra di più"],
    "nl": ["Meer laden", "Toon meer producten", "Meer resultaten tonen"],
    "sv": ["Visa fler", "Ladda fler produkter"],
    "da": ["Vis flere", "Indlæs flere resultater"],
    "no": ["Last inn flere", "Vis mer"],
    "fi": ["Näytä lisää", "Lataa lisää tuotteita"],
    "pl": ["Pokaż więcej", "Załaduj więcej produktów"],
    "cs": ["Načíst další", "Zobrazit více výsledků"],
    "sk": ["Načítať ďalšie", "Zobraziť viac"],
    "hu": ["Több betöltése", "További termékek megjelenítése"],
    "ro": ["Încarcă mai multe", "Vezi mai multe produse"],
    "ru": ["Показать ещё", "Показать еще 20 товаров"],
    "uk": ["Показати ще", "Завантажити більше"],
    "bg": ["Покажи още", "Зареди още продукти"],
    "tr": ["Daha fazla göster", "Daha fazla ürün yükle"],
    "el": ["Εμφάνιση περισσότερων", "Δείτε περισσότερα"],
    "he": ["טען עוד", "הצג עוד תוצאות"],
    "ar": ["عرض المزيد", "تحميل المزيد"],
    "fa": ["نمایش بیشتر", "مشاهده محصولات بیشتر"],
    "ja": ["もっと見る", "さらに表示", "商品をもっと見る"],
    "zh": ["加载更多", "查看更多商品", "載入更多"],
    "ko": ["더보기", "더 보기", "상품 더 보기", "더 불러오기"],
    "id": ["Muat lebih banyak", "Lihat lebih banyak produk"],
    "vi": ["Xem thêm", "Tải thêm sản phẩm"],
    "th": ["แสดงเพิ่มเติม", "โหลดเพิ่ม"],
    "hi": ["और देखें", "अधिक लोड करें"],
}
OTHERS = [
    *("Buy", "Buy more", "Order now", "Log out", "Delete", "Delete more", "Send", "Submit", "Subscribe", "Next"),
    *("More", "Learn more", "Read more", "Show less", "Show more filters", "Load more money", "Add 5 more to cart"),
    *("Mehr erfahren", "In den Warenkorb", "Abmelden", "Acheter plus", "En savoir plus", "Comprar más", "購入", "구매"),
    *("", " ", "12", "Load more " + "products " * 20),
]
RECORDS = "".join(
    f"<li class=card><h3><a href=/p/{n}>Thing number {n}</a></h3><b>€{n}.50</b><button>Show more</button></li>"
    for n in range(1, 7)
)
LIST = f"<ul>{RECORDS}</ul>"


def chosen(html: str) -> str | None:
    """The id of the button that is found, through its selector."""
    tree = LexborHTMLParser(f"<body>{html}</body>")
    found = read_records(tree, "https://shop.example/list")
    assert found is not None
    if found.more_button is None:
        return None
    (button,) = tree.css(found.more_button)
    return button.attributes.get("data-t") or button.attributes.get("id")


def test_every_language_is_tried() -> None:
    assert SAID.keys() == MORE_WORDS.keys()
    assert len(SAID) >= 20


@pytest.mark.parametrize("language", list(SAID))
def test_words_of_every_language(language: str) -> None:
    assert [text for text in SAID[language] if not says_more(text)] == []


def test_other_words() -> None:
    assert [text for text in OTHERS if says_more(text)] == []


@pytest.mark.parametrize(
    "button",
    [
        "<button id=x>Load more</button>",
        "<button id=x type=submit>Load more</button>",  # without a form it sends nothing
        "<a id=x>Load more</a>",
        "<a id=x href='#'>Load more</a>",
        "<a id=x href='javascript:void(0)'>Load more</a>",
        "<div id=x role=button><span>Load more</span> <i>↓</i></div>",
        "<button id=x aria-label='Load more'><svg></svg></button>",
        "<form><button id=x type=button>Load more</button></form>",
    ],
)
def test_what_is_pressed(button: str) -> None:
    assert chosen(f"<main>{LIST}{button}</main>") == "x"


@pytest.mark.parametrize(
    "button",
    [
        "<form><button>Load more</button></form>",
        "<form><button type=submit>Load more</button></form>",
        "<form><button type=reset>Load more</button></form>",
        "<form><a>Load more</a></form>",
        "<form id=f></form><button form=f>Load more</button>",
        "<button formaction=/buy>Load more</button>",
        "<input type=submit value='Load more'>",
        "<a href=/more>Load more</a>",
        "<a href=\"javascript:__doPostBack('x')\">Load more</a>",
        '<a onclick="document.forms[0].submit()">Load more</a>',
        "<a href='#' data-method=delete>Load more</a>",
        "<button hx-post=/cart>Load more</button>",
        "<button aria-label='Load more'>Buy</button>",
        "<button disabled>Load more</button>",
        "<button aria-disabled=true>Load more</button>",
        "<button class=is-hidden>Load more</button>",
        "<button hidden>Load more</button>",
        "<div style='display: none'><button>Load more</button></div>",
        "<button aria-expanded=false>Show more</button>",
        "<footer><button>Show more</button></footer>",
        "<nav><button>Show more</button></nav>",
        "<div role=dialog><button>Show more</button></div>",
        "<h2>Reviews</h2><button>Show more</button>",
    ],
)
def test_what_is_never_pressed(button: str) -> None:
    assert chosen(f"<main>{LIST}{button}</main>") is None


def test_it_stands_behind_the_records() -> None:
    assert chosen(f"<button id=before>Show more</button><main>{LIST}</main>") is None
    assert chosen(f"<main><ul>{RECORDS}<li><button id=within>Load more</button></li></ul></main>") == "within"
    assert chosen(f"<main>{LIST}<button id=x>Load more</button><button id=y>Load more</button></main>") == "x"


@settings(max_examples=40)
@given(
    st.lists(
        st.sampled_from(["<script></script>", "<p>text</p>", "<!-- c -->", "<i hidden></i>", "plain"]), max_size=6
    ),
    st.lists(st.sampled_from(["<div>", "<div><br>", "<section><span>a</span>", "<div id=odd:id>"]), max_size=4),
)
def test_the_selector_leads_to_the_button(before: list[str], around: list[str]) -> None:
    ends = "".join(f"</{'section' if 'section' in each else 'div'}>" for each in reversed(around))
    button = f"{''.join(around)}{''.join(before)}<button data-t=x>Load more</button>{ends}"
    assert chosen(f"{''.join(before)}<main>{LIST}{button}</main>") == "x"
