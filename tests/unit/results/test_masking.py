"""Personal data in what runs leave: found however it is cut, and nothing else is touched."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.errors import SettingsInvalid
from scrapeyard.model import FetchPolicy
from scrapeyard.results.masking import LONGEST, Masker, Masking, _Stage
from scrapeyard.settings import MaskingSettings

ALL = "email,phone,card,national_id,ip"
FOUND = {
    "ann.lee+shop@mail.example.com": "email",
    "o_b@x.io": "email",
    "ann%40example.com": "email",
    "+49 (0)30 1234-5678": "phone",
    "+82-10-1234-5678": "phone",
    "010-1234-5678": "phone",
    "(555) 123-4567": "phone",
    "4111 1111 1111 1111": "card",
    "5500-0000-0000-0004": "card",
    "378282246310005": "card",
    "123-45-6789": "national_id",
    "900101-1234567": "national_id",
    "12345678Z": "national_id",
    "X1234567L": "national_id",
    "192.168.10.254": "ip",
    "2001:db8::8a2e:370:7334": "ip",
}
LEFT = (
    "4111 1111 1111 1112",
    "1763430000000",
    "12345678A",
    "999.1.1.300",
    "12:34:56",
    "2026-11-18T02:30:00Z",
    "v1.2.3",
    "price 1,299.00 USD",
    "000-12-3456",
    "@handle",
    "sku-4111111111111111-b",
    "::",
    "a@b",
)


def masker(mask: str = ALL, **policy: Any) -> Masker:
    made = Masking(MaskingSettings(), b"k" * 32).of(FetchPolicy(mask=mask, **policy))
    assert made is not None
    return made


@pytest.mark.parametrize(("value", "kind"), FOUND.items())
def test_a_value_is_found_and_counted(value: str, kind: str) -> None:
    made = masker()
    assert made.text(f"Call <b>{value}</b>, or {value}.") == f"Call <b>[{kind}]</b>, or [{kind}]."
    assert made.found == {kind: 2}


@pytest.mark.parametrize("text", LEFT)
def test_what_only_looks_alike_stays(text: str) -> None:
    assert masker().text(f"x {text} y") == f"x {text} y"


def test_only_what_the_policy_names_is_masked() -> None:
    assert masker("email").text("o_b@x.io 192.168.1.1") == "[email] 192.168.1.1"
    settings = MaskingSettings(kinds=("ip",))
    assert Masking(settings).of(FetchPolicy(mask="none")) is None
    assert Masking(MaskingSettings()).of(FetchPolicy()) is None
    by_setting = Masking(settings).of(FetchPolicy())
    assert by_setting is not None
    assert by_setting.text("o_b@x.io 192.168.1.1") == "o_b@x.io [ip]"


def test_the_same_value_has_the_same_token_under_one_key() -> None:
    made = masker(mask_as="hash")
    one, same, other = made.text("Ann@X.io"), made.text("ann@x.io"), made.text("bob@x.io")
    assert one == same != other
    assert made.text("4111 1111 1111 1111") == made.text("4111-1111-1111-1111")
    elsewhere = Masking(MaskingSettings(), b"j" * 32).of(FetchPolicy(mask=ALL, mask_as="hash"))
    assert elsewhere is not None
    assert elsewhere.text("ann@x.io") != same


def test_json_stays_json() -> None:
    value = {"a@b.io": [1, 4111111111111111, True, None, 2.5, {"n": 'x\n"ann@b.io"'}], "n": 10**15}
    told = msgspec.json.decode(masker().json(msgspec.json.encode(value)))
    assert told == {"[email]": [1, "[card]", True, None, 2.5, {"n": 'x\n"[email]"'}], "n": 10**15}
    assert masker().json(b'{"a":  1.0}') == b'{"a":  1.0}'


PIECES = st.lists(st.sampled_from([*FOUND, *LEFT, " ", "\n<p>", "ü", "x" * 400, "@", "4" * 40]), max_size=30)


@given(PIECES, st.lists(st.integers(1, 50), min_size=1, max_size=20))
async def test_a_stream_is_masked_as_the_whole_is(parts: list[str], sizes: list[int]) -> None:
    data = " ".join(parts).encode()
    made = masker()
    whole = await made.artifact(data, "text/html; charset=utf-8")

    async def pieces() -> AsyncIterator[bytes]:
        at = number = 0
        while at < len(data):
            size = sizes[number % len(sizes)]
            yield data[at : at + size]
            at, number = at + size, number + 1

    streamed = [piece async for piece in made.stream(pieces(), "text/html")]
    assert b"".join(streamed) == whole


async def test_a_stream_holds_little_back_and_leaves_binary_alone() -> None:
    made, given_out = masker(), 0

    async def pieces() -> AsyncIterator[bytes]:
        for number in range(1, 200):
            yield b"some words " * 100
            assert given_out >= 1100 * (number - 1) - 2 * LONGEST

    async for piece in made.stream(pieces(), "text/html"):
        given_out += len(piece)
    assert given_out == 199 * 1100
    assert await masker().artifact(b"ann@x.io", "image/png") == b"ann@x.io"


def test_own_patterns_are_found_in_linear_time() -> None:
    settings = MaskingSettings(patterns=(r"order=ORD-\d{6}", "slow=(a+)+b"), kinds=("own",))
    made = Masking(settings).of(FetchPolicy())
    assert made is not None
    assert made.text("see ORD-123456 and ORD-1") == "see [order] and ORD-1"
    made.text("a" * 200_000)
    with pytest.raises(SettingsInvalid, match="no look-around"):
        Masking(MaskingSettings(patterns=("bad=(?=x)",)))


ODD = st.text(st.sampled_from("0123456789@%4.:-+() aXz/\n"), max_size=200)


@given(PIECES, ODD)
def test_the_quick_search_finds_what_the_patterns_find_everywhere(parts: list[str], odd: str) -> None:
    text = odd.join(parts) + odd
    quick, plain = masker(), masker()
    slow = _Stage(plain._pattern, plain._replaced)
    assert quick.text(text) == slow.feed(text) + slow.end()
    assert quick.found == plain.found


async def test_only_the_places_of_the_policy_are_masked() -> None:
    policy = FetchPolicy(mask="email", mask_in="results,html")
    made = Masking(MaskingSettings(), b"k" * 32).of(policy)
    assert made is not None
    assert await made.result(b'"ann@x.io"') == b'"[email]"'
    assert await made.artifact(b"ann@x.io", "text/html") == b"[email]"
    assert await made.artifact(b"ann@x.io", "text/plain") == b"ann@x.io"
    assert made.logged("ann@x.io") == "ann@x.io"
    assert made.found == {"email": 2}


async def test_the_loop_goes_on_while_a_large_result_is_masked() -> None:
    made, turns, over = masker(), 0, asyncio.Event()
    text = msgspec.json.encode(["call 010-1234-5678 or ann@x.io " * 100] * 300)

    async def turning() -> None:
        nonlocal turns
        while not over.is_set():
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(turning())
    masked = await made.result(text)
    over.set()
    await other
    assert turns > 10
    assert b"@" not in masked
    assert made.found == {"phone": 30_000, "email": 30_000}
