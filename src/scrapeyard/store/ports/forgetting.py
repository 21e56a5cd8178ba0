"""What forgetting a URL, a site or a client asks of the store.

Every method raises StoreUnavailable when the database does not answer, and may then be called again with the same
arguments.
"""

import re
from collections.abc import AsyncIterator, Sequence
from functools import cached_property
from typing import Literal, Protocol

from msgspec import Struct

from scrapeyard.model.job import Job

_GOES_ON = rb"(?![A-Za-z0-9%_~./?&=+:;,@!$*()\-])"
"""What follows a URL and makes it another one. A fragment does not."""
_HOST_ENDS = rb"(?=[/:?#\"'\\\s<>]|$)"


class ForgetTarget(Struct, frozen=True, kw_only=True, dict=True):
    """What to forget."""

    kind: Literal["url", "site", "client"]
    value: str
    """As it was given."""
    forms: tuple[str, ...]
    """As it may be written: a URL as given and normalised, a host after `://`. Empty for a client."""

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """Finds it in stored bytes, and neither a longer URL nor a longer host."""
        forms = b"|".join(re.escape(form.encode()) for form in self.forms)
        return re.compile(b"(?:" + forms + b")" + (_HOST_ENDS if self.kind == "site" else _GOES_ON))


class ForgetStore(Protocol):
    """Finds and removes what is about a target. A run or item is about a URL that is in its input or that it fetched,
    not about one that its result only mentions."""

    def runs(self, target: ForgetTarget) -> AsyncIterator[list[tuple[str, bool]]]:
        """Ids of runs, and whether each is final, in blocks."""

    async def jobs(self, target: ForgetTarget) -> list[Job]:
        """Jobs that are about it as a whole: of a client, or of a site."""

    def other_jobs(self, target: ForgetTarget) -> AsyncIterator[tuple[Job, list[tuple[int, str, str]]]]:
        """Jobs of which some items are about it, with number, key and result's blob key of those. Archived jobs come
        without items: look into their archives."""

    async def scrub_items(self, job: Job, target: ForgetTarget, items: Sequence[int]) -> None:
        """Empty these items of a job: they stay as counts, with a new key and without input, result, error, artifacts
        and logs. Also removes its exports, events that name the target, and the target from its source and name."""

    async def remove_rest(self, target: ForgetTarget, subjects: Sequence[str], *, dry: bool) -> dict[str, int]:
        """Remove schedules, webhook messages, snapshots, state, keys; returns how many of each. `subjects` are the runs
        and jobs that go. Usage of a client stays as counts under another name."""

    async def compact(self) -> None:
        """Overwrite what was deleted, where the database does not do that by itself."""
