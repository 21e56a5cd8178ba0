"""The Lambda handler, fed with events of SQS, on a running gateway."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.programs import Embedded
from tests.services.ports import free_port

HANDLER = Path(__file__).parents[3] / "deploy" / "lambda" / "handler.py"


@pytest.fixture(scope="module")
def yard(nothing_left: None) -> Iterator[Embedded]:
    with Embedded() as yard:
        yield yard


@pytest.fixture
def module(yard: Embedded, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("GATEWAY", yard.urls[0])
    spec = importlib.util.spec_from_file_location("lambda_handler", HANDLER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _event(*bodies: object) -> dict[str, Any]:
    texts = [body if isinstance(body, str) else json.dumps(body) for body in bodies]
    return {"Records": [{"messageId": f"message-{number}", "body": text} for number, text in enumerate(texts)]}


def _failed(answer: dict[str, Any]) -> list[str]:
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def test_only_what_failed_comes_again_and_nothing_runs_twice(yard: Embedded, module: ModuleType) -> None:
    good = [{"scraper": "lab/nap", "input": {"seconds": 0.01, "tag": f"sqs-{number}"}} for number in range(2)]
    event = _event(good[0], "no JSON", good[1], {"scraper": "lab/none"}, ["a list"])
    for _ in range(2):  # SQS delivers at least once
        assert _failed(module.handler(event)) == ["message-1", "message-3", "message-4"]
    with yard.client() as api:
        runs = api.get("/api/scrape", params={"scraper": "lab/nap"}).json()["runs"]
    assert sorted(run["input"]["tag"] for run in runs) == ["sqs-0", "sqs-1"]


def test_a_gateway_that_is_away_loses_no_message(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY", f"http://127.0.0.1:{free_port()}")
    assert _failed(module.handler(_event({"url": "http://shop.example/"}))) == ["message-0"]


def test_an_empty_event(module: ModuleType) -> None:
    assert module.handler({}) == {"batchItemFailures": []}
