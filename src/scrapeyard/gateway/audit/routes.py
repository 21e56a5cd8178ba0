"""`/api/audit`: who changed what, and who was refused."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from msgspec import Meta, Struct

from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import Cursor, GatewayDep, Instant, Limit, seconds_of
from scrapeyard.gateway.http.patterns import NEXT
from scrapeyard.model.audit import AuditRow
from scrapeyard.model.instants import instant
from scrapeyard.store.ports.audit import AuditFilter

router = APIRouter(tags=["audit"], route_class=AnswerRoute)
_TEXT = r"^[\x20-\x7e]{0,300}$"


class AuditDocument(Struct, frozen=True, kw_only=True):
    """A change, or a call that was refused."""

    number: Annotated[int, Meta(description="Its place in the chain, from 1 without gaps.")]
    at: str
    client: Annotated[
        str,
        Meta(description="Who called; empty: nobody who is known; `local:` and a user: on the server's machine."),
    ]
    role: Annotated[str, Meta(description="The role of the caller; empty: unknown.")]
    key_id: Annotated[str, Meta(description="The key that was used; empty: none, or other credentials.")]
    address: Annotated[str, Meta(description="Where the call came from; empty for commands on the server.")]
    action: Annotated[str, Meta(description="The operation's id in the OpenAPI document, or the command.")]
    resource: Annotated[str, Meta(description="The path of the call, or what the command changed.")]
    status: Annotated[int, Meta(description="HTTP status of the answer; 0 for a command.")]
    code: Annotated[str, Meta(description="Why it was refused; empty if it was done.")]
    request_id: Annotated[str, Meta(description="As the answer had it in X-Request-Id.")]
    count: Annotated[int, Meta(description="How many equal refusals of one minute it stands for.")]
    before: Annotated[Any, Meta(description="What was there before; null: unknown or too large.")]
    after: Annotated[Any, Meta(description="What is there since; null: nothing, unknown or too large.")]
    hash: Annotated[str, Meta(description="SHA-256 over this row and the hash of the row before it.")]


class AuditPageDocument(Struct, frozen=True, kw_only=True):
    """One page of the audit, newest first."""

    rows: list[AuditDocument]
    next_cursor: Annotated[str | None, NEXT]


@router.get("/api/audit", summary="The audit", responses=refusals(400, 422, 503))
async def list_audit(
    gateway: GatewayDep,
    *,
    client: Annotated[str | None, Query(pattern=_TEXT, description="Who called.")] = None,
    action: Annotated[str | None, Query(pattern=_TEXT, description="The operation, such as `put_site`.")] = None,
    resource: Annotated[str | None, Query(pattern=_TEXT, description="What the path begins with.")] = None,
    refused: Annotated[bool | None, Query(description="Only calls that were refused, or only changes.")] = None,
    since: Instant = None,
    until: Instant = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> AuditPageDocument:
    """Every change and every refused call, newest first. Follow `next_cursor` for more. On the server,
    `scrapeyard audit verify` checks that nobody changed a row."""
    where = AuditFilter(
        client=client,
        action=action,
        resource=resource,
        refused=refused,
        since=seconds_of(since),
        until=seconds_of(until),
    )
    page = await gateway.services.store.audit.page(where, cursor, limit)
    return AuditPageDocument(rows=[_document(row) for row in page.rows], next_cursor=page.next_cursor)


def _document(row: AuditRow) -> AuditDocument:
    fields = {name: getattr(row.entry, name) for name in row.entry.__struct_fields__}
    fields["at"] = instant(row.entry.at)
    return AuditDocument(number=row.number, hash=row.hash, **fields)
