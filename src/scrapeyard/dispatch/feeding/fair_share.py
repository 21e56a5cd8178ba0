"""Whose batch is next: shares of a lane's slots between owners, and between the jobs of each.

Whoever has used least of the slots' time for its weight is next. Over any stretch this gives what deficit round robin
gives, but needs no rounds: there is often room for a single batch, and the next choice then goes on from this one.
"""

from collections.abc import Collection, Sequence

from msgspec import Struct

from scrapeyard.model import Priority

WEIGHTS = {Priority.HIGH: 4.0, Priority.NORMAL: 2.0, Priority.LOW: 1.0}
MOST_BEHIND = 2.0
"""Seconds for each unit of weight: what a job that could not use its share may catch up on, and no more."""


class Claim(Struct, frozen=True, kw_only=True):
    """A job that has something to hand out."""

    job_id: str
    owner: str
    priority: Priority

    @property
    def weight(self) -> float:
        """Twice the weight is twice the share."""
        return WEIGHTS[self.priority]


class FairShare:
    """One lane. An owner weighs as much as its most urgent job, however many it has."""

    def __init__(self) -> None:
        self._owners = _Line()
        self._jobs: dict[str, _Line] = {}
        self._claims: dict[str, list[Claim]] = {}

    def heed(self, claims: Sequence[Claim]) -> None:
        """These have something to hand out now, and nobody else. Of equals the first comes first."""
        self._claims = {}
        for claim in claims:
            self._claims.setdefault(claim.owner, []).append(claim)
        self._owners.heed(self._claims)
        for owner, own in self._claims.items():
            self._jobs.setdefault(owner, _Line()).heed([claim.job_id for claim in own])
        self._jobs = {owner: line for owner, line in self._jobs.items() if owner in self._owners}

    def choose(self, able: Collection[str]) -> Claim | None:
        """The next of those jobs that may be handed something now. None: none of them."""
        ready = {owner: own for owner, all_own in self._claims.items() if (own := _among(all_own, able))}
        if not ready:
            return None
        owner = self._owners.first(ready)
        chosen = self._jobs[owner].first([claim.job_id for claim in ready[owner]])
        return next(claim for claim in ready[owner] if claim.job_id == chosen)

    def charge(self, claim: Claim, seconds: float) -> None:
        """It was handed about so much of a slot's time."""
        weight = max(own.weight for own in self._claims[claim.owner])
        self._owners.charge(claim.owner, seconds / weight)
        self._jobs[claim.owner].charge(claim.job_id, seconds / claim.weight)


class _Line:
    """Names, each with the time it used divided by its weight."""

    def __init__(self) -> None:
        self._used: dict[str, float] = {}
        self._now = 0.0
        """What the one chosen last had used: where a newcomer begins, so that it neither waits nor takes all."""

    def __contains__(self, name: str) -> bool:
        return name in self._used

    def heed(self, names: Collection[str]) -> None:
        """One that left is remembered until the others have caught up with it: leaving must not pay."""
        present = set(names)
        self._used = {name: used for name, used in self._used.items() if name in present or used > self._now}
        for name in names:
            self._used[name] = max(self._used.get(name, self._now), self._now - MOST_BEHIND)

    def first(self, names: Collection[str]) -> str:
        """Who used least."""
        return min(names, key=self._used.__getitem__)

    def charge(self, name: str, seconds: float) -> None:
        """Note what it used."""
        self._now = max(self._now, self._used[name])
        self._used[name] += seconds


def _among(claims: Sequence[Claim], able: Collection[str]) -> list[Claim]:
    return [claim for claim in claims if claim.job_id in able]
