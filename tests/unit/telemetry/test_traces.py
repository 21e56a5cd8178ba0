"""Traces of finished runs, as a collector receives them."""

import asyncio
import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import msgspec
import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from structlog.testing import capture_logs

from scrapeyard.model import ExitReason, FetchTrace, LogLine, Outcome, RunError, ScraperRef, StepTrace, Timing
from scrapeyard.telemetry import traces
from scrapeyard.telemetry.otlp import HttpCollector, as_protobuf
from scrapeyard.telemetry.spans import (
    MAX_FETCHES,
    FinishedRun,
    FinishedSpan,
    TraceParent,
    document,
    new_traceparent,
    parse_traceparent,
    run_span_id,
    spans_of,
)
from scrapeyard.telemetry.traces import BATCH, TraceExporter
from tests.leaks import PATIENCE
from tests.services.threads import ThreadedServer

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OUTCOME = Outcome(
    run_id="run_1",
    attempt=2,
    exit_reason=ExitReason.SUCCEEDED,
    scraper=ScraperRef(id="shop/product", version="1.4.2"),
    result=Raw(b'{"secret":"result"}'),
    logs=(LogLine(at_ms=0.0, stream="stdout", text="secret line"),),
    timing=Timing(queue_ms=500.0, resolve_ms=1.0, child_start_ms=2.0, script_ms=100.0, forked_ahead=True),
    fetches=(
        FetchTrace(url="http://user:hush@shop.example/p?id=1", status=200, bytes=1234, ms=40.0, started_ms=10.0),
        FetchTrace(url="http://shop.example/q", ms=5.0, started_ms=60.0, error="connection refused"),
    ),
    worker_id="wk_1",
    started_at=1001.5,
    finished_at=1001.625,
)


class Collector:
    """A real HTTP server that keeps what is posted to it and answers as told."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, str, dict[str, Any]]] = []
        self.answers: list[int] = []
        """Statuses for the next posts; 200 when there is none."""
        self._came = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector._keep(self.path, self.headers["content-type"], json.loads(body))
                self.send_response(collector.answers.pop(0) if collector.answers else 200)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_words: object) -> None:
                return

        self._server = ThreadedServer(Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def spans(self) -> list[dict[str, Any]]:
        return [
            span
            for _, _, body in self.posts
            for resource in body["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]

    async def wait_for(self, posts: int) -> None:
        def wait() -> bool:
            with self._came:
                return self._came.wait_for(lambda: len(self.posts) >= posts, timeout=PATIENCE)

        assert await asyncio.to_thread(wait)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _keep(self, path: str, kind: str, body: dict[str, Any]) -> None:
        with self._came:
            self.posts.append((path, kind, body))
            self._came.notify_all()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No post is given up because the machine is busy."""
    monkeypatch.setattr(traces, "POST_SECONDS", PATIENCE)


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.stop()


def exporter_to(endpoint: str, every_seconds: float) -> TraceExporter:
    return TraceExporter(HttpCollector(endpoint, "yard", "1", PATIENCE), every_seconds=every_seconds)


def finished(outcome: Outcome = OUTCOME) -> FinishedRun:
    parent = parse_traceparent(CALLER)
    assert parent is not None
    return FinishedRun(outcome=outcome, parent=parent, queued_at=1001.0)


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {item["key"]: next(iter(item["value"].values())) for item in span["attributes"]}


async def test_a_run_arrives_as_one_trace_under_its_caller(collector: Collector) -> None:
    exporter = exporter_to(collector.url + "/", 0.01)
    exporter.start()
    exporter.start()
    exporter.run_ended(OUTCOME, CALLER, 1001.0)
    await collector.wait_for(1)
    await exporter.stop()
    await exporter.stop()
    ((path, kind, body),) = collector.posts
    assert (path, kind) == ("/v1/traces", "application/json")
    assert attributes(body["resourceSpans"][0]["resource"])["service.name"] == "yard"
    assert [span["name"] for span in collector.spans()] == ["queue", "run", "child start", "child", "fetch", "fetch"]
    assert "secret" not in json.dumps(body)
    assert "hush" not in json.dumps(body)


