"""One item_id is one item: a second input under it is told, wherever it comes from. And diffs that cannot be made."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.gateway_stand import Stand, open_stand
from tests.integration.job_desk import get, post, urls


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


TWICE = [{"item_id": "a", "url": urls(1)[0]}, {"item_id": "a", "url": urls(2)[1]}]
REASON = "same item_id as line 1 with another input: a"


async def test_a_list_with_one_id_for_two_inputs_is_refused(stand: Stand) -> None:
    answer = await stand.client.post("/api/jobs", json={"items": TWICE})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_rows")
    assert REASON in answer.text


async def test_or_the_second_is_left_out_and_told(stand: Stand) -> None:
    job = await post(stand.client, items=TWICE, bad_rows="skip")
    assert job["rows"] == {"taken": 1, "bad": 1, "first_bad": [{"line": 2, "reason": REASON, "file": ""}]}
    assert (job["counts"]["total"], job["skipped_rows"]) == (1, 1)
    assert job["warnings"] == [f"1 row could not be used: line 2: {REASON}"]


async def test_an_upload_is_told_too(stand: Stand) -> None:
    text = f"item_id,url\na,{TWICE[0]['url']}\na,{TWICE[0]['url']}\na,{TWICE[1]['url']}\n"
    answer = await stand.client.post("/api/jobs?bad_rows=skip", content=text, headers={"content-type": "text/csv"})
    rows = answer.json()["rows"]
    assert (rows["taken"], rows["bad"], rows["first_bad"][0]["line"]) == (2, 1, 4)


async def test_an_appended_item_with_a_known_id_and_another_input_is_told(stand: Stand) -> None:
    job = await post(stand.client, items=TWICE[:1], paused=True)
    added = await post(stand.client, f"/api/jobs/{job['id']}/items", items=[TWICE[1], *urls(1, 7)])
    assert (added["added"], added["twice"], added["bad"]) == (1, 0, 1)
    assert added["first_bad"][0]["reason"] == "the job has the item_id a with another input"
    again = await post(stand.client, f"/api/jobs/{job['id']}/items", items=TWICE[:1])
    assert (again["added"], again["twice"], again["bad"]) == (0, 1, 0)


async def test_a_diff_without_anything_to_compare_with_is_refused_at_once(stand: Stand) -> None:
    job = await post(stand.client, items=urls(1))
    place = f"/api/jobs/{job['id']}/exports"
    answer = await stand.client.post(place, json={"type": "diff", "format": "csv"})
    assert (answer.status_code, "against" in answer.json()["detail"]) == (409, True)
    other = await post(stand.client, items=urls(2))
    wish = {"type": "diff", "format": "csv", "against": other["id"]}
    answer = await stand.client.post(place, json=wish)
    assert (answer.status_code, answer.json()["against"]) == (202, other["id"])
    (made,) = (await get(stand.client, place))["exports"]
    assert made["against"] == other["id"]
    answer = await stand.client.post(place, json=wish | {"against": "job_" + "0" * 32})
    assert answer.status_code == 404
    answer = await stand.client.post(place, json=wish | {"type": "full"})
    assert answer.status_code == 422
