"""Credentials: what a request shows to prove who calls, and the check of each kind."""

import binascii
from base64 import b64decode
from collections.abc import Iterable
from typing import Literal, Protocol

from starlette.types import Scope

from scrapeyard.errors import Refusal
from scrapeyard.model.identity import Identity

MAX_TOKEN = 16_384
"""Maximum characters of a token; those of identity providers may be long."""


class Credentials(Protocol):
    """One kind of credentials: keys, tokens of an issuer, sessions."""

    @property
    def in_use(self) -> bool:
        """Whether somebody has such credentials, so that calls must show some."""

    async def identify(self, token: str | None, scope: Scope) -> Identity | None:
        """Who calls; None if the request shows no credentials of this kind. `token` is what its headers carry.

        Raises Refusal (401, `unauthenticated`) if they are of this kind and not valid; the message says why.
        """


class Authenticator:
    """Asks each kind of credentials who calls."""

    def __init__(self, kinds: Iterable[Credentials], mode: Literal["auto", "on", "off"] = "auto") -> None:
        self._kinds = tuple(kinds)
        self._mode = mode

    @property
    def required(self) -> bool:
        """Whether calls must be authenticated."""
        if self._mode != "auto":
            return self._mode == "on"
        return any(kind.in_use for kind in self._kinds)

    async def identify(self, scope: Scope) -> Identity | None:
        """Who calls; None if the request shows no credentials. Raises Refusal (401) if it shows some that are not
        valid."""
        token = token_of(scope)
        for kind in self._kinds:
            if (identity := await kind.identify(token, scope)) is not None:
                return identity
        if token is not None:
            raise unauthenticated("the key or token has no form that is known here")
        return None


def unauthenticated(detail: str) -> Refusal:
    """The answer to credentials that are missing or not valid."""
    return Refusal("unauthenticated", 401, detail)


def token_of(scope: Scope) -> str | None:
    """The key or token of a request: `Authorization: Bearer`, the password of `Authorization: Basic`, or `X-API-Key`.
    None if it has none. Raises Refusal (401) if it has several or one that cannot be read."""
    found = [_token(name, value) for name, value in scope["headers"] if name in (b"authorization", b"x-api-key")]
    if not found:
        return None
    if len(found) > 1:
        raise unauthenticated("the request has more than one Authorization or X-API-Key header; send one")
    if not 0 < len(found[0]) <= MAX_TOKEN:
        raise unauthenticated(f"the key or token is empty or has more than {MAX_TOKEN} characters")
    return found[0]


def _token(name: bytes, value: bytes) -> str:
    if name == b"x-api-key":
        return value.decode("latin-1").strip()
    scheme, _, rest = value.decode("latin-1").strip().partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() != "basic":
        raise unauthenticated("the Authorization header is neither Bearer nor Basic")
    try:
        return b64decode(rest.strip(), validate=True).decode("latin-1").partition(":")[2]
    except (binascii.Error, ValueError):
        raise unauthenticated("the Basic credentials are not base64; send user:key, the key as password") from None
