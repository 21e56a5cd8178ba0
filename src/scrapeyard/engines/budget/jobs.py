"""What all runs of a job used up, whichever worker ran them."""

from typing import Protocol

from scrapeyard.engines.budget.ledger import Spent


class JobLedgers(Protocol):
    """Adds up what processes tell. No method raises: while the shared place is away, the last known sum serves."""

    async def start(self) -> None:
        """Connect. Returns even if the server is away."""

    async def stop(self) -> None:
        """Close. May be called twice."""

    async def share(self, job_id: str, mine: Spent) -> Spent:
        """Tell what this process's runs of a job have used up in all, not since the last time, so that telling it
        twice is harmless. Returns what those of every process have."""


class OwnLedgers:
    """For one process: there are no others."""

    async def start(self) -> None:
        """Nothing to do."""

    async def stop(self) -> None:
        """Nothing to do."""

    async def share(self, job_id: str, mine: Spent) -> Spent:  # noqa: ARG002  as the port has it
        """What is told is the whole."""
        return mine