def test_the_run_continues_its_callers_trace() -> None:
    queue, run, start, child, *fetches = spans_of(finished())
    assert queue.parent == run.parent == "b7ad6b7169203331"
    assert {span.trace_id for span in (queue, run, start, child, *fetches)} == {"0af7651916cd43dd8448eb211c80319c"}
    assert (start.parent, child.parent) == (run.span_id, run.span_id)
    assert [span.parent for span in fetches] == [child.span_id] * 2
    assert len({span.span_id for span in (queue, run, start, child, *fetches)}) == 6
    assert run.span_id == run_span_id("run_1", 2) != run_span_id("run_1", 1)


def times(span: FinishedSpan) -> tuple[int, int]:
    """In microseconds."""
    return round(span.start * 1e6), round(span.end * 1e6)


def test_times_stand_where_they_were_spent() -> None:
    queue, run, start, child, first, second = map(times, spans_of(finished()))
    assert queue == (1_001_000_000, 1_001_500_000)
    assert run == (1_001_500_000, 1_001_625_000)
    assert start == (1_001_501_000, 1_001_503_000)
    assert child == (1_001_503_000, 1_001_603_000)
    assert first == (1_001_513_000, 1_001_553_000)
    assert second == (1_001_563_000, 1_001_568_000)


def test_what_the_spans_tell() -> None:
    (scope,) = document("yard", "1", spans_of(finished()))["resourceSpans"][0]["scopeSpans"]
    _, run, start, _, first, second = scope["spans"]
    told = attributes(run)
    assert (told["scraper"], told["exit_reason"], told["attempt"]) == ("shop/product@1.4.2", "succeeded", "2")
    assert (told["run.id"], told["worker"]) == ("run_1", "wk_1")
    assert run["status"] == {"code": 1}
    assert attributes(start) == {"forked_ahead": True}
    assert attributes(first)["http.response.status_code"] == "200"
    assert attributes(first)["http.response.body.size"] == "1234"
    assert attributes(first)["url.full"] == "http://shop.example/p?id=1"
    assert second["status"] == {"code": 2, "message": "connection refused"}
    assert "http.response.status_code" not in attributes(second)


def test_steps_in_a_browser_are_spans_of_the_child() -> None:
    steps = (
        StepTrace(name="click", started_ms=5, ms=10),
        StepTrace(name="fill", started_ms=20, ms=1, error="no field"),
    )
    spans = spans_of(finished(msgspec.structs.replace(OUTCOME, fetches=(), steps=steps)))
    assert [(span.name, span.error) for span in spans[4:]] == [("browser click", None), ("browser fill", "no field")]
    assert {span.parent for span in spans[4:]} == {spans[3].span_id}


def test_a_bad_end_is_an_error() -> None:
    error = RunError(message="no price on the page")
    failed = msgspec.structs.replace(OUTCOME, exit_reason=ExitReason.SCRIPT_ERROR, error=error)
    assert spans_of(finished(failed))[1].error == "no price on the page"
    lost = Outcome(run_id="run_2", attempt=1, exit_reason=ExitReason.LOST_WORKER, finished_at=1002.0)
    assert spans_of(finished(lost))[1].error == "lost_worker"


def test_a_run_of_many_fetches_is_cut() -> None:
    many = msgspec.structs.replace(OUTCOME, fetches=OUTCOME.fetches * MAX_FETCHES)
    spans = spans_of(finished(many))
    assert sum(span.name == "fetch" for span in spans) == MAX_FETCHES
    assert spans[1].attributes["fetches.not_shown"] == MAX_FETCHES


def test_json_and_protobuf_say_the_same() -> None:
    spans = [
        *spans_of(finished()),
        *spans_of(finished(msgspec.structs.replace(OUTCOME, exit_reason=ExitReason.TIMEOUT))),
    ]

    (scope,) = MessageToDict(as_protobuf("yard", "1", spans))["resourceSpans"][0]["scopeSpans"]
    (told,) = document("yard", "1", spans)["resourceSpans"][0]["scopeSpans"]
    for one, other in zip(scope["spans"], told["spans"], strict=True):
        assert b64decode(one["traceId"]).hex() == other["traceId"]
        assert b64decode(one["parentSpanId"]).hex() == other["parentSpanId"]
        for name in ("name", "startTimeUnixNano", "endTimeUnixNano"):
            assert one[name] == other[name]
        assert {item["key"] for item in one.get("attributes", ())} == attributes(other).keys()
        assert one.get("status", {}).get("message", "") == other["status"].get("message", "")


