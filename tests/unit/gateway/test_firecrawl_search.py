"""What callers of a search are told when it fails."""

import msgspec
import pytest

from scrapeyard.gateway.doors.door import ApiRefused
from scrapeyard.gateway.doors.firecrawl.errors import refusal
from scrapeyard.gateway.doors.firecrawl.search import of_the_engine

WORDS = "Firecrawl at engine.example:443 does not answer"


@pytest.mark.parametrize(
    ("code", "ours", "status", "told"),
    [
        ("fetch_connect", 502, 500, {"code": "UNKNOWN_ERROR", "error": WORDS}),
        ("fetch_not_allowed", 502, 500, {"code": "UNKNOWN_ERROR", "error": WORDS}),
        ("fetch_timeout", 504, 408, {"code": "SCRAPE_TIMEOUT", "error": WORDS}),
        ("fetch_budget", 502, 402, {"code": "PAYMENT_REQUIRED", "error": WORDS}),
        ("forbidden", 403, 403, {"code": "FORBIDDEN", "error": f"{WORDS}. Ask the site"}),
    ],
)
def test_the_remedies_for_sites_are_not_told_of_the_engine(
    code: str, ours: int, status: int, told: dict[str, str]
) -> None:
    refused = ApiRefused(ours, {"code": code, "detail": WORDS, "remedy": "Ask the site"})
    answer = refusal(of_the_engine(refused))
    assert answer.status_code == status
    assert msgspec.json.decode(bytes(answer.body)) == {"success": False, **told}
