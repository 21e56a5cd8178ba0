"""What the adapters on Redis share: names of keys that must never change, and the report of an outage."""

import pytest

from scrapeyard.model import Priority
from scrapeyard.redis.keys import Keys
from scrapeyard.redis.outage import Outage


def test_keys_of_a_server_in_use_keep_their_names() -> None:
    keys = Keys("yard")
    assert [keys.lanes, keys.waiting("a", Priority.HIGH), keys.channel("b")] == [
        "yard:lanes",
        "yard:l:a:high",
        "yard:c:b",
    ]
    assert keys.site("s") == (
        "yard:site:s",
        "yard:site:s:seats",
        "yard:site:s:alive",
        "yard:sites",
        "yard:site:s:places",
    )
    assert [keys.page("i"), keys.page_claim("n")] == ["yard:pages:p:i", "yard:pages:claim:n"]
    assert [keys.pages_used, keys.pages_meta] == ["yard:pages:used", "yard:pages:meta"]
    assert [keys.pages_bytes, keys.pages_counts] == ["yard:pages:bytes", "yard:pages:counts"]
    assert [keys.ways("s"), keys.clearances("s")] == ["yard:ways:s", "yard:clearances:s"]
    assert [keys.solving("s", "e"), keys.budget("j")] == ["yard:solving:s:e", "yard:budget:j"]


async def test_an_outage_of_two_links_is_told_once_and_ends_with_the_last() -> None:
    told: list[str] = []
    outage = Outage(lambda error, seconds: told.append(f"{error} {seconds}"), lambda _: told.append("back"))
    outage.down("one", "no route", 0.5)
    outage.down("two", "OSError", 1)
    outage.up("one")
    assert told == ["no route 0.5"]
    outage.up("two")
    outage.up("two")
    outage.down("one", "OSError", 2)
    assert told == ["no route 0.5", "back", "OSError 2"]


@pytest.mark.parametrize(("ends_on_stop", "expected"), [(False, ["away", "back"]), (True, ["away", "away", "back"])])
async def test_a_link_that_is_stopped_while_lost(ends_on_stop: bool, expected: list[str]) -> None:
    told: list[str] = []
    outage = Outage(lambda *_: told.append("away"), lambda _: told.append("back"), ends_on_stop=ends_on_stop)
    outage.down("one", "OSError", 1)
    outage.forget("one")
    outage.down("one", "OSError", 1)
    outage.up("one")
    assert told == expected
