"""Product pages in small: several vocabularies, languages and bad habits, each with what must be read from it."""

# ruff: noqa: RUF001 - the letters of other scripts are meant

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Case:
    """A page and the fields that it tells."""

    name: str
    html: str
    wants: dict[str, Any]
    url: str = "https://shop.example/p/teapot"
    sources: dict[str, str] = field(default_factory=dict)


def ld(*documents: Any) -> str:
    return "".join(f'<script type="application/ld+json">{json.dumps(each)}</script>' for each in documents)


def page(body: str, head: str = "", title: str = "Blue Teapot") -> str:
    return f"<!doctype html><html><head><title>{title} | Shop</title>{head}</head><body>{body}</body></html>"


OFFER = {"@type": "Offer", "price": "24.90", "priceCurrency": "EUR", "availability": "https://schema.org/InStock"}
TEAPOT = {"@context": "https://schema.org", "@type": "Product", "name": "Blue Teapot", "sku": "TP-100"}

CASES = [
    Case(
        name="json-ld with everything",
        html=page(
            "<h1>Blue Teapot</h1>",
            ld(
                {
                    **TEAPOT,
                    "gtin13": "4006381333931",
                    "mpn": "MX-1",
                    "brand": {"@type": "Brand", "name": "Kiln & Co"},
                    "category": "Kitchen",
                    "description": "Holds a litre.",
                    "image": ["/a.jpg", {"@type": "ImageObject", "url": "https://cdn.example/b.jpg"}],
                    "aggregateRating": {"ratingValue": "4.5", "reviewCount": 12},
                    "additionalProperty": [{"@type": "PropertyValue", "name": "Volume", "value": "1 l"}],
                    "offers": OFFER,
                }
            ),
        ),
        wants={
            "name": "Blue Teapot",
            "price": 24.9,
            "currency": "EUR",
            "availability": "InStock",
            "sku": "TP-100",
            "gtin": "4006381333931",
            "mpn": "MX-1",
            "brand": "Kiln & Co",
            "category": "Kitchen",
            "description": "Holds a litre.",
            "images": ["https://shop.example/a.jpg", "https://cdn.example/b.jpg"],
            "rating": {"value": 4.5, "best": None, "count": 12},
            "attributes": {"Volume": "1 l"},
        },
        sources={"price": "json-ld", "availability": "json-ld"},
    ),
    Case(
        name="a graph whose parts name one another",
        html=page(
            "<h1>Blue Teapot</h1>",
            ld(
                {
                    "@graph": [
                        {"@type": "WebPage", "mainEntity": {"@id": "#p"}},
                        {**TEAPOT, "@id": "#p", "brand": {"@id": "#b"}, "offers": {"@id": "#o"}},
                        {"@type": "Brand", "@id": "#b", "name": "Kiln & Co"},
                        {**OFFER, "@id": "#o"},
                    ]
                }
            ),
        ),
        wants={"price": 24.9, "brand": "Kiln & Co", "availability": "InStock"},
    ),
    Case(
        name="many offers, of which one can be had",
        html=page(
            "<h1>Blue Teapot</h1>",
            ld(
                {
                    **TEAPOT,
                    "offers": {
                        "@type": "AggregateOffer",
                        "lowPrice": 20,
                        "highPrice": 30,
                        "priceCurrency": "GBP",
                        "offers": [
                            {"@type": "Offer", "price": 30, "availability": "OutOfStock"},
                            {"@type": "Offer", "price": 21.5, "availability": "http://schema.org/InStock"},
                        ],
                    },
                }
            ),
        ),
        wants={"price": 21.5, "currency": "GBP", "availability": "InStock"},
    ),
    Case(
        name="a range of prices",
        html=page(
            "<h1>Blue Teapot</h1>",
            ld({**TEAPOT, "offers": {"@type": "AggregateOffer", "lowPrice": "1,299.00", "highPrice": "1,499.00"}}),
        ),
        wants={"price": 1299.0, "high_price": 1499.0},
    ),
    Case(
        name="a price specification with the price before",
        html=page(
            "<h1>Blue Teapot</h1>",
            ld(
                {
                    **TEAPOT,
                    "offers": {
                        "@type": "Offer",
                        "availability": "PreOrder",
                        "priceSpecification": [
                            {"price": 40, "priceCurrency": "USD", "priceType": "https://schema.org/ListPrice"},
                            {"price": 32, "priceCurrency": "USD"},
                        ],
                    },
                }
            ),
        ),
        wants={
            "price": 32.0,
            "list_price": 40.0,
            "currency": "USD",
            "availability": "InStock",
            "availability_detail": "PreOrder",
        },
    ),
    Case(
        name="a group of variants; the address names one",
        url="https://shop.example/p/teapot?variant=TP-100-B",
        html=page(
            "<h1>Blue Teapot</h1>",
            ld(
                {
                    "@type": "ProductGroup",
                    "name": "Blue Teapot",
                    "brand": "Kiln & Co",
                    "hasVariant": [
                        {"@type": "Product", "sku": "TP-100-A", "offers": {**OFFER, "price": 20}},
                        {"@type": "Product", "sku": "TP-100-B", "offers": {**OFFER, "price": 22}},
                    ],
                }
            ),
        ),
        wants={"name": "Blue Teapot", "sku": "TP-100-B", "price": 22.0, "brand": "Kiln & Co"},
    ),
    Case(
        name="products beside come first in the document",
        html=page(
            "<h1>Blue Teapot</h1>",
            ld(
                {"@type": "ItemList", "itemListElement": [{"@type": "Product", "name": "Red cup", "offers": OFFER}]},
                {**TEAPOT, "offers": {**OFFER, "price": 33}},
            ),
        ),
        wants={"name": "Blue Teapot", "price": 33.0},
    ),
    Case(
        name="json with comments, a trailing comma and a raw line break",
        html=page(
            "<h1>Blue Teapot</h1>",
            '<script type="application/ld+json">/* x */ {"@type": "Product", // name\n"name": "Blue\nTeapot",'
            '"offers": {"@type": "Offer", "price": "12.50", "priceCurrency": "EUR",},}</script>',
        ),
        wants={"price": 12.5, "currency": "EUR"},
    ),
    Case(
        name="types in lower case and a price with a sign",
        html=page(
            "<h1>Blue Teapot</h1>",
            ld({"@type": "product", "name": "Blue Teapot", "offers": {"@type": "offer", "price": "€ 1.299,00"}}),
        ),
        wants={"price": 1299.0},
    ),
    Case(
        name="a template that was never filled in",
        html=page("<h1>Blue Teapot</h1>", ld({**TEAPOT, "brand": "${brand}", "mpn": "null", "offers": OFFER})),
        wants={"brand": None, "mpn": None, "price": 24.9},
    ),
    Case(
        name="microdata",
        html=page(
            """<div itemscope itemtype="https://schema.org/Product"><h1 itemprop="name">Blue Teapot</h1>
            <span itemprop="sku">TP-100</span><span itemprop="brand" itemscope itemtype="https://schema.org/Brand">
            <span itemprop="name">Kiln</span></span><div itemprop="offers" itemscope itemtype="https://schema.org/Offer">
            <meta itemprop="priceCurrency" content="PLN"><span itemprop="price" content="99.00">99,00 zł</span>
            <link itemprop="availability" href="https://schema.org/OutOfStock"></div></div>"""
        ),
        wants={"price": 99.0, "currency": "PLN", "availability": "OutOfStock", "brand": "Kiln", "sku": "TP-100"},
        sources={"price": "microdata"},
    ),
    Case(
        name="properties outside any item",
        html=page(
            '<h1>Blue Teapot</h1><meta itemprop="price" content="15.00"><meta itemprop="priceCurrency" content="CHF">'
            '<meta itemprop="sku" content="A-77"><a itemprop="availability" href="http://schema.org/InStock">x</a>'
        ),
        wants={"price": 15.0, "currency": "CHF", "sku": "A-77", "availability": "InStock"},
        sources={"price": "attributes"},
    ),
    Case(
        name="RDFa Lite",
        html=page(
            """<div vocab="https://schema.org/" typeof="Product"><h1 property="name">Blue Teapot</h1>
            <div property="offers" typeof="Offer"><span property="price" content="18.20">18.20</span>
            <meta property="priceCurrency" content="EUR"><link property="availability" href="https://schema.org/InStock">
            </div></div>"""
        ),
        wants={"price": 18.2, "currency": "EUR", "availability": "InStock"},
        sources={"price": "rdfa"},
    ),
    Case(
        name="Open Graph",
        html=page(
            "<h1>Blue Teapot</h1>",
            '<meta property="og:type" content="product"><meta property="og:title" content="Blue Teapot">'
            '<meta property="product:price:amount" content="44.00">'
            '<meta property="product:price:currency" content="SEK">'
            '<meta property="product:availability" content="in stock"><meta property="product:brand" content="Kiln">'
            '<meta property="product:retailer_item_id" content="OG-5"><meta property="og:image" content="/t.jpg">',
        ),
        wants={"price": 44.0, "currency": "SEK", "availability": "InStock", "brand": "Kiln", "sku": "OG-5"},
        sources={"price": "opengraph"},
    ),
    Case(
        name="dataLayer as JavaScript",
        html=page(
            "<h1>Blue Teapot</h1><script>window.dataLayer = window.dataLayer || [];\n"
            "dataLayer.push({ecommerce: {detail: {products: [{name: 'Blue Teapot', id: 'DL-9', price: '17.30', "
            "brand: 'Kiln', category: 'Pots',}]}}});</script>"
        ),
        wants={"price": 17.3, "sku": "DL-9", "brand": "Kiln", "category": "Pots"},
        sources={"price": "script"},
    ),
    Case(
        name="state of a framework",
        html=page(
            "<h1>Blue Teapot</h1><script id='__NEXT_DATA__' type='application/json'>"
            + json.dumps(
                {
                    "props": {
                        "recommended": [{"name": "Red cup", "price": 3, "sku": "C"}],
                        "product": {
                            "title": "Blue Teapot",
                            "sku": "ND-1",
                            "price": {"value": 61.5, "currency": "USD"},
                            "inStock": False,
                            "ean": "4006381333931",
                        },
                    }
                }
            )
            + "</script>"
        ),
        wants={"price": 61.5, "currency": "USD", "sku": "ND-1", "availability": "OutOfStock", "gtin": "4006381333931"},
    ),
    Case(
        name="English, nothing marked up",
        url="https://shop.example/ca/teapot",
        html=page(
            """<nav><a href="/">Home</a></nav><div class="breadcrumbs"><a>Home</a> › <a>Kitchen</a> › <a>Pots</a></div>
            <h1>Blue Teapot</h1><div class="price-box"><del class="old-price">$30.00</del>
            <span class="sale-price">$24.99</span></div><p>SKU: BT-2041</p><button>Add to cart</button>
            <div class="related-products"><span class="price">$1.99</span></div>"""
        ),
        wants={
            "price": 24.99,
            "currency": "USD",
            "availability": "InStock",
            "sku": "BT-2041",
            "breadcrumbs": ["Home", "Kitchen", "Pots"],
            "category": "Pots",
        },
        sources={"price": "page", "availability": "page", "sku": "page"},
    ),
    Case(
        name="German, cents set high",
        url="https://laden.example.de/kanne",
        html=page(
            """<h1>Blaue Teekanne</h1><p class="preis">24<sup>95</sup> €</p><p>Art.-Nr.: 4711-08</p>
            <p>Nicht auf Lager</p><table><tr><th>Marke</th><td>Brennofen</td></tr>
            <tr><th>EAN</th><td>4006381333931</td></tr><tr><th>Inhalt</th><td>1 l</td></tr></table>""",
            title="Blaue Teekanne",
        ),
        wants={
            "price": 24.95,
            "currency": "EUR",
            "availability": "OutOfStock",
            "sku": "4711-08",
            "brand": "Brennofen",
            "gtin": "4006381333931",
            "attributes": {"Marke": "Brennofen", "EAN": "4006381333931", "Inhalt": "1 l"},
        },
    ),
    Case(
        name="French",
        url="https://boutique.example.fr/theiere",
        html=page(
            """<h1>Théière bleue</h1><span class="prix">1 249,00 €</span><span>Référence : TH-55</span>
            <button class="btn">Ajouter au panier</button><dl><dt>Marque</dt><dd>Four</dd></dl>""",
            title="Théière bleue",
        ),
        wants={"price": 1249.0, "currency": "EUR", "sku": "TH-55", "availability": "InStock", "brand": "Four"},
    ),
    Case(
        name="Spanish, sold out",
        url="https://tienda.example.es/tetera",
        html=page(
            '<h1>Tetera azul</h1><div class="precio">19,95 €</div><p>Agotado</p><ul class="specs">'
            "<li>Marca: Horno</li></ul>",
            title="Tetera azul",
        ),
        wants={"price": 19.95, "availability": "OutOfStock", "brand": "Horno"},
    ),
    Case(
        name="Polish",
        url="https://sklep.example.pl/czajnik",
        html=page(
            '<h1>Czajnik niebieski</h1><b class="cena">1 299,00 zł</b><p>Kod produktu: CZ-12</p>'
            '<a class="btn">Do koszyka</a>',
            title="Czajnik niebieski",
        ),
        wants={"price": 1299.0, "currency": "PLN", "sku": "CZ-12", "availability": "InStock"},
    ),
    Case(
        name="Czech",
        url="https://obchod.example.cz/konvice",
        html=page(
            '<h1>Modrá konvice</h1><span class="price">2 490 Kč</span><p>Kód zboží: 88123</p><p>Vyprodáno</p>',
            title="Modrá konvice",
        ),
        wants={"price": 2490.0, "currency": "CZK", "sku": "88123", "availability": "OutOfStock"},
    ),
    Case(
        name="Russian",
        url="https://magazin.example.ru/chaynik",
        html=page(
            '<h1>Синий чайник</h1><div class="price">12 490 руб.</div><p>Артикул: 55-01</p><p>Нет в наличии</p>',
            title="Синий чайник",
        ),
        wants={"price": 12490.0, "currency": "RUB", "sku": "55-01", "availability": "OutOfStock"},
    ),
    Case(
        name="Korean",
        url="https://store.example.kr/goods/10293847",
        html=page(
            '<h1>파란 주전자</h1><strong class="price">32,000원</strong><p>브랜드: 가마</p>'
            "<button>장바구니 담기</button>",
            title="파란 주전자",
        ),
        wants={"price": 32000.0, "currency": "KRW", "availability": "InStock", "brand": "가마", "sku": "10293847"},
        sources={"sku": "url"},
    ),
    Case(
        name="Japanese, sold out",
        url="https://store.example.jp/item/5",
        html=page(
            '<h1>青いティーポット</h1><p class="price">¥3,980</p><p>現在この商品は売り切れです</p>',
            title="青いティーポット",
        ),
        wants={"price": 3980.0, "currency": "JPY", "availability": "OutOfStock"},
    ),
    Case(
        name="Chinese, number and currency apart",
        url="https://shop.example.tw/item/7",
        html=page(
            "<h1>藍色茶壺</h1><p><del>$3200</del> 特價 <span>2320</span><span> 元 </span></p><p>現貨</p>",
            title="藍色茶壺",
        ),
        wants={"price": 2320.0, "currency": "TWD", "availability": "InStock"},
    ),
    Case(
        name="Turkish",
        url="https://magaza.example.com.tr/demlik",
        html=page('<h1>Mavi demlik</h1><span class="price">1.249,90 TL</span><a>Sepete ekle</a>', title="Mavi demlik"),
        wants={"price": 1249.9, "currency": "TRY", "availability": "InStock"},
    ),
    Case(
        name="Swedish",
        url="https://butik.example.se/kanna",
        html=page(
            '<h1>Blå kanna</h1><span class="price">1 199 kr</span><p>Artikelnummer: 30-22</p><p>I lager</p>',
            title="Blå kanna",
        ),
        wants={"price": 1199.0, "currency": "SEK", "sku": "30-22", "availability": "InStock"},
    ),
    Case(
        name="a Canadian dollar",
        url="https://store.example.ca/teapot",
        html=page('<h1>Blue Teapot</h1><span class="price">$39.99</span><button id="add-to-cart">Go</button>'),
        wants={"price": 39.99, "currency": "CAD", "availability": "InStock"},
    ),
    Case(
        name="the heading is not the first, and names something else",
        html=page(
            '<h1>Our shop</h1><span class="price">$5</span><h2>Summer deals</h2><span class="price">$6</span>'
            '<h1>Blue Teapot with lid</h1><span class="price">$24</span><button>Buy now</button>',
            title="Blue Teapot with lid",
        ),
        wants={"price": 24.0, "name": "Blue Teapot with lid"},
    ),
    Case(
        name="what is hidden does not count",
        html=page(
            '<h1>Blue Teapot</h1><p hidden>Sold out</p><p style="display: none">Out of stock</p>'
            '<span class="price">$24</span><button>Add to bag</button>'
        ),
        wants={"availability": "InStock"},
    ),
    Case(
        name="nothing is said about stock",
        html=page('<h1>Blue Teapot</h1><span class="price">24 €</span>'),
        wants={"price": 24.0, "availability": "InStock"},
        sources={"availability": "assumed"},
    ),
    Case(
        name="prices that are not the price",
        html=page(
            '<h1>Blue Teapot</h1><p class="shipping-price">Shipping: 4,90 €</p>'
            '<p class="unit-price">2,49 € / 100 ml</p>'
            '<p class="price">24,90 €</p><p class="price">20,92 € excl. VAT</p>'
        ),
        wants={"price": 24.9},
    ),
    Case(
        name="a number that is no GTIN",
        html=page("<h1>Blue Teapot</h1>", ld({**TEAPOT, "gtin13": "4006381333932", "offers": OFFER})),
        wants={"gtin": None},
    ),
]
