"""`/api/session`: sign in and out with a browser, and who has signed in."""

from html import escape
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.routing import APIRoute
from starlette.responses import HTMLResponse, RedirectResponse, Response

from scrapeyard.errors import NotFound, Refusal
from scrapeyard.gateway.audit.middleware import AuditDep, AuditNote
from scrapeyard.gateway.auth.credentials import token_of, unauthenticated
from scrapeyard.gateway.auth.documents import SessionDocument, SignInCall
from scrapeyard.gateway.auth.permissions import GRANTS
from scrapeyard.gateway.auth.sessions import SESSION, SignedSession, cookie_of, origin_of, set_cookie
from scrapeyard.gateway.http.answers import AnswerRoute, respond
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.model.identity import EVERYONE, Identity
from scrapeyard.model.instants import instant

ATTEMPT: Final = "scrapeyard-sign-in"
"""The cookie of a browser whose user is at the identity provider."""
START: Final = "/api/session/oidc/start"
CALLBACK: Final = "/api/session/oidc/callback"
_NEXT: Final = r"^/([\x21-\x2e\x30-\x5b\x5d-\x7e][\x21-\x7e]{0,1000})?$"
"""A path of ours. Two slashes, or one and a backslash, would lead elsewhere."""
router = APIRouter(tags=["keys"], route_class=AnswerRoute)
callback_router = APIRouter(tags=["keys"], route_class=APIRoute, include_in_schema=False)


@router.get("/api/session", summary="Who has signed in", responses=refusals(422, 503))
async def get_session(gateway: GatewayDep, request: Request) -> SessionDocument:
    """For web pages: who calls, what they may do, how they can sign in, and the CSRF token of the session. Answers also
    callers that are not known."""
    try:
        session = gateway.sessions.find(request.scope) if gateway.authenticator.required else None
        return _shown(gateway, await _caller(gateway, request), session)
    except Refusal as error:
        if error.status != 401:
            raise
        return _shown(gateway, None, None)


async def _caller(gateway: GatewayDep, request: Request) -> Identity | None:
    return await gateway.authenticator.identify(request.scope) if gateway.authenticator.required else EVERYONE


def _shown(gateway: GatewayDep, identity: Identity | None, session: SignedSession | None) -> SessionDocument:
    return SessionDocument(
        auth_required=gateway.authenticator.required,
        signed_in=identity is not None,
        client=identity.client if identity else "",
        role=identity.role if identity else None,
        scrapers=list(identity.scrapers) if identity else [],
        permissions=sorted(GRANTS[identity.role]) if identity else [],
        expires_at=instant(session.until) if session else None,
        csrf_token=gateway.sessions.csrf_token(session) if session else None,
        ways=["key", "oidc"] if gateway.sign_in else ["key"],
        oidc_url=START if gateway.sign_in else None,
    )


@router.post(
    "/api/session",
    status_code=201,
    summary="Sign in with a key",
    response_model=SessionDocument,
    responses=refusals(400, 401, 413, 422, 503),
)
async def create_session(
    gateway: GatewayDep, audit: AuditDep, request: Request, call: SignInCall | None = None
) -> Response:
    """Opens a session with the key of the body, or else of the headers. The answer sets a cookie, which scripts cannot
    read. Calls that change something by that cookie must carry `csrf_token` as `X-CSRF-Token`."""
    token = call.key if call else token_of(request.scope)
    identity = None if token is None else await gateway.keys.identify(token, request.scope)
    if identity is None:
        raise unauthenticated("send a key, which begins with sy_")
    session = gateway.sessions.open(identity)
    _report(audit, identity, session)
    response = respond(_shown(gateway, identity, session), 201)
    gateway.sessions.give(response, session, request.scope)
    return response


@router.delete(
    "/api/session", status_code=204, summary="Sign out", response_class=Response, responses=refusals(403, 422)
)
async def delete_session(gateway: GatewayDep, audit: AuditDep, request: Request) -> Response:
    """Takes the cookie from the browser. May be repeated. To end a session everywhere, revoke its key."""
    try:
        audit.identity = await gateway.sessions.identify(None, request.scope)
    except Refusal as error:
        if error.status != 401:  # what has ended already is signed out
            raise
    response = Response(status_code=204)
    set_cookie(response, request.scope, SESSION, "", 0)
    return response


@router.get(
    START,
    status_code=303,
    summary="Sign in at the identity provider",
    response_class=Response,
    responses=refusals(404, 422, 503),
)
async def start_oidc(
    gateway: GatewayDep,
    request: Request,
    next: Annotated[str, Query(pattern=_NEXT, description="The path that is opened in the end.")] = "/",  # noqa: A002
) -> Response:
    """Sends the browser to the provider that `oidc.issuer` names, and from there back here with a session. 404 if
    `oidc.client_id` is not set."""
    if gateway.sign_in is None:
        raise NotFound("nobody signs in at an identity provider here: oidc.issuer and oidc.client_id are not set")
    place, cookie = await gateway.sign_in.begin(origin_of(request.scope) + CALLBACK, next)
    response = RedirectResponse(place, 303)
    # the way back begins at another site, from where browsers send no strict cookie
    set_cookie(response, request.scope, ATTEMPT, cookie, 600, same_site="lax")
    return response


@callback_router.get(CALLBACK)
async def finish_oidc(gateway: GatewayDep, audit: AuditDep, request: Request) -> Response:
    """Where the identity provider sends browsers back to. Opens a session and then the page."""
    if gateway.sign_in is None:
        raise NotFound("nobody signs in at an identity provider here: oidc.issuer and oidc.client_id are not set")
    callback, cookie = origin_of(request.scope) + CALLBACK, cookie_of(request.scope, ATTEMPT)
    identity, place = await gateway.sign_in.finish(cookie, request.query_params, callback)
    session = gateway.sessions.open(identity, gateway.services.settings.oidc.issuer)
    _report(audit, identity, session)
    response = _onward(place)
    gateway.sessions.give(response, session, request.scope)
    set_cookie(response, request.scope, ATTEMPT, "", 0)
    return response


def _report(audit: AuditNote, identity: Identity, session: SignedSession) -> None:
    audit.identity = identity
    audit.change(None, {"client": identity.client, "role": identity.role, "expires_at": instant(session.until)})


def _onward(place: str) -> Response:
    """A page that opens another. A redirect would still count as coming from the provider's site, and browsers would
    send no strict cookie along."""
    path = escape(place)
    page = f'<!doctype html><meta charset="utf-8"><title>Scrapeyard</title><a href="{path}">Scrapeyard</a>'
    onward = f'<meta http-equiv="refresh" content="0;url={path}">'
    return HTMLResponse(page + onward, headers={"Content-Security-Policy": "default-src 'none'"})
