"""What is said on the channels comes out as it went in, and nothing else does."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from scrapeyard.model import (
    Cancel,
    ExitReason,
    FetchTrace,
    LogLine,
    Outcome,
    Refresh,
    RunError,
    ScraperRef,
    Signal,
    SitesChanged,
)
from scrapeyard.queues import messages


@pytest.mark.parametrize(
    "signal", [Cancel(run_id="run_1"), Refresh(), Refresh(scraper="shop/product"), SitesChanged(sender="sites_1")]
)
def test_a_signal_comes_out_as_it_went_in(signal: Signal) -> None:
    assert messages.decode_signal(messages.encode(signal)) == signal


def test_an_outcome_comes_out_as_it_went_in() -> None:
    outcome = Outcome(
        run_id="run_1",
        attempt=3,
        exit_reason=ExitReason.FETCH_STATUS,
        scraper=ScraperRef(id="shop/product", version="1.4.2", digest="sha256:00"),
        result=Raw(b'{"b" : 1.0, "a":[ ]}'),
        error=RunError(message="한국어", site_status=404, details={"n": 1}),
        fetches=(FetchTrace(url="http://shop.example/", status=404, ms=1.5),),
        logs=(LogLine(at_ms=1.0, stream="log", text="line\n\x00", fields={"k": [1, None]}),),
        retry_after=0.0,
    )
    got = messages.decode_outcome(messages.encode(outcome))
    assert got == outcome
    assert got.result is not None
    assert bytes(got.result) == b'{"b" : 1.0, "a":[ ]}'


def test_channels_of_different_receivers_are_apart() -> None:
    names = {messages.SIGNALS, messages.replies("a"), messages.replies("b"), messages.events("a"), messages.events("b")}
    assert len(names) == 5


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"null",
        b"{}",
        b'{"type":"shutdown"}',
        b'{"type":"cancel"}',
        b'{"type":"cancel","run_id":1}',
        b'{"type":"cancel","run_id":"\xff"}',
        b'{"type":"refresh","scraper":' + b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_what_is_no_signal_is_refused(message: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        messages.decode_signal(message)


@pytest.mark.parametrize(
    "message",
    [b"", b"[]", b'{"run_id":"x"}', b'{"run_id":"x","attempt":1,"exit_reason":"odd"}', b'{"run_id":"\xff"}'],
)
def test_what_is_no_outcome_is_refused(message: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        messages.decode_outcome(message)


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(message: bytes) -> None:
    for decode in (messages.decode_signal, messages.decode_outcome):
        try:
            decode(message)
        except msgspec.MsgspecError:
            continue
