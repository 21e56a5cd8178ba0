"""Commands of jobs against servers that misbehave, and options that do not fit."""

import hashlib
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from scrapeyard.cli.common.client import RefusedCall, Server, ServerUnreachable
from scrapeyard.cli.common.output import span
from scrapeyard.cli.common.progress import JobBar, facts
from scrapeyard.cli.jobs.calls import JobTerms, Origin, as_query, export_of
from scrapeyard.cli.jobs.documents import is_bad, job_row, summary
from scrapeyard.cli.jobs.transfers import ATTEMPTS, DownloadFailed, fetch_into
from scrapeyard.cli.jobs.watch import AWAY_SECONDS, JobWatch
from scrapeyard.cli.operations.schedule import seconds
from scrapeyard.errors import BadRequest
from tests.services.raw_answers import STREAM, answer, raw_answers

JOB = "job_" + "0" * 32
COUNTS = {"total": 4, "pending": 1, "queued": 0, "in_progress": 0, "success": 2, "error": 1, "cancelled": 0}


def progress(status: str = "running", **more: Any) -> dict[str, Any]:
    shown = {"status": status, "counts": COUNTS, "reading": False, "items_per_second": 2.0, "eta_seconds": 90.0}
    return {**shown, "breaker": "closed", **more}


def document(status: str) -> bytes:
    return answer("200 OK", json.dumps(progress(status, id=JOB, error=None, finished_at=None)).encode())


def event(name: str, data: Any, number: int | None = None) -> bytes:
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n".encode()


FAILED = {"key": "a", "exit_reason": "fetch_timeout", "message": "too slow", "attempt": 3}


