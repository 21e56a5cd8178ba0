"""Every fixed page of the shop, built once."""

import json
from collections.abc import Sequence
from html import escape

from scrapeyard.demo.goods import CATEGORIES, CURRENCY, PER_PAGE, Category, Product
from scrapeyard.demo.parts import (
    BASE,
    card,
    crumbs,
    document,
    grid,
    json_ld,
    open_graph,
    pager,
    picture,
    product_data,
    trail_data,
)

Content = tuple[str, bytes]
"""Media type and body."""

_HTML, _SVG, _XML, _JSON = "text/html", "image/svg+xml", "application/xml", "application/json"


def build(products: Sequence[Product]) -> dict[str, Content]:
    """Path, with `?page=N` from page 2 on, to content."""
    pages = {"/": _html(home(products)), "/sitemap.xml": (_XML, sitemap(products).encode())}
    pages["/favicon.svg"] = (_SVG, picture(3, 160).encode())
    for category in CATEGORIES:
        pages |= _category_pages(category, [each for each in products if each.category is category])
    for product in products:
        pages[f"/product/{product.number}"] = _html(product_page(product))
        pages[f"/image/{product.number}.svg"] = (_SVG, picture(product.number, product.category.hue).encode())
    return pages | _api_pages(products)


def home(products: Sequence[Product]) -> str:
    """Six shelves."""
    firsts = {each.category.slug: each for each in reversed(products)}
    shelves = (
        f"""<li><a class="card category-card" href="/category/{shelf.slug}">
<img src="/image/{firsts[shelf.slug].number}.svg" alt="" width="400" height="300">
<div><h2>{shelf.name}</h2><p>{escape(shelf.blurb)}</p></div></a></li>"""
        for shelf in CATEGORIES
    )
    body = f'<h1>Things worth keeping</h1><p class="blurb">{len(products)} products on six shelves.</p>{grid(shelves)}'
    return document("Home", "/", body, description="A practice shop with categories, products and prices.")


def category_page(category: Category, shown: Sequence[Product], page: int, pages: int) -> str:
    """One page of one shelf."""
    path = f"/category/{category.slug}"
    trail = [("Home", "/"), (category.name, path)]
    body = (
        f'{crumbs(trail)}<h1>{category.name}</h1><p class="blurb">{escape(category.blurb)}</p>'
        f"{grid(card(product) for product in shown)}{pager(path, page, pages)}"
    )
    here = path if page == 1 else f"{path}?page={page}"
    return document(category.name, here, body, description=category.blurb, head=json_ld(trail_data(trail)))


def product_page(product: Product, *, path: str = "") -> str:
    """One product. `path` is its address where that is not the usual one."""
    path = path or f"/product/{product.number}"
    trail = [("Home", "/"), (product.category.name, f"/category/{product.category.slug}"), (product.title, path)]
    head = f"{open_graph(product)}\n{json_ld(product_data(product))}\n{json_ld(trail_data(trail))}"
    body = f"""{crumbs(trail)}
<article class="product">
<img src="/image/{product.number}.svg" alt="{escape(product.title)}" width="400" height="300">
<div>
<h1>{escape(product.title)}</h1>
<p class="stars" aria-label="Rated {product.rating} of 5"><span class="rating">{product.rating}</span> ★
<span class="reviews">({product.reviews} reviews)</span></p>
<p class="price" data-currency="{CURRENCY}" data-amount="{product.price}">{product.shown_price}</p>
<p class="availability{"" if product.stock else " out"}">{product.availability}</p>
<p class="description">{escape(product.description)}</p>
<dl><dt>SKU</dt><dd class="sku">{product.sku}</dd>
<dt>Brand</dt><dd class="brand">{escape(product.brand)}</dd>
<dt>Material</dt><dd class="material">{product.material}</dd>
<dt>Weight</dt><dd class="weight">{product.weight_grams} g</dd></dl>
<a class="button" href="/login">Add to basket</a>
</div>
</article>"""
    return document(product.title, path, body, description=product.description, head=head)


def sitemap(products: Sequence[Product]) -> str:
    """Every page worth a visit."""
    paths = ["/", *(f"/category/{each.slug}" for each in CATEGORIES), *(f"/product/{each.number}" for each in products)]
    urls = "".join(f"<url><loc>{BASE}{path}</loc></url>\n" for path in paths)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n'
    )


def as_json(product: Product) -> dict[str, object]:
    """A product as the shop's own API gives it."""
    return {
        "id": product.number,
        "sku": product.sku,
        "title": product.title,
        "category": product.category.slug,
        "brand": product.brand,
        "price": product.price,
        "currency": CURRENCY,
        "in_stock": product.stock > 0,
        "rating": product.rating,
        "url": f"{BASE}/product/{product.number}",
    }


def _category_pages(category: Category, products: Sequence[Product]) -> dict[str, Content]:
    chunks = _chunks(products)
    path = f"/category/{category.slug}"
    return {
        _numbered(path, page): _html(category_page(category, shown, page, len(chunks)))
        for page, shown in enumerate(chunks, 1)
    }


def _api_pages(products: Sequence[Product]) -> dict[str, Content]:
    chunks = _chunks(products)
    return {
        _numbered("/api/products.json", page): (
            _JSON,
            json.dumps(
                {"page": page, "pages": len(chunks), "total": len(products), "items": [as_json(each) for each in shown]}
            ).encode(),
        )
        for page, shown in enumerate(chunks, 1)
    }


def _chunks(products: Sequence[Product]) -> list[Sequence[Product]]:
    return [products[at : at + PER_PAGE] for at in range(0, len(products), PER_PAGE)]


def _numbered(path: str, page: int) -> str:
    return path if page == 1 else f"{path}?page={page}"


def _html(text: str) -> Content:
    return _HTML, text.encode()
