"""The gateway's small parts: what they make of what they are given."""

import re
import string
import time
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.errors import InputInvalid, QueueUnavailable, ScraperInvalid
from scrapeyard.gateway.http import problems
from scrapeyard.gateway.http.problems import EXITS, PROBLEMS
from scrapeyard.gateway.runs import admission, documents
from scrapeyard.gateway.runs.admission import Backlog, InputChecks
from scrapeyard.gateway.runs.calls import _wait, traceparent
from scrapeyard.gateway.runs.explain import explain
from scrapeyard.gateway.runs.schemas import ScrapeCall
from scrapeyard.model import ExitReason, Limits, Outcome, Run, RunStatus, RunWait, Scraper, ScraperRef, Timing
from scrapeyard.queues import messages
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.queues.port import MAX_MESSAGE_BYTES
from scrapeyard.settings import GatewaySettings

URL = "https://a.example"


def a_scraper(schema: dict[str, Any], version: str = "1.0.0") -> Scraper:
    return Scraper(ref=ScraperRef(id="a/b", version=version), folder=None, input_schema=schema)


def a_run(**more: Any) -> Run:
    fields: dict[str, Any] = {
        "id": "run_1",
        "status": RunStatus.QUEUED,
        "scraper": "a/b@1.0.0",
        "input": Raw(b"{}"),
        "created_at": 1.0,
        "queued_at": 1.0,
    }
    return Run(**{**fields, **more})


def test_every_exit_reason_has_a_remedy() -> None:
    assert set(EXITS) == set(ExitReason)
    assert all(title and remedy for title, remedy in PROBLEMS.values())


@pytest.mark.parametrize(
    ("prefer", "expected"),
    [
        ([], (30.0, "")),
        (["respond-async"], (0.0, "respond-async")),
        (["Wait=7"], (7.0, "wait=7")),
        (["respond-async; x=1, wait=5"], (5.0, "wait=5")),
        (["handling=lenient", "wait=9"], (9.0, "wait=9")),
        (["wait=99999"], (300.0, "wait=300")),
        (["wait=-1"], (30.0, "")),
        (["wait=" + "9" * 4000], (30.0, "")),
    ],
)
def test_prefer(prefer: list[str], expected: tuple[float, str]) -> None:
    assert _wait(ScrapeCall(url=URL), prefer, GatewaySettings()) == expected


@pytest.mark.parametrize(
    "given", [None, "", "00-" + "0" * 32 + "-" + "1" * 16 + "-00", "01-" + "a" * 32 + "-" + "b" * 16 + "-00", "x\n"]
)
def test_a_traceparent_is_made_when_none_is_usable(given: str | None) -> None:
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-00", traceparent(given))


@pytest.mark.parametrize("schema", [{"type": "nonsense"}, {"$ref": "http://127.0.0.1:9/schema.json"}, {"pattern": "("}])
def test_a_schema_that_cannot_be_used_is_the_scrapers_fault(schema: dict[str, Any]) -> None:
    with pytest.raises(ScraperInvalid, match="input schema"):
        InputChecks(MemoryQueue()).check(a_scraper(schema), {})


def test_an_input_with_many_faults_lists_some_of_them_cut() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    given = {character * 900: "x" * 5000 for character in string.ascii_letters}
    with pytest.raises(InputInvalid) as caught:
        InputChecks(MemoryQueue()).check(a_scraper(schema), given)
    errors = caught.value.details["errors"]
    assert 1 <= len(errors) <= 20
    assert all(len(error["path"]) <= 200 and len(error["message"]) <= 500 for error in errors)


def test_an_input_too_deep_to_check_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"a": deep}
    with pytest.raises(InputInvalid, match="cannot be"):
        InputChecks(MemoryQueue()).check(a_scraper({"type": "object"}), deep)


def test_an_input_without_a_schema_is_still_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "REST_BYTES", MAX_MESSAGE_BYTES - 100)
    assert bytes(InputChecks(MemoryQueue()).check(a_scraper({}), {"a": 1})) == b'{"a":1}'
    with pytest.raises(InputInvalid, match="at most 100"):
        InputChecks(MemoryQueue()).check(a_scraper({}), {"a": "x" * 100})


