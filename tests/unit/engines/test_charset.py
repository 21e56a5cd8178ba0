"""The charset that a page is read in."""

import tracemalloc

import pytest

from scrapeyard.engines.http.charset import extract_content_type, find_charset

HTML = "text/html"
META = b"<meta charset=windows-1251>"


@pytest.mark.parametrize(
    ("label", "text"),
    [
        *((label, "Γειά") for label in ("iso8859-7", "csisolatingreek", "sun_eu_greek", "elot_928", "x-cp1253")),
        *((label, "Привет") for label in ("koi8_r", "cskoi8r", "csisolatincyrillic", "x-cp1251", "iso-ir-144", "866")),
        *((label, "שלום") for label in ("logical", "visual", "csisolatinhebrew", "iso-ir-138", "x-cp1255")),
        *((label, "café") for label in ("ansi_x3.4-1968", "csisolatin1", "iso_8859-1:1987", "iso-ir-100", "cp819")),
        ("iso88599", "şeker ğ"),
        ("x-cp1256", "سلام"),
        ("ksc_5601", "안녕"),
        ("x-unicode20utf8", "안녕"),
    ],
)
def test_labels_of_the_standard(label: str, text: str) -> None:
    codec = find_charset(f"text/html; charset={label.upper()}", b"")
    assert text.encode(codec).decode(codec) == text
    assert find_charset("", b'<meta charset="%s">' % label.encode()) == codec


def test_a_declaration_far_into_the_head_counts() -> None:
    style = b"<style>p { color: red }</style>" * 400
    assert find_charset(HTML, b"<html><head>" + style + META + b"</head>\xff") == "cp1251"
    assert find_charset(HTML, b"<html><head>" + b" " * 70_000 + META + b"</head>\xff") == "cp1252"


@pytest.mark.parametrize(
    "around",
    [b"<!-- %s -->", b"<script>x = '%s'</script>", b"<STYLE>%s</STYLE>", b"</head><body>" + b" " * 1024 + b"%s"],
)
def test_what_is_no_declaration_does_not_count(around: bytes) -> None:
    assert find_charset(HTML, b"<html><head>" + around % META + b"\xff") == "cp1252"


@pytest.mark.parametrize(
    ("headers", "codec"),
    [
        (["text/html; charset=koi8-r", "text/html; charset=utf-8"], "utf-8"),
        (["text/html; charset=koi8-r", "text/html"], "koi8-r"),
        (["text/html; charset=koi8-r", "text/plain"], "cp1252"),
        (["text/html; charset=koi8-r, text/html; charset=utf-8"], "utf-8"),
        (["text/html; charset=koi8-r", "nonsense"], "koi8-r"),
        ([], "cp1252"),
    ],
)
def test_of_several_headers_the_last_counts(headers: list[str], codec: str) -> None:
    assert find_charset(extract_content_type(headers), b"\xff") == codec


def test_long_content_types_of_a_site_are_not_remembered() -> None:
    """A header may have hundreds of kilobytes, and each answer another one."""
    tracemalloc.start()
    try:
        for number in range(300):
            assert find_charset(f"text/html; n={number}; x={'x' * 100_000}; charset=koi8-r", b"") == "koi8-r"
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()
