"""Cassettes: what is kept, what is hidden, what is found again, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.authoring import cassette
from scrapeyard.authoring.cassette import CassetteEntry, RecordedPage, read_cassette, write_cassette
from scrapeyard.authoring.recording import RecordingEngine
from scrapeyard.authoring.redaction import Veil, clean_url, kept_headers, without_secrets
from scrapeyard.authoring.testing import MAX_UNKNOWN, ReplayEngine
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import BadRequest, FetchFailed, ScraperInvalid
from scrapeyard.model import ExitReason, Scraper, ScraperRef

SITE = "http://shop.example"
SCRAPER = Scraper(ref=ScraperRef(id="a/b", version="1.0.0"), folder=None, allowed_hosts=("shop.example",))
CALLER = Caller(scraper=SCRAPER)


class Web:
    """An engine with answers of its own: any path is a page, `/dead` is none."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def fetch(self, request: FetchRequest, caller: Caller) -> FetchResponse:
        if request.url.endswith("/dead"):
            raise FetchFailed(ExitReason.FETCH_TIMEOUT, "too slow", site_status=None)
        return FetchResponse(
            url=request.url.replace("/from", "/to"),
            status=200,
            headers=(("Content-Type", "text/html"), ("Set-Cookie", "sid=abc; Path=/"), ("Server", "x"), ("Date", "y")),
            body=b"<p>\xe4</p>",
            encoding="cp1252",
            elapsed_ms=7.0,
            redirects=(request.url,) if "/from" in request.url else (),
        )


def get(path: str = "/", **more: Any) -> FetchRequest:
    return FetchRequest(url=SITE + path, **more)


async def recorded(*requests: FetchRequest, secrets: dict[str, str] | None = None) -> tuple[RecordedPage, ...]:
    engine = RecordingEngine(Web(), Veil(secrets or {}))
    for request in requests:
        try:
            await engine.fetch(request, CALLER)
        except FetchFailed:
            continue
    return engine.pages()


async def test_what_was_fetched_comes_back_from_the_files(tmp_path: Path) -> None:
    requests = [get("/p?x=1"), get("/dead"), get("/from"), get("/p?x=1"), get("/", method="POST", body=b"q")]
    write_cassette(tmp_path, await recorded(*requests))
    engine = ReplayEngine(read_cassette(tmp_path))
    page = await engine.fetch(requests[0], CALLER)
    assert (page.status, page.body, page.encoding, page.elapsed_ms) == (200, b"<p>\xe4</p>", "cp1252", 0.0)
    with pytest.raises(FetchFailed, match="too slow") as failure:
        await engine.fetch(requests[1], CALLER)
    assert failure.value.reason is ExitReason.FETCH_TIMEOUT
    moved = await engine.fetch(requests[2], CALLER)
    assert (moved.url, moved.redirects) == (f"{SITE}/to", (f"{SITE}/from",))
    assert str(engine.unused()[0]) == f"GET {SITE}/p?x=1"
    await engine.fetch(requests[3], CALLER)
    await engine.fetch(requests[4], CALLER)
    assert (engine.unused(), engine.unknown) == ((), [])
    assert sorted(path.name for path in (tmp_path / "pages").iterdir()) == [
        "001-p-x-1.html",
        "003-from.html",
        "004-p-x-1.html",
        "005-index.html",
    ]


async def test_the_same_pages_make_the_same_files(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        write_cassette(tmp_path / name, await recorded(get("/a"), get("/b")))
    assert (tmp_path / "one/cassette.json").read_bytes() == (tmp_path / "other/cassette.json").read_bytes()


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (get("/product/12"), f"GET {SITE}/product/12 is not on the cassette; nearest: GET {SITE}/product/1"),
        (get("/product/1", method="POST"), "is not on the cassette; nearest: GET"),
        (get("/product/1", method="POST", body=b"x"), "with body 2d711642b726… is not on the cassette"),
        (get("/product/1", follow_redirects=False), "(redirects not followed) is not on the cassette"),
    ],
)
async def test_an_unknown_request_names_itself_and_the_nearest(request_: FetchRequest, said: str) -> None:
    engine = ReplayEngine(await recorded(get("/product/1"), get("/category/toys")))
    with pytest.raises(FetchFailed) as failure:
        await engine.fetch(request_, CALLER)
    assert failure.value.reason is ExitReason.FETCH_NOT_ALLOWED
    assert said in failure.value.message
    assert engine.unknown == [failure.value.message]


