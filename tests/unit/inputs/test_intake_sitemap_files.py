"""Sitemap files of every kind, cut anywhere, in all the ways that they are written, and those that mean harm."""

import time
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.inputs.formats.sitemap_parser import (
    MAX_TOKEN,
    Ampersands,
    SitemapBroken,
    SitemapEntry,
    SitemapFile,
    moment,
)

SCHEMA = "http://www.sitemaps.org/schemas/sitemap/0.9"


def read(data: bytes, size: int = 10_000) -> list[SitemapEntry]:
    file, found = SitemapFile(), []
    for at in range(0, len(data), size):
        found += file.feed(data[at : at + size]).found
    return found + file.finish().found


def urls(data: bytes | str, size: int = 10_000) -> list[str]:
    return [entry.url for entry in read(data.encode() if isinstance(data, str) else data, size)]


def urlset(*inner: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{SCHEMA}">\n' + "\n".join(inner) + "\n</urlset>"


def test_a_urlset_with_lines_and_dates() -> None:
    found = read(
        urlset(
            "<url><loc> http://x/1 </loc><lastmod>2024-01-02</lastmod></url>", "<url><loc>http://x/2</loc></url>"
        ).encode()
    )
    assert found == [SitemapEntry(3, "http://x/1", False, 1704153600.0), SitemapEntry(4, "http://x/2")]


def test_an_index_leads_to_sitemaps() -> None:
    text = f'<sitemapindex xmlns="{SCHEMA}"><sitemap><loc>http://x/1.xml</loc></sitemap><sitemap>\nhttp://x/2.xml\n</sitemap></sitemapindex>'
    assert [(entry.url, entry.is_sitemap) for entry in read(text.encode())] == [
        ("http://x/1.xml", True),
        ("http://x/2.xml", True),
    ]


@pytest.mark.parametrize(
    "text",
    [
        urlset("<url><loc>http://x/1?a=1&amp;b=2</loc></url>"),
        urlset("<url><loc>http://x/1?a=1&b=2</loc></url>"),
        urlset("<url><loc><![CDATA[http://x/1?a=1&b=2]]></loc></url>"),
        urlset("<url><!-- a & b --><loc>http://x/1?a=1&#38;b=2</loc></url>"),
        urlset("<url><LOC>http://x/1?a=1&#x26;b=2</LOC></url>"),
        urlset("<url>http://x/1?a=1&amp;b=2</url>"),
        urlset("<url><priority>1</priority><loc>http://x/1?a=1&amp;b=2<b/></loc></url>"),
        "\n \ufeff".strip() + urlset("<url><loc>http://x/1?a=1&amp;b=2</loc></url>"),
        "  \n" + urlset("<url><loc>http://x/1?a=1&amp;b=2</loc></url>"),
        '<a:urlset xmlns:a="odd"><a:url><a:loc>http://x/1?a=1&amp;b=2</a:loc></a:url></a:urlset>',
        "<u:urlset><u:url><u:loc>http://x/1?a=1&amp;b=2</u:loc></u:url></u:urlset>",
        "<rss><channel><link>http://x/</link><item><link>http://x/1?a=1&amp;b=2</link><a:link/></item></channel></rss>",
        "<rss><channel><item><guid>http://x/1?a=1&amp;b=2</guid></item></channel></rss>",
        "<feed><link href='http://x/'/><entry><link rel='edit' href='e'/>"
        "<link href='http://x/1?a=1&amp;b=2'/></entry></feed>",
        "http://x/1?a=1&b=2",
        "\ufeffhttp://x/1?a=1&b=2\r\n# no\n\n",
    ],
)
@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_many_spellings_of_one_address(text: str, size: int) -> None:
    assert urls(text, size) == ["http://x/1?a=1&b=2"]


def test_other_encodings() -> None:
    for encoding in ("utf-16", "iso-8859-1"):
        text = f'<?xml version="1.0" encoding="{encoding}"?><urlset><url><loc>http://x/\xe4</loc></url></urlset>'
        assert urls(text.encode(encoding), 3) == ["http://x/\xe4"]


def test_addresses_of_images_videos_and_alternates_are_no_pages() -> None:
    inner = """<url><image:image><image:loc>http://x/i</image:loc></image:image><image:loc>http://x/i</image:loc>
        <video:video><video:player_loc>http://x/v</video:player_loc></video:video>
        <xhtml:link rel="alternate" href="http://x/de"/><loc>http://x/1</loc></url><url><lastmod>2024</lastmod></url>"""
    assert urls(urlset(inner)) == ["http://x/1"]


LINKS = st.lists(
    st.text(
        st.characters(min_codepoint=33, exclude_characters="\ufeff", exclude_categories=("Cs", "Z", "C", "Cn")),
        min_size=1,
        max_size=20,
    ),
    max_size=6,
)


@given(LINKS, st.integers(1, 40))
def test_every_address_is_found_wherever_the_file_is_cut(names: list[str], size: int) -> None:
    expected = [f"http://x/{name}" for name in names]
    assert urls(urlset(*(f"<url><loc>{escape(url)}</loc></url>" for url in expected)), size) == expected


@given(
    st.binary(max_size=200) | st.text(alphabet='<>/!&;[]-CDATAurlsetloc ="x', max_size=120).map(str.encode),
    st.integers(1, 50),
)
def test_whatever_comes_is_read_or_broken(data: bytes, size: int) -> None:
    def told(size: int) -> list[str] | str:
        try:
            return urls(data, size)
        except SitemapBroken as broken:
            return str(broken)

    assert type(told(size)) is type(told(1000))


@given(st.text(alphabet="a&;mp#x1<![CDATA]-> ", max_size=60), st.lists(st.integers(0, 7), max_size=20))
def test_ampersands_are_mended_alike_wherever_the_text_is_cut(text: str, sizes: list[int]) -> None:
    mended, at = Ampersands(), 0
    parts = []
    for size in sizes:
        parts.append(mended.feed(text.encode()[at : at + size]))
        at += size
    parts.append(mended.feed(text.encode()[at:], final=True))
    assert b"".join(parts) == Ampersands().feed(text.encode(), final=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        (" \n ", "empty"),
        ("<!doctype html><html><body>not here</body></html>", "a web page"),
        ("<svg/>", "<svg>"),
        ("<urlset><url>", "well-formed"),
        ("<urlset></url></urlset>", "well-formed"),
        ("<a>" * 10, "<a>, not a sitemap"),
        ("<urlset>" * 100, "deeper"),
        ("<urlset>\0</urlset>", "well-formed"),
    ],
)
def test_a_broken_file_says_how(text: str, words: str) -> None:
    with pytest.raises(SitemapBroken, match=words):
        read(text.encode())


