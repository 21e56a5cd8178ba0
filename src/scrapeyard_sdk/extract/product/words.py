"""The words by which shops in many languages name the parts of a product page."""

# ruff: noqa: RUF001 - the letters of other scripts are meant

import re

_I = re.IGNORECASE
_NO_BLANKS = "\u0e00"
"""From here on stand Thai, kana, Han and Hangul."""


def _any(words: str) -> re.Pattern[str]:
    """Any of the words; a blank fits any white space. In scripts without spaces, words also match inside others."""
    each = sorted(set(words.split("|")), key=len, reverse=True)
    apart = "|".join(_fitting(word) for word in each if word < _NO_BLANKS)
    joined = "|".join(_fitting(word) for word in each if word >= _NO_BLANKS)
    return re.compile(rf"(?<!\w)(?:{apart})(?!\w)|{joined}", _I)


def _fitting(word: str) -> str:
    return re.escape(word).replace(r"\ ", r"\s+")


OUT_OF_STOCK = _any(
    "out of stock|sold out|currently unavailable|temporarily unavailable|no longer available|not available online|"
    "not in stock|discontinued|item unavailable|product unavailable|this item has sold|this ad has expired|"
    "ausverkauft|nicht auf lager|nicht verfügbar|nicht lieferbar|derzeit nicht verfügbar|vergriffen|"
    "rupture de stock|épuisé|indisponible|actuellement indisponible|victime de son succès|"
    "agotado|sin stock|no disponible|sin existencias|no está disponible|"
    "esgotado|indisponível|sem stock|sem estoque|produto indisponível|avise-me quando chegar|"
    "esaurito|non disponibile|attualmente non disponibile|terminato|"
    "uitverkocht|niet op voorraad|niet leverbaar|niet beschikbaar|"
    "utsolgt|slutsåld|slut i lager|udsolgt|ikke på lager|ej i lager|loppu varastosta|tilapäisesti loppu|"
    "niedostępny|brak w magazynie|wyprzedane|produkt niedostępny|chwilowo niedostępny|"
    "vyprodáno|vyprodané|vypredané|vypredaný|vyprodaný|není skladem|nie je skladom|momentálne nedostupné|"
    "momentálně nedostupné|nedostupné|nie je na sklade|"
    "elfogyott|nincs raktáron|nem kapható|stoc epuizat|indisponibil|nu este în stoc|"
    "rasprodano|nije dostupno|nema na zalihi|ni na zalogi|razprodano|"
    "нет в наличии|нет на складе|распродано|товар закончился|снят с продажи|немає в наявності|няма наличност|изчерпан|"
    "εξαντλημένο|μη διαθέσιμο|tükendi|stokta yok|hết hàng|tạm hết hàng|habis|stok habis|"
    "품절|일시품절|매진|판매종료|판매 종료|재고 없음|在庫切れ|売り切れ|品切れ|在庫なし|販売終了|"
    "缺货|售罄|已售完|暂时缺货|无货|缺貨|售完|已售完|補貨中|完售|สินค้าหมด|غير متوفر|نفدت الكمية|אזל מהמלאי",
)
IN_STOCK = _any(
    "in stock|available now|available online|ready to ship|ships today|in stock now|usually ships|add to cart|"
    "auf lager|sofort lieferbar|lieferbar|vorrätig|sofort verfügbar|en stock|disponible|disponibile|disponível|"
    "em stock|em estoque|op voorraad|leverbaar|på lager|i lager|varastossa|dostępny|w magazynie|skladem|skladom|"
    "na sklade|"
    "raktáron|készleten|în stoc|in stoc|stoc suficient|na zalihi|na zalogi|dostupno|в наличии|на складе|есть в наличии|"
    "є в наявності|в наявності|в наличност|налично|διαθέσιμο|stokta|còn hàng|tersedia|재고 있음|在庫あり|有货|"
    "現貨|有貨|现货|"
    "มีสินค้า|متوفر|במלאי",
)
ADD_TO_CART = _any(
    "add to cart|add to bag|add to basket|add to trolley|buy now|buy it now|purchase|order now|add to my bag|"
    "in den warenkorb|in den einkaufswagen|jetzt kaufen|zum warenkorb hinzufügen|kaufen|"
    "ajouter au panier|acheter|ajouter à mon panier|añadir al carrito|agregar al carrito|añadir a la cesta|comprar|"
    "comprar ahora|añadir a la bolsa|agregar a la bolsa|adicionar ao carrinho|comprar agora|adicionar à sacola|"
    "aggiungi al carrello|acquista|compra ora|compralo subito|in winkelwagen|in winkelmandje|bestellen|"
    "toevoegen aan winkelwagen|"
    "lägg i varukorg|lägg i varukorgen|köp|legg i handlekurv|kjøp|læg i kurv|køb|lisää ostoskoriin|osta|"
    "do koszyka|dodaj do koszyka|kup teraz|do košíka|do košíku|vložit do košíku|vložiť do košíka|"
    "přidat do košíku|koupit|kúpiť|"
    "kosárba|kosárba teszem|megveszem|adaugă în coș|adauga in cos|cumpără|u košaricu|dodaj u košaricu|"
    "dodaj v košarico|v košarico|"
    "в корзину|добавить в корзину|купить|купити|до кошика|у кошик|добави в количката|купи|"
    "καλάθι|προσθήκη στο καλάθι|sepete ekle|satın al|thêm vào giỏ|mua ngay|beli sekarang|tambah ke keranjang|"
    "장바구니|구매하기|바로구매|카트에 담기|カートに入れる|購入する|買い物かごに入れる|加入购物车|立即购买|"
    "加入購物車|立即購買|直接購買|"
    "放入購物車|หยิบใส่ตะกร้า|أضف إلى السلة|הוסף לסל",
)
SKU = re.compile(
    r"(?:sku|item\s*(?:no|number|#|id|code|model\s+number)|product\s*(?:code|no|number|id|#|ref(?:erence)?)|"
    r"style\s*(?:no|number|#|code)|"
    r"model\s*(?:no|number|#)|article\s*(?:no|number)|stock\s*(?:no|number|code)|catalog(?:ue)?\s*(?:no|number)|"
    r"part\s*(?:no|number)|asin|web\s*code|web\s*id|"
    r"art(?:ikel)?\W{0,3}\s?(?:nr|nummer|no)|bestell\W?(?:nr|nummer)|produktnummer|produktcode|artikel|"
    r"r[ée]f(?:[ée]rence)?(?:\s+(?:produit|article|fabricant))?|code\s+(?:article|produit)|ugs|"
    r"referencia|ref|c[óo]digo(?:\s+(?:de[l]?\s+)?(?:producto|produto|art[íi]culo))?|"
    r"cod(?:ice)?(?:\s+(?:articolo|prodotto|produs))?|"
    r"refer[êe]ncia|artikelnummer|varenummer|varenr|tuotenumero|tuotekoodi|"
    r"(?:nr|numer|kod|symbol|indeks)\s+(?:ref(?:erencyjny)?|produktu|katalogowy|artyku[łl]u)|kod|"
    r"k[óo]d(?:\s+(?:produktu|zbo[žz][íi]|tovaru))?|"
    r"cikksz[áa]m|term[ée]kk[óo]d|cod\s+produs|[šs]ifra(?:\s+(?:artikla|proizvoda|izdelka))?|"
    r"артикул|код|код\s+товара|код\s+товару|код\s+продукта|каталожен\s+номер|κωδικός(?:\s+προϊόντος)?|"
    r"ürün\s+kodu|stok\s+kodu|"
    r"mã\s+(?:sản\s+phẩm|sp|hàng)|kode\s+produk|상품\s?(?:번호|코드)|품번|모델명|商品(?:番号|コード|編號|编号|"
    r"代號|貨號)|品番|型番|货号|貨號|art|ad\s*(?:id|no|number)|anzeigen\W?nr|offer\s*id)",
    _I,
)
GTIN = re.compile(
    r"(?:gtin(?:-?\d+)?|ean(?:-?\d+)?|upc(?:-?a)?|isbn(?:-?1[03])?|barcode|strichcode|штрихкод|штрих-код|"
    r"jan)(?:\s*(?:code|nummer|number|kód|kod))?",
    _I,
)
MPN = re.compile(
    r"(?:mpn|manufacturer(?:'s)?\s+(?:part|ref|product)?\s*(?:no|number|code|reference)?|part\s+number|"
    r"item\s+model\s+number|model\s+(?:number|no)|"
    r"herstellernummer|hersteller-?(?:nr|teilenummer|art\W?nr)|modellnummer|modelnumber|"
    r"r[ée]f[ée]rence\s+fabricant|kod\s+producenta|"
    r"n[úu]mero\s+de\s+(?:modelo|pieza|pe[çc]a)|numero\s+(?:modello|articolo\s+modello))",
    _I,
)
BRAND = re.compile(
    r"(?:brand(?:\s+name)?|manufacturer|make|marke|hersteller|marque|fabricant|marca|fabricante|produttore|merk|"
    r"fabrikant|"
    r"m[äa]rke|varumärke|merke|mærke|tuotemerkki|merkki|marka|producent|značka|výrobce|výrobca|výrobce|gyártó|"
    r"márka|brend|proizvođač|"
    r"blagovna\s+znamka|proizvajalec|бренд|марка|производитель|виробник|torgovaya\s+marka|торговая\s+марка|μάρκα|"
    r"κατασκευαστής|"
    r"thương\s+hiệu|merek|브랜드|제조사|ブランド|メーカー|品牌|العلامة\s+التجارية|מותג)",
    _I,
)

