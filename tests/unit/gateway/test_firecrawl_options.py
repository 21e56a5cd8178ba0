"""What a Firecrawl call gives, as the platform takes it."""

import time

import pytest
from pydantic import TypeAdapter, ValidationError

from scrapeyard.gateway.doors.firecrawl.options import PageUrl

ADDRESS = TypeAdapter(PageUrl)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("example.com", "http://example.com"),
        (" www.example.com:8080/a?b#c ", "http://www.example.com:8080/a?b#c"),
        ("localhost:3002/x", "http://localhost:3002/x"),
        ("example.com.", "http://example.com."),
        ("https://example.com/a.b", "https://example.com/a.b"),
    ],
)
def test_an_address_needs_no_scheme(given: str, taken: str) -> None:
    assert ADDRESS.validate_python(given) == taken


@pytest.mark.security
@pytest.mark.parametrize(
    "given", ["a." * 8000 + "@", "." * 16_000 + "@", "a.b:" + "1" * 16_000 + "x", "a.b/" + "x " * 8000]
)
def test_no_address_takes_for_ever(given: str) -> None:
    began = time.process_time()
    with pytest.raises(ValidationError):
        ADDRESS.validate_python(given)
    assert time.process_time() - began < 1
