"""What a script may say and ask for in every sandbox: results, errors, verbs, logs, pages, artifacts."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from scrapeyard.model import ExitReason
from tests.contract.sandbox_scripts import ASYNC, CASES, result
from tests.contract.sandboxes import CONFIGURATIONS, SMALL, Bench, Served, Walls, bench

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CONFIGURATIONS, ids=lambda walls: walls.name)
async def stand(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    walls: Walls = request.param
    async with bench(walls) as made:
        yield made


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_generator_sends_its_records_in_order(stand: Bench, kind: str) -> None:
    verdict = await stand.run(f"{kind} run(ctx, n: int):\n    for i in range(n): yield {{'i': i}}", n=500)
    assert result(verdict) == [{"i": i} for i in range(500)]
    assert verdict.records == 500
    assert result(await stand.run(f"{kind} run(ctx, n: int):\n    for i in range(n): yield i", n=0)) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [({}, "case"), ({"case": "x", "more": 1}, "more"), ({"case": "x", "ctx": 1}, "ctx")],
)
async def test_input_that_does_not_fit_the_function_is_bad_input(
    stand: Bench, given: dict[str, Any], words: str
) -> None:
    verdict = await stand.run(CASES, **given)
    assert verdict.exit_reason is ExitReason.BAD_INPUT
    assert verdict.error is not None
    assert words in verdict.error.message


async def test_input_reaches_the_script_as_it_is(stand: Bench) -> None:
    given: dict[str, Any] = {
        "text": "caf\u00e9 \U0001f600",
        "number": 2**60,
        "deep": [[{"a": None}]],
        "big": "x" * 2_000_000,
    }
    echo = "def run(ctx): return [len(ctx.input['big']), {k: v for k, v in ctx.input.items() if k != 'big'}]"
    size, rest = result(await stand.run(echo, **given))
    assert size == 2_000_000
    assert rest == {key: value for key, value in given.items() if key != "big"}


async def test_an_exception_is_told_with_the_scripts_frames_alone(stand: Bench) -> None:
    verdict = await stand.run(CASES, case="raise")
    assert verdict.exit_reason is ExitReason.SCRIPT_ERROR
    assert verdict.error is not None
    assert verdict.error.type == "KeyError"
    assert "inner" in verdict.error.traceback
    assert "scrapeyard_sdk" not in verdict.error.traceback
    assert "sandbox" not in verdict.error.traceback


@pytest.mark.parametrize("case", ["odd", "exit"])
async def test_whatever_leaves_the_script_is_a_script_error(stand: Bench, case: str) -> None:
    assert (await stand.run(CASES, case=case)).exit_reason is ExitReason.SCRIPT_ERROR


@pytest.mark.parametrize(
    ("case", "reason", "after"),
    [
        ("retry", ExitReason.RETRY, 7.0),
        ("retry_plain", ExitReason.RETRY, None),
        ("retry_nan", ExitReason.RETRY, 0.0),
        ("retry_text", ExitReason.RETRY, 0.0),
        ("retry_years", ExitReason.RETRY, 86400.0),
        ("skip", ExitReason.SKIPPED, None),
        ("blocked", ExitReason.BLOCKED, None),
        ("fail", ExitReason.FAILED, None),
        ("own_fetch_error", ExitReason.FETCH_DNS, None),
    ],
)
async def test_the_verbs_steer(stand: Bench, case: str, reason: ExitReason, after: float | None) -> None:
    verdict = await stand.run(CASES, case=case)
    assert verdict.exit_reason is reason
    assert verdict.retry_after == after
    assert verdict.result is None


async def test_what_is_written_is_captured_in_order(stand: Bench) -> None:
    served = Served()
    await stand.run(CASES, served, case="say")
    told = [(line.stream, line.text, line.level) for line in served.logs]
    assert sorted(told[:3]) == sorted(
        [("stdout", "one", "info"), ("stderr", "two", "info"), ("log", "three", "warning")]
    )
    assert told[0][1] == "one"
    assert told[3] == ("stdout", "four", "info")
    assert served.logs[2].fields == {"n": 3, "x": 1.5}
    assert [line.at_ms for line in served.logs] == sorted(line.at_ms for line in served.logs)


async def test_text_that_no_encoding_takes_is_logged_without_it(stand: Bench) -> None:
    served = Served()
    result(await stand.run(CASES, served, case="text"))
    assert served.text == ["café \U0001f600 ?", "lone ?"]
    assert served.logs[1].fields == {"key": "?"}


async def test_odd_fields_never_end_a_run(stand: Bench) -> None:
    served = Served()
    result(await stand.run(CASES, served, case="odd_fields"))
    assert len(served.logs[0].fields) == 20
    assert served.logs[0].fields["inf"] == "inf"


@pytest.mark.parametrize("case", ["much", "long_line", "much_bare"])
async def test_logs_are_cut_at_their_cap_and_said_so(stand: Bench, case: str) -> None:
    served = Served()
    verdict = await stand.run(CASES, served, case=case)
    assert verdict.exit_reason is ExitReason.SUCCEEDED
    assert verdict.logs_cut
    assert 0.8 * SMALL.log_kb * 1024 < sum(len(text) + 32 for text in served.text) <= SMALL.log_kb * 1024 + 64


async def test_logs_within_their_cap_are_whole(stand: Bench) -> None:
    assert not (await stand.run(CASES, case="say")).logs_cut


async def test_fetches_are_answered(stand: Bench) -> None:
    served = Served()
    assert result(await stand.run(ASYNC, served, case="fetches")) == [200, "GET 0", 20, "POST 8"]
    assert len(served.asked) == 22
    assert served.asked[-1].headers == {"x-a": "b", "content-type": "application/json"}
    assert served.asked[-1].url == "http://a.test/?q=1"
    assert served.asked[-1].timeout_seconds == 3


async def test_a_plain_function_fetches_too(stand: Bench) -> None:
    script = "def run(ctx): return [p.status for p in ctx.fetch_all(['http://a.test/1', 'http://missing.test/2'])]"
    assert result(await stand.run(script)) == [200, 404]


async def test_a_failed_fetch_ends_the_run_with_its_reason(stand: Bench) -> None:
    verdict = await stand.run(ASYNC, case="refused")
    assert verdict.exit_reason is ExitReason.FETCH_CONNECT
    assert verdict.error is not None
    assert "nobody listens" in verdict.error.message


async def test_too_many_fetches_are_refused_in_words(stand: Bench) -> None:
    told = result(await stand.run(ASYNC, case="too_many"))
    assert told[:40] == ["ok"] * 40
    assert all("40 pages" in words for words in told[40:])


async def test_wrong_options_are_the_scripts_errors(stand: Bench) -> None:
    told = result(await stand.run(ASYNC, case="wrong"))
    assert all(words.startswith("ValueError: fetch():") for words in told), told


async def test_artifacts_are_kept_or_refused_in_words(stand: Bench) -> None:
    served = Served()
    told = result(await stand.run(ASYNC, served, case="artifacts"))
    assert told[0] == "ok"
    assert "disk is full" in told[1]
    assert "name" in told[2]
    assert "name" in told[3]
    assert "name" in told[4]
    assert "1 MB" in told[5]
    assert served.artifacts == {"page.html": ("text/html", b"<p>")}


async def test_validate_result_corrects_accepts_and_refuses(stand: Bench) -> None:
    hook = """
