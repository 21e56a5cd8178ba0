"""Sizes, compressions and charsets."""

import asyncio
import gzip
import zlib
from collections.abc import Callable
from typing import Any

import brotli
import pytest

from scrapeyard import zstd
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.model import ExitReason
from tests.integration.http.stand import MB, failure_of, reason_of
from tests.leaks import PATIENCE
from tests.sites.site import Asked, Site, chunks, page


@pytest.mark.parametrize("route", [page(b"x" * 3 * MB), chunks(b"x" * 65536, 64)])
async def test_a_page_over_the_limit_is_not_read(
    site: Site, make_engine: Callable[..., WreqEngine], route: Any
) -> None:
    site.routes["/"] = route
    engine = make_engine(max_body_mb=1)
    assert await reason_of(engine.fetch(FetchRequest(url=site.url("/")), Caller())) is ExitReason.FETCH_TOO_LARGE
    site.routes["/good"] = page(b"good")
    assert (await engine.fetch(FetchRequest(url=site.url("/good")), Caller())).body == b"good"


async def test_a_caller_may_lower_the_limit_but_not_raise_it(
    site: Site, make_engine: Callable[..., WreqEngine]
) -> None:
    site.routes["/"] = page(b"x" * 2 * MB)
    engine = make_engine(max_body_mb=1)
    for limit in (1000, 10 * MB, -1):
        answer = engine.fetch(FetchRequest(url=site.url("/"), max_bytes=limit), Caller())
        assert await reason_of(answer) is ExitReason.FETCH_TOO_LARGE
    site.routes["/"] = page(b"x" * MB)
    assert len((await engine.fetch(FetchRequest(url=site.url("/")), Caller())).body) == MB


def _deflate(data: bytes) -> bytes:
    return zlib.compress(data)


def _bare_deflate(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


def _two_members(data: bytes) -> bytes:
    return gzip.compress(data[:10]) + gzip.compress(data[10:])


def _streamed_zstd(data: bytes) -> bytes:
    compressor = zstd.ZstdCompressor()
    return compressor.compress(data) + compressor.flush()


ENCODERS = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("gzip", _two_members),
    ("deflate", _deflate),
    ("deflate", _bare_deflate),
    ("br", brotli.compress),
    ("zstd", zstd.compress),
    ("zstd", _streamed_zstd),
    ("gzip, br", lambda data: brotli.compress(gzip.compress(data))),
    ("identity", bytes),
    ("utf-8", bytes),
]