def test_what_stands_before_the_break_was_found() -> None:
    with pytest.raises(SitemapBroken) as broken:
        read(b"<urlset><url><loc>http://x/1</loc></url>\n</oops>" + b" " * 50)
    assert [entry.url for entry in broken.value.found] == ["http://x/1"]
    assert broken.value.line == 2


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
ATTACKS = {
    "laughs": f'<!DOCTYPE urlset [<!ENTITY l0 "ha">{LAUGHS}]><urlset><url><loc>&l9;</loc></url></urlset>',
    "one entity": '<!DOCTYPE urlset [<!ENTITY x "http://x/">]><urlset><url><loc>&x;</loc></url></urlset>',
    "file": '<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>&x;</loc></url></urlset>',
    "parameter": '<!DOCTYPE urlset [<!ENTITY % x SYSTEM "http://127.0.0.1/evil.dtd"> %x;]><urlset/>',
}


@pytest.mark.security
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
@pytest.mark.parametrize("size", [7, 100_000])
def test_entities_are_refused_where_they_are_declared(attack: str, size: int) -> None:
    with pytest.raises(SitemapBroken, match="declares entities"):
        read(attack.encode(), size)


@pytest.mark.security
def test_an_external_subset_is_not_fetched() -> None:
    text = '<!DOCTYPE urlset SYSTEM "http://127.0.0.1:9/evil.dtd"><urlset><url><loc>http://x/</loc></url></urlset>'
    assert urls(text) == ["http://x/"]


@pytest.mark.security
@pytest.mark.parametrize(
    "start", [b"<urlset><!--", b"<urlset a='", b"<urlset><url><a " + b"b='1' c='", b"<" + b"u" * 100]
)
def test_a_token_without_end_is_not_held(start: bytes) -> None:
    file = SitemapFile()
    file.feed(start)

    def flood() -> None:
        for _ in range(3 * MAX_TOKEN // 32_768):
            file.feed(b"x" * 32_768)

    with pytest.raises(SitemapBroken):
        flood()


@pytest.mark.security
def test_text_without_end_is_not_held_and_takes_no_time() -> None:
    file, began = SitemapFile(), time.process_time()
    file.feed(b"<urlset><url><loc>")
    for _ in range(200):
        file.feed(b"x" * 32_768)
    found = file.feed(b"</loc></url></urlset>" + b" " * 20).found + file.finish().found
    assert len(found[0].url) < 3 * 8192
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024-01-02", 1704153600),
        ("2024-01", 1704067200),
        ("2024", 1704067200),
        ("2024-01-02T00:00:00Z", 1704153600),
        (" 2024-01-02T01:00:00.5+01:00\n", 1704153600.5),
        ("2024-01-02T00:00Z", 1704153600),
        ("Tue, 02 Jan 2024 00:00:00 GMT", 1704153600),
        ("yesterday", None),
        ("", None),
        ("9999-99-99", None),
    ],
)
def test_dates(text: str, seconds: float | None) -> None:
    assert moment(text) == seconds


@given(st.text(max_size=30) | st.from_regex(r"\d{1,5}(-\d\d){0,2}(T\d\d:\d\d)?.{0,6}", fullmatch=True))
def test_any_text_is_a_date_or_none(text: str) -> None:
    assert isinstance(moment(text), float | None)
