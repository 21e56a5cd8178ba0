"""What is remembered of each site: which ways worked and what they cost, and the clearances that hold."""

from typing import Protocol

from msgspec import Struct

from scrapeyard.engines.solver.port import Clearance

MOST_COUNTED = 8.0
"""A way's counts grow no further: what worked a thousand times is given up as soon as what worked ten times."""
ENOUGH = 0.5
"""With less than this a way is as good as untried."""


class Tried(Struct, frozen=True, kw_only=True):
    """How one way did at a site lately. The counts fade: half of them in an hour, or in what the operator says."""

    way: str
    cost: float
    """In relative units; plain HTTP is 1."""
    successes: float
    failures: float
    used_at: float
    """Unix seconds."""

    @property
    def is_known(self) -> bool:
        """Whether it was tried often and lately enough to judge."""
        return self.successes + self.failures >= ENOUGH

    @property
    def share(self) -> float:
        """Of successes; 0 when it was not tried."""
        every = self.successes + self.failures
        return self.successes / every if every else 0.0

    @property
    def works(self) -> bool:
        """Whether it is worth trying first."""
        return self.is_known and self.share >= 0.5

    @property
    def fails(self) -> bool:
        """Whether it is worth trying last."""
        return self.is_known and self.share < 0.5


class Remembered(Struct, frozen=True, kw_only=True):
    """All that is known of a site."""

    tried: tuple[Tried, ...] = ()
    clearances: tuple[Clearance, ...] = ()
    settled: frozenset[str] = frozenset()
    """Ways of which another success is nothing new, so that it need not be noted."""

    def blames(self, way: str) -> bool:
        """Whether a way failed more than not, lately."""
        for each in self.tried:  # noqa: SIM110 - every fetch asks, and a generator costs more than the look
            if each.way == way and each.failures and each.fails:
                return True
        return False


NOTHING = Remembered()


class WayMemory(Protocol):
    """Shared by all workers, or of one process. It may forget at any time: what is lost is learnt again."""

    async def start(self) -> None:
        """Ready."""

    async def stop(self) -> None:
        """Write what was noted. May be called twice."""

    async def recall(self, site: str, *, fresh: bool = False) -> Remembered:
        """What is known; NOTHING when nothing is, or the store is away. It may be some seconds old unless `fresh`."""

    async def note(self, site: str, way: str, *, ok: bool, cost: float) -> None:
        """How a way did. May be written a moment later."""

    async def keep(self, site: str, clearance: Clearance) -> None:
        """Keep a clearance until it expires, in place of an older one of the same host and exit."""

    async def drop(self, site: str, clearance: Clearance) -> None:
        """This clearance does not hold any more. One that has taken its place stays."""

    async def claim(self, site: str, exit_name: str, seconds: float) -> bool:
        """Whether we are the one who solves for a site and exit; False: another worker is at it. A claim ends by
        itself after `seconds`. True when the store is away."""

    async def release(self, site: str, exit_name: str) -> None:
        """Give our claim back. Another's stays."""

    async def forget(self, site: str) -> None:
        """As if it had never been fetched from."""
