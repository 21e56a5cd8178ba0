"""The worker plan (D1): its smoke test, its results and its commands, with its own names and values."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.documents.stand import Yard, served

EXAMPLE_HTTP = """
async def run(ctx, test_param: str) -> dict:
    page = await ctx.fetch("SHOP/search?q=" + test_param)
    return {"test_param": test_param, "status": page.status}
"""
SMOKE: dict[str, Any] = {
    "job_id": "test-001",
    "scraper_id": "example-http",
    "items": [
        {"item_id": "item-1", "input": {"test_param": "hello"}},
        {"item_id": "item-2", "input": {"test_param": "world"}},
    ],
}


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("worker-plan")
    with served(folder, {"example/http": EXAMPLE_HTTP}, USE_LOCAL_STORAGE="true") as opened:
        yield opened


@pytest.fixture(scope="module")
def job(yard: Yard) -> dict[str, Any]:
    """The job of the smoke test, ended."""
    words = ("-X", "POST", f"{yard.url}/jobs", "-H", "Content-Type: application/json", "-d", json.dumps(SMOKE))
    made = yard.curl(*words)
    assert (made["id"], made["scraper"], made["counts"]["total"]) == ("test-001", "example/http", 2)
    return yard.until("/jobs/test-001", "completed")


def test_the_smoke_test_makes_a_job_that_completes(job: dict[str, Any]) -> None:
    assert (job["status"], job["counts"]["success"]) == ("completed", 2)


def test_the_smoke_test_again_is_the_same_job(yard: Yard, job: dict[str, Any]) -> None:
    again = yard.client.post("/jobs", json=SMOKE)
    assert (again.status_code, again.json()["id"]) == (201, job["id"])
    other = yard.client.post("/jobs", json={**SMOKE, "items": SMOKE["items"][:1]})
    assert other.status_code == 409


def test_results_come_by_status_and_in_parts(yard: Yard, job: dict[str, Any]) -> None:
    summary = yard.json("GET", f"/jobs/{job['id']}/results")
    assert {kind: manifest["items"] for kind, manifest in summary["manifests"].items()} == {
        "full": 2,
        "success": 2,
        "errors": 0,
    }
    part = yard.json("GET", f"/jobs/{job['id']}/results", params={"status": "success", "part": 1})
    assert (part["job_id"], part["items"]) == ("test-001", 2)


def test_an_item_s_artifact_is_downloaded(yard: Yard, job: dict[str, Any]) -> None:
    for item, word in (("item-1", "hello"), ("item-2", "world")):
        data = yard.json("GET", f"/jobs/{job['id']}/items/{item}/download", params={"artifact": "data"})
        assert data == {"test_param": word, "status": 200}


def test_the_mock_scraper_answers_with_its_input(yard: Yard) -> None:
    call = {"scraper_id": "example-mock", "parameters": {"test_param": "hello"}}
    assert yard.json("POST", "/api/scrape", json=call)["result"] == {"test_param": "hello"}


def test_an_unknown_job_is_not_there(yard: Yard) -> None:
    assert yard.json("GET", "/jobs/test-999", 404)["detail"] == "no job test-999"


def test_jobs_are_listed_by_words_of_status(yard: Yard, job: dict[str, Any]) -> None:
    found = yard.json("GET", "/jobs", params={"status": "completed"})["jobs"]
    assert job["id"] in {each["id"] for each in found}
    items = yard.json("GET", f"/jobs/{job['id']}/items", params={"status": "success"})["items"]
    assert [item["id"] for item in items] == ["item-1", "item-2"]


def test_the_commands_have_the_plan_s_names(yard: Yard, job: dict[str, Any]) -> None:
    def cli(*words: str) -> Any:
        return yard.stand.cli(*words, SCRAPEYARD_URL=yard.url)

    (yard.stand.folder / "items.csv").write_text("test_param\nhello\n")
    made = cli("create-job", "items.csv", "--scraper", "example/http")
    assert made.status == 0, made.err
    assert job["id"] in cli("list-jobs").out
    assert "completed" in cli("job-status", job["id"]).out
    ended = cli("cancel-job", job["id"])
    assert (ended.status, "nothing of it is left to cancel" in ended.err) == (2, True)
