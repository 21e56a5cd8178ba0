"""A delivery with a time that is none is not run, and a row that has one breaks no list."""

import msgspec
import pytest

from scrapeyard.gateway.runs.documents import possible_instant
from scrapeyard.model import Delivery
from scrapeyard.queues.messages import Unreadable, decode_delivery, encode_delivery

GOOD = Delivery(run_id="run_1", scraper="a/b@1.0.0", input=msgspec.Raw(b"{}"), created_at=1.0, queued_at=2.0)


@pytest.mark.parametrize("at", [-1e300, 1e300, -1.0, 1e12])
@pytest.mark.parametrize("name", ["created_at", "queued_at"])
def test_a_delivery_from_no_time_is_unreadable(name: str, at: float) -> None:
    assert decode_delivery(encode_delivery(GOOD)) == GOOD
    with pytest.raises(Unreadable, match=name):
        decode_delivery(encode_delivery(msgspec.structs.replace(GOOD, **{name: at})))


@pytest.mark.parametrize("at", [-1e300, 1e300, float("nan"), float("inf")])
def test_a_row_from_no_time_is_shown_without_it(at: float) -> None:
    assert possible_instant(at) is None
    assert possible_instant(0.125) == "1970-01-01T00:00:00.125Z"
