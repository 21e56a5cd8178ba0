"""Change tracking: the markdown of a page beside that of its last tracked scrape by the same client, under one tag.

Nothing is kept for it. Earlier scrapes are found among runs and jobs, as long as these have their results. The key of
an item is a digest of its URL, or of its input, so one look at a job finds a hundred pages.
"""

import asyncio
import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from scrapeyard.builtin import DOCUMENT
from scrapeyard.gateway.doors.door import ApiRefused, DoorCall
from scrapeyard.inputs.links import target_of
from scrapeyard.repository.manifest.items import canonical, key_of

_PAGES: Final = 5
"""Pages of 200 runs, and of 200 jobs, that are looked through."""
_JOBS: Final = 10
"""Tracked jobs that are looked at."""
_KEYS: Final = 100
_LINES: Final = 5000
"""A longer text has no diff: that would take a core many seconds."""
_GONE: Final = (404, 410)
"""Statuses of pages that were removed."""
_NOT_KEPT: Final = (404, 409, 410)
"""What the API answers for results that were removed, and for jobs that are archived."""


class Tracking(Struct, frozen=True, kw_only=True):
    """What the note of a tracked scrape says of it."""

    tag: str
    client: str
    modes: tuple[str, ...] = ()

    def note(self) -> dict[str, Any]:
        """For the note of the input."""
        return {"tag": self.tag, "client": self.client, "modes": list(self.modes)}

    def is_of(self, given: Mapping[str, Any]) -> bool:
        """Whether an input is that of a scrape to compare with."""
        track = tracking_of(given)
        return track is not None and (track.tag, track.client) == (self.tag, self.client)


def tracking_of(given: Mapping[str, Any]) -> Tracking | None:
    """Of an input of `builtin/document`; None unless its changes are tracked. Anybody may write a note."""
    match given.get("note"):
        case {"track": {"tag": str(tag), "client": str(client), "modes": [*modes]}}:
            return Tracking(tag=tag, client=client, modes=tuple(map(str, modes)))
    return None


class _Earlier(Struct, frozen=True, kw_only=True):
    at: str
    """When it ended, as the API writes times: those are in order as texts."""
    run: str = ""
    item: str = ""
    """Where it is, as a run or as an item."""
    result: dict[str, Any] | None = None
    """None: ask for it."""


class TrackedPages:
    """The last tracked scrapes before `until`, as the API writes times; None: before now."""

    def __init__(self, call: DoorCall, track: Tracking, until: str | None = None) -> None:
        self._call = call
        self._track = track
        self._until = until
        self._jobs: list[dict[str, Any]] | None = None
        self._runs: dict[str, _Earlier] | None = None
        self._found: dict[str, _Earlier | None] = {}

    async def find(self, urls: Iterable[str]) -> None:
        """Look for earlier scrapes of many pages at once."""
        wanted = [url for url in dict.fromkeys(urls) if _plain(url) not in self._found]
        runs = await self._listed_runs() if wanted else {}
        self._found |= {plain: runs.get(plain) for plain in map(_plain, wanted)}
        for job in await self._listed_jobs():
            for first in range(0, len(wanted), _KEYS):
                for item in await self._items(job, wanted[first : first + _KEYS]):
                    self._note(job, item)

    async def change(self, url: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """What changed on a page, given its result now."""
        now = str(result.get("markdown") or "")
        await self.find([url])
        earlier = self._found[_plain(url)]
        before = None if earlier is None else await self._markdown(earlier)
        is_gone = result.get("status") in _GONE
        status = "removed" if is_gone else "new"
        told: dict[str, Any] = {"previousScrapeAt": None, "changeStatus": status, "visibility": "visible"}
        if earlier is None or before is None:
            return told
        told["previousScrapeAt"] = earlier.at
        if not is_gone:
            told["changeStatus"] = "same" if before == now else "changed"
        if before != now and "git-diff" in self._track.modes:
            told |= await asyncio.to_thread(_diff, before, now)
        return told

    async def _listed_runs(self) -> dict[str, _Earlier]:
        """By URL, the newest of each."""
        if self._runs is None:
            self._runs = {}
            async for run in self._pages("/api/scrape", "runs", {"status": "succeeded"}):
                if self._track.is_of(run["input"]) and self._is_earlier(run["finished_at"]):
                    found = _Earlier(at=run["finished_at"], run=f"/api/scrape/{run['id']}")
                    self._runs.setdefault(_plain(str(run["input"].get("url"))), found)
        return self._runs

    async def _listed_jobs(self) -> list[dict[str, Any]]:
        """The newest first."""
        if self._jobs is None:
            self._jobs = []
            async for job in self._pages("/api/jobs", "jobs", {}):
                if self._is_earlier(job["created_at"]) and self._track.is_of(_common(job)):
                    self._jobs.append(job)
                if len(self._jobs) == _JOBS:
                    break
        return self._jobs

    async def _pages(self, path: str, name: str, query: dict[str, Any]) -> Any:
        cursor = ""
        for _ in range(_PAGES):
            asked = {"scraper": DOCUMENT, "limit": 200, **query} | ({"cursor": cursor} if cursor else {})
            page = (await self._call.api("GET", path, query=asked)).json()
            for each in page[name]:
                yield each
            if not (cursor := page["next_cursor"]):
                break

    async def _items(self, job: dict[str, Any], urls: Sequence[str]) -> list[dict[str, Any]]:
        """Those of a job that are about these pages; none if the job is gone or archived."""
        common = _common(job)
        keys = [
            key for url in urls for key in (key_of(_plain(url).encode()), key_of(canonical({**common, "url": url})))
        ]
        query = {"status": "success", "limit": 200, "key": keys}
        try:
            return list((await self._call.api("GET", f"/api/jobs/{job['id']}/items", query=query)).json()["items"])
        except ApiRefused as refused:
            if refused.status not in _NOT_KEPT:
                raise
            return []

    def _note(self, job: dict[str, Any], item: dict[str, Any]) -> None:
        url, at = _plain(str(item["input"].get("url"))), item["finished_at"]
        known = self._found.get(url)
        if self._is_earlier(at) and (known is None or known.at < at):
            place = f"/api/jobs/{job['id']}/items/{quote(item['id'], safe='')}/download"
            self._found[url] = _Earlier(at=at, item=place, result=item["result"])

    def _is_earlier(self, at: str) -> bool:
        return self._until is None or at < self._until

    async def _markdown(self, earlier: _Earlier) -> str | None:
        """None if the result is not kept any more."""
        try:
            result = earlier.result or await self._result(earlier)
        except ApiRefused as refused:
            if refused.status not in _NOT_KEPT:
                raise
            return None
        return str(result.get("markdown") or "") if isinstance(result, dict) else None

    async def _result(self, earlier: _Earlier) -> Any:
        if earlier.run:
            return (await self._call.api("GET", earlier.run)).json()["result"]
        return (await self._call.api("GET", earlier.item, query={"artifact": "data"})).json()


def _diff(before: str, now: str) -> dict[str, Any]:
    old, new = before.splitlines(), now.splitlines()
    if max(len(old), len(new)) > _LINES:
        return {}
    return {"diff": {"text": "\n".join(difflib.unified_diff(old, new, "previous", "current", lineterm=""))}}


def _plain(url: str) -> str:
    """As a crawl writes it."""
    target = target_of(url)
    return url if target is None else target.url


def _common(job: dict[str, Any]) -> dict[str, Any]:
    """What all inputs of a job have in common."""
    given: dict[str, Any] = (job["source"].get("shape") or {}).get("input") or {}
    return given