async def test_what_is_not_sampled_is_not_sent(collector: Collector) -> None:
    exporter = exporter_to(collector.url, 60)
    exporter.start()
    for header in (CALLER[:-1] + "0", "rubbish", new_traceparent(0)):
        exporter.run_ended(OUTCOME, header, 1001.0)
        exporter.recorded([(header, "run_1", 1)], 1.0, 2.0)
    await exporter.stop()
    assert collector.posts == []


def test_a_share_of_new_traces_is_sampled() -> None:
    made = [parse_traceparent(new_traceparent(0.5)) for _ in range(400)]
    assert 100 < sum(each.sampled for each in made if each) < 300
    assert TraceParent("a" * 32, "b" * 16, False).header().endswith("-00")


async def test_many_runs_go_in_batches_and_stop_sends_the_rest(collector: Collector) -> None:
    exporter = exporter_to(collector.url, 60)
    exporter.start()
    for _ in range(600):
        exporter.run_ended(OUTCOME, CALLER, 1001.0)
    await exporter.stop()
    assert sum(span["name"] == "run" for span in collector.spans()) == 600
    assert len(collector.posts) == 3


async def test_too_many_drop_the_oldest_and_it_is_counted(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "MAX_WAITING", BATCH + 44)
    exporter = exporter_to(collector.url, 0.01)
    for number in range(BATCH + 44 + 7):
        exporter.run_ended(msgspec.structs.replace(OUTCOME, run_id=f"run_{number}", fetches=()), CALLER, 1001.0)
    with capture_logs() as logs:
        exporter.start()
        await collector.wait_for(2)
        await exporter.stop()
    assert [(entry["event"], entry["count"]) for entry in logs] == [("traces.dropped", 7)]
    runs = [attributes(span)["run.id"] for span in collector.spans() if span["name"] == "run"]
    assert runs == [f"run_{number}" for number in range(7, BATCH + 44 + 7)]


@pytest.mark.parametrize(("answers", "posts", "events"), [([503], 2, []), ([503, 503], 2, [1]), ([400], 1, [1])])
async def test_a_refused_post_is_tried_once_more(
    collector: Collector, answers: list[int], posts: int, events: list[int]
) -> None:
    collector.answers = answers
    exporter = exporter_to(collector.url, 60)
    with capture_logs() as logs:
        exporter.start()
        exporter.run_ended(OUTCOME, CALLER, 1001.0)
        await exporter.stop()
    assert len(collector.posts) == posts
    assert [entry["count"] for entry in logs if entry["event"] == "traces.not_sent"] == events


async def test_a_collector_that_comes_back_is_told_of_once(collector: Collector) -> None:
    collector.answers = [400, 400, 400]
    exporter = exporter_to(collector.url, 0.01)
    exporter.start()
    with capture_logs() as logs:
        for number in range(4):
            exporter.run_ended(OUTCOME, CALLER, 1001.0)
            await collector.wait_for(number + 1)
        await exporter.stop()
    assert [entry["event"] for entry in logs] == ["traces.not_sent", "traces.sent_again"]
    assert logs[1]["lost"] == 3


@pytest.mark.parametrize("endpoint", ["http://user:hush@127.0.0.1:1", "no url at all", "http://"])
async def test_a_collector_that_cannot_be_reached_never_raises(endpoint: str) -> None:
    exporter = exporter_to(endpoint, 60)
    with capture_logs() as logs:
        exporter.start()
        exporter.run_ended(OUTCOME, CALLER, 1001.0)
        await exporter.stop()
    assert [entry["event"] for entry in logs] == ["traces.not_sent"]
    assert "hush" not in str(logs)


def test_traceparent_is_read() -> None:
    assert parse_traceparent(CALLER) == TraceParent("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", True)
    assert parse_traceparent(f" {CALLER} ") is not None
    assert parse_traceparent("cc" + CALLER[2:] + "-what-may-come") is not None
    mine = parse_traceparent(new_traceparent())
    assert mine is not None
    assert mine != parse_traceparent(new_traceparent())


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00",
        CALLER.upper(),
        CALLER + "-more",
        "ff" + CALLER[2:],
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
        CALLER[:-1],
        "cc" + CALLER[2:] + "-" + "x" * 1000,
    ],
)
def test_what_is_no_traceparent_begins_a_new_trace(header: str) -> None:
    assert parse_traceparent(header) is None


@given(st.text(max_size=600))
def test_any_header_is_survived(header: str) -> None:
    parsed = parse_traceparent(header)
    assert parsed is None or [len(parsed.trace_id), len(parsed.span_id)] == [32, 16]
