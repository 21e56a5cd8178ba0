"""Sessions of browsers: who signed in, as a signed cookie.

Nothing is stored: every gateway with the same pepper knows the cookie. A session ends with its time, with the key that
it was opened with, or with the issuer. Signing out takes the cookie from the browser; a copy of it would count on until
then.

A browser sends its cookies whoever asks it to. So a call that changes something must carry the session's CSRF token in
a header, which no page of another origin can know or send.
"""

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Final, Literal

import msgspec
from msgspec import Struct
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import Scope

from scrapeyard.errors import NotFound, Refusal
from scrapeyard.gateway.auth.credentials import unauthenticated
from scrapeyard.gateway.auth.keys import KeyRing
from scrapeyard.model.identity import Identity, Pepper, Role

CSRF_HEADER: Final = "X-CSRF-Token"
SESSION: Final = "scrapeyard-session"
MAX_COOKIE: Final = 4096
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class SignedSession(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who signed in, until when. Of a key its id alone: what it may do is looked up for every call."""

    id: str
    until: int
    key_id: str = ""
    issuer: str = ""
    """Who vouched for client and role; empty if a key did."""
    client: str = ""
    role: Role = Role.CLIENT


class SignedSessions:
    """Credentials: cookies that `POST /api/session` or an identity provider's sign-in gave to a browser."""

    in_use = False
    """Sessions are opened with keys or tokens, which say that calls must be authenticated."""

    def __init__(
        self, keys: KeyRing, pepper: Pepper, clock: Callable[[], float], *, seconds: float, issuer: str
    ) -> None:
        self._keys = keys
        self._pepper = pepper
        self._clock = clock
        self._seconds = seconds
        self._issuer = issuer

    def open(self, identity: Identity, issuer: str = "") -> SignedSession:
        """A session of somebody who has just proved who they are."""
        made = SignedSession(id=secrets.token_hex(16), until=int(self._clock() + self._seconds))
        if identity.key_id:
            return msgspec.structs.replace(made, key_id=identity.key_id)
        return msgspec.structs.replace(made, issuer=issuer, client=identity.client, role=identity.role)

    def give(self, response: Response, session: SignedSession, scope: Scope) -> None:
        """Add the cookie to an answer."""
        words = urlsafe_b64encode(msgspec.json.encode(session)).decode()
        seconds = max(0, session.until - int(self._clock()))
        set_cookie(response, scope, SESSION, f"{words}.{self._pepper.sign('session', words)}", seconds)

    def csrf_token(self, session: SignedSession) -> str:
        """What calls of the session that change something must carry."""
        return self._pepper.sign("csrf", session.id)

    def find(self, scope: Scope) -> SignedSession | None:
        """The session of a request's cookie; None if it has none. Raises Refusal (401) if it is not valid."""
        given = cookie_of(scope, SESSION)
        if given is None:
            return None
        words, _, signature = given.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._pepper.sign("session", words).encode()):
            raise unauthenticated("the session was not made here; sign in again")
        session = msgspec.json.decode(urlsafe_b64decode(words), type=SignedSession)
        if self._clock() >= session.until or (session.issuer and session.issuer != self._issuer):
            raise unauthenticated("the session has ended; sign in again")
        return session

    def identity(self, session: SignedSession) -> Identity:
        """Who calls by it. Raises Refusal (401) if its key has ended."""
        if session.issuer:
            return Identity(client=session.client, role=session.role)
        try:
            return self._keys.checked(self._keys.get(session.key_id))
        except NotFound:
            raise unauthenticated("the key that the session was opened with is gone") from None

    async def identify(self, token: str | None, scope: Scope) -> Identity | None:
        """Who calls; None if the request has no session, or a key or token beside it. Raises Refusal: 401 for a session
        that is not valid, 403 for a change without the CSRF token."""
        session = self.find(scope) if token is None else None
        if session is None:
            return None
        identity = self.identity(session)
        if scope.get("method", "GET") not in _SAFE:
            self._check_csrf(session, scope)
        return identity

    def _check_csrf(self, session: SignedSession, scope: Scope) -> None:
        given = Headers(scope=scope).get(CSRF_HEADER, "")
        if not hmac.compare_digest(given.encode(), self.csrf_token(session).encode()):
            raise Refusal("csrf_refused", 403, f"the header {CSRF_HEADER} is missing or is not that of the session")


def origin_of(scope: Scope) -> str:
    """Scheme and host as the browser has them, also behind a proxy that ends TLS. The proxy's word is believed from
    anybody: it only decides how the caller's own cookie is set, and the provider knows where it may send people."""
    headers = Headers(scope=scope)
    secure = scope["scheme"] in ("https", "wss") or headers.get("x-forwarded-proto", "").lower() == "https"
    return f"{'https' if secure else 'http'}://{headers.get('host', '')}"


def _cookie_name(scope: Scope, name: str) -> str:
    """Under TLS with a prefix, by which browsers refuse what another host or a plain connection sets."""
    return f"__Host-{name}" if origin_of(scope).startswith("https:") else name


def cookie_of(scope: Scope, name: str) -> str | None:
    """A cookie of ours; None if the request has none."""
    for key, value in scope["headers"]:
        if key == b"cookie" and len(value) <= 4 * MAX_COOKIE:
            found = cookie_parser(value.decode("latin-1")).get(_cookie_name(scope, name))
            if found and len(found) <= MAX_COOKIE:
                return found
    return None


def set_cookie(
    response: Response,
    scope: Scope,
    name: str,
    value: str,
    seconds: int,
    *,
    same_site: Literal["strict", "lax"] = "strict",
) -> None:
    """Add a cookie to an answer that no script can read; 0 seconds take it away."""
    told = _cookie_name(scope, name)
    response.set_cookie(
        told,
        value,
        max_age=seconds,
        path="/",
        secure=told != name,
        httponly=True,
        samesite=same_site,
    )