def validate_result(value):
    if value == "bad": raise ValueError("not this")
    return value.upper() if value == "low" else None
"""
    script = "def run(ctx, value: str): return value\n" + hook
    assert result(await stand.run(script, value="low")) == "LOW"
    assert result(await stand.run(script, value="fine")) == "fine"
    verdict = await stand.run(script, value="bad")
    assert verdict.exit_reason is ExitReason.BAD_RESULT
    assert verdict.error is not None
    assert "not this" in verdict.error.message
    records = "def run(ctx):\n    yield 'low'\n    yield 'x'\n" + hook
    assert result(await stand.run(records)) == ["LOW", "x"]


@pytest.mark.parametrize(
    "case", ["nan", "inf", "complex", "surrogate", "circle", "deep", "too_deep", "endless_int", "bytes"]
)
async def test_what_is_not_json_is_a_bad_result(stand: Bench, case: str) -> None:
    verdict = await stand.run(CASES, case=case)
    assert verdict.exit_reason is ExitReason.BAD_RESULT, verdict


async def test_unusual_json_passes(stand: Bench) -> None:
    assert result(await stand.run(CASES, case="huge_int")) == 10**300
    assert len(result(await stand.run(CASES, case="large"))) == 900_000
    assert str(result(await stand.run(CASES, case="deep_enough"))).count("[") == 151


async def test_output_is_limited(stand: Bench) -> None:
    assert (await stand.run(CASES, case="too_large")).exit_reason is ExitReason.OUTPUT_LIMIT
    endless = "def run(ctx):\n    while True: yield 'x' * 1000"
    assert (await stand.run(endless)).exit_reason is ExitReason.OUTPUT_LIMIT