class Clock:
    """Time that passes only in pauses."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, pause: float) -> None:
        self.now += pause


def watch(url: str, clock: Clock) -> JobWatch:
    return JobWatch(Server(url), JOB, JobBar("job", clock=clock), clock=clock, sleep=clock.sleep)


def test_a_stream_that_breaks_off_is_gone_on_with_after_its_last_event(capfd: pytest.CaptureFixture[str]) -> None:
    first = STREAM + event("progress", progress()) + event("item_failed", FAILED, 7) + b": still here\n\nev"
    second = STREAM + event("status", {"status": "paused", "reason": "budget"}, 8) + event("end", {"id": JOB})
    with raw_answers(first, document("running"), second, document("completed")) as server:
        ended = watch(server.url, Clock()).until_end()
    assert ended["status"] == "completed"
    assert [headers.get("Last-Event-Id") for _, headers in server.asked] == ["0", None, "7", None]
    told = capfd.readouterr().err
    assert told.count("a failed: fetch_timeout: too slow") == 1
    assert "the job is paused: budget" in told


def test_an_open_breaker_is_told_with_until_when_and_what_to_do(capfd: pytest.CaptureFixture[str]) -> None:
    opened = {"state": "open", "reason": "20 in a row", "trips": 1, "until": "2026-01-31T09:30:00.125Z"}
    stream = STREAM + event("breaker", opened, 7) + event("end", {})
    with raw_answers(stream, document("completed")) as server:
        watch(server.url, Clock()).until_end()
    told = capfd.readouterr().err
    assert all(word in told for word in ("20 in a row", "2026-01-31T09:30:00.125Z", "jobs resume"))


def test_without_a_stream_the_job_is_looked_up() -> None:
    busy = answer("429 Busy", b'{"detail": "too many streams", "code": "too_many_waiting"}')
    with raw_answers(busy, document("running"), document("running"), document("cancelled")) as server:
        assert watch(server.url, Clock()).until_end()["status"] == "cancelled"
    assert server.paths == [f"GET /api/jobs/{JOB}/stream"] + [f"GET /api/jobs/{JOB}"] * 3


def test_a_server_that_comes_back_is_watched_on(capfd: pytest.CaptureFixture[str]) -> None:
    with raw_answers(b"", b"", b"", document("running"), STREAM + event("end", {}), document("completed")) as server:
        assert watch(server.url, Clock()).until_end()["status"] == "completed"
    assert server.paths[-2:] == [f"GET /api/jobs/{JOB}/stream", f"GET /api/jobs/{JOB}"]
    told = capfd.readouterr().err
    assert told.count("does not answer") == told.count("is back") == 1


def test_a_server_that_stays_away_is_given_up_with_the_way_back() -> None:
    clock = Clock()
    with pytest.raises(ServerUnreachable, match=f"scrapeyard jobs watch {JOB}"):
        watch("http://127.0.0.1:1", clock).until_end()
    assert AWAY_SECONDS < clock.now < 2 * AWAY_SECONDS


def test_a_job_that_is_gone_is_told_at_once() -> None:
    gone = answer("404 No", b'{"detail": "no job", "code": "not_found"}')
    with raw_answers(gone, gone) as server, pytest.raises(RefusedCall, match="no job"):
        watch(server.url, Clock()).until_end()


def made(data: bytes) -> dict[str, Any]:
    return {"id": "export_1", "filename": "x.csv", "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def test_a_download_goes_on_where_it_broke() -> None:
    data, clock, into = bytes(range(250)) * 40, Clock(), io.BytesIO()
    cut = answer("200 OK", data)[: -len(data) + 6000]
    rest = answer("206 Partial Content", data[6000:])
    with raw_answers(cut, rest) as server:
        fetch_into(Server(server.url), made(data), into, sleep=clock.sleep)
    assert into.getvalue() == data
    assert [headers.get("Range") for _, headers in server.asked] == [None, "bytes=6000-"]
    assert server.asked[1][1]["If-Range"] == f'"{hashlib.sha256(data).hexdigest()}"'


def test_a_file_that_is_another_now_is_fetched_from_its_start() -> None:
    data, into = b"new" * 1000, io.BytesIO()
    cut = answer("200 OK", b"old" * 1000)[:-1000]
    with raw_answers(cut, answer("200 OK", data)) as server:
        fetch_into(Server(server.url), made(data), into, sleep=Clock().sleep)
    assert into.getvalue() == data


def test_what_is_not_what_was_made_is_refused() -> None:
    with raw_answers(answer("200 OK", b"other")) as server, pytest.raises(DownloadFailed, match="SHA-256"):
        fetch_into(Server(server.url), made(b"mine!"), io.BytesIO(), sleep=Clock().sleep)


def test_a_download_is_given_up_in_the_end() -> None:
    with raw_answers(*[b""] * ATTEMPTS) as server, pytest.raises(ServerUnreachable):
        fetch_into(Server(server.url), made(b"x"), io.BytesIO(), sleep=Clock().sleep)
    assert len(server.asked) == ATTEMPTS


def test_why_an_upload_was_refused_is_heard_though_all_of_it_was_not_sent() -> None:
    said = b'{"title": "Rows", "detail": "x", "code": "bad_rows", "rows": [{"line": 3, "reason": "no url"}]}'
    pieces = (b"x" * 65536 for _ in range(1000))
    with raw_answers(answer("400 Bad Request", said)) as server, pytest.raises(RefusedCall) as refused:
        Server(server.url).upload("/api/jobs", pieces, 65536 * 1000, {"Content-Type": "text/csv"}, name="a b")
    assert refused.value.message == "Rows\n  line 3: no url\nCorrect them, or give --bad-rows skip to leave them out."
    (asked,) = server.asked
    assert (asked[0], asked[1]["Content-Length"]) == ("POST /api/jobs?name=a+b", "65536000")


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (Origin(), "one source"),
        (Origin(words=["a.csv"], sitemap="https://x.example/"), "one source"),
        (Origin(urls=True), "one source"),
        (Origin(urls=True, items_url="https://x.example/"), "--urls needs addresses"),
        (Origin(words=["a.csv", "b.csv"]), "one file"),
        (Origin(words=["https://x.example/"]), "--sitemap"),
        (Origin(words=["a.csv"], depth=0), "--depth goes with --start-url"),
        (Origin(words=["a.csv"], limit=3), "--limit goes with"),
        (
            Origin(start_urls=["https://x.example/"], modified_since="2026-01-01"),
            "--modified-since goes with --sitemap",
        ),
    ],
)
def test_sources_that_do_not_fit_are_told(origin: Origin, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        origin.check()


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (Origin(), "give the items"),
        (Origin(urls=True), "--urls needs addresses"),
        (Origin(words=["a.csv", "b.csv"]), "one file"),
        (Origin(words=["https://x.example/"]), "with --urls before it"),
    ],
)
def test_items_to_append_that_do_not_fit_are_told(origin: Origin, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        origin.check_appended()


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        (JobTerms(policy='{"rate": 3}', rate=2), "rate of its own"),
        (JobTerms(policy="[]"), "--policy"),
        (JobTerms(exports=["full"]), "type:format"),
        (JobTerms(exports=["full:doc"]), "type:format"),
        (JobTerms(columns=["url"]), "COLUMN=FIELD"),
        (JobTerms(webhook="nowhere"), "--webhook"),
        (JobTerms(given="@none"), "cannot read none"),
    ],
)
def test_terms_that_cannot_be_meant_are_told(terms: JobTerms, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        terms.table()


def test_options_become_the_call() -> None:
    terms = JobTerms(
        rate=5, exports=["full:csv"], delimiter="tab", names="a, b", columns=["page=url"], webhook="http://h/"
    )
    table = terms.table()
    assert table == {
        "policy": {"rate": 5},
        "exports": [{"type": "full", "format": "csv"}],
        "webhook": {"url": "http://h/"},
        "delimiter": "\t",
        "names": ["a", "b"],
        "columns": {"page": "url"},
    }
    assert as_query({"name": "x", "policy": {"rate": 5}, "paused": True}) == {
        "name": "x",
        "policy": '{"rate": 5}',
        "paused": "true",
    }
    origin = Origin(start_urls=["http://a/"], depth=0, any_site=True, include=["/p/**"], limit=9)
    follow = {"include": ["/p/**"], "limit": 9, "depth": 0, "same_site": False}
    assert origin.table() == {"start_url": ["http://a/"], "follow": follow}
    assert Origin(sitemap="http://a/").table() == {"sitemap_url": "http://a/"}
    assert export_of("seo:xlsx") == {"type": "seo", "format": "xlsx"}


def test_progress_is_told_in_words() -> None:
    assert facts(progress()) == "2.0/s, 1 errors, 1:30 min left"
    odd = progress("paused", items_per_second=None, eta_seconds=None, reading=True, breaker={"state": "half_open"})
    assert facts(odd) == "paused, 1 errors, more is read, breaker half open"
    noon = datetime.now().astimezone().replace(hour=12, minute=0, second=5)
    probes_at = noon.astimezone(UTC).isoformat()
    assert facts(progress(breaker={"state": "open", "probes_at": probes_at})).endswith(", breaker open until 12:00:05")
    assert facts(progress(breaker="open")).endswith(", breaker open")
    assert [span(value) for value in (0.4, 59.4, 61, 7500)] == ["0 s", "59 s", "1:01 min", "2:05 h"]


@pytest.mark.parametrize(("text", "value"), [("90", 90), ("1.5h", 5400), ("10m", 600), ("2d", 172_800), ("5s", 5)])
def test_lengths_of_time(text: str, value: float) -> None:
    assert seconds(text, "--every") == value


@pytest.mark.parametrize("text", ["", "h", "-1h", "1 week", "1e3", "1" * 20])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="--every"):
        seconds(text, "--every")


@pytest.mark.parametrize(
    ("status", "success", "error", "strict", "bad"),
    [
        ("completed", 3, 0, False, False),
        ("completed", 3, 1, False, False),
        ("completed", 3, 1, True, True),
        ("completed", 0, 4, False, True),
        ("cancelled", 4, 0, False, True),
        ("failed", 0, 0, False, True),
    ],
)
def test_which_ends_are_bad(status: str, success: int, error: int, strict: bool, bad: bool) -> None:
    counts = {"total": success + error, "success": success, "error": error}
    assert is_bad({"status": status, "counts": counts}, strict=strict) is bad


def test_the_last_line_tells_what_was_not_read() -> None:
    job = {
        "status": "completed",
        "error": None,
        "counts": {"total": 2, "success": 2, "error": 0, "cancelled": 0},
        "started_at": None,
        "finished_at": None,
        "warnings": ["a part of the sitemap could not be read: http://a/2.xml: answers 500", "and more"],
    }
    assert summary(job).endswith(
        "2 success; warning: a part of the sitemap could not be read: http://a/2.xml: answers 500 (and 1 more)"
    )
    assert "warning" not in summary({**job, "warnings": []})


def test_cancelled_items_are_not_done() -> None:
    counts = {"success": 3, "error": 1, "cancelled": 36, "total": 40}
    shown = {"id": JOB, "status": "cancelled", "name": "", "scraper": "builtin/page", "version": None}
    row = job_row({**shown, "counts": counts, "created_at": "2026-01-01T00:00:00Z"})
    assert row[4:7] == ("4", "40", "1")
