"""Which content type counts, by the Fetch standard's own examples."""

import pytest

from scrapeyard.engines.http.charset import extract_content_type


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], ""),
        (["text/html; charset=koi8-r"], "text/html; charset=koi8-r"),
        (["text/plain;charset=gbk, text/html"], "text/html"),
        (["text/html;charset=gbk;a=b, text/html;x=y"], "text/html;x=y; charset=gbk"),
        (["text/html;charset=gbk", "x/x", "text/html;x=y"], "text/html;x=y"),
        (["text/html", "cannot-parse"], "text/html"),
        (["text/html", "*/*"], "text/html"),
        (["text/html", ""], "text/html"),
        (["", "text/html; charset=utf-8"], "text/html; charset=utf-8"),
        (["nonsense"], "nonsense"),
        (['text/html;x=",text/plain"'], 'text/html;x=",text/plain"'),
    ],
)
def test_the_last_type_that_is_one_counts(values: list[str], expected: str) -> None:
    assert extract_content_type(values) == expected
