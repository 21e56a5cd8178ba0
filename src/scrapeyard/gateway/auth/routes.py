"""`/api/keys`: make, list, rotate and revoke keys. `/api/links`: open a download in a browser."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from msgspec import to_builtins
from starlette.responses import Response

from scrapeyard.errors import BadRequest
from scrapeyard.gateway.audit.middleware import AuditDep
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.auth.documents import (
    EXAMPLE_KEY,
    IdentityDocument,
    KeyCall,
    KeyDocument,
    KeysDocument,
    LinkCall,
    LinkDocument,
    NewKeyDocument,
    RotateCall,
    key_fields,
)
from scrapeyard.gateway.auth.permissions import WEBSOCKET, Permission, RouteAccess
from scrapeyard.gateway.http.answers import AnswerRoute, respond
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep, shown, there
from scrapeyard.gateway.http.paths import our_path
from scrapeyard.model.identity import KEY_ID, ApiKey, ClientLimits
from scrapeyard.model.instants import instant

_Id = Annotated[
    str,
    Path(description="The key's id.", examples=[EXAMPLE_KEY], json_schema_extra=shown(KEY_ID)),
    there("key", KEY_ID),
]
_HERE = "/api/keys/{key_id}"
_NO_LIMITS = ClientLimits()
router = APIRouter(tags=["keys"], route_class=AnswerRoute)


@router.post(
    "/api/keys",
    status_code=201,
    summary="Make a key",
    response_model=NewKeyDocument,
    responses=refusals(400, 409, 413, 422, 503),
)
async def create_key(gateway: GatewayDep, audit: AuditDep, call: KeyCall) -> Response:
    """The answer has the secret, this once; only a keyed hash of it is stored. In force on every gateway within a
    second."""
    now = gateway.services.clock()
    key, secret = await gateway.keys.create(call.draft(now))
    audit.change(None, _told(key))
    return respond(NewKeyDocument(**key_fields(key, now), secret=secret), 201, {"Location": f"/api/keys/{key.id}"})


@router.get("/api/keys", summary="List keys", responses=refusals(422, 503))
async def list_keys(gateway: GatewayDep) -> KeysDocument:
    """The newest first, those that ended included."""
    now = gateway.services.clock()
    return KeysDocument(keys=[KeyDocument(**key_fields(key, now)) for key in await gateway.keys.all()])


@router.get(_HERE, summary="A key", responses=refusals(404, 422, 503))
async def get_key(gateway: GatewayDep, key_id: _Id) -> KeyDocument:
    """What it may do, and when it was last used."""
    return KeyDocument(**key_fields(gateway.keys.get(key_id), gateway.services.clock()))


@router.post(
    _HERE + "/rotate",
    status_code=201,
    summary="Replace a key",
    response_model=NewKeyDocument,
    responses=refusals(400, 404, 409, 413, 422, 503),
)
async def rotate_key(gateway: GatewayDep, audit: AuditDep, key_id: _Id, call: RotateCall) -> Response:
    """Makes a key that may do the same, with a new secret. The old one works until the overlap is over."""
    key, secret, before = await gateway.keys.rotate(key_id, call.overlap_seconds)
    audit.change(_told(before), _told(key))
    shown = NewKeyDocument(**key_fields(key, gateway.services.clock()), secret=secret)
    return respond(shown, 201, {"Location": f"/api/keys/{key.id}"})


@router.delete(_HERE, summary="Revoke a key", responses=refusals(404, 422, 503))
async def revoke_key(gateway: GatewayDep, audit: AuditDep, key_id: _Id) -> KeyDocument:
    """No gateway takes it any more a second later. What its client owns stays, and its schedules go on. May be
    repeated."""
    key = await gateway.keys.revoke(key_id)
    audit.change(_told(key), None)
    return KeyDocument(**key_fields(key, gateway.services.clock()))


@router.get("/api/identity", summary="Who calls", responses=refusals(422))
async def get_identity(identity: IdentityDep) -> IdentityDocument:
    """What the caller's key is and may do."""
    return IdentityDocument.of(identity)


@router.post("/api/links", summary="Make a link", responses=refusals(400, 403, 413, 422, 503))
async def create_link(gateway: GatewayDep, identity: IdentityDep, request: Request, call: LinkCall) -> LinkDocument:
    """A link that opens one download or stream for some minutes, for browsers, which send no key. It ends with the key
    that it was made with. While nobody is asked for a key it is the path itself."""
    _check_path(RouteAccess(request.app.routes), call.path)
    if not gateway.authenticator.required:
        return LinkDocument(url=call.path, expires_at=instant(gateway.services.clock() + call.seconds))
    url, until = gateway.links.make(identity, call.path, call.seconds)
    return LinkDocument(url=url, expires_at=instant(until))


def _check_path(access: RouteAccess, path: str) -> None:
    place = our_path(path.partition("?")[0])
    found = {access.permission({"path": place, "method": method}) for method in ("GET", WEBSOCKET)}
    if Permission.WORK_READ not in found:
        raise BadRequest(f"path: {place[:200]} is no download or stream of a run, a job or an export")


def _told(key: ApiKey) -> dict[str, Any]:
    """What of a key stands in the audit."""
    told = {"id": key.id, "name": key.name, "client": key.client, "role": key.role, "scrapers": list(key.scrapers)}
    ends = {"expires_at": instant(key.expires_at), "revoked_at": instant(key.revoked_at)}
    return told | ends | ({} if key.limits == _NO_LIMITS else {"limits": to_builtins(key.limits)})
