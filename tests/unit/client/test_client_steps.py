"""What the clients do in the same way: retries, events that come in pieces, and calls as values."""

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from scrapeyard_client import ApiError, FileFailed, NoAnswer, Retries, RunFailed
from scrapeyard_client.calls import call, format_of, opened, scrape_body, start_run, upload
from scrapeyard_client.steps import ConnectionBroken, Heard, HttpAnswer, Pause, Request, Steps, ask
from scrapeyard_client.streams import EventFollower
from scrapeyard_client.transport import server_address

QUICK = Retries(first_seconds=0.01)
GET = Request(method="GET", path="/api/jobs")
POST = Request(method="POST", path="/api/jobs")
KEYED = Request(method="POST", path="/api/jobs", headers={"Idempotency-Key": "k"})


def answer(status: int, document: Any = None, **headers: str) -> HttpAnswer:
    return HttpAnswer(status=status, headers=headers, content=json.dumps(document).encode() if document else b"")


def performed(steps: Steps[Any], *heard: Heard) -> tuple[Any, list[Request | Pause]]:
    """What came of a call whose requests are answered in this way, and what it did."""
    left, done = iter(heard), []
    try:
        step = next(steps)
        while True:
            done.append(step)
            step = steps.send(None if isinstance(step, Pause) else next(left))
    except StopIteration as end:
        return end.value, done


@pytest.mark.parametrize("busy", [429, 503])
@pytest.mark.parametrize("request_", [GET, POST])
def test_a_busy_server_is_asked_again_after_the_time_it_names(busy: int, request_: Request) -> None:
    found, done = performed(ask(request_, QUICK), answer(busy, **{"retry-after": "7"}), answer(200, {"a": 1}))
    assert found.document() == {"a": 1}
    assert done == [request_, Pause(7.0), request_]


def test_a_server_does_not_decide_for_how_long_a_client_sleeps() -> None:
    _, done = performed(ask(GET, QUICK), answer(503, **{"retry-after": "86400"}), answer(200))
    assert done[1] == Pause(QUICK.max_seconds)


@pytest.mark.parametrize("request_", [GET, KEYED])
def test_a_lost_answer_is_asked_for_again_where_that_does_no_harm(request_: Request) -> None:
    _, done = performed(ask(request_, QUICK), ConnectionBroken("gone"), answer(504), answer(200))
    assert [step for step in done if isinstance(step, Request)] == [request_] * 3


def test_a_call_that_may_have_been_carried_out_is_not_sent_twice() -> None:
    with pytest.raises(NoAnswer, match="gone"):
        performed(ask(POST, QUICK), ConnectionBroken("gone"))


def test_attempts_come_to_an_end() -> None:
    with pytest.raises(ApiError) as caught:
        performed(ask(GET, Retries(attempts=3, first_seconds=0)), *[answer(503, {"code": "overloaded"})] * 3)
    assert (caught.value.status, caught.value.code) == (503, "overloaded")


def test_a_refusal_has_all_that_the_problem_tells() -> None:
    told = {"code": "bad_input", "title": "T", "detail": "D", "remedy": "R", "errors": [{"path": "/url"}]}
    with pytest.raises(ApiError, match=r"422 bad_input: D\. R") as caught:
        performed(ask(POST, QUICK), answer(422, told))
    error = caught.value
    assert (error.title, error.detail, error.remedy, error.retryable) == ("T", "D", "R", False)
    assert error.errors == [{"path": "/url"}]


def test_an_answer_of_another_server_is_no_problem_document() -> None:
    with pytest.raises(ApiError, match="is it a Scrapeyard server"):
        performed(ask(GET, QUICK), HttpAnswer(status=404, headers={}, content=b"<html>"))


def test_a_run_that_ended_badly_is_not_run_again() -> None:
    told = {"code": "script_error", "id": "run_1", "exit_reason": "script_error", "detail": "no price"}
    with pytest.raises(RunFailed) as caught:
        performed(start_run(QUICK, {"url": "https://a.example"}), answer(502, told))
    assert (caught.value.run_id, caught.value.exit_reason) == ("run_1", "script_error")