async def test_a_page_is_given_as_often_as_it_was_recorded() -> None:
    engine = ReplayEngine(await recorded(get("/a")))
    await engine.fetch(get("/a"), CALLER)
    with pytest.raises(FetchFailed, match="more often than the 1 time"):
        await engine.fetch(get("/a"), CALLER)


async def test_a_script_in_a_loop_does_not_fill_the_report() -> None:
    engine = ReplayEngine(())
    for number in range(3 * MAX_UNKNOWN):
        with pytest.raises(FetchFailed, match="which is empty"):
            await engine.fetch(get(f"/{number}"), CALLER)
    assert len(engine.unknown) == MAX_UNKNOWN


@pytest.mark.parametrize("url", ["http://other.example/", "ftp://shop.example/", "http://shop.example@evil.example/"])
async def test_what_the_engine_refuses_is_refused_alike_and_not_recorded(url: str) -> None:
    recording, replay = RecordingEngine(Web(), Veil({})), ReplayEngine(())
    reasons = []
    for engine in (recording, replay):
        with pytest.raises(FetchFailed) as failure:
            await engine.fetch(FetchRequest(url=url), CALLER)
        reasons.append(failure.value.reason)
    assert reasons[0] is reasons[1]
    assert (recording.pages(), replay.unknown) == ((), [])


async def test_a_page_larger_than_the_script_takes_fails_in_replay_too() -> None:
    engine = ReplayEngine(await recorded(get("/a")))
    with pytest.raises(FetchFailed) as failure:
        await engine.fetch(get("/a", max_bytes=3), CALLER)
    assert failure.value.reason is ExitReason.FETCH_TOO_LARGE


async def test_secrets_by_name_are_hidden_and_still_found() -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    login = get("/login?token=abc&x=1", method="POST", headers=form, body=b"user=me&password=hunter2")
    (page,) = await recorded(login)
    assert page.entry.url == f"{SITE}/login?token=redacted&x=1"
    assert ("set-cookie", "sid=redacted") in page.entry.headers
    assert not {"server", "date"} & {name for name, _ in page.entry.headers}
    again = get("/login?token=other&x=1", method="POST", headers=form, body=b"user=me&password=another")
    assert (await ReplayEngine((page,)).fetch(again, CALLER)).status == 200
    changed = get("/login?token=other&x=1", method="POST", headers=form, body=b"user=you&password=another")
    with pytest.raises(FetchFailed):
        await ReplayEngine((page,)).fetch(changed, CALLER)


async def test_the_scrapers_own_secrets_become_placeholders_wherever_they_stand() -> None:
    (page,) = await recorded(get("/k%2Fe%3Dy/p?q=k%2Fe%3Dy"), secrets={"shop": "k/e=y"})
    assert page.entry.url == f"{SITE}/secret-shop/p?q=secret-shop"
    config = without_secrets({"key": {"secret": "shop"}, "deep": [{"in": {"secret": "shop"}}], "secret": 1})
    assert config == {"key": "secret-shop", "deep": [{"in": "secret-shop"}], "secret": 1}


def test_urls_without_secrets_stay_as_they_are() -> None:
    for url in (f"{SITE}/a?b=%20&c&&author=x", f"{SITE}/", f"{SITE}/?page=2&passenger=1"):
        assert clean_url(url) == url


def test_headers_are_a_useful_few() -> None:
    kept = kept_headers([("ETag", '"1"'), ("X-Total-Count", "9"), ("Location", "/a?token=b"), ("X-Auth-Token", "c")])
    assert kept == (("etag", '"1"'), ("x-total-count", "9"), ("location", "/a?token=redacted"))


