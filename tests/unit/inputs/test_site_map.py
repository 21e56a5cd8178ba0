"""`builtin/map`: which URLs of a site are listed, and where each was found."""

from typing import Any

import pytest

from scrapeyard.builtin import MAP
from scrapeyard.builtin.scrapers import MAP_OUTPUT
from scrapeyard.builtin.services import Services
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import BadRequest, FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.wiring.builtins import all_builtins

SHOP = "https://shop.example"
HOME = f"{SHOP}/"
PAGE = b"""<a href=/a#top>a</a><a href=/a>again</a><a href=mailto:x@shop.example>mail</a>
<a href=//other.example/>away</a><a href=https://img.shop.example/i>picture</a><a href=/docs/b?x=1>b</a>"""
LISTED = (b"a", b"lonely", b"docs/c")
FILES = {
    "/": PAGE,
    "/robots.txt": b"User-agent: *\nSitemap: /index.xml\n",
    "/index.xml": b"<sitemapindex><sitemap><loc>/pages.xml</loc></sitemap></sitemapindex>",
    "/pages.xml": b"<urlset>%s</urlset>" % b"".join(b"<url><loc>/%s</loc></url>" % page for page in LISTED),
}
BUILTIN = all_builtins()[MAP]


async def mapped(files: dict[str, bytes], url: str = HOME, /, **more: Any) -> dict[str, Any]:
    async def fetch(request: FetchRequest) -> FetchResponse:
        path = request.url.removeprefix(SHOP)
        if files.get(path) == b"down":
            raise FetchFailed(ExitReason.FETCH_TLS, "no")
        kind = "text/html" if "." not in path else "text/plain"
        status, body = (200, files[path]) if path in files else (404, b"")
        return FetchResponse(
            url=request.url,
            status=status,
            headers=(("content-type", kind),),
            body=body,
            encoding="utf-8",
            elapsed_ms=1.0,
        )

    result = await BUILTIN.run(Services(fetch=fetch), {"url": url, **more})
    assert InputChecker().output_errors(BUILTIN.scraper, result) == []
    assert set(result) == set(MAP_OUTPUT["required"])
    return result


def urls(result: dict[str, Any]) -> list[str]:
    return [found["url"].removeprefix(SHOP) for found in result["urls"]]


async def test_a_map_has_the_page_its_links_and_the_sitemaps_each_url_once() -> None:
    result = await mapped(FILES)
    assert urls(result) == ["/", "/a", "/docs/b?x=1", "/lonely", "/docs/c"]
    sources = [(found["source"], found["found_on"]) for found in result["urls"]]
    page, file = ("link", HOME), ("sitemap", f"{SHOP}/pages.xml")
    assert sources == [("page", HOME), page, page, file, file]
    assert (result["has_more"], result["warnings"]) == (False, [])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"sitemap": False}, ["/", "/a", "/docs/b?x=1"]),
        ({"include": ["/docs/**"]}, ["/docs/b?x=1", "/docs/c"]),
        ({"exclude": ["/docs/**", "/"]}, ["/a", "/lonely"]),
        ({"search": "LONE"}, ["/lonely"]),
        ({"limit": 2}, ["/", "/a"]),
    ],
)
async def test_a_map_is_narrowed(asked: dict[str, Any], expected: list[str]) -> None:
    assert urls(await mapped(FILES, **asked)) == expected


async def test_the_scope_decides_which_hosts_are_listed() -> None:
    assert "https://img.shop.example/i" in urls(await mapped(FILES, scope="site"))
    assert "https://other.example/" in urls(await mapped(FILES, scope="any"))
    assert urls(await mapped({**FILES, "/docs": PAGE}, f"{SHOP}/docs", scope="path")) == [
        *("/docs", "/docs/b?x=1", "/docs/c")
    ]


async def test_a_limit_says_whether_there_are_more() -> None:
    assert [(await mapped(FILES, limit=limit))["has_more"] for limit in (3, 4, 5)] == [True, True, False]


async def test_a_site_without_sitemaps_is_no_fault_and_a_broken_one_is_told() -> None:
    assert (await mapped({"/": PAGE}))["warnings"] == []
    broken = await mapped({**FILES, "/pages.xml": b"<urlset><url><loc>/x"})
    assert urls(broken)[:2] == ["/", "/a"]
    assert "pages.xml" in broken["warnings"][0]


async def test_a_page_that_answers_an_error_is_told() -> None:
    assert (await mapped({}))["warnings"] == ["the page answers 404"]


async def test_a_page_that_cannot_be_had_fails_and_so_does_a_bad_pattern() -> None:
    with pytest.raises(FetchFailed):
        await mapped({"/": b"down"})
    with pytest.raises(BadRequest, match="include"):
        await mapped(FILES, include=["re:("])
