"""Forms with one file, ranges of downloads, and policies laid over one another: whatever comes in whatever pieces."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.errors import BadRequest, Refusal
from scrapeyard.gateway.http.downloads import takes_gzip, wanted_range
from scrapeyard.gateway.jobs.policies import JobPolicyCall, policy_of, policy_over
from scrapeyard.gateway.jobs.uploads import MAX_HEAD, FormFile, boundary_of
from scrapeyard.model import Scraper, ScraperRef
from scrapeyard.model.scraper import Defaults

BOUNDARY = b"--xY7"
HEAD = b'Content-Disposition: form-data; name="file"; filename="a.csv"\r\nContent-Type: text/csv'


def form(file: bytes, head: bytes = HEAD, end: bytes = b"--\r\n") -> bytes:
    return BOUNDARY + b"\r\n" + head + b"\r\n\r\n" + file + b"\r\n" + BOUNDARY + end


async def pieces(body: bytes, cuts: Sequence[int]) -> AsyncIterator[bytes]:
    for first, last in pairwise([0, *sorted(cuts), len(body)]):
        yield body[first:last]


def read(body: bytes, cuts: Sequence[int] = ()) -> tuple[str, bytes]:
    async def work() -> tuple[str, bytes]:
        opened = FormFile(pieces(body, cuts), BOUNDARY)
        await opened.open()
        return opened.name, b"".join([chunk async for chunk in opened.chunks()])

    return asyncio.run(work())


NASTY = st.lists(st.sampled_from([b"\r", b"\n", b"-", b"--", BOUNDARY, b"\r\n--xY"])).map(b"".join)


@given(file=st.one_of(st.binary(max_size=300), NASTY), data=st.data())
def test_a_file_comes_out_as_it_went_in(file: bytes, data: st.DataObject) -> None:
    if b"\r\n" + BOUNDARY in b"\r\n" + file:
        return  # the sender chooses a boundary that the file does not have
    body = form(file)
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=20))
    assert read(body, cuts) == ("a.csv", file)


@given(body=st.binary(max_size=400), data=st.data())
def test_a_form_that_is_none_is_refused_in_words(body: bytes, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from([b"", BOUNDARY + b"\r\n", BOUNDARY + b"\r\n" + HEAD + b"\r\n\r\n"]))
    with pytest.raises(BadRequest):
        read(start + body.replace(BOUNDARY, b""))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "not one that browsers send"),
        (b"x" * (MAX_HEAD + 1), "not one that browsers send"),
        (form(b"x", head=b'Content-Disposition: form-data; name="other"'), "not called `file`"),
        (form(b"x", head=b"Content-Type: text/csv"), "not called `file`"),
        (b"before" + form(b"x"), "does not begin"),
        (form(b"x", end=b"\r\n" + HEAD + b"\r\n\r\ny\r\n" + BOUNDARY + b"--\r\n"), "more than one part"),
        (form(b"x")[:-8], "breaks off"),
    ],
)
def test_a_form_that_cannot_be_taken_says_what_to_send(body: bytes, told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        read(body)


@pytest.mark.parametrize(
    "given", ["multipart/form-data", 'multipart/form-data; boundary=""', "multipart/form-data; boundary=ü"]
)
def test_a_boundary_must_be_one(given: str) -> None:
    with pytest.raises(BadRequest):
        boundary_of(given)
    assert boundary_of('multipart/form-data; boundary="a b"') == b"--a b"


RANGES = st.one_of(st.none(), st.text(max_size=30), st.from_regex(r"bytes=[0-9]{0,3}-[0-9]{0,3}", fullmatch=True))


@given(header=RANGES, size=st.integers(0, 300))
def test_a_range_lies_within_the_file(header: str | None, size: int) -> None:
    with suppress(Refusal):
        found = wanted_range(header, size)
        assert found is None or 0 <= found[0] < found[1] <= size


@pytest.mark.parametrize(
    ("accepts", "taken"),
    [("", False), ("br, gzip;q=0.5", True), ("gzip;q=0", False), ("*", False), ("GZIP", True), ("gzip; q=0.0", False)],
)
def test_gzip_is_sent_to_those_who_take_it(accepts: str, taken: bool) -> None:
    assert takes_gzip(accepts) is taken


def scraper(**defaults: object) -> Scraper:
    return Scraper(ref=ScraperRef(id="a/b", version="1.0.0"), folder=None, policy=Defaults(**defaults))  # type: ignore[arg-type]


def test_a_policy_is_the_calls_then_the_scrapers_then_ours() -> None:
    theirs = scraper(retries=7, timeout_seconds=9.0)
    assert policy_of(JobPolicyCall(), theirs).max_attempts == 8
    assert policy_of(JobPolicyCall(retries=0), theirs).max_attempts == 1
    assert policy_of(JobPolicyCall(), scraper()).max_attempts == 3
    assert policy_of(JobPolicyCall(), theirs).timeout_seconds == 9.0
    assert policy_of(JobPolicyCall(timeout_seconds=4.0), theirs).timeout_seconds == 4.0


def test_changes_of_a_policy_leave_the_rest_as_it_was() -> None:
    said = {"rate": 5.0, "retries": 4, "proxy": "home", "country": "us", "item_budget": {"requests": 3}}
    before = policy_of(JobPolicyCall.model_validate(said), scraper())
    after = policy_over(JobPolicyCall.model_validate({"country": "de", "budget": {"megabytes": 2.5}}), before)
    assert (after.rate, after.max_attempts, after.budget.megabytes) == (5.0, 5, 2.5)
    assert (after.fetching.proxy, after.fetching.country, after.fetching.budget.requests) == ("home", "de", 3)
    assert policy_over(JobPolicyCall(), before) == before
