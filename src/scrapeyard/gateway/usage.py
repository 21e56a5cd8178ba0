"""`/api/usage`: what clients, scrapers and sites used, by day; as JSON or CSV."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query
from msgspec import Meta, Struct
from starlette.responses import Response

from scrapeyard.engines.budget.meters import day_of
from scrapeyard.errors import BadRequest
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.http.answers import AnswerRoute, respond
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.http.patterns import SCRAPER_ID
from scrapeyard.store.ports.operations import Use, UseBy, UseFilter

MOST = 10_000
"""Rows of one answer."""
DAYS = 30
DIRECT = "direct"
_DAY = 86_400.0
_GROUPS = ("day", "client", "scraper", "site")
_CSV = "text/csv"
_SITE = r"^[^\s/\x00-\x1f]{1,253}$"
_CLIENT = r"^[\x21-\x7e]{1,64}$"
By = Literal["day", "client", "scraper", "site"]


class UsageRowDocument(Struct, frozen=True, kw_only=True):
    """What was used. Columns that the answer is not grouped by are null."""

    day: Annotated[str | None, Meta(description="In UTC, as 2026-01-31.")]
    client: Annotated[str | None, Meta(description="Empty: nobody was asked.")]
    scraper: Annotated[str | None, Meta(description="Empty: the platform itself, as for sitemaps.")]
    site: Annotated[str | None, Meta(description="Empty: runs and browsers, which belong to no single site.")]
    runs: Annotated[int, Meta(description="Runs, and items of jobs, that have ended.")]
    fetches: Annotated[int, Meta(description="Requests to the web.")]
    failures: Annotated[int, Meta(description="Those of them without an answer.")]
    megabytes: Annotated[float, Meta(description="Received, in all.")]
    direct_megabytes: Annotated[float, Meta(description="Without a proxy.")]
    datacenter_megabytes: Annotated[float, Meta(description="Through proxies in data centres.")]
    residential_megabytes: Annotated[float, Meta(description="Through residential proxies.")]
    unlocker_megabytes: Annotated[float, Meta(description="Through web unlockers.")]
    browser_seconds: Annotated[float, Meta(description="How long pages of browsers were open.")]
    ai_tokens: Annotated[int, Meta(description="Tokens that models read and wrote.")]
    ai_cost: Annotated[float, Meta(description="What that cost, in the currency of the operator's prices.")]


class UsageReportDocument(Struct, frozen=True, kw_only=True):
    """Usage by what was asked for, in the order of its columns."""

    since: Annotated[str, Meta(description="The first day.")]
    until: Annotated[str, Meta(description="The last day.")]
    by: Annotated[list[By], Meta(description="What it is grouped by.")]
    truncated: Annotated[bool, Meta(description="Whether there are more rows than one answer has; ask for less.")]
    rows: Annotated[list[UsageRowDocument], Meta(description="Sums, one for each group.")]


router = APIRouter(tags=["usage"], route_class=AnswerRoute)


@router.get(
    "/api/usage",
    summary="Usage",
    response_model=UsageReportDocument,
    responses={
        200: {"content": {_CSV: {"schema": {"type": "string", "format": "binary"}}}},
        **refusals(400, 422, 503),
    },
)
async def get_usage(
    gateway: GatewayDep,
    identity: IdentityDep,
    *,
    by: Annotated[list[By] | None, Query(max_length=4, description="Group by these; may be repeated.")] = None,
    since: Annotated[date | None, Query(description="The first day, in UTC; 30 days ago if it is left out.")] = None,
    until: Annotated[date | None, Query(description="The last day; today if it is left out.")] = None,
    client: Annotated[str | None, Query(pattern=_CLIENT, description="Of this client.")] = None,
    scraper: Annotated[str | None, Query(pattern=SCRAPER_ID, description="Of this scraper.")] = None,
    site: Annotated[str | None, Query(pattern=_SITE, description="Of this site.")] = None,
    format: Annotated[  # noqa: A002  the parameter's name
        Literal["json", "csv"] | None, Query(description="csv: as a file for spreadsheets; `Accept: text/csv` as well.")
    ] = None,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """Runs, fetches, megabytes by class of proxy, and seconds of browsers, some seconds old. A client sees its own."""
    report = await usage_of(
        gateway.services.store.meters.use,
        tuple(group for group in _GROUPS if group in (by or ["day", "client"])),
        since=since.isoformat() if since else day_of(gateway.services.clock() - DAYS * _DAY),
        until=until.isoformat() if until else day_of(gateway.services.clock()),
        where=UseFilter(
            client=identity.only if identity.only is not None else client,
            scraper=scraper,
            sites=None if site is None else (site,),
        ),
    )
    if format == "csv" or (format is None and _CSV in accept):
        headers = {"Content-Disposition": 'attachment; filename="usage.csv"'}
        return Response(as_csv(report), 200, headers, f"{_CSV}; charset=utf-8")
    return respond(report)


Using = Callable[..., Any]


async def usage_of(use: Using, by: Sequence[UseBy], *, since: str, until: str, where: UseFilter) -> UsageReportDocument:
    """Sums of the meters. Raises BadRequest if the days are in the wrong order."""
    if since > until:
        raise BadRequest(f"since: {since} is after until, {until}")
    where = UseFilter(until=until, client=where.client, scraper=where.scraper, sites=where.sites)
    found: Sequence[Use] = await use([*by, "proxy_class"], since, where=where, limit=5 * MOST + 1)
    rows = _rows(by, found)
    return UsageReportDocument(
        since=since,
        until=until,
        by=[*by],  # type: ignore[list-item]
        truncated=len(found) > 5 * MOST or len(rows) > MOST,
        rows=rows[:MOST],
    )


def _rows(by: Sequence[UseBy], found: Iterable[Use]) -> list[UsageRowDocument]:
    """One row for each group; the classes of proxies become columns."""
    groups: dict[tuple[str, ...], list[Use]] = {}
    for use in found:
        groups.setdefault(tuple(getattr(use, name) for name in by), []).append(use)
    return [_row(dict(zip(by, key, strict=True)), groups[key]) for key in sorted(groups)]


def _row(named: dict[UseBy, str], uses: Sequence[Use]) -> UsageRowDocument:
    received = {DIRECT: 0, "datacenter": 0, "residential": 0, "unlocker": 0}
    for use in uses:
        received[use.proxy_class or DIRECT] = received.get(use.proxy_class or DIRECT, 0) + use.bytes
    return UsageRowDocument(
        day=named.get("day"),
        client=named.get("client"),
        scraper=named.get("scraper"),
        site=named.get("site"),
        runs=sum(use.runs for use in uses),
        fetches=sum(use.requests for use in uses),
        failures=sum(use.failures for use in uses),
        megabytes=_megabytes(sum(received.values())),
        direct_megabytes=_megabytes(received[DIRECT]),
        datacenter_megabytes=_megabytes(received["datacenter"]),
        residential_megabytes=_megabytes(received["residential"]),
        unlocker_megabytes=_megabytes(received["unlocker"]),
        browser_seconds=round(sum(use.browser_ms for use in uses) / 1000, 3),
        ai_tokens=sum(use.ai_tokens for use in uses),
        ai_cost=round(sum(use.ai_millionths for use in uses) / 1_000_000, 6),
    )


def _megabytes(size: int) -> float:
    return round(size / 2**20, 3)


def as_csv(report: UsageReportDocument) -> str:
    """With a header, and without the columns that it is not grouped by. A name that a spreadsheet would take for a
    formula gets an apostrophe before it."""
    names = [name for name in UsageRowDocument.__struct_fields__ if name not in _GROUPS or name in report.by]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    for row in report.rows:
        writer.writerow([_cell(getattr(row, name)) for name in names])
    return text.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