def test_an_outcome_survives_the_wire_with_its_result_byte_for_byte() -> None:
    sent = Outcome(run_id="r", attempt=1, exit_reason=ExitReason.SUCCEEDED, result=Raw(b'{"a" : 1.0}'))
    heard = messages.decode_outcome(messages.encode(sent))
    assert heard.result is not None
    assert bytes(heard.result) == b'{"a" : 1.0}'
    without = messages.decode_outcome(messages.encode(Outcome(run_id="r", attempt=1, exit_reason=ExitReason.FAILED)))
    assert (without.result, type(without)) == (None, Outcome)


def test_a_settled_run_is_the_accepted_one_with_the_outcome_in_it() -> None:
    outcome = Outcome(run_id="run_1", attempt=2, exit_reason=ExitReason.SKIPPED, started_at=2.0, finished_at=3.0)
    run = documents.settle(a_run(), outcome)
    assert (run.status, run.exit_reason, run.attempt) == (RunStatus.SUCCEEDED, ExitReason.SKIPPED, 2)
    shown = documents.summary(run)
    assert (shown.version, shown.started_at) == ("1.0.0", "1970-01-01T00:00:02.000Z")
    assert not documents.ended_badly(run)


def test_validation_faults_are_few_and_short() -> None:
    faults = [{"loc": ("k" * 10_000,), "msg": "m" * 10_000}] * 1000
    assert len(problems.invalid(faults).body) < 20_000


def test_explain_of_a_run_that_never_ran() -> None:
    run = a_run(status=RunStatus.CANCELLED, exit_reason=ExitReason.CANCELLED, finished_at=2.0)
    document = explain(run, Limits(), now=5.0)
    assert document.total_ms == 1000
    assert document.summary[0] == "It ended after 1000 ms without having run."


def test_explain_adds_up_fetching_and_the_scripts_own_time() -> None:
    run = a_run(
        status=RunStatus.SUCCEEDED,
        exit_reason=ExitReason.SUCCEEDED,
        finished_at=1.1,
        timing=Timing(script_ms=80, fetch_ms=60),
    )
    phases = {phase.name: phase.ms for phase in explain(run, Limits(), now=5.0).phases}
    assert phases["fetch"] + phases["script"] == 80


def test_explain_counts_the_time_before_the_last_attempt() -> None:
    run = a_run(
        status=RunStatus.FAILED,
        exit_reason=ExitReason.FETCH_CONNECT,
        attempt=2,
        finished_at=7.0,
        timing=Timing(queue_ms=200, script_ms=100, fetch_ms=100),
    )
    told = explain(run, Limits(), now=9.0)
    assert sum(phase.ms for phase in told.phases) == told.total_ms == 6000
    assert told.summary[0].endswith("5700 ms (95 %), went to earlier attempts and the waits between them.")


async def test_a_queue_that_was_away_is_asked_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = MemoryQueue()
    backlog = Backlog(queue, limit=10)
    backlog.defer("default", 10)
    with monkeypatch.context() as patch:
        patch.setattr(queue, "depth", _away)
        with pytest.raises(QueueUnavailable):
            await backlog.admit("default", 1)
    await backlog.admit("default", 1)


async def _away() -> None:
    raise QueueUnavailable("the queue is away")


def test_a_run_tells_what_it_waits_for_until_that_is_over() -> None:
    now = time.time()
    wait = RunWait(reason="retry", site="shop.example", until=now + 600, message="again later")
    shown = documents.summary(a_run(status=RunStatus.RUNNING, waiting=wait)).waiting
    assert shown is not None
    assert (shown.reason, shown.site, shown.message) == ("retry", "shop.example", "again later")
    assert documents.summary(a_run(status=RunStatus.QUEUED, not_before=now + 600, waiting=wait)).waiting is not None
    for over in (
        {"status": RunStatus.RUNNING, "waiting": replace(wait, until=now - 1)},
        {"status": RunStatus.QUEUED, "waiting": wait},
        {"status": RunStatus.FAILED, "waiting": wait},
        {"status": RunStatus.RUNNING},
    ):
        assert documents.summary(a_run(**over)).waiting is None