async def test_more_than_a_cassette_holds_is_refused_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapeyard.authoring.recording.MAX_BYTES", 20)
    engine = RecordingEngine(Web(), Veil({}))
    for _ in range(3):
        await engine.fetch(get("/a"), CALLER)
    with pytest.raises(BadRequest, match="a cassette holds at most"):
        engine.pages()


GOOD = {"method": "GET", "url": f"{SITE}/", "status": 200, "file": "001-index.html"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ('{"format": ' + "[" * 100_000, "not a cassette"),
        ("[]", "not a cassette"),
        ({"format": 2, "pages": []}, "format"),
        ({"format": 1, "pages": [], "more": 1}, "more"),
        ({"format": 1, "pages": [GOOD | {"status": "200"}]}, "$.pages[0].status"),
        ({"format": 1, "pages": [GOOD | {"status": 99}]}, "pages[0].status"),
        ({"format": 1, "pages": [GOOD | {"error": "fetch_dns"}]}, "one of them"),
        ({"format": 1, "pages": [{"method": "GET", "url": SITE}]}, "one of them"),
        ({"format": 1, "pages": [{"method": "GET", "url": SITE, "error": "crashed"}]}, "fetch_"),
        ({"format": 1, "pages": [{"method": "GET", "url": SITE, "error": "no such"}]}, "error"),
        ({"format": 1, "pages": [GOOD | {"encoding": "zlib"}]}, "encoding"),
        ({"format": 1, "pages": [GOOD | {"encoding": "x\0"}]}, "encoding"),
        ({"format": 1, "pages": [GOOD | {"file": "../secret"}]}, "pages[0].file"),
        ({"format": 1, "pages": [GOOD | {"file": "/etc/passwd"}]}, "pages[0].file"),
        ({"format": 1, "pages": [GOOD | {"file": ".."}]}, "pages[0].file"),
        ({"format": 1, "pages": [GOOD | {"file": "gone.html"}]}, "gone.html: cannot be read"),
        ({"format": 1, "pages": [GOOD | {"file": "link.html"}]}, "link.html: cannot be read"),
        ({"format": 1, "pages": [GOOD | {"file": "folder"}]}, "not a regular file"),
        ({"format": 1, "pages": [GOOD | {"file": "large.bin"}]}, "larger than"),
        ({"format": 1, "pages": [GOOD] * 1001}, "more than 1000 pages"),
    ],
)
def test_a_bad_cassette_is_refused_in_words(
    text: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cassette, "MAX_BODY_BYTES", 1000)
    (tmp_path / "secret").write_text("hidden")
    case = tmp_path / "case"
    (case / "pages" / "folder").mkdir(parents=True)
    (case / "pages" / "001-index.html").write_text("x")
    (case / "pages" / "large.bin").write_bytes(bytes(1001))
    (case / "pages" / "link.html").symlink_to(tmp_path / "secret")
    (case / "cassette.json").write_text(text if isinstance(text, str) else json.dumps(text))
    with pytest.raises(ScraperInvalid) as refusal:
        read_cassette(case)
    assert said in refusal.value.message
    assert "hidden" not in refusal.value.message


def test_pages_behind_a_link_and_a_cassette_that_is_a_pipe_are_refused(tmp_path: Path) -> None:
    import os

    case = tmp_path / "case"
    case.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "001-index.html").write_text("x")
    (case / "pages").symlink_to(tmp_path / "elsewhere")
    (case / "cassette.json").write_text(json.dumps({"format": 1, "pages": [GOOD]}))
    with pytest.raises(ScraperInvalid, match="a link"):
        read_cassette(case)
    (case / "cassette.json").unlink()
    os.mkfifo(case / "cassette.json")
    with pytest.raises(ScraperInvalid, match="not a regular file"):
        read_cassette(case)


def test_all_bodies_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cassette, "MAX_BYTES", 1500)
    entry = CassetteEntry(method="GET", url=SITE, status=200)
    write_cassette(tmp_path, tuple(RecordedPage(entry=entry, body=bytes(1000)) for _ in range(2)))
    with pytest.raises(ScraperInvalid, match="larger than 500 bytes"):
        read_cassette(tmp_path)
