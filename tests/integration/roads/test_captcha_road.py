"""Captchas of scripts, from the call to the usage, through the real programs."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.job_calls import Jobs
from tests.programs import Embedded, Yard
from tests.services.captchas import picture

SCRIPT = """
from base64 import b64decode

async def run(ctx, picture: str):
    return {"text": (await ctx.solve_image(b64decode(picture))).lower()}
"""
GIVEN = {"picture": b64encode(picture("h4km", 5)).decode()}


@pytest.fixture(scope="module")
def yard(nothing_left: None) -> Iterator[Yard]:
    with Embedded({}) as yard:
        for name, more in {"silent": "", "allowed": '[policy]\ncaptcha = "local"\n'}.items():
            yard.add_scraper(name, SCRIPT, more)
        yield yard
        assert not list(yard.errors())


@pytest.fixture
def api(yard: Yard) -> Iterator[httpx.Client]:
    with yard.client() as api:
        yield api


def scrape(api: httpx.Client, name: str, **call: Any) -> httpx.Response:
    return api.post("/api/scrape", json={"scraper": f"lab/{name}", "input": GIVEN, **call})


@pytest.mark.parametrize(("name", "call"), [("silent", {"policy": {"captcha": "local"}}), ("allowed", {})])
def test_a_picture_is_read_where_policy_allows_it(api: httpx.Client, name: str, call: dict[str, Any]) -> None:
    run = scrape(api, name, **call).raise_for_status().json()
    assert run["result"] == {"text": "h4km"}
    usage = run["usage"]
    assert (usage["captcha_calls"], usage["captcha_successes"], usage["captcha_cost"]) == (1, 1, 0)


@pytest.mark.parametrize(("name", "call"), [("silent", {}), ("allowed", {"policy": {"captcha": "off"}})])
def test_it_is_refused_where_policy_does_not(api: httpx.Client, name: str, call: dict[str, Any]) -> None:
    answer = scrape(api, name, **call)
    assert not answer.is_success
    assert "fetch_not_allowed" in answer.text
    assert "policy.captcha" in answer.text


def test_a_mode_that_is_none_is_refused(api: httpx.Client) -> None:
    assert scrape(api, "silent", policy={"captcha": "magic"}).status_code == 422


def test_a_job_has_its_pictures_read(api: httpx.Client) -> None:
    jobs = Jobs(api)
    job_id = jobs.create([{"item_id": "one", **GIVEN}], "lab/silent", policy={"captcha": "local"})
    assert jobs.ended(job_id)["counts"]["success"] == 1
    (item,) = jobs.items(job_id)
    assert item["result"] == {"text": "h4km"}