def test_a_run_that_takes_longer_is_waited_for() -> None:
    handle, ended = {"id": "run_1", "status": "queued"}, {"id": "run_1", "status": "succeeded", "result": {"a": 1}}
    steps = start_run(QUICK, scrape_body("https://a.example", ["markdown"], {"policy": None}))
    run, done = performed(steps, answer(202, handle), answer(200, handle), answer(200, ended))
    assert run.result == {"a": 1}
    first, *more = [step for step in done if isinstance(step, Request)]
    assert first.body == {"url": "https://a.example", "formats": ["markdown"]}
    assert first.may_repeat
    assert [step.path for step in more] == ["/api/scrape/run_1"] * 2


def events(*pieces: bytes) -> Iterator[tuple[str, Any, int | None]]:
    follower = EventFollower("/api/jobs/j/stream", QUICK, {})
    return ((event.name, event.data, event.id) for piece in pieces for event in follower.take(piece))


def test_events_are_read_wherever_they_are_cut() -> None:
    text = ': still here\n\nid: 3\nevent: status\ndata: {"a":"x\u2028y: z"}\n\nevent: end\r\ndata: {}\r\n\r\n'.encode()
    whole = [("status", {"a": "x\u2028y: z"}, 3), ("end", {}, None)]
    assert list(events(text)) == whole
    for cut in range(len(text)):
        assert list(events(text[:cut], text[cut:])) == whole


def test_a_stream_goes_on_after_the_last_event_with_an_id() -> None:
    follower = EventFollower("/api/jobs/j/stream", QUICK, {})
    assert "Last-Event-ID" not in follower.request().headers
    assert len(list(follower.take(b"id: 8\nevent: status\ndata: {}\n\nevent: progress\ndata: {}\n\nid: 9\neve"))) == 2
    assert follower.broken(ConnectionBroken("gone")) > 0
    assert follower.request().headers["Last-Event-ID"] == "8"


def test_options_of_an_upload_go_into_the_query(tmp_path: Path) -> None:
    path = tmp_path / "urls.csv"
    path.write_bytes(b"url\nhttps://a.example\n")
    options = {"scraper": "shop/product", "paused": True, "exports": [{"type": "full", "format": "csv"}], "lane": None}
    job, done = performed(upload(QUICK, "/api/jobs", path, options), answer(201, {"id": "j"}))
    (request,) = [step for step in done if isinstance(step, Request)]
    assert job == {"id": "j"}
    assert request.headers["Content-Type"] == "text/csv"
    assert dict(request.query) == {
        "scraper": "shop/product",
        "paused": "true",
        "exports": '[{"type": "full", "format": "csv"}]',
    }
    assert request.content is not None
    assert [b"".join(request.content()) for _ in range(2)] == [path.read_bytes()] * 2


def test_an_open_file_is_sent_from_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"skipped\n{}\n")
    with path.open("rb") as stream:
        stream.readline()
        media, pieces = opened(stream, "")
        assert (media, [b"".join(pieces()) for _ in range(2)]) == ("application/x-ndjson", [b"{}\n"] * 2)


def test_a_stream_that_is_used_up_is_not_sent_as_a_shorter_list() -> None:
    class Pipe(BytesIO):
        def seekable(self) -> bool:
            return False

    _, pieces = opened(Pipe(b"url\nhttps://a.example\n"), "csv")
    assert b"".join(pieces()) == b"url\nhttps://a.example\n"
    with pytest.raises(FileFailed, match="cannot be read a second time"):
        list(pieces())


def test_an_answer_that_is_not_json_is_told() -> None:
    with pytest.raises(NoAnswer, match="is it a Scrapeyard server"):
        performed(call(QUICK, "GET", "/api/jobs"), HttpAnswer(status=200, headers={}, content=b"<html>"))


def test_the_name_of_a_file_tells_its_format() -> None:
    assert format_of(Path("a/site.XLSX"), None) == "xlsx"
    assert format_of(Path("site"), "csv") == "csv"
    with pytest.raises(ValueError, match="does not tell its format"):
        format_of(Path("site.doc"), None)


def test_the_address_is_the_one_given_or_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRAPEYARD_SERVER", "http://yard.example:9000/")
    assert server_address(None) == "http://yard.example:9000"
    assert server_address("https://other.example") == "https://other.example"
    with pytest.raises(ValueError, match="not a server's address"):
        server_address("localhost:8000")
