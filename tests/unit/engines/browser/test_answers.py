"""What a browser says of a page, as the answer of a fetch."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from scrapeyard.engines.browser.pages import answer_of
from scrapeyard.engines.browser.port import Done
from scrapeyard.engines.fetch_metrics import FetchMetrics
from scrapeyard.telemetry.metrics import Metrics

URL = "https://shop.example/"


def told(**what: Any) -> Done:
    return Done(Raw(msgspec.json.encode({"url": URL, **what})), b"<p>Tea</p>")


@pytest.mark.parametrize("status", [0, -1, 99, 1000, 10**9, "404", "no", [], 204.5, True, None])
def test_a_status_that_is_none_does_not_count(status: object) -> None:
    assert answer_of(told(status=status), told(status=status)).status == 200
    answer = answer_of(told(status=503), told(status=status))
    assert answer.status == 503
    FetchMetrics(Metrics(), ()).brought("shop.example", answer, 0.0)


def test_a_later_document_has_its_own_status() -> None:
    assert answer_of(told(status=503), told(status=200)).status == 200
