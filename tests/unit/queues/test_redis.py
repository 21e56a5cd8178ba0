"""What the adapters on Redis share: names of keys that must never change, and the report of an outage."""

import asyncio
import errno

import pytest

from scrapeyard.model import Priority
from scrapeyard.redis.connection import CommandLink, Dialer, LinkLost
from scrapeyard.redis.keys import Keys
from scrapeyard.redis.outage import Outage
from tests.leaks import PATIENCE


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


async def test_a_connection_that_the_system_gave_up_is_made_anew(redis_url: str) -> None:
    """A host that vanished ends connections with ETIMEDOUT. That is no reply: the command failed; the next works."""
    told: list[str] = []
    link = CommandLink(Dialer(redis_url), Outage(lambda *_: told.append("away"), lambda _: told.append("back")))
    link.start()
    try:
        await link.ready(_soon())
        first = link.client_id
        assert link._connection is not None
        asked = asyncio.create_task(link.ask(("BLPOP", "nothing", 0), within=PATIENCE))
        await asyncio.sleep(0)
        link._connection._reader.set_exception(TimeoutError(errno.ETIMEDOUT, "Connection timed out"))
        with pytest.raises(LinkLost):
            await asked
        await link.ready(_soon())
        assert await link.ask(("PING",), within=PATIENCE) == [b"PONG"]
        assert link.client_id != first
        assert told == ["away", "back"]
    finally:
        await link.stop()


def _soon() -> float:
    return asyncio.get_running_loop().time() + PATIENCE
