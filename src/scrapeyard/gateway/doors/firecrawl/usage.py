"""Firecrawl's calls about a team's use: credits are runs, tokens are those of models. Neither is sold here."""

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from starlette.responses import Response

from scrapeyard.gateway.doors.door import DoorCall
from scrapeyard.gateway.doors.firecrawl.errors import respond

NO_LIMIT: Final = 2**53 - 1
"""What remains of something that is not limited: the largest whole number that every client reads."""
_MONTHS: Final = 12
_COUNTED: Final = {"credit": "runs", "token": "ai_tokens"}


async def usage(call: DoorCall, version: str, kind: str, past: str | None) -> Response:
    """`GET /team/credit-usage` and `GET /team/token-usage`, with `/historical`."""
    del version
    if past:
        return await _months(call, kind)
    today = datetime.now(UTC).date()
    name = "Credits" if kind == "credit" else "Tokens"
    told = {
        f"remaining{name}": NO_LIMIT,
        f"plan{name}": NO_LIMIT,
        f"{kind}sUsed": await _used(call, today.replace(day=1), today, kind),
        "billingPeriodStart": _instant(today.replace(day=1)),
        "billingPeriodEnd": _instant(_next_month(today)),
    }
    snake = {f"remaining_{kind}s": NO_LIMIT, f"plan_{kind}s": NO_LIMIT}
    return respond({"success": True, "data": {**told, **snake}})


async def _months(call: DoorCall, kind: str) -> Response:
    """Of the last twelve months."""
    first = datetime.now(UTC).date().replace(day=1)
    periods: list[dict[str, Any]] = []
    for _ in range(_MONTHS):
        last = _next_month(first) - timedelta(days=1)
        used = await _used(call, first, last, kind)
        if used:
            ends = {"startDate": _instant(first), "endDate": _instant(last)}
            periods.insert(0, {**ends, f"{kind}sUsed": used})
        first = (first - timedelta(days=1)).replace(day=1)
    return respond({"success": True, "periods": periods})


async def _used(call: DoorCall, since: date, until: date, kind: str) -> int:
    query = {"by": "client", "since": since.isoformat(), "until": until.isoformat()}
    rows = (await call.api("GET", "/api/usage", query=query)).json()["rows"]
    return sum(int(row[_COUNTED[kind]]) for row in rows)


def _next_month(day: date) -> date:
    return (day.replace(day=28) + timedelta(days=4)).replace(day=1)


def _instant(day: date) -> str:
    return f"{day.isoformat()}T00:00:00Z"


async def queue_status(call: DoorCall, version: str) -> Response:
    """`GET /team/queue-status`: items of the caller's jobs that have not ended, of the newest 200 jobs."""
    del version
    query = [("limit", 200), *(("status", each) for each in ("creating", "running"))]
    jobs = (await call.api("GET", "/api/jobs", query=query)).json()["jobs"]
    active = sum(job["counts"]["in_progress"] for job in jobs)
    waiting = sum(job["counts"]["pending"] + job["counts"]["queued"] for job in jobs)
    told = {"jobsInQueue": active + waiting, "activeJobsInQueue": active, "waitingJobsInQueue": waiting}
    return respond({"success": True, **told, "maxConcurrency": await _most(call), "mostRecentSuccess": None})


async def concurrency(call: DoorCall, version: str) -> Response:
    """`GET /concurrency-check`: runs of the caller that run now."""
    del version
    query = {"status": "running", "limit": 200}
    running = len((await call.api("GET", "/api/scrape", query=query)).json()["runs"])
    return respond({"success": True, "concurrency": running, "maxConcurrency": await _most(call)})


async def _most(call: DoorCall) -> int:
    """Calls that the caller may have at once."""
    identity = (await call.api("GET", "/api/identity")).json()
    return int((identity.get("limits") or {}).get("concurrency") or NO_LIMIT)
