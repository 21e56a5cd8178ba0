"""How jobs of the Firecrawl door stand: status with documents, errors, cancel, active crawls, extracted data."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapeyard.builtin import DOCUMENT, EXTRACT
from scrapeyard.errors import BadRequest
from scrapeyard.gateway.doors.door import ApiRefused, DoorCall
from scrapeyard.gateway.doors.firecrawl.documents import document, files_of
from scrapeyard.gateway.doors.firecrawl.errors import respond
from scrapeyard.gateway.doors.firecrawl.tracking import TrackedPages, Tracking, tracking_of

PAGE_BYTES: Final = 10 * 2**20
"""About so much is in one answer; `next` has the rest."""
PAGE_ITEMS: Final = 100
_STATUS: Final = {"completed": "completed", "failed": "failed", "cancelled": "cancelled", "cancelling": "cancelled"}


class JobProgress:
    """Tells of jobs. They are kept for `days` after their end, unless their policy says."""

    def __init__(self, days: float) -> None:
        self._days = days

    async def status(self, call: DoorCall, version: str, job_id: str, kind: str) -> Response:
        """`GET /crawl/{id}` and `GET /batch/scrape/{id}`."""
        job = await job_of(call, job_id)
        first = _number(call.query.get("skip"), 0)
        limit = min(_number(call.query.get("limit"), PAGE_ITEMS), PAGE_ITEMS) or PAGE_ITEMS
        documents, after = await self._documents(call, job, first, limit)
        counts = job["counts"]
        done = counts["success"]
        told: dict[str, Any] = {
            "success": True,
            "status": _STATUS.get(job["status"], "scraping"),
            "completed": done,
            "total": counts["total"],
            "creditsUsed": done,
            "expiresAt": self._expires(job),
            "data": documents,
        }
        if after is not None:  # not merely because the job runs: clients ask for the next page until there is none
            told["next"] = address(call, f"{version}/{kind}/{job_id}?skip={after}")
        warnings = [*job["warnings"], *([job["error"]["message"]] if job["error"] else [])]
        return respond(told | ({"warning": "; ".join(warnings)} if warnings else {}))

    def _expires(self, job: dict[str, Any]) -> str:
        """When the job is removed, or would be if it ended now."""
        ended = datetime.fromisoformat(job["finished_at"]) if job["finished_at"] else datetime.now(UTC)
        own = ((job["policy"].get("fetching") or {}).get("retention") or {}).get("days")
        return (ended + timedelta(days=own or self._days)).isoformat()

    async def _documents(
        self, call: DoorCall, job: dict[str, Any], first: int, limit: int
    ) -> tuple[list[Any], int | None]:
        """Documents of items from a number on, about `PAGE_BYTES`; and the number of the next, None: there is none."""
        query = {"status": "success", "first": first, "limit": limit}
        page = (await call.api("GET", f"/api/jobs/{job['id']}/items", query=query)).json()
        job_documents = JobDocuments(call, job)
        await job_documents.find_changes(page["items"])
        documents: list[Any] = []
        size = 0
        for item in page["items"]:
            shown = await job_documents.document(item)
            size += len(msgspec.json.encode(shown))
            if documents and size > PAGE_BYTES:
                return documents, item["number"]
            documents.append(shown)
        return documents, page["items"][-1]["number"] + 1 if page["next_cursor"] else None

    async def errors(self, call: DoorCall, version: str, job_id: str, kind: str) -> Response:
        """`GET …/{id}/errors`: the first 1,000."""
        del version, kind
        await job_of(call, job_id)
        errors: list[dict[str, Any]] = []
        robots: list[str] = []
        cursor: str | None = None
        for _ in range(5):
            query = {"status": "error", "limit": 200} | ({"cursor": cursor} if cursor else {})
            page = (await call.api("GET", f"/api/jobs/{job_id}/items", query=query)).json()
            for item in page["items"]:
                url, reason = item["input"].get("url", ""), item["exit_reason"]
                if reason == "fetch_robots":
                    robots.append(url)
                    continue
                words = (item["error"] or {}).get("message") or reason
                errors.append(
                    {"id": item["id"], "timestamp": item["finished_at"], "url": url, "code": reason, "error": words}
                )
            if (cursor := page["next_cursor"]) is None:
                break
        return respond({"success": True, "errors": errors, "robotsBlocked": robots})

    async def cancel(self, call: DoorCall, version: str, job_id: str, kind: str) -> Response:
        """`DELETE …/{id}`."""
        del version, kind
        job = await job_of(call, job_id)
        if job["status"] in ("completed", "failed", "cancelled"):
            words = f"the job has ended already: it is {job['status']}"
            raise ApiRefused(409, {"code": "job_state", "detail": words})
        await call.api("POST", f"/api/jobs/{job_id}/cancel")
        return respond({"success": True, "status": "cancelled"})

    async def active(self, call: DoorCall, version: str) -> Response:
        """`GET /crawl/active`: the newest 200."""
        del version
        query = [
            ("scraper", DOCUMENT),
            ("limit", 200),
            *(("status", each) for each in ("creating", "running", "paused")),
        ]
        jobs = (await call.api("GET", "/api/jobs", query=query)).json()["jobs"]
        crawls = [
            {
                "id": job["id"],
                "teamId": job["owner"],
                "url": _start(job),
                "created_at": job["created_at"],
                "options": {},
            }
            for job in jobs
            if _start(job)
        ]
        return respond({"success": True, "crawls": crawls})

    async def extracted(self, call: DoorCall, version: str, job_id: str) -> Response:
        """`GET /extract/{id}`."""
        del version
        job = await job_of(call, job_id, EXTRACT)
        status = _STATUS.get(job["status"], "processing")
        told: dict[str, Any] = {"success": True, "status": status, "expiresAt": self._expires(job), "data": None}
        told |= {"tokensUsed": job["usage"].get("ai_tokens") or 0, "creditsUsed": job["counts"]["success"]}
        if status != "completed":
            return respond(told)
        query = {"limit": 200}
        items = (await call.api("GET", f"/api/jobs/{job_id}/items", query=query)).json()["items"]
        found = [each["result"]["data"] for each in items if each["status"] == "success" and each["result"]]
        failed = [each for each in items if each["status"] == "error"]
        if not found and failed:
            words = failed[0]["error"]["message"] if failed[0]["error"] else failed[0]["exit_reason"]
            return respond({"success": False, "status": "failed", "error": words, "expiresAt": self._expires(job)})
        told["data"] = _merged([each for each in found if each])
        if failed:
            told["warning"] = f"{len(failed)} of {len(items)} pages could not be read"
        return respond(told)


async def job_of(call: DoorCall, job_id: str, scraper: str = DOCUMENT) -> dict[str, Any]:
    """A job that this door made for the caller. Raises ApiRefused (404)."""
    try:
        job: dict[str, Any] = (await call.api("GET", f"/api/jobs/{job_id}")).json()
    except ApiRefused as refused:
        if refused.status not in (404, 422):
            raise
        raise ApiRefused(404, {"code": "not_found", "detail": "Job not found"}) from None
    if job["scraper"] != scraper:
        raise ApiRefused(404, {"code": "not_found", "detail": "Job not found: it is none of this kind"})
    return job


class JobDocuments:
    """The documents of a job's items that succeeded."""

    def __init__(self, call: DoorCall, job: dict[str, Any]) -> None:
        self._call = call
        self._job = job
        self._tracked: dict[Tracking, TrackedPages] = {}

    async def find_changes(self, items: Sequence[dict[str, Any]]) -> None:
        """Look for the earlier scrapes of many pages at once, where changes are tracked."""
        urls: dict[Tracking, list[str]] = {}
        for item in items:
            if (track := tracking_of(item["input"])) is not None:
                urls.setdefault(track, []).append(item["input"]["url"])
        for track, each in urls.items():
            await self._changes(track).find(each)

    async def document(self, item: dict[str, Any]) -> dict[str, Any]:
        """The document of one."""
        result = item["result"]
        if result is None:  # it lies in the blob store
            place = f"/api/jobs/{self._job['id']}/items/{item['id']}/download"
            result = (await self._call.api("GET", place, query={"artifact": "data"})).json()
        given = item["input"]
        files = await files_of(self._call, item["artifacts"])
        shown = document(result, given.get("note", {}), files, item["id"])
        if (track := tracking_of(given)) is not None:
            shown["changeTracking"] = await self._changes(track).change(given["url"], result)
        return shown

    def _changes(self, track: Tracking) -> TrackedPages:
        if track not in self._tracked:
            self._tracked[track] = TrackedPages(self._call, track, until=self._job["created_at"])
        return self._tracked[track]


def address(call: DoorCall, path: str) -> str:
    """An address of this door, as the caller reaches it."""
    return f"{str(call.request.base_url).rstrip('/')}/{path}"


def _number(given: str | None, default: int) -> int:
    if given is None:
        return default
    if not given.isdigit() or len(given) > 15:
        raise BadRequest("skip and limit are whole numbers")
    return int(given)


def _start(job: dict[str, Any]) -> str:
    """Where a crawl began; empty for a batch."""
    source = job["source"]
    return str((source.get("start") or [source.get("url") or ""])[0])


def _merged(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The data of several pages as one: lists are joined; of other values the first that there is counts."""
    whole: dict[str, Any] = {}
    for each in found:
        for name, value in each.items():
            before = whole.get(name)
            if isinstance(value, list) and isinstance(before, list):
                whole[name] = before + [one for one in value if one not in before]
            elif before in (None, "", []):
                whole[name] = value
    return whole