PRICE_NAME = re.compile(
    r"price|preis|prix|precio|prezzo|preço|preco|(?<![a-z])cena(?![a-z])|(?<![a-z])pris(?![a-z])|prijs|cijena|"
    r"hinta|(?<![a-z])ár(?![a-z])|amount|kaina|цена",
    _I,
)
OLD_NAME = re.compile(
    r"old|was(?![a-z])|strike|before|regular|(?<![a-z])list(?:-|_)?price|listprice|rrp|msrp|uvp|crossed|"
    r"origin(?:al)?|previous|"
    r"compare|barr[ée]|tachado|antes|non-?sale|full-?price|retail|previo|anterior|instead|statt|through|regulier|"
    r"catalog",
    _I,
)
NOW_NAME = re.compile(
    r"current|sale|final|now(?![a-z])|special|offer|our|actual|new-?price|selling|discount(?:ed)?-?price|main|"
    r"product-?price|"
    r"price-?value|best|today|deal|buybox|buy-?box|pdp|detail",
    _I,
)
NOT_THE_PRICE = re.compile(
    r"shipping|delivery|versand|livraison|unit|per-|instal|month|monat|financ|credit|saving|save(?![a-z])|"
    r"you-?save|rabatt|"
    r"filter|facet|price-?_?slider|slider-?_?range|range|mini|tooltip|coupon|voucher|point|tax|vat|deposit|alert|subscription|trade-?in|"
    r"warranty|option|addon|add-on|service|total|minimum|freeship",
    _I,
)
ELSEWHERE = re.compile(
    r"related|recommend|similar|upsell|up-sell|cross-?sell|also-|carousel|slider|swiper|recent|viewed|suggest|bundle|"
    r"accessor|together|sponsor|(?<![a-z])ads?(?![a-z])|advert|footer|navbar|navigation|(?<![a-z])nav(?![a-z])|"
    r"megamenu|(?<![a-z])menu|"
    r"mini-?cart|minicart|cart-?(?:drawer|popup|modal|summary)|basket-?(?:drawer|popup)|header|breadcrumb|review|"
    r"comment|testimonial|"
    r"compare|comparison|wishlist|sidebar|newsletter|modal|popup|cookie|product-?(?:list|grid|card|tile|"
    r"item)s?(?![a-z])|"
    r"listing|collection|(?<![a-z])other-|(?<![a-z])more-|alternativ|colou?r-?swatch|variant-?list|look-?book|"
    r"complete-?the",
    _I,
)
PRODUCT_AREA = re.compile(
    r"product|pdp|item-?(?:detail|info|page)|detail|buy-?box|summary|prod-|goods|offer|purchase|artikel|produkt|"
    r"produit|producto|prodotto",
    _I,
)
UNSEEN_NAME = re.compile(r"(?<![a-z])(?:hidden|hide|d-none|invisible|is-hidden)(?![a-z])", _I)
CART_NAME = re.compile(
    r"(?:add|buy|put)(?:-|_)?(?:to|in|2)?(?:-|_)?(?:the-?)?(?:cart|bag|basket|trolley|now|box)|(?:cart|basket|"
    r"buy|order)-?_?(?:btn|button)|btn-?_?(?:cart|buy|order)",
    _I,
)
NO_PRICE_TEXT = re.compile(
    r"(?:excl|ex\.?|without|ohne|brez|bez|hors|sin|senza|zonder|exkl|netto|без)\W{1,2}(?:vat|tax(?:es)?|mwst|ddv|"
    r"dph|pdv|iva|taxe|btw|moms|ust|ндс)|"
    r"shipping|delivery|versand|livraison|envío|spedizione|frete|免運|運費|배송|送料|доставк|coupon|gutschein|滿|"
    r"點=|포인트|point|save|you save|"
    r"sparen|per month|/\s?(?:mo|month|monat|mois|kg|100|l\b|ml|m²|unit)|monatlich|instal|x\s?\d+\s+(?:de|mesi|"
    r"rate)|from\s+\d+\s+review",
    _I,
)
CODE_NAME = re.compile(
    r"(?<![a-z])sku(?![a-z])|product-?_?(?:code|ref(?:erence)?|number|sku)|article-?_?(?:number|code)|"
    r"item-?_?(?:number|code)|model-?_?number|artikel-?_?(?:nr|nummer)",
    _I,
)
