"""The scrape and schedule app (D2): its table of endpoints, its data model and its words, in Korean."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.documents.stand import Yard, served

PAGE = "http://localhost:3000"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    environment = {"SCRAPEYARD_GATEWAY__DIALECT": "tasks", "CORS_ORIGINS": PAGE, "LANG": "ko_KR.UTF-8"}
    with served(tmp_path_factory.mktemp("scrape-app"), **environment) as opened:
        yield opened


@pytest.fixture(scope="module")
def task(yard: Yard) -> dict[str, Any]:
    """A task, ended. It was answered at once."""
    asked = yard.json("POST", "/api/scrape/", 202, json={"url": f"{yard.shop}/product/1"})
    assert asked["status"] == "pending"
    return yard.until(f"/api/scrape/{asked['id']}/", "completed")


def test_a_task_has_the_fields_of_the_data_model(yard: Yard, task: dict[str, Any]) -> None:
    assert task["url"] == f"{yard.shop}/product/1"
    assert (task["status"], task["error_message"]) == ("completed", None)
    assert task["result"]["title"]
    assert task["created_at"] <= task["updated_at"] == task["finished_at"]


def test_several_addresses_are_asked_for_in_one_call(yard: Yard) -> None:
    addresses = [f"{yard.shop}/product/{number}" for number in (2, 3)]
    asked = yard.json("POST", "/api/scrape/", 202, json={"urls": addresses})
    assert [each["status"] for each in asked] == ["pending", "pending"]
    ended = [yard.until(f"/api/scrape/{each['id']}/", "completed") for each in asked]
    assert [each["url"] for each in ended] == addresses


def test_a_task_that_fails_keeps_its_message(yard: Yard) -> None:
    call = {"url": "http://127.0.0.1:1/", "policy": {"retries": 0}}
    asked = yard.json("POST", "/api/scrape/", 202, json=call)
    ended = yard.until(f"/api/scrape/{asked['id']}/", "failed")
    assert ended["error_message"] == ended["error"]["message"] != ""


def test_a_task_is_tried_four_times(yard: Yard) -> None:
    """The waits of 5, 10 and 20 s are shortened here; they are the default."""
    quick = {"backoff": {"kind": "linear", "first_seconds": 0.1, "cap_seconds": 0.1}}
    asked = yard.json("POST", "/api/scrape/", 202, json={"url": "http://127.0.0.1:1/", "policy": quick})
    assert yard.until(f"/api/scrape/{asked['id']}/", "failed")["attempt"] == 4


def test_all_tasks_are_listed_and_filtered(yard: Yard, task: dict[str, Any]) -> None:
    assert task["id"] in {each["id"] for each in yard.json("GET", "/api/scrape/")}
    done = yard.json("GET", "/api/scrape/", params={"status": "completed"})
    assert {each["status"] for each in done} == {"completed"}


def test_a_task_that_is_not_there_is_a_404_in_korean(yard: Yard) -> None:
    problem = yard.json("GET", "/api/scrape/1/", 404)
    assert (problem["code"], problem["title"]) == ("not_found", "찾을 수 없습니다")


def test_a_schedule_is_made_listed_switched_off_and_deleted(yard: Yard) -> None:
    call = {"url": f"{yard.shop}/product/1", "interval": 3600}
    made = yard.json("POST", "/api/schedule/", 201, json=call)
    assert (made["url"], made["interval"], made["enabled"]) == (call["url"], 3600, True)
    assert made["next_run"] is not None
    assert made["id"] in {each["id"] for each in yard.json("GET", "/api/schedule/")}
    place = f"/api/schedule/{made['id']}/"
    off = yard.json("PATCH", place, json={"enabled": False})
    assert (off["enabled"], off["next_run"]) == (False, None)
    assert yard.json("PATCH", place, json={"enabled": True})["next_run"] is not None
    assert yard.json("DELETE", place, 204) is None
    assert yard.json("GET", place, 404)["code"] == "not_found"


def test_the_page_at_port_3000_may_call(yard: Yard) -> None:
    headers = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
    asked = yard.client.options("/api/scrape/", headers=headers)
    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, PAGE)


def test_the_health_of_the_backend_is_told(yard: Yard) -> None:
    assert yard.json("GET", "/api/health/")["database"] == "ok"