@pytest.mark.parametrize("size", [0, 1, 1000, 700_000])
@pytest.mark.parametrize(("name", "encode"), ENCODERS)
async def test_compressed_pages(site: Site, fetch: Any, name: str, encode: Any, size: int) -> None:
    body = bytes(i * 7 % 251 for i in range(1000)) * (size // 1000) if size >= 1000 else b"x" * size
    wire = encode(body)
    site.routes["/"] = page(wire, content_encoding=name)
    answer = await fetch(site.url("/"))
    assert answer.body == body
    assert answer.bytes_received == len(wire)


@pytest.mark.parametrize(
    ("name", "encode"), [entry for entry in ENCODERS if entry[0] in ("gzip", "br", "zstd", "gzip, br")]
)
async def test_a_compression_bomb_stops_at_the_limit(
    site: Site, make_engine: Callable[..., WreqEngine], name: str, encode: Any
) -> None:
    bomb = encode(b"\0" * 8 * MB)
    assert len(bomb) < MB // 32
    site.routes["/"] = page(bomb, content_encoding=name)
    answer = make_engine(max_body_mb=1).fetch(FetchRequest(url=site.url("/")), Caller())
    assert await reason_of(answer) is ExitReason.FETCH_TOO_LARGE


@pytest.mark.parametrize("length", [True, False], ids=["length", "chunks"])
@pytest.mark.parametrize(
    ("name", "encode"), [entry for entry in ENCODERS if entry[0] in ("gzip", "br", "zstd", "gzip, br")]
)
async def test_a_bomb_that_never_ends_is_not_read_to_its_end(
    site: Site, make_engine: Any, name: str, encode: Callable[[bytes], bytes], length: bool
) -> None:
    bomb = encode(b"\0" * 8 * MB)
    framing = f"content-length: {MB - 1}" if length else "transfer-encoding: chunked"

    async def drip(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-encoding: {name}\r\n{framing}\r\n\r\n".encode())
        writer.write(bomb if length else b"%x\r\n%b\r\n" % (len(bomb), bomb))
        await asked.gone()

    site.routes["/"] = drip
    engine = make_engine(max_body_mb=1)
    failure = await failure_of(engine.fetch(FetchRequest(url=site.url("/")), Caller()))
    assert failure.reason is ExitReason.FETCH_TOO_LARGE


@pytest.mark.parametrize("member", [gzip.compress(b"", mtime=0), zstd.compress(b"")], ids=["gzip", "zstd"])
async def test_a_body_of_countless_empty_parts_is_refused(site: Site, fetch: Any, member: bytes) -> None:
    name = "gzip" if member.startswith(b"\x1f\x8b") else "zstd"
    site.routes["/"] = page(member * 20_000, content_encoding=name)
    assert await reason_of(fetch(site.url("/"))) is ExitReason.FETCH_DECODE


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/html; charset=utf-8", "é".encode(), "é"),
        ("text/html; charset=ISO-8859-1", "“é”".encode("cp1252"), "“é”"),
        ('text/html; charset="windows-1251"', "Привет".encode("cp1251"), "Привет"),
        ("text/html", b'<meta charset="euc-kr">' + "가격".encode("cp949"), '<meta charset="euc-kr">가격'),
        ("text/html", b"<meta http-equiv=x content='text/html; charset=shift_jis'>" + "値段".encode("cp932"), None),
        ("text/html; charset=latin1", b"\xef\xbb\xbf" + "é".encode(), "é"),
        ("text/html", "é".encode("utf-16"), "é"),
        ("text/html", "é".encode(), "é"),
        ("text/html", b"caf\xe9", "café"),
        ("text/html; charset=zlib", "é".encode(), "é"),
        ("text/html; charset=nonsense", b"<meta charset=utf-16>" + "é".encode(), None),
        (
            "text/xml",
            b"<?xml version='1.0' encoding='euc-kr'?>" + "값".encode("cp949"),
            "<?xml version='1.0' encoding='euc-kr'?>값",
        ),
        ("application/xml; charset=utf-8", b"<?xml version='1.0' encoding='euc-kr'?>" + "é".encode(), None),
        ("text/html", b"<p><?xml encoding='euc-kr'?>" + "é".encode(), None),
        ("text/html; charset=gb2312", "价格".encode("gb18030"), "价格"),
        ("", b"", ""),
    ],
)
async def test_charsets(site: Site, fetch: Any, content_type: str, body: bytes, text: str | None) -> None:
    site.routes["/"] = page(body, content_type=content_type)
    answer = await fetch(site.url("/"))
    decoded = answer.body.decode(answer.encoding)
    assert decoded.endswith(("値段", "é")) if text is None else decoded == text


async def test_bodies_in_flight_are_bounded_together(site: Site, make_engine: Callable[..., WreqEngine]) -> None:
    """Fifty pages that never end, and room for two of them at a time."""
    site.routes["/"] = chunks(b"x" * 65_536, 10_000)
    engine = make_engine(max_body_mb=4, bodies_mb=16, concurrency=50, total_seconds=PATIENCE, read_seconds=PATIENCE)
    most, over = 0, asyncio.Event()

    async def watch() -> None:
        nonlocal most
        while not over.is_set():
            most = max(most, engine._memory.used)
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    fetches = [reason_of(engine.fetch(FetchRequest(url=site.url("/")), Caller())) for _ in range(50)]
    async with asyncio.timeout(PATIENCE):
        reasons = await asyncio.gather(*fetches)
    over.set()
    await watching
    assert set(reasons) == {ExitReason.FETCH_TOO_LARGE}
    assert 0 < most <= 16 * MB
    assert engine._memory.used == 0


async def test_of_several_content_types_the_last_counts(site: Site, fetch: Any) -> None:
    async def answer(_asked: Any, writer: asyncio.StreamWriter) -> None:
        types = b"content-type: text/plain; charset=utf-8\r\ncontent-type: text/html; charset=windows-1251\r\n"
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n" + types + b"\r\n\xe4\xe0!")

    site.routes["/"] = answer
    assert (await fetch(site.url("/"))).encoding == "cp1251"
