"""The gateway-worker document (D0): its data flow in its own order, from a repository named by its own variables."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.documents.stand import Yard, served
from tests.services.git_repository import GitRepository

SCRIPT = """
import time

def run(ctx, url: str, currency: str = "USD", seconds: float = 0) -> dict:
    time.sleep(seconds)
    return {"mark": "MARK", "currency": currency, "status": ctx.fetch(url).status}
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> GitRepository:
    made = GitRepository(tmp_path_factory.mktemp("repository"))
    made.scraper("shop/price", "1.0.0", SCRIPT.replace("MARK", "first"))
    made.commit()
    return made


@pytest.fixture(scope="module")
def yard(repository: GitRepository, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("gateway-worker")
    names = {"SCRIPT_REPOSITORY_TYPE": "git", "SCRIPT_REPOSITORY_URL": repository.url, "LANG": "ko_KR.UTF-8"}
    with served(folder, **names) as opened:
        yield opened


def called(yard: Yard, status: int = 200, scraper: str = "shop/price", **more: Any) -> Any:
    parameters = {"url": f"{yard.shop}/product/1", **more.pop("parameters", {})}
    return yard.json("POST", "/api/scrape", status, json={"scraper": scraper, "parameters": parameters, **more})


def test_a_request_with_parameters_is_answered_with_the_result(yard: Yard) -> None:
    run = called(yard, parameters={"currency": "KRW"})
    assert run["result"] == {"mark": "first", "currency": "KRW", "status": 200}
    assert (run["scraper"], run["version"]) == ("shop/price", "1.0.0")


def test_parameters_are_validated_before_the_script_runs(yard: Yard) -> None:
    problem = called(yard, 422, parameters={"currency": 5})
    assert [fault["path"] for fault in problem["errors"]] == ["/input/currency"]


def test_a_call_that_waits_no_longer_gets_a_handle_or_a_time_out(yard: Yard) -> None:
    handle = called(yard, 202, parameters={"seconds": 3}, wait=0.2)
    assert yard.until(f"/api/scrape/{handle['id']}", "succeeded")["result"]["mark"] == "first"
    assert called(yard, 504, parameters={"seconds": 60}, wait=0.2, on_timeout="cancel")["code"] == "wait_timeout"


def test_workers_and_the_queue_are_watched(yard: Yard) -> None:
    (worker,) = yard.json("GET", "/api/workers")["workers"]
    assert (worker["lanes"], worker["draining"]) == (["default"], False)
    assert yard.json("GET", "/api/health")["dependencies"]["queue"]["state"] == "ok"


def test_a_new_version_is_live_without_a_restart(yard: Yard, repository: GitRepository) -> None:
    repository.scraper("shop/price", "1.1.0", SCRIPT.replace("MARK", "second"))
    repository.commit()
    yard.json("POST", "/api/scrapers/refresh")
    assert called(yard)["result"]["mark"] == "second"
    assert called(yard, scraper="shop/price@1.0.0")["result"]["mark"] == "first"
    versions = yard.json("GET", "/api/scrapers/shop/price")["versions"]
    assert [each["version"] for each in versions] == ["1.1.0", "1.0.0"]


def test_a_repository_that_is_gone_stops_nothing(yard: Yard, repository: GitRepository) -> None:
    away = repository.bare.with_name("away.git")
    shutil.move(repository.bare, away)
    try:
        yard.client.post("/api/scrapers/refresh")
        assert called(yard)["result"]["mark"] == "second"
    finally:
        shutil.move(away, repository.bare)
