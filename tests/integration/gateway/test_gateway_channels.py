"""Moving channels at the gateway's door: in force at once, kept, followed by the other gateways."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.queues.memory import MemoryQueue
from tests.integration.gateway_stand import Stand, open_stand, write_scraper
from tests.leaks import PATIENCE

HERE = "/api/scrapers/shop/product"
STABLE = f"{HERE}/channels/stable"
CALL = {"scraper": "shop/product", "input": {"url": "https://shop.example/p/1"}, "wait": 0}


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    write_scraper(tmp_path, "1.4.1", "shop/before")
    async with open_stand(tmp_path) as opened:
        yield opened


async def move(stand: Stand, version: str, channel: str = "stable") -> Any:
    response = await stand.client.put(f"{HERE}/channels/{channel}", json={"version": version})
    assert response.status_code == 200, response.text
    return response.json()


async def called(stand: Stand) -> str:
    """The scraper that a call without a version gets."""
    assert (await stand.client.post("/api/scrape", json=CALL)).status_code == 202
    return (await stand.take()).scraper


async def test_a_name_that_is_none_is_told_what_to_write(stand: Stand) -> None:
    wrong = await stand.client.put(f"{HERE}/channels/Stable", json={"version": "1.4.1"})
    assert wrong.json()["detail"] == "/path/channel: must be a channel's name in lower-case letters, e.g. stable"
    wrong = await stand.client.post("/api/scrape", json={"scraper": "shop/product@"})
    assert wrong.status_code == 422
    assert wrong.json()["detail"].startswith("/scraper: must be site/task in lower case, perhaps with @ and a version")


async def test_rolling_back_is_in_force_with_the_answer(stand: Stand) -> None:
    assert await called(stand) == "shop/product@1.4.2"
    document = await move(stand, "1.4.1")
    assert (document["scraper"], document["channels"], document["moved"]) == (
        "shop/product",
        {"stable": "1.4.1"},
        {"stable": "1.4.1"},
    )
    assert await called(stand) == "shop/product@1.4.1"
    described = (await stand.client.get(HERE)).json()
    assert (described["version"], described["channels"]) == ("1.4.1", ["stable"])
    assert [each["channels"] for each in described["versions"]] == [[], ["stable"]]


async def test_taking_a_move_back_may_be_repeated(stand: Stand) -> None:
    await move(stand, "1.4.1")
    for _ in range(2):
        document = (await stand.client.delete(STABLE)).json()
        assert (document["channels"], document["moved"]) == ({}, {})
    assert await called(stand) == "shop/product@1.4.2"
    moves = [(each["before"], each["after"]) for each in document["moves"]]
    assert moves == [("1.4.1", ""), ("", "1.4.1")]


async def test_moves_outlive_the_gateway(tmp_path: Path) -> None:
    write_scraper(tmp_path, "1.4.1", "shop/before")
    async with open_stand(tmp_path) as stand:
        await move(stand, "1.4.1")
    async with open_stand(tmp_path) as stand:
        assert await called(stand) == "shop/product@1.4.1"
        history = (await stand.client.get(f"{HERE}/channels")).json()
        assert [each["after"] for each in history["moves"]] == ["1.4.1"]


async def test_another_gateway_follows(tmp_path: Path) -> None:
    write_scraper(tmp_path, "1.4.1", "shop/before")
    queue = MemoryQueue()
    async with open_stand(tmp_path, queue=queue) as one, open_stand(tmp_path, queue=queue, gateway_id="gw2") as other:
        await move(one, "1.4.1")
        async with asyncio.timeout(PATIENCE):
            while (await other.client.get(HERE)).json()["version"] != "1.4.1":
                await asyncio.sleep(0.02)


async def test_a_version_published_a_moment_ago_may_be_pointed_to(stand: Stand, tmp_path: Path) -> None:
    write_scraper(tmp_path, "2.0.0-rc.1", "shop/candidate")
    assert (await move(stand, "2.0.0-rc.1", "beta"))["channels"] == {"beta": "2.0.0-rc.1"}


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        (STABLE, {"version": "9.9.9"}, 404, "scraper_not_found"),
        ("/api/scrapers/shop/none/channels/stable", {"version": "1.0.0"}, 404, "scraper_not_found"),
        ("/api/scrapers/builtin/page/channels/stable", {"version": "1.0.0"}, 409, "conflict"),
        (STABLE, {"version": "^1.4"}, 422, "invalid"),
        (STABLE, {"version": "1.4.1", "more": 1}, 422, "invalid"),
        (STABLE, {}, 422, "invalid"),
        (f"{HERE}/channels/1.4.2", {"version": "1.4.1"}, 422, "invalid"),
        (f"{HERE}/channels/x", {"version": "1.4.1"}, 422, "invalid"),
        (f"{HERE}/channels/Stable", {"version": "1.4.1"}, 422, "invalid"),
    ],
)
async def test_a_move_that_cannot_be_is_refused(
    stand: Stand, path: str, body: dict[str, Any], status: int, code: str
) -> None:
    response = await stand.client.put(path, json=body)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert await stand.store.channels.current() == {}


async def test_a_broken_version_is_not_pointed_to(stand: Stand, tmp_path: Path) -> None:
    home = write_scraper(tmp_path, "2.0.0", "shop/broken")
    (home / "scraper.py").write_text("def run(:")
    response = await stand.client.put(STABLE, json={"version": "2.0.0"})
    assert (response.status_code, response.json()["code"]) == (422, "scraper_invalid")


async def test_channels_of_a_scraper_that_is_not_there_are_not_found(stand: Stand) -> None:
    for response in (
        await stand.client.get("/api/scrapers/shop/none/channels"),
        await stand.client.delete("/api/scrapers/shop/none/channels/stable"),
    ):
        assert (response.status_code, response.json()["code"]) == (404, "scraper_not_found")


async def test_channels_have_a_bound(stand: Stand) -> None:
    for number in range(50):
        await stand.store.channels.move("shop/product", f"c{number}", "1.4.1", 1.0)
    stand.gateway.channels.look_soon()
    async with asyncio.timeout(PATIENCE):
        while len(stand.gateway.channels.of("shop/product")) < 50:
            await asyncio.sleep(0.01)
    response = await stand.client.put(STABLE, json={"version": "1.4.1"})
    assert (response.status_code, response.json()["code"]) == (409, "conflict")


async def test_a_store_that_is_away_changes_nothing(stand: Stand) -> None:
    await stand.store.stop()
    try:
        response = await stand.client.put(STABLE, json={"version": "1.4.1"})
        assert (response.status_code, response.json()["code"]) == (503, "store_unavailable")
        assert (await stand.client.get(HERE)).json()["version"] == "1.4.2"
    finally:
        await stand.store.start()


async def test_a_version_that_left_but_answers_calls_is_described(stand: Stand, tmp_path: Path) -> None:
    """The operator who rolled back must see what to move the channel to, also when that version left the source."""
    await move(stand, "1.4.1")
    shutil.rmtree(tmp_path / "scrapers" / "shop" / "before")
    await stand.services.catalogue.refresh()
    assert await called(stand) == "shop/product@1.4.1"
    response = await stand.client.get(HERE)
    assert response.status_code == 200, response.text
    described = response.json()
    assert (described["version"], described["valid"]) == ("1.4.1", True)
    assert [(each["version"], each["offered"], each["channels"]) for each in described["versions"]] == [
        ("1.4.2", True, []),
        ("1.4.1", False, ["stable"]),
    ]
    newest = (await stand.client.get(HERE, params={"version": "1.4.2"})).json()
    assert [each["version"] for each in newest["versions"]] == ["1.4.2", "1.4.1"]
