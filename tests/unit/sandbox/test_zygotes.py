"""A zygote that dies as it starts: by the kernel for want of memory, by hand, or by its own fault."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from scrapeyard.errors import SandboxError
from scrapeyard.sandbox.handles import zygote as zygotes
from scrapeyard.sandbox.handles.zygote import ZygoteHandle
from tests.leaks import PATIENCE

KILLED = ["/bin/sh", "-c", "kill -9 $$"]
"""A process that is gone before it says hello."""


class Counted(ZygoteHandle):
    """Its first tries are another command."""

    def __init__(self, dead: int) -> None:
        super().__init__(None, _ignored, _ignored)
        self.dead = dead
        self.tries = 0

    def _command(self, socket_number: int) -> list[str]:
        self.tries += 1
        return KILLED if self.tries <= self.dead else super()._command(socket_number)


def _ignored(*_: Any) -> None:
    """Nobody waits for it."""


@pytest.fixture
async def zygote_after(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[int], Counted]]:
    monkeypatch.setattr(zygotes, "_HELLO_PATIENCE", PATIENCE)
    made: list[Counted] = []

    def make(dead: int) -> Counted:
        made.append(Counted(dead))
        return made[-1]

    yield make
    for zygote in made:
        zygote.end()


@pytest.mark.parametrize("dead", [1, 2])
async def test_one_that_is_killed_as_it_starts_is_started_again(
    zygote_after: Callable[[int], Counted], dead: int
) -> None:
    zygote = zygote_after(dead)
    assert await zygote.start()
    assert zygote.tries == dead + 1
    assert zygote.found


async def test_one_that_always_dies_is_given_up(zygote_after: Callable[[int], Counted]) -> None:
    zygote = zygote_after(100)
    with pytest.raises(SandboxError, match="doctor"):
        await zygote.start()
    assert zygote.tries == 3
    assert zygote.pid == 0
